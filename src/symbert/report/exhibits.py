"""The registry of tables, figures and texts: each is declared in a file in the folder of its kind.

To add one, add such a file, or a function to one: its place on the page, its files and its caption follow. Its
declaration is the decorator `exhibit`, with literal values, and the caption is the first paragraph of the function's
docstring. They are read without importing the file.
"""

import ast
import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from symbert.glue.tasks import BESIDE_GLUE, Suite

CHAPTERS = (  # of the page
    "At a glance",
    "Claims",
    "Pre-training",
    "Robustness",
    "Operators",
    "Hosts",
    "GLUE",
    *(suite.title for suite in BESIDE_GLUE),
    "Statistics of scores",
    "Corpus",
    "Provenance",
)
FORMATS = {  # the first is on the page
    "table": ("html", "csv", "md", "tex"),
    "figure": ("png", "pdf", "txt", "tex"),
    "text": ("txt",),
}


@dataclass(frozen=True)
class Exhibit:
    """A table, figure or text: where it stands, what it shows, and what it is made of.

    `reads` and `may_read` name attributes of `symbert.report.data.Data`. An exhibit exists where an experiment has all
    that it reads.
    """

    kind: str  # table, figure or text
    name: str  # of its files
    chapter: str  # one of CHAPTERS
    heading: str
    caption: str  # also for those who cannot see a figure
    place: int = 0  # in its chapter
    reads: tuple[str, ...] = ()
    may_read: tuple[str, ...] = ()
    suite: str = "glue"  # whose scores it reads
    per_size: bool = False  # drawn once for each size of model
    of_imported: bool = True  # whether it can be made of imported scores
    of_grids: bool = False  # whether it is made of a sweep of other keys than hosts, sizes, operators and seeds
    module: str = ""
    function: str = ""

    @property
    def id(self) -> str:
        """What the page calls it: 'table-corpus'."""
        return f"{self.kind}-{self.name}"

    @property
    def stem(self) -> str:
        """Its files without their formats, below the report's folder; `{size}` stands for a size."""
        return f"{self.kind}s/{self.name}" + ("_{size}" if self.per_size else "")

    @property
    def is_of_experiment(self) -> bool:
        """Whether it shows results, beside what the paper prints and what models have by their shape."""
        return not {*self.reads, *self.may_read} <= {"parameters"}

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats of its files."""
        return FORMATS[self.kind]

    @property
    def rank(self) -> tuple[int, int, str]:
        """Sort key for the order of the page."""
        return CHAPTERS.index(self.chapter), self.place, self.id

    def load(self) -> Callable[[Any], Any]:
        """The function that makes it from `symbert.report.data.Data`."""
        return getattr(importlib.import_module(f"symbert.report.{self.kind}s.{self.module}"), self.function)


def exhibit(**declaration: Any) -> Callable[[Callable], Callable]:
    """Declare the function of a file to make its table or figure; the keywords are fields of `Exhibit`, as literals.

    The name is that of the file, unless it is given. With `per_suite` it is `suite…`, and there is one for each suite
    beside GLUE that is fine-tuned on: its name, chapter and the start of its heading are of the suite.
    """
    return lambda function: function


def _declared(kind: str, file: Path) -> list[Exhibit]:
    """The exhibits of a file, or those of every suite; ValueError for one of no chapter."""
    made = []
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        for call in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "exhibit":
                declared = {"name": file.stem, "module": file.stem, "function": node.name}
                declared["caption"] = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
                declared |= {word.arg: ast.literal_eval(word.value) for word in call.keywords}
                if declared.pop("per_suite", False):
                    made += [_of_suite(suite, kind, **declared) for suite in BESIDE_GLUE if suite.tasks]
                else:
                    made.append(Exhibit(kind, **{"chapter": ""} | declared))
    if not made or not {each.chapter for each in made} <= set(CHAPTERS):
        raise ValueError(f"{file}: declare an exhibit, of a chapter of {', '.join(CHAPTERS)}")
    return made


def _of_suite(suite: Suite, kind: str, name: str, heading: str, caption: str, **declared: Any) -> Exhibit:
    """The exhibit that a function makes of a suite."""
    words = {"heading": f"{suite.title}: {heading}", "caption": f"{suite.title}. {caption}"}
    return Exhibit(kind, name.replace("suite", suite.name, 1), suite.title, **words, suite=suite.name, **declared)


EXHIBITS: dict[str, Exhibit] = {
    each.id: each
    for each in sorted(
        (
            declared
            for kind in FORMATS
            for file in Path(__file__).parent.glob(f"{kind}s/*.py")
            if file.stem != "__init__"
            for declared in _declared(kind, file)
        ),
        key=lambda each: each.rank,
    )
}


def exhibit_of(kind: str, stem: str) -> Exhibit:
    """The exhibit of a file, by its name without format; of one drawn per size, under the name and heading of its size.

    KeyError for a file of none.
    """
    if (known := EXHIBITS.get(f"{kind}-{stem}")) is not None:
        return known
    name, _, size = stem.rpartition("_")
    drawn = EXHIBITS[f"{kind}-{name}"]
    return replace(drawn, name=stem, heading=f"{drawn.heading}, {size}")
