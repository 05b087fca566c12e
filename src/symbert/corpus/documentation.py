"""The text of the embedded source: English paragraphs from the docstrings of installed, pinned packages.

The packages are parsed, never imported, so nothing of them runs. Files are visited in sorted order and
a paragraph is given once, so equal package versions give equal passages.
"""

import ast
import importlib.metadata
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from symbert.corpus.prose import paragraphs
from symbert.errors import DataError, MissingInputError
from symbert.files import publish


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

SKIPPED_FOLDERS = {"tests", "test", "testing", "_vendor", "externals", "extern"}


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
    """The passages that `write_documentation` wrote; DataError when the file is none of its."""
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
            for name, docstring in _docstrings(_parse(root / path), module):
                for text in paragraphs(docstring):
                    yield Passage(package.distribution, distribution.version, path, name, text)


def _parse(file: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other people's docstrings
        return ast.parse(file.read_bytes())


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
