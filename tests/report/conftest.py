"""Small experiments in the stage's input formats."""

import contextlib
import csv
import io
import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from msgspec import to_builtins
from msgspec.structs import asdict

from symbert.configuration import ReportSettings, merge, settings_from
from symbert.corpus.parts import Encoder, Tokens
from symbert.corpus.shards import Learned, Packed
from symbert.experiment.project import read_config
from symbert.files import sha256_of
from symbert.report import published
from symbert.report.imported import paper

TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
COLUMNS = {task: [task] for task in TASKS} | {"mnli": ["mnli_matched", "mnli_mismatched"]}
SHAPES = {"tiny": (2, 2, 64, 256, 1000), "small": (4, 8, 512, 2048, 30522), "base": (12, 12, 768, 3072, 30522)}
SHAPE_KEYS = ("num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size", "vocab_size")


def write(path: Path, value) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


@pytest.fixture
def outputs(tmp_path):
    """A table's files in three formats, csv first."""
    return [tmp_path / f"table.{suffix}" for suffix in ("csv", "md", "tex")]


@pytest.fixture
def report_settings():
    """Makes the settings of the report on a short run on stand-ins, but for the given ones; `settings` that are not
    given are the paper's. At the scale imported others measured."""

    def make(settings=None, steps=1800, scale="demo", **changes) -> ReportSettings:
        of_demo = {
            "compile": False,
            "corpus.source": "embedded",
            "glue.source": "embedded",
            "corpus.pack.sequence_length": 64,
        }
        of_demo |= {"pretrain.steps": steps, "pretrain.batch_size": 32}
        settings = {} if scale == "imported" else published.SETTINGS | of_demo | (settings or {})
        described = {"experiment": "demo-embedded", "title": "A demo", "scale": scale, "steps": steps}
        return settings_from(described | {"settings": settings} | changes, ReportSettings, "report")

    return make


@pytest.fixture
def corpus_files(tmp_path):
    """Writes counts and record of parts by number; `part` and `record` change those of every part."""

    def make(*numbers, part=None, record=None) -> list[Path]:
        files = []
        for number in numbers:
            name = f"en_meta_part_{number}"
            tokens = Tokens(name, 1000, 642_000, 480_000, None, Encoder("", 16, 0), "", "", "")
            content = {"counts": counts_of_part(name, number) | (part or {})}
            content["record"] = to_builtins(tokens) | (record or {})
            files.append(write(tmp_path / f"{name}.json", content))
        return files

    return make


def packed(**changes) -> dict:
    """The manifest of rows of such parts, with changes."""
    learned = Learned(64, 1000, "0" * 64, {"mask": 4}, {"train": 9900, "validation": 100}, [])
    manifest = Packed(
        **asdict(learned),
        hash=learned.learned_hash(),
        unigram_entropy=5.0,
        passed_over_rows=0,
        documents={"train": 900, "validation": 50},
        tokens=640_060,
        unknown_tokens=0,
        remainder_tokens=10,
        surplus_tokens={"train": 30, "validation": 20},
        parts=[],
    )
    return to_builtins(manifest) | changes


def counts_of_part(name, number):
    return {
        "part": name,
        "file_sha256": "0" * 64,
        "read": 1005 + number,
        "kept": 1000,
        "bad": 2,
        "bad_lines": [],
        "dropped": {"blocked_category": 3, "quality_warning": number},
        "overlaps": {"blocked_category": 3, "quality_warning": number},
        "without_url": 4,
        "characters": {
            "read": 4_000_150,
            "kept": 4_000_000,
            "dropped": {"blocked_category": 50, "quality_warning": 100},
        },
    }


