"""The grids of a sweep that lists values of any key of the corpus and of pre-training, and what is compared in them.

Where nothing is swept there are none. Imports no torch.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from msgspec.structs import asdict, replace

from symbert.configuration import (
    SWEPT,
    Configuration,
    CustomText,
    PackSettings,
    ReportSettings,
    Tune,
    check_training,
    given,
    report_of,
    training_of,
)
from symbert.errors import ConfigError
from symbert.paths import VARIANT

Values = dict[str, Any]  # by axis: {attention: pairwise}

# of a point, by their keys in `sweep`
AXES = {"architecture": "architectures", "size": "sizes", "attention": "attention"}


@dataclass(frozen=True)
class Contrast:
    """A comparison of two values of axes, named before the runs, at every point of the other axes."""

    name: str
    first: Values
    second: Values
    expected: str = "unknown"  # shorter | longer | equal | unknown: the first one's time to the escape


@dataclass(frozen=True)
class Grid:
    """Points of a sweep: the product of what its axes list."""

    name: str
    axes: dict[str, list[Any]]  # text, architecture, size, attention, and swept keys
    seeds: list[int]
    contrasts: list[Contrast]
    tune: Tune | None = None  # how the learning rate of each point is chosen
    chosen: list[float] = field(default_factory=list)  # in a report: at these rates, point by point

    @property
    def points(self) -> list[Values]:
        """Its points, as values by axis; the last axis changes first."""
        return [dict(zip(self.axes, values, strict=True)) for values in product(*self.axes.values())]

    @property
    def rates(self) -> list[float]:
        """The learning rates of which one is chosen for each point, the lowest first; none where nothing is tuned."""
        return sorted(self.tune.learning_rate) if self.tune else []

    @property
    def trained_points(self) -> list[Values]:
        """The points, each at every learning rate of which one is chosen."""
        rates: list[Values] = [{"learning_rate": rate} for rate in self.rates] or [{}]
        return [{**point, **rate} for point in self.points for rate in rates]

    def pairs(self) -> Iterator[tuple[Contrast, Values, int, int]]:
        """What is compared: a contrast, the values of the axes that it does not name, and the numbers of two points."""
        points = self.points
        for contrast in self.contrasts:
            for first, point in enumerate(points):
                other = {**point, **contrast.second}
                if contrast.first.items() <= point.items() and other in points:
                    place = {axis: value for axis, value in point.items() if axis not in contrast.first}
                    yield contrast, place, first, points.index(other)


def grids_of(config: Configuration) -> list[Grid]:
    """The grids of a sweep; none where it lists architectures, sizes, operators and seeds alone."""
    sweep = given(config.sweep)
    if config.sweep.grids:
        return [_grid(name, {**sweep, **given(grid)}) for name, grid in config.sweep.grids.items()]
    is_grid = config.sweep.tune or any(key in sweep for key in SWEPT)
    return [_grid("sweep", sweep)] if is_grid else []


def _grid(name: str, sweep: dict[str, Any]) -> Grid:
    keys = {"text": "text", **AXES, **{key: key for key in SWEPT}}
    axes = {axis: sweep[key] for axis, key in keys.items() if key in sweep}
    return Grid(name, axes, sweep["pretrain_seeds"], list(_contrasts(name, sweep)), sweep["tune"])


def _contrasts(grid: str, sweep: dict[str, Any]) -> Iterator[Contrast]:
    """The contrasts of a grid: its own, or the sweep's pairs of operators, or each operator with the first."""
    contrasts, operators = sweep["contrasts"], sweep["attention"]
    if isinstance(contrasts, dict):
        for name, sides in contrasts.items():
            yield Contrast(f"{grid}-{name}", sides.first, sides.second, sides.expected)
        return
    for first, second in [(name, operators[0]) for name in operators[1:]] if contrasts is None else contrasts:
        if first in operators and second in operators:
            yield Contrast(f"{grid}-{first}-{second}", {"attention": first}, {"attention": second})


