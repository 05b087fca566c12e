"""What Snakemake measured of each job: the benchmark files, as many as there still are.

They are no input of any rule, because a lost one must not run a training again.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

SECONDS_PER_HOUR = 3600
# Every rule that has a benchmark, under the stage whose rules it stands among.
STAGES = {
    "corpus": (
        "write_documentation",
        "write_embedded_corpus",
        "build_blocklist",
        "filter_part",
        "scan_characters",
        "tokenize_part",
        "pack_shards",
    ),
    "pretrain": ("pretrain_model",),
    "glue": ("finetune", "measure_robustness"),
}
OTHER = "other"
_STAGE_OF = {rule: stage for stage, rules in STAGES.items() for rule in rules}


@dataclass(frozen=True)
class Job:
    """A job that ended well; one that was interrupted and run again is measured from its last start."""

    rule: str
    name: str  # of its benchmark file: what tells it from others of its rule
    wall: float  # hours
    cpu: float  # hours, of all its processes, as sampled: jobs of a few seconds are hardly seen

    @property
    def stage(self) -> str:
        """The stage that its rule belongs to."""
        return _STAGE_OF.get(self.rule, OTHER)


def read_benchmarks(folder: Path) -> list[Job]:
    """The jobs that `folder` has a legible benchmark of: <rule>.tsv, or <rule>/<name>.tsv."""
    files = sorted(folder.rglob("*.tsv"))
    jobs = [_job(file.relative_to(folder).parts[0].removesuffix(".tsv"), file) for file in files]
    return [job for job in jobs if job is not None]


def _job(rule: str, file: Path) -> Job | None:
    with open(file, newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    wall = sum(_number(row.get("s")) for row in rows) / SECONDS_PER_HOUR
    cpu = sum(_number(row.get("cpu_time")) for row in rows) / SECONDS_PER_HOUR
    return Job(rule, file.stem, wall, cpu) if wall else None


def _number(text: str | None) -> float:
    """A number of seconds; Snakemake writes NA for what it had no time to sample."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
