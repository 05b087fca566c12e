"""The files of finished results: which of them a bundle has, and the records that its texts are made from."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from symbert.errors import MissingInputError
from symbert.files import read_json
from symbert.hosts import ENCODER
from symbert.layout import RUN, of_host
from symbert.report.machines import MeasuredJob, PretrainedRun, read_benchmarks, read_pretrained
from symbert.settings import ReportSettings, read_settings
from symbert.suites import SUITES

PAGE = "report/report.html"
FILES = (  # below the folder of results; state, weights, text and token ids stay out
    "settings/*.json",
    "import.json",
    "corpus/*.json",
    "corpus/shards/manifest.json",
    "corpus/filtered/*.counts.json",
    "glue/sources.json",
    "benchmarks/**/*.tsv",
)
FILES_OF_RUN = ("done.json", "timing.json", "metrics.jsonl")
Record = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """The results of an experiment or an import, in the first of the folders; the others are what it extends."""

    folders: list[Path]

    def __post_init__(self) -> None:
        if not (self.folder / PAGE).is_file():
            raise MissingInputError(f"{self.folder / PAGE}: no such file; run the workflow to its end first")

    @property
    def folder(self) -> Path:
        """The one with the report."""
        return self.folders[0]

    @cached_property
    def settings(self) -> ReportSettings:
        """What is said of the experiment."""
        return read_settings(self.folder / "settings/report.json", ReportSettings)

    @cached_property
    def is_import(self) -> bool:
        """Whether others have measured the scores."""
        return (self.folder / "import.json").is_file()

    @property
    def has_judges(self) -> bool:
        """Whether checkpoints judged BLiMP's pairs."""
        return "blimp" in (self.settings.suites or {})

    @cached_property
    def files(self) -> dict[str, Path]:
        """The files that are bundled as they are, by their path in the archive; those of the report come first.

        MissingInputError for a run of pre-training that no folder has.
        """
        report = self.folder / "report"
        files = {str(file.relative_to(report)): file for file in sorted(report.rglob("*")) if file.is_file()}
        for pattern in FILES:
            files |= {str(file.relative_to(self.folder)): file for file in sorted(self.folder.glob(pattern))}
        for home in self.homes.values():
            folder = next(each for each in self.folders if home.is_relative_to(each))
            files |= {str((home / name).relative_to(folder)): home / name for name in FILES_OF_RUN}
        for folder in reversed(self.folders):
            judged = sorted(folder.glob("blimp/**/step-*.json"))
            files |= {str(file.relative_to(folder)): file for file in judged}
        return files

    @cached_property
    def homes(self) -> dict[str, Path]:
        """The folder of each run of pre-training, of any host, by its path below the results; none of an import."""
        runs = [(ENCODER, *run) for run in self.settings.runs] + [*(self.settings.host_runs or [])]
        homes = {}
        for host, size, attention, seed in [] if self.is_import else runs:
            run = of_host(RUN, host).format(size=size, attention=attention, seed=seed)
            places = [folder / "pretrain" / run for folder in self.folders]
            home = next((place for place in places if (place / "done.json").is_file()), None)
            if home is None:
                remedy = "give the folder of the experiment that it extends, too, or finish the run"
                raise MissingInputError(f"{places[0] / 'done.json'}: no such file; {remedy}")
            homes[run] = home
        return homes

    @cached_property
    def runs(self) -> list[PretrainedRun]:
        """The runs of pre-training with their sessions, as far as their records are kept."""
        published = [home / name for home in self.homes.values() for name in FILES_OF_RUN[:2]]
        return read_pretrained(published, [home / "state/provenance.json" for home in self.homes.values()])

    @cached_property
    def jobs(self) -> list[MeasuredJob]:
        """What Snakemake measured of the jobs in the first folder."""
        return read_benchmarks(self.folder / "benchmarks")

    @cached_property
    def scores(self) -> list[Record]:
        """The records of all scores, by model, step, task and seed."""
        imported = [self.folder / "glue/final.json", self.folder / "glue/curve.json"]
        return _sorted([file for file in imported if file.is_file()] if self.is_import else self._of_runs("*.json"))

    @cached_property
    def robustness(self) -> list[Record]:
        """The records of all scores on noise and out-of-domain sets."""
        return _sorted(self._of_runs("robustness/*.json"))

    def _of_runs(self, pattern: str) -> list[Path]:
        """The files of checkpoints that match; of two folders with the same file the first counts."""
        files: dict[Path, Path] = {}
        for run in self.homes:
            for folder in self.folders:
                for suite in SUITES:
                    for file in sorted(folder.glob(f"{suite}/{run}/step-*/{pattern}")):
                        files.setdefault(file.relative_to(folder), file)
        return list(files.values())

    def read(self, path: str) -> Any:
        """A JSON file below the first folder; None where there is none."""
        return read_json(self.folder / path, dict) if (self.folder / path).is_file() else None

    def records(self, pattern: str) -> Iterator[Any]:
        """The JSON files that match below the first folder."""
        return (read_json(file, dict) for file in sorted(self.folder.glob(pattern)))


def _sorted(files: list[Path]) -> list[Record]:
    """The records of several files in one order."""
    key = ("size", "attention", "pretrain_seed", "step", "task", "finetune_seed")
    records = (record for file in files for record in read_json(file, [dict]))
    return sorted(records, key=lambda record: [record[name] for name in key])
