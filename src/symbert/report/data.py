"""What tables and figures are made of: the files of an experiment, read and checked when an exhibit asks for them."""

from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.errors import DataError, UsageError
from symbert.files import read_json, write_text
from symbert.hosts import ENCODER, HOSTS, OTHERS
from symbert.report import captions
from symbert.report.anatomy import read_anatomy, read_probes
from symbert.report.blimp import read_judgements
from symbert.report.corpus_counts import MANIFEST, read_counts, read_records
from symbert.report.exhibits import EXHIBITS, options_to_read
from symbert.report.formats import write_table
from symbert.report.hosts import read_courses, read_hosts
from symbert.report.machines import PretrainedRun, read_pretrained
from symbert.report.robustness import read_robustness
from symbert.report.runs import read_runs
from symbert.report.scores import majority_of, read_scores, task_in
from symbert.report.speeds import read_speeds
from symbert.report.statistics import final_scores, of_whole_seeds
from symbert.settings import ReportSettings, read_settings
from symbert.suites import BESIDE_GLUE
from symbert.task import Suite
from symbert.tasks import suite_named, tasks_of_suite

SHAPE = {"num_hidden_layers": int, "num_attention_heads": int, "hidden_size": int, "intermediate_size": int}
PARAMETERS = {"shape": {**SHAPE, "vocab_size": int}, "parameters": {str: int}, "attention_parameters": {str: int}}
ORIGIN = {"name": str, "files": {str: str}}  # of import.json


class Data:
    """The data of an experiment, from files by the options of `write_exhibit`; what has no files is None or empty.

    Scores, and what settings say of tasks, are those of one suite; the user's own tasks stand with GLUE's.

    Reading raises DataError for a file that is damaged, stale, incomplete, or of another experiment.
    """

    def __init__(self, suite: str = "glue", **files: Any) -> None:
        self.suite = suite
        self.files = {option: value for option, value in files.items() if value}

    def has(self, name: str) -> bool:
        """Whether files of what an exhibit reads were given."""
        return options_to_read(name)[0] in self.files

    @cached_property
    def settings(self) -> ReportSettings:
        """What captions must say about the experiment."""
        settings = read_settings(self.files["settings"], ReportSettings)
        return settings if self.suite == "glue" else captions.of_suite(settings, self.suite)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Parameters of each model by size, as `symbert count-parameters` counted them."""
        remedy = "run count-parameters again"
        counts = read_json(self.files["parameters"], {str: PARAMETERS}, remedy)
        if not counts:
            raise DataError(f"{self.files['parameters']}: counts of no size; {remedy}")
        return counts

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
    def scored(self) -> "list[Data]":
        """The data of each suite that has scores, GLUE's first."""
        others = [Data(suite.name, **self.files | {"scores": self._scores_on(suite)}) for suite in BESIDE_GLUE]
        return [data for data in (self, *others) if data.has("scores")]

    def _scores_on(self, suite: Suite) -> list[Path]:
        """Those of the files of other suites' scores that are of one."""
        return [file for file in self.files.get("suite_scores", []) if suite_named(task_in(file)) is suite]

    @cached_property
    def curve(self) -> pd.DataFrame | None:
        """The scores of checkpoints; NaN for seeds that lack a column which counts for the score of the suite."""
        if not self.has("curve"):
            return None
        return of_whole_seeds(self._read_scores("curve", "curve_seeds", self.settings.curve_runs))

    def _read_scores(self, files: str, seeds: str, runs: list[list[str | int]]) -> pd.DataFrame:
        settings, allow_missing = self.settings, "allow_missing" in self.files
        known = (tasks_of_suite(self.suite, settings.tasks), self.files.get(seeds, []), settings.settings_hash)
        return read_scores(self.files[files], *known, allow_missing, runs)

    @cached_property
    def robustness(self) -> pd.DataFrame | None:
        """The scores of the compared models on noise and out-of-domain sets; all were scored on the same rows."""
        if not self.has("robustness"):
            return None
        majority_of(self.trained)
        return read_robustness(self.files["robustness"], self.trained, self.settings.settings_hash)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Validation losses of every run that was asked for, or of those of one size."""
        if not self.has("runs"):
            return read_runs([], [], 0)
        wanted = [run for run in self.settings.runs if self.files.get("size") in (None, run[0])]
        return read_runs(self.files["done"], self.files.get("metrics", []), self.settings.steps, wanted)

    @property
    def pretrain_seeds(self) -> list[int]:
        """The seeds over which exits from the plateau are compared."""
        return self.files["pretrain_seeds"]

    @cached_property
    def speeds(self) -> pd.DataFrame:
        """The speed of each operator and size that was measured."""
        return read_speeds(self.files.get("speeds", []))

    @cached_property
    def machines(self) -> list[PretrainedRun]:
        """What each run was computed on; sessions whose record was removed are left out."""
        return read_pretrained(self.files.get("provenance", []), self.files.get("sessions", []))

    @cached_property
    def origin(self) -> dict[str, Any] | None:
        """Where imported scores come from, by their import.json."""
        return read_json(self.files["origin"], ORIGIN) if self.has("origin") else None

    @cached_property
    def counts(self) -> list[dict[str, Any]]:
        """Documents of each part, read and kept."""
        return read_counts(self.files["counts"])

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """Tokens of each part, in the order of `counts`."""
        return read_records(self.files["records"], self.counts)

    @cached_property
    def anatomy(self) -> pd.DataFrame:
        """The heads of checkpoints, as `symbert anatomy` measured them."""
        return read_anatomy(self.files["anatomy"])

    @cached_property
    def blimp(self) -> pd.DataFrame:
        """How checkpoints judge minimal pairs, as `symbert measure-blimp` counted it."""
        wanted = [(ENCODER, *run, self.settings.steps) for run in self.settings.runs]
        judges = [run for run in self.settings.host_runs or [] if HOSTS[run[0]].has_likelihoods]
        wanted += [(host, *run, self._steps_of_hosts[host]) for host, *run in judges]
        return read_judgements(self.files["blimp"], (self.settings.suites or {}).get("blimp"), wanted)

    @cached_property
    def probes(self) -> pd.DataFrame:
        """Which relations between tokens operators express, as `symbert probe` measured them."""
        return read_probes(self.files["probes"])

    @cached_property
    def hosts(self) -> pd.DataFrame:
        """The runs of other hosts than the encoder, as they ended."""
        return read_hosts(self.files["hosts"], self._steps_of_hosts, self.settings.host_runs or [])

    @property
    def _steps_of_hosts(self) -> dict[str, int]:
        return self.settings.host_steps or dict.fromkeys(OTHERS, self.settings.steps)

    @cached_property
    def courses(self) -> dict[tuple[str, str, str], pd.DataFrame]:
        """What other hosts measured over their training, by host, size and operator."""
        return read_courses(
            self.files["hosts"], self.files["courses"], self._steps_of_hosts, self.settings.host_runs or []
        )

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What was packed."""
        return read_json(self.files["manifest"], MANIFEST, "run pack-shards again")