def record(size, attention, step, task, seed, score=0.6, **changes):
    """A score record in which each column of the task has the same score."""
    return {
        "size": size,
        "attention": attention,
        "pretrain_seed": 1,
        "step": step,
        "task": task,
        "finetune_seed": seed,
        "metrics": dict.fromkeys(COLUMNS[task], score),
        "details": {},
        "majority": dict.fromkeys(COLUMNS[task], 0.5),
        "rows": {"train": 1000, "validation": 500},
        "official_rows": {"train": 2490, "validation": 277},
        "moved": {},
        "seen": {},
        "partial": False,
        "stand_in": False,
        "settings_hash": "aaaa",
        "versions": {},
        "checkpoint_sha256": f"{size}-{attention}-{step}",
        "data_sha256": f"{task} rows",
        "compile": False,
        "precision": "fp32",
        "constant_prediction": False,
    } | changes


@pytest.fixture(name="record")
def record_fixture():
    """The function `record`."""
    return record


def noise_set(column, share, score, kind="mixed", **changes):
    """A set of the evaluation rows of a score column with noise, as a robustness record has it."""
    return {
        "kind": "noise",
        "name": kind,
        "share": share,
        "column": column,
        "metrics": ["accuracy"],
        "classes": None,
        "rows": 500,
        "official_rows": 500,
        "partial": False,
        "score": score,
        "details": {"accuracy": score},
        "majority": 0.5,
        "constant_prediction": False,
    } | changes


def domain_set(name, score, **changes):
    """An out-of-domain set, as a robustness record has it."""
    facts = {"kind": "out-of-domain", "name": name, "share": None, "column": None, "rows": 1104, "official_rows": 1104}
    return noise_set(None, None, score) | facts | changes


def robustness_record(scored, *sets, **changes):
    """The robustness record of a score record, with these sets."""
    cell = ("size", "attention", "pretrain_seed", "step", "task", "finetune_seed", "settings_hash", "stand_in")
    record = {
        key: scored[key] for key in (*cell, "checkpoint_sha256", "data_sha256", "compile", "precision", "versions")
    }
    clean = dict(scored["metrics"])
    return record | {"clean": clean, "sets": {_set_id(facts): facts for facts in sets}} | changes


def _set_id(facts):
    if facts["kind"] == "out-of-domain":
        return facts["name"]
    return f"{facts['name']}-{100 * facts['share']:g} {facts['column']}"


@pytest.fixture
def write_scores(tmp_path):
    """Writes records to one file per model, step and task; returns the files."""

    def make(records, folder="scores") -> list[Path]:
        files = {}
        for entry in records:
            name = f"{entry['size']}-{entry['attention']}-{entry['pretrain_seed']}-{entry['step']}-{entry['task']}.json"
            files.setdefault(tmp_path / folder / name, []).append(entry)
        return [write(path, entries) for path, entries in files.items()]

    return make


@pytest.fixture
def runs_of():
    """Makes the frame of runs: (size, attention, pretrain_seed, steps, losses) each."""

    def make(*runs) -> pd.DataFrame:
        columns = ["size", "attention", "pretrain_seed", "step", "loss"]
        return pd.DataFrame(
            [[*run, step, loss] for *run, steps, losses in runs for step, loss in zip(steps, losses, strict=True)],
            columns=columns,
        )

    return make


def done_of(run: dict, steps: int, loss: float, log: Path) -> dict:
    """The content of done.json."""
    counted = {"parameters": 7, "attention_parameters": {}, "settings": {}, "metrics_sha256": sha256_of(log)}
    digests = {"corpus_hash": "c0ffee", "settings_hash": "5e77", "vocabulary_sha256": "0"}
    return {**run, "steps": steps, "validation_loss": loss, **counted, **digests}


def tell_digest(folder: Path) -> None:
    """Have done.json say the digest that metrics.jsonl has."""
    done = json.loads((folder / "done.json").read_text())
    write(folder / "done.json", done | {"metrics_sha256": sha256_of(folder / "metrics.jsonl")})


