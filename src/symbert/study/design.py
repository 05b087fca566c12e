"""What a study trains: the file `studies/NAME.yaml`, the cells that it declares, and what makes a cell what it is.

A cell is a text, a size, an operator and settings of pre-training; its runs differ in their seed. Imports no torch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from symbert import operators, sizes
from symbert.configuration import Count, Length, PretrainSettings, Settings, settings_from, values_of
from symbert.errors import ConfigError, MissingInputError
from symbert.operators import operator_code, operator_named
from symbert.project import read_yaml
from symbert.shapes import hash_of
from symbert.sizes import SIZES

AXES = ("text", "size", "attention")  # of a grid, beside the keys of pre-training


class StudyText(Settings):
    """A text of a study, and how it is cut into rows."""

    source: str  # documentation | source | copying
    vocabulary: Annotated[int, Meta(ge=200, le=65536)] | None  # word pieces; null: characters
    sequence_length: Length
    validation_rows: Count


class Grid(Settings):
    """Cells of a study: the product of what its axes list."""

    axes: dict[str, list[Any]]  # text, size, attention, and keys of pre-training
    seeds: Annotated[list[int], Meta(min_length=1)]


class Contrast(Settings):
    """A comparison of two values of axes of a grid, named before the runs, at every point of the other axes."""

    question: str
    grid: str
    first: dict[str, Any]  # values by axis: {attention: pairwise}
    second: dict[str, Any]
    expected: Literal["shorter", "longer", "equal", "unknown"]  # the first one's time to the exit


class Study(Settings):
    """A study file."""

    title: str
    sizes: dict[str, dict[str, Any]]
    operators: dict[str, dict[str, Any]]
    texts: dict[str, StudyText]
    pretrain: PretrainSettings
    grids: dict[str, Grid]
    contrasts: dict[str, Contrast]


@dataclass(frozen=True)
class Cell:
    """Runs that differ in their seed alone."""

    text_name: str
    text: StudyText
    size: str
    attention: str
    pretrain: PretrainSettings

    @property
    def definition(self) -> dict[str, Any]:
        """All that decides its curves beside the text's content and the seed, as JSON values."""
        return {
            "text": msgspec.structs.asdict(self.text),
            "size": self.size,
            "shape": vars(SIZES[self.size]),
            "attention": self.attention,
            **operator_named(self.attention).own_definition,
            "pretrain": values_of(self.pretrain),
        }

    @property
    def evaluations(self) -> int:
        """How many losses a run has that does not diverge."""
        return self.pretrain.steps // self.pretrain.evaluate_every

    @property
    def key(self) -> str:
        """Distinct for distinct definitions."""
        return f"{self.text_name}-{self.size}-{self.attention}-{hash_of(self.definition)}"

    @property
    def name(self) -> str:
        """The key, and what stands for the operator's code: an edited operator is trained anew."""
        return f"{self.key}-{operator_code(self.attention)[:8]}"


def cell_of(text_name: str, definition: dict[str, Any]) -> Cell:
    """The cell that a definition describes, in a process that knows no size or operator of the study's own yet."""
    if definition["size"] not in SIZES:
        sizes.define(definition["size"], definition["shape"])
    if "operator" in definition:
        operators.define(definition["attention"], definition["operator"])
    return Cell(
        text_name,
        settings_from(definition["text"], StudyText, "study: text"),
        definition["size"],
        definition["attention"],
        settings_from(definition["pretrain"], PretrainSettings, "study: pretrain"),
    )


def read_study(path: Path) -> Study:
    """The study in a file, its sizes and operators made known to this process; ConfigError names the file and key."""
    if not Path(path).is_file():
        plans = Path(path).parent.glob("*.md")  # a file without one is the configuration of an experiment
        near = ", ".join(sorted(file.stem for file in plans)) or "none"
        raise MissingInputError(f"{path}: no such study; there are {near}")
    study = settings_from(read_yaml(path), Study, str(path))
    for name, shape in study.sizes.items():
        sizes.define(name, shape)
    for name, definition in study.operators.items():
        operators.define(name, definition)
    for name, grid in study.grids.items():
        known = (*AXES, *PretrainSettings.__struct_fields__)
        for axis in grid.axes:
            if axis not in known:
                raise ConfigError(f"{path}: 'grids.{name}.axes' has '{axis}'; choose from {', '.join(known)}")
        for axis in AXES:
            if axis not in grid.axes:
                raise ConfigError(f"{path}: 'grids.{name}.axes' lacks '{axis}'; add a list")
        for text in grid.axes["text"]:
            if text not in study.texts:
                raise ConfigError(f"{path}: 'grids.{name}.axes.text' has '{text}', which 'texts' lacks")
        for _, cell in points_of(study, grid):
            if cell.pretrain.warmup_steps > cell.pretrain.steps:
                raise ConfigError(
                    f"{path}: 'pretrain.warmup_steps' is {cell.pretrain.warmup_steps}, more than the "
                    f"{cell.pretrain.steps} steps of 'grids.{name}': the rate would never reach its peak; lower it"
                )
    for name, contrast in study.contrasts.items():
        if contrast.grid not in study.grids:
            raise ConfigError(f"{path}: 'contrasts.{name}.grid' is {contrast.grid}, which 'grids' lacks")
        axes = study.grids[contrast.grid].axes
        for side in (contrast.first, contrast.second):
            for axis, value in side.items():
                if value not in axes.get(axis, ()):
                    raise ConfigError(
                        f"{path}: 'contrasts.{name}' compares {axis} {value}, which the grid {contrast.grid} lacks"
                    )
    return study


def points_of(study: Study, grid: Grid) -> Iterator[tuple[dict[str, Any], Cell]]:
    """The points of a grid, its values by axis, and the cell at each; the last axis changes first."""
    for values in product(*grid.axes.values()):
        point = dict(zip(grid.axes, values, strict=True))
        settings = {axis: value for axis, value in point.items() if axis not in AXES}
        pretrain = settings_from({**values_of(study.pretrain), **settings}, PretrainSettings, "study: pretrain")
        text = point["text"]
        yield point, Cell(text, study.texts[text], point["size"], point["attention"], pretrain)


def seeds_by_cell(study: Study) -> dict[Cell, list[int]]:
    """All cells of a study, each once, with the seeds that any of its grids asks for."""
    wanted: dict[Cell, set[int]] = {}
    for grid in study.grids.values():
        for _, cell in points_of(study, grid):
            wanted.setdefault(cell, set()).update(grid.seeds)
    return {cell: sorted(seeds) for cell, seeds in wanted.items()}
