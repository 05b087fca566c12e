"""The text of the embedded source: 60,272 paragraphs of English from the docstrings of ten Python packages.

They stand in `documentation.parquet` beside this file, each with the package, version, file and object that it is from;
`documentation-licenses.txt` has the packages' licences. Code, tables and formulas were left out, and a paragraph that
repeats is kept once.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

DOCUMENTATION = Path(__file__).with_name("documentation.parquet")
# Where a file of each package is published: what its path below the installed packages is appended to.
FILES_AT = {
    "datasets": "https://github.com/huggingface/datasets/blob/{version}/src/",
    "huggingface_hub": "https://github.com/huggingface/huggingface_hub/blob/v{version}/src/",
    "matplotlib": "https://github.com/matplotlib/matplotlib/blob/v{version}/lib/",
    "networkx": "https://github.com/networkx/networkx/blob/networkx-{version}/",
    "numpy": "https://github.com/numpy/numpy/blob/v{version}/",
    "pandas": "https://github.com/pandas-dev/pandas/blob/v{version}/",
    "scikit-learn": "https://github.com/scikit-learn/scikit-learn/blob/{version}/",
    "scipy": "https://github.com/scipy/scipy/blob/v{version}/",
    "snakemake": "https://github.com/snakemake/snakemake/blob/v{version}/src/",
    "sympy": "https://github.com/sympy/sympy/blob/sympy-{version}/",
}


@dataclass(frozen=True)
class Passage:
    """One paragraph of prose and the object that it documents.

    `path` is the file's path in the installed package (`numpy/fft/_pocketfft.py`), `name` the qualified name of the
    object (`numpy.fft._pocketfft.fft`).
    """

    package: str
    version: str
    path: str
    name: str
    text: str


def read_documentation(path: Path = DOCUMENTATION) -> list[Passage]:
    """All passages, in the order of packages, files and lines."""
    return [Passage(**row) for row in pq.read_table(path).to_pylist()]


def source_url(passage: Passage) -> str:
    """The page of the passage's file in its project's repository."""
    return FILES_AT[passage.package].format(version=passage.version) + passage.path
