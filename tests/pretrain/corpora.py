"""A packed corpus small enough to train on in a test, and runs on it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from msgspec import to_builtins
from msgspec.structs import asdict, replace

from corpus.oscar import plan, step_of_parts
from symbert.configuration import PackSettings, PretrainSettings
from symbert.corpus.shards import Learned, Manifest, Pack, Shard
from symbert.corpus.wordpiece import SPECIAL_TOKENS
from symbert.files import sha256_of, write_json
from symbert.operators import OPERATORS, Operator, operators_of
from symbert.pretrain.run import GivenRows, Pretraining
from symbert.pretrain.start import weights_sha256
from symbert.sizes import SIZES, Shape
from symbert.steps import File

SPECIAL = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}


def write_corpus(directory: Path, rows: int = 50, vocabulary_size: int = 60, length: int = 16) -> Path:
    """Shards of an easy language (each token is followed by the next one, mostly); returns the manifest."""
    pack = PackSettings(sequence_length=16, validation_sequences=8, max_documents=1, sequences_per_shard=rows)
    plan(directory, Pack(parts=step_of_parts(directory / "vocab.txt"), texts=1, pack=pack))
    generator = np.random.default_rng(0)
    shards = []
    for split, counts in (("train", [rows // 2, rows - rows // 2]), ("validation", [8])):
        for number, count in enumerate(counts):
            start = generator.integers(5, vocabulary_size, (count, 1))
            ids = 5 + (start + np.arange(length)) % (vocabulary_size - 5)
            ids[:, 0], ids[:, -1] = SPECIAL["cls"], SPECIAL["sep"]
            path = directory / f"{split}-{number:05d}.npy"
            np.save(path, ids.astype(np.uint16))
            shards.append(Shard(path.name, split, count, sha256_of(path)))
    write_vocabulary(directory / "vocab.txt", vocabulary_size)
    digest, counts = sha256_of(directory / "vocab.txt"), {"train": rows, "validation": 8}
    learned = Learned(length, vocabulary_size, digest, SPECIAL, counts, shards)
    write_json(
        directory / "manifest.json", Manifest(**asdict(learned), hash=learned.learned_hash(), unigram_entropy=4.0)
    )
    return directory / "manifest.json"


def write_vocabulary(path: Path, size: int) -> None:
    """As many pieces: BERT's special ones, w0, w1 and so on."""
    path.write_text("".join(f"{piece}\n" for piece in (*SPECIAL_TOKENS.values(), *(f"w{n}" for n in range(size - 5)))))


def brief(**changes) -> PretrainSettings:
    """Settings of a run of 30 steps, with changes."""
    settings = PretrainSettings(
        steps=30,
        batch_size=8,
        learning_rate=1e-3,
        warmup_steps=5,
        weight_decay=0.01,
        adam_beta1=0.9,
        adam_beta2=0.999,
        adam_epsilon=1e-12,
        gradient_clip=1.0,
        mask_probability=0.15,
        dropout=0.1,
        evaluate_every=10,
        save_every=10,
        precision="auto",
        compile=False,
    )
    return replace(settings, **changes)


def planned(
    manifest: Path,
    settings: PretrainSettings,
    attention: str | Operator = "pairwise",
    seed: int = 1,
    architecture: str = "encoder",
    size: str = "tiny",
    shape: Shape | None = None,
    init_from: Path | None = None,
) -> Pretraining:
    """A run on the rows of a manifest; an operator or a shape of the test's own is given itself."""
    return Pretraining(
        architecture=architecture,
        size=size,
        shape=shape or SIZES[size],
        operator=OPERATORS[attention] if isinstance(attention, str) else attention,
        training=settings,
        rows=GivenRows(str(manifest)),
        corpus_source="embedded",
        init_from=init_from and File(str(init_from), weights_sha256(init_from)),
        pretrain_seed=seed,
    )


def own(name: str, **definition) -> Operator:
    """An operator of the user's own by its definition."""
    return operators_of({name: definition})[name]


def options(
    manifest: Path,
    settings: PretrainSettings,
    run: Path,
    attention: str | Operator = "pairwise",
    threads: int = 1,
    **model,
) -> list[str]:
    """The words of the command that trains a tiny model in the folder `run`, whose run.json is written."""
    write_json(run / "run.json", to_builtins(planned(manifest, settings, attention, **model)))
    return ["pretrain", str(run), "--threads", str(threads)]


def unpublish(run: Path) -> None:
    """Delete the outputs of a finished run, as Snakemake does before a forced job."""
    for name in ("done.json", "metrics.jsonl", "timing.json"):
        (run / name).unlink()


def killed(*_) -> None:
    """In the place of a function: the process ends here."""
    raise KeyboardInterrupt


def command(*arguments, **changes) -> list[str]:
    """The command of those `options`, for a process of its own."""
    return [sys.executable, "-m", "symbert", *options(*arguments, **changes)]


def losses(run: Path) -> dict[str, list[float]]:
    """The losses that a run has logged, by split."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {split: [line["loss"] for line in lines if line["split"] == split] for split in ("train", "validation")}


def start(arguments: list[str]) -> subprocess.Popen:
    """The command as a process of its own, its standard error readable as text."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    return subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env=environment)


def wait_for(path: Path, process: subprocess.Popen) -> None:
    """Until `path` exists; a run that ends before is an error."""
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.005)
