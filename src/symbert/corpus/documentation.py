"""The text of the embedded source: English paragraphs from the docstrings of installed, pinned packages.

The packages are parsed, never imported, so nothing of them runs. Files are visited in sorted order and
a paragraph is given once, so equal package versions give equal passages.
"""

import ast
import importlib.metadata
import re
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from symbert.errors import DataError, MissingInputError
from symbert.files import publish

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
    """A distribution, the folder that it installs, and where a file of that folder is published."""

    distribution: str
    folder: str
    repository: str
    tag: str
    prefix: str = ""


PACKAGES = (
    Package("datasets", "datasets", "https://github.com/huggingface/datasets", "{version}", "src/"),
    Package(
        "huggingface_hub", "huggingface_hub", "https://github.com/huggingface/huggingface_hub", "v{version}", "src/"
    ),
    Package("matplotlib", "matplotlib", "https://github.com/matplotlib/matplotlib", "v{version}", "lib/"),
    Package("networkx", "networkx", "https://github.com/networkx/networkx", "networkx-{version}"),
    Package("numpy", "numpy", "https://github.com/numpy/numpy", "v{version}"),
    Package("pandas", "pandas", "https://github.com/pandas-dev/pandas", "v{version}"),
    Package("scikit-learn", "sklearn", "https://github.com/scikit-learn/scikit-learn", "{version}"),
    Package("scipy", "scipy", "https://github.com/scipy/scipy", "v{version}"),
    Package("snakemake", "snakemake", "https://github.com/snakemake/snakemake", "v{version}", "src/"),
    Package("sympy", "sympy", "https://github.com/sympy/sympy", "sympy-{version}"),
)


@dataclass(frozen=True)
class Passage:
    """One paragraph of prose and the object that it documents.

    `path` is the file's path from the installation root (`numpy/fft/_pocketfft.py`), `name` the
    qualified name within the package tree (`numpy.fft._pocketfft.fft`).
    """

    package: str
    version: str
    path: str
    name: str
    text: str


def write_documentation(output: Path) -> None:
    """Write all `passages` as parquet, a row each: parsing the packages takes long, and corpus and tasks need them."""
    schema = pa.schema([(field.name, pa.string()) for field in fields(Passage)])
    table = pa.Table.from_pylist([asdict(passage) for passage in passages()], schema=schema)
    with publish(output) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def read_documentation(path: Path) -> list[Passage]:
    """The passages that `write_documentation` wrote; DataError for another file."""
    try:
        return [Passage(**row) for row in pq.read_table(path).to_pylist()]
    except (pa.ArrowInvalid, TypeError) as error:
        raise DataError(f"{path}: no documentation ({error}); delete it and run write-documentation") from None


def passages() -> Iterator[Passage]:
    """Every paragraph of every package, once, in the order of packages, paths and lines.

    Raises MissingInputError when a package is not installed.
    """
    seen: set[str] = set()
    for package in PACKAGES:
        for passage in _passages_of(package):
            if passage.text not in seen:
                seen.add(passage.text)
                yield passage


def source_url(passage: Passage) -> str:
    """The page of the passage's file in its project's repository, at the installed version."""
    package = next(package for package in PACKAGES if package.distribution == passage.package)
    tag = package.tag.format(version=passage.version)
    return f"{package.repository}/blob/{tag}/{package.prefix}{passage.path}"


def _passages_of(package: Package) -> Iterator[Passage]:
    try:
        distribution = importlib.metadata.distribution(package.distribution)
    except importlib.metadata.PackageNotFoundError:
        raise MissingInputError(
            f"package {package.distribution}: not installed, and the embedded corpus is made of its documentation; "
            "create the environment again"
        ) from None
    root = Path(str(distribution.locate_file("")))
    for path in sorted(file.relative_to(root).as_posix() for file in (root / package.folder).rglob("*.py")):
        if SKIPPED_FOLDERS.isdisjoint(path.split("/")):
            module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # invalid escapes in other people's docstrings
                tree = ast.parse((root / path).read_bytes())
            for name, docstring in _docstrings(tree, module):
                for text in paragraphs(docstring):
                    yield Passage(package.distribution, distribution.version, path, name, text)


def _docstrings(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    """Qualified name and docstring of a module and of the classes and functions in it, in source order."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        docstring = ast.get_docstring(node)
        if docstring:
            yield name, docstring
    if isinstance(node, ast.Module | ast.ClassDef | ast.If | ast.Try):
        for child in ast.iter_child_nodes(node):
            inner = f"{name}.{child.name}" if hasattr(child, "name") else name
            yield from _docstrings(child, inner)


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
