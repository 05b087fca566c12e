"""The demo's text: English paragraphs from the docstrings of ten Python packages at fixed versions.

The packages are parsed, never imported. Files are visited in sorted order and a paragraph is given once. Code, tables,
formulas and paragraphs without whole sentences are left out.
"""

import ast
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

SKIPPED_FOLDERS = {"tests", "test", "testing", "_vendor", "externals", "extern"}
_MARKER = re.compile(r"(?:[-*•+]|\d+[.)]|\(\w\))\s+")
_UNDERLINE = re.compile(r"([-=~^*#+.\"'`])\1{2,}$")
_DIRECTIVE = re.compile(r"\.\. ")
_ADMONITION = re.compile(r"\.\. (?:note|warning|important|tip|hint|caution|attention)::\s*")
_MARKUP = (
    (re.compile(r"\s*\[[^\]\s]+\]_"), ""),  # citations
    (re.compile(r"\[`?([^\]`]+)`?\]\([^)]*\)"), r"\1"),  # Markdown links
    (re.compile(r":[\w:+-]+:`([^`<]+?)\s*(?:<[^>]*>)?`"), r"\1"),  # roles
    (re.compile(r"`([^`<]+?)\s*<[^>]*>`_{1,2}"), r"\1"),  # links
    (re.compile(r"``([^`]+)``"), r"\1"),
    (re.compile(r"\[?`([^`]+)`\]?_?"), r"\1"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"\1"),
    (re.compile(r"(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?!\w)"), r"\1"),
    (re.compile(r"(?<![\w.])[~!](?=\w)"), ""),  # short names in roles
)
_SENTENCES = re.compile(r"[\"'(]?[A-Z].*[.!?][\"')]?", re.DOTALL)
_FOREIGN = re.compile(r"[\\$|{}`]|>>>|::|https?:|\.\.\.|[=<>]=")
_WORD = re.compile(r"[(\"'“‘]*[A-Za-z]+(?:[-'’/][A-Za-z]+)*[)\"'”’]*[,.;:!?]*[)\"']*")
FEWEST_WORDS = 6
PLAIN_WORDS = 0.8


@dataclass(frozen=True)
class Package:
    """A distribution, the folder that it installs, and the address of that folder's parent in its repository."""

    name: str
    version: str
    folder: str
    address: str


PACKAGES = (
    Package("datasets", "5.2.0", "datasets", "https://github.com/huggingface/datasets/blob/5.2.0/src/"),
    Package(
        "huggingface_hub",
        "2.4.0",
        "huggingface_hub",
        "https://github.com/huggingface/huggingface_hub/blob/v2.4.0/src/",
    ),
    Package("matplotlib", "3.11.2", "matplotlib", "https://github.com/matplotlib/matplotlib/blob/v3.11.2/lib/"),
    Package("networkx", "3.6.1", "networkx", "https://github.com/networkx/networkx/blob/networkx-3.6.1/"),
    Package("numpy", "2.4.6", "numpy", "https://github.com/numpy/numpy/blob/v2.4.6/"),
    Package("pandas", "3.1.1", "pandas", "https://github.com/pandas-dev/pandas/blob/v3.1.1/"),
    Package("scikit-learn", "1.9.1", "sklearn", "https://github.com/scikit-learn/scikit-learn/blob/1.9.1/"),
    Package("scipy", "1.17.1", "scipy", "https://github.com/scipy/scipy/blob/v1.17.1/"),
    Package("snakemake", "9.27.1", "snakemake", "https://github.com/snakemake/snakemake/blob/v9.27.1/src/"),
    Package("sympy", "1.14.0", "sympy", "https://github.com/sympy/sympy/blob/sympy-1.14.0/"),
)


@dataclass(frozen=True)
class Passage:
    """One paragraph of prose, its package, and the address of the file that it stands in."""

    package: str
    url: str
    text: str