@pytest.fixture
def write_run(tmp_path):
    """Writes done.json and metrics.jsonl of a run with two layers; returns its folder."""

    def make(size, attention, points, steps=1800, seed=1, initial=((0.3, 0.5), (4.0, 4.1), (0.02, 0.03))) -> Path:
        folder = tmp_path / f"runs/encoder/{size}-{attention}/seed-{seed}"
        keys = ("logit_std", "attention_entropy", "logit_step")
        lines = [{"split": "initial", "step": 0, **dict(zip(keys, initial, strict=True))}]
        lines += [{"split": "train", "step": 1, "loss": 9.0}]
        lines += [{"split": "validation", "step": step, "loss": loss} for step, loss in points]
        log = write_lines(folder / "metrics.jsonl", lines)
        run = {"size": size, "attention": attention, "pretrain_seed": seed}
        write(folder / "done.json", done_of(run, steps, 5.0, log))
        return folder

    return make


STEPS = range(50, 1801, 50)
ESCAPE_LOSS = 5.59  # nats, just below the plateau of these runs


@pytest.fixture
def falling():
    """Makes the validation losses of a run: on a plateau until the step `escape`, then falling to `end`; for None, as a
    power of the step throughout, which stays above the plateau."""

    def make(escape, end=4.8):
        share = [1 - math.exp(-max(0, step - (escape or 0)) / 900) for step in STEPS]
        losses = [5.6 - (5.6 - end) * part / share[-1] for part in share]
        losses = [6 - 0.05 * math.log(step) for step in STEPS] if escape is None else losses
        return list(zip(STEPS, losses, strict=True))

    return make


