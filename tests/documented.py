"""What README.md and docs/ show in blocks of code, for the tests that check or run it."""

import re
from pathlib import Path


def blocks_of(text: str) -> list[tuple[str, str]]:
    """The blocks of code of a page: the words after the fence, and the code."""
    return re.findall(r"^ *```([^\n]*)\n(.*?)^ *```", text, re.S | re.M)


def custom_files(root: Path, page: str = "README.md") -> dict[str, str]:
    """The files that a page shows as the user's own: their text by name."""
    blocks = blocks_of((root / page).read_text(encoding="utf-8"))
    return {title[1]: text for kind, text in blocks if (title := re.search(r'title="(\S+)"', kind))}
