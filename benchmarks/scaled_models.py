"""Made-up inputs of training and fine-tuning, as many as asked for: equal arguments give equal files.

Every function writes to `input` in a folder, which exists.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import to_builtins

from benchmarks.packed import write_corpus
from benchmarks.paper import paper_sections
from benchmarks.protocol import settings_of
from benchmarks.scaled_corpus import write_vocabulary
from symbert.files import sha256_of, write_json
from symbert.glue.finetune import finetune
from symbert.glue.prepare import prepare_task
from symbert.glue.robustness_sets import prepare_robustness
from symbert.model.configuration import configuration_of
from symbert.model.network import MaskedModel, initialize
from symbert.model.weights import write_weights

FEW = 64  # rows of what does not grow


def write_rows(folder: Path, rows: int) -> None:
    """Pairs of questions, as `download-task` writes them: so many to train on, and FEW to evaluate on."""
    write_questions(folder / "input", {"train": rows, "validation": FEW})


def write_questions(given: Path, counts: dict[str, int]) -> None:
    """Rows of made-up questions by split, a vocabulary that has their words, and settings that take all rows."""
    write_vocabulary(given)
    draw = np.random.default_rng(1)
    tables = []
    for split, count in counts.items():
        texts = [
            [
                " ".join(f"piece{number}" for number in draw.integers(0, 20_000, length))
                for length in draw.integers(5, 25, count)
            ]
            for _ in range(2)
        ]
        columns = {
            "question1": texts[0],
            "question2": texts[1],
            "label": draw.integers(0, 2, count),
            "idx": range(count),
        }
        tables.append(pa.table({"split": [split] * count, **columns}))
    pq.write_table(pa.concat_tables(tables), given / "raw.parquet")
    write_json(given / "task.json", paper_sections()["task"] | {"allow_partial": True})


def write_steps(folder: Path, steps: int) -> None:
    """The rows of a small corpus, and settings of so many steps."""
    write_training(folder / "input", 8_192, 16, steps)


def write_corpus_rows(folder: Path, rows: int) -> None:
    """A corpus of so many rows, and settings of 8 steps."""
    write_training(folder / "input", rows, 128, 8)


def write_training(given: Path, rows: int, tokens: int, steps: int) -> None:
    """A packed corpus with a small vocabulary, and the demo's settings with so many steps and smaller batches."""
    write_corpus(given, rows, tokens, 1_000)
    changes = {"steps": steps, "warmup_steps": 1, "schedule_steps": None, "batch_size": 16, "precision": "fp32"}
    settings = settings_of("demo", **changes, evaluate_every=16, save_every=64)
    write_json(given / "pretrain.json", to_builtins(settings))


def write_state(folder: Path, size: int) -> None:
    """The state of a run that kept a file of so many MiB."""
    given = folder / "input"
    write_vocabulary(given)
    config = model_configuration()
    write_json(given / "state/config.json", config)
    run = {"size": "tiny", "attention": "pairwise", "pretrain_seed": 1, "parameters": (size << 20) // 4}
    write_json(
        given / "done.json", {**run, "steps": 1, "settings": {}, "vocabulary_sha256": sha256_of(given / "vocab.txt")}
    )
    weights = given / "state/weights/step-00000001.safetensors"
    weights.parent.mkdir()
    draw = np.random.default_rng(1)
    with open(weights, "wb") as file:
        for _ in range(size):
            file.write(draw.bytes(1 << 20))
    write_json(weights.with_suffix(".json"), {"step": 1, "sha256": sha256_of(weights)})


def write_training_rows(folder: Path, rows: int) -> None:
    """A prepared task with so many training rows, and a model as initialised."""
    write_finetuning(folder / "input", {"train": rows, "validation": FEW})


def write_sets(folder: Path, rows: int) -> None:
    """A model fine-tuned on a few rows, and sets of so many in all: three sorts of noise, and the evaluation rows."""

    given = folder / "input"
    write_finetuning(given, {"train": FEW, "validation": rows // 4})
    noise = {"root": None, "sets": [], "noise": [0.1, 0.2, 0.4], "noise_kinds": ["mixed"]}
    write_json(given / "robustness.json", noise)
    prepare_robustness(
        given / "raw.parquet", "qqp", given / "vocab.txt", given / "task.json", given / "robustness.json",
        given / "sets.parquet",
    )  # fmt: skip
    run = {"size": "tiny", "attention": "pairwise", "pretrain_seed": 1, "step": 1, "finetune_seeds": [1], "threads": 1}
    files = {"state": given / "state", "output": [given / "scores.json"], "keep_finetuned": 1}
    finetune(given / "checkpoint", [given / "qqp.parquet"], given / "glue.json", **run, **files)


def write_finetuning(given: Path, counts: dict[str, int]) -> None:
    """A prepared task of so many rows by split, the paper's settings with one epoch, and a tiny checkpoint."""

    write_questions(given, counts)
    prepare_task(given / "raw.parquet", "qqp", given / "vocab.txt", given / "task.json", given / "qqp.parquet")
    write_json(given / "glue.json", paper_sections()["glue"] | {"epochs": 1, "precision": "fp32"})
    model = MaskedModel(configuration_of("tiny", "pairwise"))
    initialize(model, seed=1)
    write_weights(model, given / "checkpoint/model.safetensors")
    write_json(given / "checkpoint/config.json", model_configuration())


def model_configuration() -> dict[str, Any]:
    """The config.json of a tiny model."""
    return configuration_of("tiny", "pairwise").to_dict()