def write_exhibit(
    name: str,
    /,
    output: list[Path],
    settings: Path | None = None,
    parameters: Path | None = None,
    scores: list[Path] | None = None,
    finetune_seeds: list[int] | None = None,
    pretrain_seeds: list[int] | None = None,
    suite_scores: list[Path] | None = None,
    curve: list[Path] | None = None,
    curve_seeds: list[int] | None = None,
    robustness: list[Path] | None = None,
    done: list[Path] | None = None,
    metrics: list[Path] | None = None,
    speeds: list[Path] | None = None,
    provenance: list[Path] | None = None,
    sessions: list[Path] | None = None,
    origin: Path | None = None,
    sections: list[Path] | None = None,
    counts: list[Path] | None = None,
    records: list[Path] | None = None,
    manifest: Path | None = None,
    anatomy: Path | None = None,
    blimp: list[Path] | None = None,
    probes: Path | None = None,
    hosts: list[Path] | None = None,
    courses: list[Path] | None = None,
    size: str | None = None,
    allow_missing: bool = False,
) -> None:
    """Write a table, figure or text, for example `table-table3_glue`, from the files that it reads.

    The suffix of each output decides its format: .csv, .md, .tex or .html of a table, .png or .pdf of a figure, whose
    caption stands in .txt, and in .tex with the .pdf for a paper; a text is a .txt file, a sentence a line.
    `scores` and `curve`, those of checkpoints, are of the suite that is shown, `suite_scores` of all beside GLUE;
    `done` and `metrics` files of the runs of pre-training, `pretrain_seeds` those over which exits are compared;
    `speeds` what `measure-speeds` wrote of each size; `provenance` done.json and timing.json of the runs; `sessions`
    the records in their state, of which those that are gone are left out; `origin` the import.json of imported scores;
    `sections` settings files; `counts` and `records` files of each part of the corpus; `anatomy` and `probes` what the
    commands `anatomy` and `probe` wrote, `blimp` what `measure-blimp` wrote of each checkpoint; `hosts` the done.json
    of runs of other hosts, and `courses` their metrics.jsonl.
    A missing score is refused or, in Table 3 with `allow-missing`, a dash that the caption names.
    """
    files = {key: value for key, value in locals().items() if key not in ("name", "output")}
    if name not in EXHIBITS:
        raise UsageError(f"exhibit: no '{name}'; choose from {', '.join(EXHIBITS)}")
    made = EXHIBITS[name]
    data = Data(made.suite, **files)
    if allow_missing and not made.allow_missing:
        others = ", ".join(each.id for each in EXHIBITS.values() if each.allow_missing)
        raise UsageError(f"exhibit: {name} needs every score; --allow-missing is for {others}")
    for option in (option for read in made.reads for option in options_to_read(read)):
        if option not in data.files:
            raise UsageError(f"exhibit: {name} needs --{option.replace('_', '-')}")
    if made.kind == "text":
        for path in output:
            write_text(path, "\n".join(made.load()(data)) + "\n")
    elif made.kind == "table":
        write_table(made.load()(data), output)
    else:
        from symbert.report.plots import write_plot  # imports matplotlib, which tables do without
        from symbert.report.style import house_style

        with house_style():
            write_plot(made.load()(data), made.caption, output)