def variant_of(config: Configuration, point: Values) -> VARIANT:
    """The values of swept keys at a point; without those that the configuration has anyway, so that runs of two grids
    are one where they are equal."""
    usual = asdict(config.corpus.pack) | asdict(training_of(config, point["architecture"]))
    usual |= asdict(config.texts[point["text"]]) if "text" in point else {}
    return tuple((key, value) for key, value in point.items() if key in SWEPT and value != usual.get(key, ...))


def packed_as(config: Configuration, variant: VARIANT) -> PackSettings:
    """How rows are packed for a variant."""
    swept = {key: value for key, value in variant if key in PackSettings.__struct_fields__}
    return replace(config.corpus.pack, **swept)


def text_of(config: Configuration, variant: VARIANT) -> CustomText | None:
    """The small text of a variant; None where it reads the corpus."""
    swept = dict(variant)
    if "text" not in swept:
        return None
    custom = {key: value for key, value in swept.items() if key in CustomText.__struct_fields__}
    return replace(config.texts[swept["text"]], **custom)


def report_of_grids(config: Configuration, grids: list[Grid]) -> ReportSettings:
    """What the report says of a sweep that has grids: nothing is fine-tuned, and each grid has values of its own."""
    report = report_of(config)
    swept = {
        f"sweep.grids.{grid.name}.{key}": ", ".join(map(str, values))
        for grid in grids
        for key, values in grid.axes.items()
        if key in SWEPT
    }
    tuned = {
        f"sweep.grids.{grid.name}.tune.{key}": ", ".join(map(str, value if isinstance(value, list) else [value]))
        for grid in grids
        if grid.tune
        for key, value in asdict(grid.tune).items()
    }
    of_scores = [key for key in report.settings if key.startswith("glue.") and key != "glue.source"]
    settings = {key: value for key, value in report.settings.items() if key not in of_scores}
    return replace(report, settings=settings | swept | tuned)


def check_sweep(config: Configuration) -> None:
    """ConfigError where a point of a grid cannot be trained, or a contrast has a value that its grid lacks."""
    grids = grids_of(config)
    reported = {seed for grid in grids for seed in grid.seeds}
    for grid in grids:
        if not grid.axes["attention"]:
            raise ConfigError(f"config: 'sweep.attention' is [], but the grid {grid.name} trains; name an operator")
        if grid.tune:
            _check_tuning(grid, grid.tune, reported)
        for point in grid.points:
            _check_point(config, point)
        for contrast in grid.contrasts:
            sides = [*contrast.first.items(), *contrast.second.items()]
            lacking = [f"{axis} {value}" for axis, value in sides if value not in grid.axes.get(axis, ())]
            if lacking or contrast.first.keys() != contrast.second.keys():
                fault = f"compares {lacking[0]}, which its grid lacks" if lacking else "has sides of different axes"
                raise ConfigError(f"config: 'sweep.grids': the contrast {contrast.name} {fault}")


def _check_tuning(grid: Grid, tune: Tune, reported: set[int]) -> None:
    if "learning_rate" in grid.axes:
        raise ConfigError(f"config: the grid {grid.name} lists 'learning_rate' and has it tuned; leave one out")
    if both := sorted({*tune.seeds} & reported):
        raise ConfigError(
            f"config: the grid {grid.name} has the seed {both[0]} in 'tune.seeds', which is in 'pretrain_seeds' of a "
            "grid; a rate is judged on other seeds than it was chosen on, change one"
        )


def _check_point(config: Configuration, point: Values) -> None:
    for key in ("text", *PackSettings.__struct_fields__):
        if key in point and "text" in point and key not in ("text", *CustomText.__struct_fields__):
            raise ConfigError(f"config: 'sweep.{key}': a small text is not packed so; leave it or 'sweep.text' out")
    check_training(config, point["architecture"], point)