def passages(folder: Path) -> list[Passage]:
    """All paragraphs of the packages that are installed in `folder`, in the order of packages, paths and lines.

    Ends with one line where a package is absent or has another version.
    """
    installed = {each.name: each.version for each in distributions(path=[str(folder)])}
    for package in PACKAGES:
        if installed.get(package.name) != package.version:
            wanted = " ".join(f"{each.name}=={each.version}" for each in PACKAGES)
            sys.exit(
                f"{folder}: {package.name} is {installed.get(package.name, 'absent')}, expected {package.version}; "
                f"give --packages DIR after: pip install --no-deps --target DIR {wanted}"
            )
    first: dict[str, Passage] = {}
    for package in PACKAGES:
        for passage in _of_package(package, folder):
            first.setdefault(passage.text, passage)
    return list(first.values())


def _of_package(package: Package, root: Path) -> list[Passage]:
    passages = []
    for path in sorted(file.relative_to(root).as_posix() for file in (root / package.folder).rglob("*.py")):
        if SKIPPED_FOLDERS.isdisjoint(path.split("/")):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # invalid escapes in other people's docstrings
                tree = ast.parse((root / path).read_bytes())
            for docstring in _docstrings(tree):
                passages += [Passage(package.name, package.address + path, text) for text in paragraphs(docstring)]
    return passages


def _docstrings(node: ast.AST) -> Iterator[str]:
    """The docstrings of a module and of the classes and functions in it, in source order."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        docstring = ast.get_docstring(node)
        if docstring:
            yield docstring
    if isinstance(node, ast.Module | ast.ClassDef | ast.If | ast.Try):
        for child in ast.iter_child_nodes(node):
            yield from _docstrings(child)


def paragraphs(docstring: str) -> Iterator[str]:
    """The paragraphs of a docstring (as `inspect.cleandoc` leaves it) that are whole English sentences."""
    for lines in _blocks(docstring.expandtabs().split("\n")):
        text = " ".join(lines)
        for pattern, replacement in _MARKUP:
            text = pattern.sub(replacement, text)
        text = " ".join(text.split())
        if is_prose(text):
            yield text


def is_prose(text: str) -> bool:
    """Whether a paragraph begins and ends as a sentence does and consists mostly of plain words."""
    words = text.split()
    if len(words) < FEWEST_WORDS or not _SENTENCES.fullmatch(text) or _FOREIGN.search(text):
        return False
    return sum(map(bool, map(_WORD.fullmatch, words))) >= PLAIN_WORDS * len(words)


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Lines of one indentation that belong together; code, directives and headings are left out."""
    block: list[str] = []
    indent = 0
    for line, depth in _outside_code(lines):
        item = _MARKER.match(line)
        if _UNDERLINE.match(line):
            block = []  # what stood there was its heading
            continue
        if block and (depth != indent or item or not line):
            yield block
            block = []
        if line:
            text = line[item.end() :] if item else line
            indent = depth + len(line) - len(text)
            block.append(text)
    yield block


def _outside_code(lines: list[str]) -> Iterator[tuple[str, int]]:
    """Each stripped line outside literal blocks with its depth; what a directive or `::` opens is skipped."""
    closed_above: int | None = None  # skip lines that are deeper than this
    fenced = doctest = False
    for raw in lines:
        line = raw.strip()
        depth = len(raw) - len(raw.lstrip())
        if line.startswith("```"):
            fenced = not fenced
            line = ""
        if closed_above is not None and line and depth <= closed_above:
            closed_above = None
        doctest = bool(line) and (doctest or line.startswith((">>>", "...")))
        if fenced or doctest or closed_above is not None:
            line = ""
        elif admonition := _ADMONITION.match(line):
            line = line[admonition.end() :]
        elif _DIRECTIVE.match(line):
            closed_above, line = depth, ""
        elif line.endswith("::"):
            closed_above = depth
        yield line, depth
