"""The stages of `make bench-scaling`: what each runs on `input`, and of what there is more and more there.

Like `measure`, this module imports nothing large.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.commands import filter_part
from benchmarks.measure import Command

KERNELS = (
    "batches have ever other numbers of tokens, for each of which oneDNN keeps kernels, 1,024 in all; without this "
    "cache 4,096 rows took 28 MB less"
)


@dataclass(frozen=True)
class Stage:
    """A command, and of what its inputs have more and more; they and its output lie in a folder for each size."""

    name: str
    items: str
    count: int  # of them in a sixteenth of 1 ×
    inputs: str  # the function that writes so many, of a module of the benchmarks
    command: Callable[[Path], Command]
    growing: str = ""  # why its memory grows, where it does


def symbert(command: str, /, *words: Path | str | int, **options: Path | str | int | list[Path] | range) -> Command:
    """A command of the workflow: positional words, then options, of which some have several values."""
    said = [sys.executable, "-m", "symbert", command, *map(str, words)]
    for name, value in options.items():
        values = value if isinstance(value, list | range) else [value]
        said += [f"--{name.replace('_', '-')}", *map(str, values)]
    return said


def tokenize_part(folder: Path) -> Command:
    """The ids of `input/part.parquet`."""
    given, made = folder / "input", folder / "output"
    return symbert(
        "tokenize-part",
        documents=given / "part.parquet",
        vocabulary=given / "vocab.txt",
        output=made / "part.npy",
        offsets=made / "offsets.npy",
        record=made / "part.json",
    )


def pack_shards(folder: Path) -> Command:
    """The rows of all parts in `input`, named in lists, as in the workflow."""
    given = folder / "input"
    return symbert(
        "pack-shards",
        tokens=f"@{given}/tokens.list",
        offsets=f"@{given}/offsets.list",
        records=f"@{given}/records.list",
        vocabulary=given / "vocab.txt",
        settings=given / "pack.json",
        output=folder / "output/manifest.json",
    )


def build_blocklist(folder: Path) -> Command:
    """The trie of `input/blacklists.tar.gz`."""
    made = folder / "output"
    archive = folder / "input/blacklists.tar.gz"
    return symbert("build-blocklist", archive=archive, output=made / "list.marisa", summary=made / "list.json")


def prepare_task(folder: Path) -> Command:
    """The token ids of `input/raw.parquet`."""
    given = folder / "input"
    return symbert(
        "prepare-task",
        raw=given / "raw.parquet",
        task="qqp",
        vocabulary=given / "vocab.txt",
        settings=given / "task.json",
        output=folder / "output/qqp.parquet",
    )


def pretrain_model(folder: Path) -> Command:
    """A tiny model, trained on the rows in `input`."""
    given, made = folder / "input", folder / "output"
    return symbert(
        "pretrain-model",
        manifest=given / "manifest.json",
        settings=given / "pretrain.json",
        size="tiny",
        attention="pairwise",
        seed=1,
        state=made / "state",
        done=made / "done.json",
        metrics=made / "metrics.jsonl",
        timing=made / "timing.json",
        threads=1,
        on_settings_change="refuse",
    )


def extract_checkpoint(folder: Path) -> Command:
    """The kept weights in `input/state` as a checkpoint."""
    given = folder / "input"
    return symbert(
        "extract-checkpoint",
        state=given / "state",
        step=1,
        vocabulary=given / "vocab.txt",
        done=given / "done.json",
        corpus_source="made-up",
        output=folder / "output/checkpoint",
    )


def finetune(folder: Path) -> Command:
    """The tiny model in `input`, fine-tuned on the rows there."""
    made = folder / "output"
    return symbert("finetune", **_finetuning(folder), state=made / "state", output=made / "scores.json")


def measure_robustness(folder: Path) -> Command:
    """The fine-tuned model in `input`, on the sets there."""
    given, made = folder / "input", folder / "output"
    more = {"robustness": given / "sets.parquet", "kept_elsewhere": given / "state"}
    return symbert("measure-robustness", **_finetuning(folder), **more, state=made / "state", output=made / "sets.json")


def _finetuning(folder: Path) -> dict[str, Path | str | int]:
    given = folder / "input"
    return {
        "checkpoint": given / "checkpoint",
        "data": given / "qqp.parquet",
        "settings": given / "glue.json",
        "size": "tiny",
        "attention": "pairwise",
        "pretrain_seed": 1,
        "step": 1,
        "finetune_seeds": 1,
        "threads": 1,
    }


def tabulate_scores(folder: Path) -> Command:
    """The table of the scores of all seeds in `input`, in the format of the page."""
    given = folder / "input"
    files = sorted(given.glob("scores/*.json"))
    seeds = range(1, 1 + int((given / "seeds.txt").read_text()))
    made = {"settings": given / "report.json", "output": folder / "output/scores.html"}
    return symbert("exhibit", "table-scores", scores=files, finetune_seeds=seeds, **made)


def tabulate_training(folder: Path) -> Command:
    """The table of the runs in `input`, in the format of the page."""
    given = folder / "input"
    files = {name: f"@{given}/{name}.list" for name in ("done", "metrics")}
    made = {"settings": given / "report.json", "output": folder / "output/training.html"}
    return symbert("exhibit", "table-table2_training", **files, **made)


def write_page(folder: Path) -> Command:
    """The page of a table and a figure in `input`."""
    given = folder / "input"
    return symbert(
        "write-page",
        tables=given / "scores.html",
        figures=given / "corpus.png",
        summary=given / "summary.txt",
        settings=given / "report.json",
        output=folder / "output/report.html",
    )


def plan(folder: Path) -> Command:
    """Snakemake's dry run of the paper's experiment, on as many parts as the folder says."""
    given = folder / "input/project"
    parts = (folder / "input/parts.txt").read_text()
    words = ["--cores", "2", "--dry-run", "--quiet", "all", "--snakefile", f"{given}/Snakefile", "--directory", given]
    changes = ["scale=paper", "source=hub", f"corpus={{parts: {parts}}}"]
    return [sys.executable, "-m", "snakemake", *map(str, words), "--config", *changes]


STAGES = (
    Stage(
        "filter-part", "documents", 512, "scaled_corpus:write_part", lambda folder: filter_part(folder, "part", "part")
    ),
    Stage("tokenize-part", "documents", 512, "scaled_corpus:write_kept", tokenize_part),
    Stage("pack-shards", "parts", 1, "scaled_corpus:write_tokens", pack_shards),
    Stage(
        "build-blocklist",
        "domains",
        4_000,
        "scaled_corpus:write_domains",
        build_blocklist,
        "marisa's builder holds all keys until it sorts them; UT1 has five million",
    ),
    Stage(
        "prepare-task",
        "rows",
        160,
        "scaled_models:write_rows",
        prepare_task,
        "up to 10,000 rows are encoded at once, and a task is one table; the largest of GLUE has 400,000 rows",
    ),
    Stage("pretrain-model", "steps", 4, "scaled_models:write_steps", pretrain_model),
    Stage(
        "pretrain-model, of 8 steps",
        "rows of the corpus",
        2_048,
        "scaled_models:write_corpus_rows",
        pretrain_model,
        "shards are mapped, and pages of theirs that the kernel keeps for all count, until it needs them; 1,024 rows "
        "gathered from 134 MB added all of them and 1 MB of the process's own, with MADV_RANDOM, too",
    ),
    Stage("extract-checkpoint", "MiB of weights", 2, "scaled_models:write_state", extract_checkpoint),
    Stage("finetune", "rows", 32, "scaled_models:write_training_rows", finetune, KERNELS),
    Stage(
        "measure-robustness",
        "rows of the sets",
        128,
        "scaled_models:write_sets",
        measure_robustness,
        KERNELS,
    ),
    Stage(
        "table-scores",
        "fine-tuning seeds of 6 models on 9 tasks",
        1,
        "scaled_results:write_scores",
        tabulate_scores,
        "all scores are one table",
    ),
    Stage(
        "table-table2_training", "runs", 8, "scaled_results:write_runs", tabulate_training, "all losses are one table"
    ),
    Stage(
        "write-page",
        "rows of a table",
        250,
        "scaled_results:write_shown",
        write_page,
        "the page is one text that holds all tables, figures and files",
    ),
    Stage(
        "snakemake --dry-run",
        "parts of the corpus",
        2,
        "scaled_results:write_project",
        plan,
        "Snakemake holds all jobs, 3.1 for each part",
    ),
)
GROWING = {stage.name: stage.growing for stage in STAGES}
