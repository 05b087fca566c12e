"""What tables and figures are made of: the files of an experiment, read and checked when an exhibit asks for them."""

import os
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.configuration import ReportSettings
from symbert.errors import MissingInputError
from symbert.files import read_json
from symbert.glue.tasks import tasks_of_suite
from symbert.hosts import ENCODER, HOSTS, OTHERS
from symbert.report import captions
from symbert.report.anatomy import read_anatomy, read_probes
from symbert.report.blimp import read_judgements
from symbert.report.corpus_counts import MANIFEST, Row, read_parts
from symbert.report.grids import Cells, read_grids
from symbert.report.hosts import read_courses, read_hosts
from symbert.report.machines import PretrainedRun, read_pretrained
from symbert.report.robustness import read_robustness
from symbert.report.runs import read_runs
from symbert.report.scores import majority_of, read_scores
from symbert.report.speeds import read_speeds
from symbert.report.statistics import final_scores, of_whole_seeds

RESULTS = Path("results")
RECORD = {"experiment": str, "key": str, "configuration": dict, "report": dict, "inputs": {"scores": dict}}


def read_record(place: Path) -> tuple[Path, dict[str, Any]]:
    """The folder of an experiment by its name or path, and its experiment.json with inputs as paths from here.

    MissingInputError where there is none.
    """
    folder = next((found for found in (place, RESULTS / place) if (found / "experiment.json").is_file()), place)
    file = folder / "experiment.json"
    if not file.is_file():
        raise MissingInputError(f"{file}: file not found; name an experiment that was run, or its folder")
    record = read_json(file, RECORD)
    above = Path(os.path.relpath(folder / "../.."))  # the folder with results/, where paths begin
    return folder, {**record, "inputs": _from(above, record["inputs"])}


def _from(above: Path, inputs: Any) -> Any:
    """The same with every name of a file as a path; where scores come from, its name included, stays as it is."""
    if isinstance(inputs, dict):
        return {name: files if name == "origin" else _from(above, files) for name, files in inputs.items()}
    return [above / file for file in inputs] if isinstance(inputs, list) else above / inputs