@pytest.fixture
def write_timing():
    """Writes timing.json of a run with batches of 32, with the given changes; returns the file."""

    def make(folder: Path, step_seconds=0.02, **changes) -> Path:
        done = json.loads((folder / "done.json").read_text())
        run = {key: done[key] for key in ("size", "attention", "pretrain_seed")}
        machine = {
            "host": "here",
            "commit": "0123abcd",
            "commits": ["0123abcd"],
            "device": "cpu",
            "processor": "A chip, AVX2",
            "versions": {"torch": "2.13.0"},
        }
        chosen = {"threads": 1, "processes": 1, "micro_batch_size": 32, "precision": "fp32", "compile": False}
        speed = {"step_seconds": step_seconds, "tokens_per_second": 100_000.0, "mfu": 0.25, "peak_flops": 60e9}
        speed["flops_per_second"] = 15e9
        rest = {"memory_mb": 310.4, "steps_timed": 1700, "step": 1800, "sessions": 1}
        times = {"started": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:36Z"}
        return write(folder / "timing.json", run | machine | chosen | speed | rest | times | changes)

    return make


@pytest.fixture
def write_speeds(tmp_path):
    """Writes what measure-speeds measured of a size: seconds of steps by operator; returns the file."""

    def make(size="tiny", /, changes=None, **seconds) -> Path:
        machine = {
            "device": "cpu",
            "processor": "A chip, AVX2",
            "precision": "fp32",
            "compile": False,
            "threads": 1,
        }
        facts = {
            "size": size,
            **machine,
            "versions": {},
            "micro_batch_size": 32,
            "peak_flops": 60e9,
            "tokens_per_step": 2048,
        }
        operators = {name: {"step_seconds": list(rounds), "flops_per_step": 3e8} for name, rounds in seconds.items()}
        return write(tmp_path / f"speeds-{size}.json", facts | {"operators": operators} | (changes or {}))

    return make


@pytest.fixture
def pretrained(write_run, write_timing):
    """Writes a run of 36 seconds, its timing.json with the given changes; returns its folder."""

    def make(attention, seed=1, **changes) -> Path:
        folder = write_run("tiny", attention, [(50, 5.0)], seed=seed)
        write_timing(folder, **changes)
        return folder

    return make


def write_lines(path: Path, lines) -> Path:
    return write(path, "".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def counted():
    """Parameters by size, computed here from the architecture, independently of the model's code."""

    def make(sizes=("small", "base"), attention=("original", "symmetric", "pairwise"), **changes) -> dict:
        return {size: counts_of(size, attention) for size in sizes} | changes

    return make


def counts_of(size, attention):
    shape = dict(zip(SHAPE_KEYS, SHAPES[size], strict=True))
    layers, heads, hidden, intermediate, vocabulary = SHAPES[size]
    square, factors = hidden * hidden + hidden, heads * (hidden // heads) ** 2
    layer = {
        "original": 3 * square,
        "symmetric": 2 * square,
        "pairwise": 2 * square + factors,
        "shared": square + 3 * hidden,
    }
    layer |= {
        "original-gain": layer["original"],
        "original-symmetric": layer["original"],
        "original-unscaled": layer["original"],
        "symmetric-others": layer["symmetric"],
        "pairwise-identity": layer["pairwise"],
        "pairwise-scaled": layer["pairwise"],
        "qk-norm": layer["original"] + heads,
        "key-value": layer["symmetric"],
        "identity-query": layer["symmetric"],
        "coupled": layer["original"] + 2 * (hidden // heads) * (hidden // heads + 1) + 1,
        "exclusive": layer["original"],
    }
    embeddings = (vocabulary + 512 + 2) * hidden + 2 * hidden
    block = square + 2 * hidden + 2 * hidden * intermediate + intermediate + hidden + 2 * hidden
    head = square + 2 * hidden + vocabulary
    return {
        "shape": shape,
        "parameters": {name: embeddings + layers * (block + layer[name]) + head for name in attention},
        "attention_parameters": {name: layer[name] for name in attention},
    }


@pytest.fixture(scope="session")
def configuration(root) -> dict:
    """That of the demo, but a line in a hundred may be malformed."""
    return merge(to_builtins(read_config(root)), {"corpus": {"filter": {"max_bad_fraction": 0.01}}})


@pytest.fixture(scope="session")
def authors_data(tmp_path_factory) -> Path:
    """The files that the paper's authors published, written from the tables in `authors/`."""
    folder, tables = tmp_path_factory.mktemp("published"), Path(__file__).parent / "authors"
    for name, results in pd.read_parquet(tables / "results.parquet").groupby("folder"):
        pairs = zip(results["name"], results["value"], strict=True)
        numbers = {key: int(value) if value.is_integer() else value for key, value in pairs}
        write(folder / name / "eval_results.json", numbers)
    for size, losses in pd.read_parquet(tables / "losses.parquet").groupby("size"):
        export = losses.pivot(index="step", columns="column", values="value")[list(losses["column"].unique())]
        export.to_csv(folder / f"validation_loss_bert_{size}.csv", index_label="Step", quoting=csv.QUOTE_ALL)
    return folder


AUTHORS_ATTENTION = {"vanilla": "original", "symmetric": "symmetric", "pairwise": "pairwise"}


@pytest.fixture
def authors_losses(authors_data):
    """The authors' validation losses by size and operator, at steps 250, 500, … 200,000."""
    curves = {}
    for size, word in itertools.product(("small", "base"), AUTHORS_ATTENTION):
        with open(authors_data / f"validation_loss_bert_{size}.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))[:800]
        column = next(key for key in rows[0] if f"{size}_{word}_" in key and key.endswith("loss"))
        curves[size, AUTHORS_ATTENTION[word]] = [float(row[column]) for row in rows]
    return curves


@pytest.fixture(scope="session")
def paper_results(tmp_path_factory) -> tuple[Path, str]:
    """The folder that `symbert paper` writes, and what it prints."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
        patch.chdir(tmp_path_factory.mktemp("paper"))
        paper()
        return Path("results/paper").resolve(), printed.getvalue()


@pytest.fixture(scope="session")
def authors_csv(authors_data, tmp_path_factory) -> tuple[Path, Path]:
    """The authors' scores and losses as csv files for `import-scores`, by the recipes in tools/."""
    tools, folder = Path(__file__).parents[2] / "tools", tmp_path_factory.mktemp("authors")
    files = {"trainer": [authors_data], "losses": sorted(authors_data.glob("validation_loss_bert_*.csv"))}
    for recipe, paths in files.items():
        with open(folder / f"{recipe}.csv", "w", encoding="utf-8") as output:
            command = [sys.executable, tools / f"convert_{recipe}.py", *paths]
            subprocess.run(command, stdout=output, check=True)
    return folder / "trainer.csv", folder / "losses.csv"
