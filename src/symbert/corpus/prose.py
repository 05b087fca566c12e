"""From a docstring to its paragraphs of English: one line each, without markup, code, tables and headings."""

import re
from collections.abc import Iterator

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


def paragraphs(docstring: str) -> Iterator[str]:
    """The paragraphs of a docstring (as `inspect.cleandoc` leaves it) that are whole English sentences."""
    for lines in _blocks(docstring.expandtabs().split("\n")):
        text = _plain(" ".join(lines))
        if is_prose(text):
            yield text


def is_prose(text: str) -> bool:
    """Whether a paragraph begins and ends as a sentence does and consists mostly of plain words."""
    words = text.split()
    if len(words) < FEWEST_WORDS or not _SENTENCES.fullmatch(text) or _FOREIGN.search(text):
        return False
    return sum(map(bool, map(_WORD.fullmatch, words))) >= PLAIN_WORDS * len(words)


def _plain(text: str) -> str:
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


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