class Data:
    """The data of an experiment by name; what it has no files of is None or empty.

    `settings` is what captions must say, `parameters` counts by size, `sections` the settings of each stage, `origin`
    where imported scores come from. Lists of files: `scores` and `curve` of the suite that is shown, `suites` those of
    the suites beside GLUE by name, `robustness`, `blimp`, `speeds`, `parts`. One file: `manifest`, `anatomy`, `probes`.
    Lists of folders: `runs` of the encoder, `hosts` of other hosts. `grids` of a sweep of other keys, each with the
    folders of its runs; `contrasts` those that are compared. Seeds: `finetune_seeds`, `curve_seeds`, and
    `pretrain_seeds` where exits are compared over them. The user's own tasks stand with GLUE's.

    Reading raises DataError for a file that is damaged, stale, incomplete, or of another experiment.
    """

    def __init__(self, suite: str = "glue", **given: Any) -> None:
        self.suite = suite
        self.given = {name: value for name, value in given.items() if value}

    def has(self, name: str) -> bool:
        """Whether the experiment has what an exhibit reads under this name."""
        return name in self.given

    @cached_property
    def settings(self) -> ReportSettings:
        """What captions must say about the experiment."""
        settings = self.given["settings"]
        return settings if self.suite == "glue" else captions.of_suite(settings, self.suite)

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of each model by size, as `symbert.model.parameters` counts them."""
        return self.given["parameters"]

    @property
    def sections(self) -> dict[str, Any]:
        """The settings of each stage, by its name."""
        return self.given["sections"]

    @property
    def origin(self) -> dict[str, Any] | None:
        """Where imported scores come from: name, files with their SHA-256, and the length of pre-training."""
        return self.given.get("origin")

    @cached_property
    def scores(self) -> pd.DataFrame | None:
        """The scores of the comparison, a table of `symbert.report.scores`, at the last step and at step 0.

        MissingInputError when they do not reach the last step.
        """
        if not self.has("scores"):
            return None
        table = self._read_scores("scores", "finetune_seeds", self.settings.scored_runs)
        return final_scores(table, self.settings.steps)

    @cached_property
    def trained(self) -> pd.DataFrame | None:
        """The scores of the comparison without those of models that were not pre-trained."""
        return None if self.scores is None else self.scores.query("step > 0")

    @cached_property
    def by_suite(self) -> "dict[str, Data]":
        """This one, and the same with the scores of each suite beside GLUE in the place of GLUE's."""
        without = {name: value for name, value in self.given.items() if name not in ("scores", "curve", "suites")}
        others = self.given.get("suites", {})
        return {self.suite: self, **{suite: Data(suite, **without, **scores) for suite, scores in others.items()}}

    @property
    def scored(self) -> "list[Data]":
        """The data of each suite that has scores, GLUE's first."""
        return [data for data in self.by_suite.values() if data.has("scores")]

    def of_size(self, size: str) -> "Data":
        """The same with the runs of one size alone."""
        part = Data(self.suite, **self.given)
        part.runs = self.runs[self.runs["size"] == size]
        return part

    @cached_property
    def curve(self) -> pd.DataFrame | None:
        """The scores of checkpoints; NaN for seeds that lack a column which counts for the score of the suite."""
        if not self.has("curve"):
            return None
        return of_whole_seeds(self._read_scores("curve", "curve_seeds", self.settings.curve_runs))

    def _read_scores(self, files: str, seeds: str, runs: list[list[str | int]]) -> pd.DataFrame:
        tasks = tasks_of_suite(self.suite, self.settings.tasks)
        return read_scores(self.given[files], tasks, self.given.get(seeds, []), self.settings.settings_hash, runs=runs)

    @cached_property
    def robustness(self) -> pd.DataFrame | None:
        """The scores of the compared models on noise and out-of-domain sets; all were scored on the same rows."""
        if not self.has("robustness"):
            return None
        majority_of(self.trained)
        return read_robustness(self.given["robustness"], self.trained, self.settings.settings_hash)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Validation losses of every run that was asked for."""
        if not self.has("runs"):
            return read_runs([], 0)
        return read_runs(self.given["runs"], self.settings.steps, self.settings.runs)

    @property
    def pretrain_seeds(self) -> list[int]:
        """The seeds over which exits from the plateau are compared."""
        return self.given["pretrain_seeds"]

    @cached_property
    def speeds(self) -> pd.DataFrame:
        """The speed of each operator and size that was measured."""
        return read_speeds(self.given.get("speeds", []))

    @cached_property
    def machines(self) -> list[PretrainedRun]:
        """What each run was computed on; of imported ones nobody knows."""
        swept = dict.fromkeys(folder for _, folders in self.given.get("grids", []) for folder in folders)
        folders = [*self.given.get("runs", []), *self.given.get("hosts", []), *swept]
        return [] if self.origin else read_pretrained(folders)

    @cached_property
    def grids(self) -> list[Cells]:
        """The runs of a sweep of other keys than hosts, sizes, operators and seeds."""
        return read_grids(self.given["grids"])

    @cached_property
    def parts(self) -> list[Row]:
        """Documents and tokens of each part, read and kept."""
        return read_parts(self.given["parts"])

    @cached_property
    def anatomy(self) -> pd.DataFrame:
        """The heads of checkpoints, as `measure-anatomy` describes them."""
        return read_anatomy(self.given["anatomy"])

    @cached_property
    def blimp(self) -> pd.DataFrame:
        """How checkpoints judge minimal pairs, as `score` counted it."""
        wanted = [(ENCODER, *run, self.settings.steps) for run in self.settings.runs]
        judges = [run for run in self.settings.host_runs or [] if HOSTS[run[0]].has_likelihoods]
        wanted += [(host, *run, self._steps_of_hosts[host]) for host, *run in judges]
        return read_judgements(self.given["blimp"], (self.settings.suites or {}).get("blimp"), wanted)

    @cached_property
    def probes(self) -> pd.DataFrame:
        """Which relations between tokens operators express, as `measure-probes` measured them."""
        return read_probes(self.given["probes"])

    @cached_property
    def hosts(self) -> pd.DataFrame:
        """The runs of other hosts than the encoder, as they ended."""
        return read_hosts(self.given["hosts"], self._steps_of_hosts, self.settings.host_runs or [])

    @cached_property
    def courses(self) -> dict[tuple[str, str, str], pd.DataFrame]:
        """What other hosts measured over their training, by host, size and operator."""
        return read_courses(self.given["hosts"], self._steps_of_hosts, self.settings.host_runs or [])

    @property
    def _steps_of_hosts(self) -> dict[str, int]:
        return self.settings.host_steps or dict.fromkeys(OTHERS, self.settings.steps)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What was packed."""
        return read_json(self.given["manifest"], MANIFEST)
