"""Text for LaTeX."""

DAGGER = "†"
LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        **{character: "\\" + character for character in "&%$#_{}"},
        **{"×": r"$\times$", "·": r"$\cdot$", "−": "$-$", "≥": r"$\geq$", "≤": r"$\leq$"},
        **{"²": "$^2$", "√": r"$\surd$", "–": "--", "§": r"\S{}", "≠": r"$\neq$", DAGGER: r"\dag{}"},
        **{"∘": r"$\circ$", "³": "$^3$", "ᵀ": r"$^\top$", "≈": r"$\approx$", "∞": r"$\infty$", "→": r"$\to$"},
    }
)


def latex_note(text: str) -> str:
    """A paragraph in small print under a table or figure."""
    return rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {latex_text(text)}}}"


def latex_text(text: str) -> str:
    """Text in which no character has a meaning for LaTeX."""
    return " ".join(text.translate(LATEX).split())
