"""A packed corpus small enough to train on in a test, and runs on it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

SPECIAL = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}


def write_corpus(directory: Path, rows: int = 50, vocabulary_size: int = 60, length: int = 16) -> Path:
    """Shards of an easy language (each token is followed by the next one, mostly); returns the manifest."""
    directory.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    shards = []
    for split, counts in (("train", [rows // 2, rows - rows // 2]), ("validation", [8])):
        for number, count in enumerate(counts):
            start = generator.integers(5, vocabulary_size, (count, 1))
            ids = 5 + (start + np.arange(length)) % (vocabulary_size - 5)
            ids[:, 0], ids[:, -1] = SPECIAL["cls"], SPECIAL["sep"]
            np.save(directory / f"{split}-{number:05d}.npy", ids.astype(np.uint16))
            shards.append({"file": f"{split}-{number:05d}.npy", "split": split, "rows": count})
    facts = {"hash": "0123456789abcdef", "vocabulary_size": vocabulary_size, "special_tokens": SPECIAL}
    (directory / "manifest.json").write_text(json.dumps({**facts, "shards": shards}))
    return directory / "manifest.json"


def command(manifest: Path, settings: Path, run: Path, attention: str = "pairwise") -> list[str]:
    """The command that trains a tiny model into the folder `run`."""
    options = {
        "manifest": manifest,
        "settings": settings,
        "size": "tiny",
        "attention": attention,
        "seed": 1,
        "state": run / "state",
        "done": run / "done.json",
        "metrics": run / "metrics.jsonl",
        "threads": 1,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", "symbert", "pretrain-model", *words]


def start(arguments: list[str]) -> subprocess.Popen:
    """The command as a process of its own, its standard error readable as text."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    return subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env=environment)
