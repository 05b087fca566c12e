"""Which run a folder's name stands for: by a pattern, by a table of names, or as the paper's authors name theirs."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from symbert.declared import suggestion
from symbert.errors import DataError, UsageError
from symbert.report.foreign.rows import Row, run_of, task_columns
from symbert.report.foreign.tables import read_cells

NUMBERS = ("finetune_seed", "pretrain_seed", "step")
FIELDS = ("model", "size", "operator", "task", *NUMBERS)  # what a pattern or a table of names may say
REMEDY = "give --pattern or --mapping"

# The authors' names: no checkpoint means the final step, and no seed means seed 1.
AUTHORS = re.compile(r"bert_([^_]+)_([^_]+)_\d{8}-\d{6}((?:-[a-z]+\d+)*)(?:_([^_]+)(?:_\d{8}-\d{6})?)?")
AUTHORS_FORM = "bert_<size>_<operator>_<date>-ckpt<step>-seed<seed>_<task>_<date>"
AUTHORS_OPERATORS = {"vanilla": "original"}  # those that are called otherwise here
AUTHORS_TAGS = {"ckpt": "step", "seed": "finetune_seed"}


@dataclass(frozen=True)
class Naming:
    """How runs are named.

    `pattern` has fields, such as '{model}_{task}_s{finetune_seed}', and '*' for anything; it is compared with the end
    of a path, of as many parts as it has. `mapping` is a csv file with the column `folder` and some of the fields.
    """

    pattern: str | None = None
    mapping: Path | None = None

    def __post_init__(self) -> None:
        if self.pattern and self.mapping:
            raise UsageError("import-scores: --pattern and --mapping are both given; choose one")

    def run_at(self, path: Path, root: Path, origin: str, name: str = "") -> tuple[Row, str | None]:
        """The run of a folder or file below `root`, and the name of its task, if it is said.

        A mapping has its path from there, or that of its folder; a pattern is compared with the `name`, or else with
        the path. DataError, about `origin`, for a name of another form or a path that is not in the mapping.
        """
        if not self.mapping:
            return self.run_named(name or path.absolute().as_posix(), origin)
        place = path.relative_to(root) if path.is_relative_to(root) else path
        for known in (PurePosixPath(place.as_posix()), PurePosixPath(place.parent.as_posix())):
            if known in self._mapped:
                return run_of(self._mapped[known], origin), self._mapped[known].get("task") or None
        raise DataError(f"{origin}: '{place.as_posix()}' is no folder of {self.mapping}; add it")

    def run_named(self, name: str, origin: str) -> tuple[Row, str | None]:
        """A run and the name of its task by its name alone."""
        if not self.pattern:
            return _run_of_authors(name, origin)
        parts = PurePosixPath(name).parts[-self.pattern.count("/") - 1 :]
        match = self._expression.fullmatch("/".join(parts))
        if not match:
            words = ", ".join(sorted(task_columns()))
            tasks = f", of the tasks {words}" if "task" in self._expression.groupindex else ""
            raise DataError(f"{origin}: '{'/'.join(parts)}' is not like the pattern '{self.pattern}'{tasks}")
        return run_of(match.groupdict(), origin), match.groupdict().get("task")

    @cached_property
    def _expression(self) -> re.Pattern:
        tasks = "|".join(name.replace("_", "[-_ ]") for name in sorted(task_columns(), key=len, reverse=True))
        forms = {"task": f"(?i:{tasks})", **dict.fromkeys(NUMBERS, r"\d+")}
        text = ""
        for literal, field in re.findall(r"([^{}*]+)|(\{\w*\}|[{}*])", self.pattern):
            name = field.strip("{}")
            if literal or field == "*":
                text += re.escape(literal) if literal else r"[^/]*"
            elif name not in FIELDS:
                raise UsageError(f"import-scores: --pattern has '{field}'{suggestion(name, FIELDS)}")
            elif f"(?P<{name}>" in text:
                raise UsageError(f"import-scores: --pattern has '{field}' twice; keep one of them")
            else:
                text += f"(?P<{name}>{forms.get(name, '[^/]+?')})"
        if not {"model", "operator"} & set(re.compile(text).groupindex):
            raise UsageError(f"import-scores: --pattern is '{self.pattern}', expected {{model}} or {{operator}} in it")
        return re.compile(text)

    @property
    def folders(self) -> set[PurePosixPath]:
        """Those that the mapping names; none without one."""
        return set(self._mapped) if self.mapping else set()

    @cached_property
    def _mapped(self) -> dict[PurePosixPath, dict[str, Any]]:
        mapped = {}
        for place, cells in read_cells(self.mapping):
            if "folder" not in cells:
                raise DataError(f"{self.mapping}: no column 'folder'; add it")
            for column in cells.keys() - {"folder", *FIELDS}:
                raise DataError(f"{self.mapping}: unknown column '{column}'{suggestion(column, FIELDS)}")
            folder = PurePosixPath(cells["folder"])
            if folder in mapped:
                raise DataError(f"{place}: '{folder}' is there twice; keep one of them")
            mapped[folder] = cells
        return mapped


def _run_of_authors(name: str, origin: str) -> tuple[Row, str | None]:
    match = AUTHORS.fullmatch(PurePosixPath(name).name)
    tags = re.findall(r"-([a-z]+)(\d+)", match[3]) if match else []
    if not match or len(dict(tags)) < len(tags):
        raise DataError(
            f"{origin}: '{PurePosixPath(name).name}' is no run's name; expected {AUTHORS_FORM}, or {REMEDY}"
        )
    for tag, _ in tags:
        if tag not in AUTHORS_TAGS:
            raise DataError(f"{origin}: unknown tag '{tag}'{suggestion(tag, AUTHORS_TAGS)}")
    numbers = {AUTHORS_TAGS[tag]: number for tag, number in tags}
    fields = {"size": match[1], "operator": AUTHORS_OPERATORS.get(match[2], match[2]), **numbers}
    return run_of(fields, origin), match[4]
