"""A corpus of ten thousand parts of long names: planned, and the commands that take all parts run on them."""

import json
import random

import numpy as np
import pytest

from slurm.published import write_mirror
from symbert.corpus.tokens import OFFSET
from symbert.corpus.wordpiece import TOKEN
from symbert.files import sha256_of
from workflow.checkout import Checkout, check_out

PARTS, PER_BATCH, TO_RUN = 10_000, 10, 10
NAMES = [f"{'a-long-name-of-a-file-' * 9}{number:05}" for number in range(PARTS)]
LONG = 3600  # seconds after which a run hangs
CORPUS = "results/many/corpus"


@pytest.fixture
def many(root, tmp_path) -> tuple[Checkout, list[str]]:
    """A copy of the project, and what its configuration names: own files of a document each."""
    own, mirror = tmp_path / "own", write_mirror(tmp_path / "mirror")
    own.mkdir()
    draw = random.Random(1)
    for name in NAMES:
        (own / f"{name}.jsonl").write_text(json.dumps({"text": "".join(draw.choices("abcd ", k=80))}) + "\n")
    corpus = {
        "source": "files",
        "files": f"{own}/*",
        "filter": {"rules": []},
        "parts_per_batch": PER_BATCH,
        "pack": {"sequence_length": 16, "validation_sequences": 16},
    }
    options = ["--config", "experiment=many", f"mirror={mirror}", f"corpus={json.dumps(corpus)}"]
    return check_out(root, tmp_path / "copy"), options


def write_as_if_run(copy: Checkout, model: str, number: int, name: str) -> None:
    """What the jobs of a part write, made of what they wrote of another one."""
    folder = copy.directory / CORPUS
    (folder / f"filtered/{name}.parquet").hardlink_to(folder / f"filtered/{model}.parquet")
    counts = json.loads((folder / f"filtered/{model}.counts.json").read_text())
    digest = f"{number:064x}"
    (folder / f"filtered/{name}.counts.json").write_text(json.dumps({**counts, "part": name, "file_sha256": digest}))
    record, draw = json.loads((folder / f"tokens/{model}.json").read_text()), np.random.default_rng(number)
    tokens, offsets = (folder / f"tokens/{name}.{suffix}" for suffix in ("npy", "offsets.npy"))
    np.save(tokens, draw.integers(5, 30, record["tokens"]).astype(TOKEN))
    np.save(offsets, np.array([(0, draw.integers(2**60), 1)], OFFSET))
    record |= {"part": name, "tokens_sha256": sha256_of(tokens), "offsets_sha256": sha256_of(offsets)}
    (folder / f"tokens/{name}.json").write_text(json.dumps(record))


@pytest.mark.campaign
def test_ten_thousand_parts_are_packed_by_one_job_and_told_of_by_tables(many):
    """The jobs of the last batch run; of the others, which are the same, one does, and the rest is written in its way.

    The names of all parts, 2 MB for each of the lists that packing takes, are more than Linux hands to a command.
    """
    copy, options = many
    first = copy.snakemake(f"{CORPUS}/tokens/{NAMES[0]}.json", *options, timeout=LONG)
    assert first.code == 0 and first.jobs["filter_part"] == first.jobs["tokenize_part"] == 1, first.output[-3000:]
    tokens = json.loads((copy.directory / f"{CORPUS}/tokens/{NAMES[0]}.json").read_text())["tokens"]
    for number, name in enumerate(NAMES[1:-TO_RUN], start=1):
        write_as_if_run(copy, NAMES[0], number, name)
    (copy.directory / CORPUS / "batches").mkdir()
    for batch in range(PARTS // PER_BATCH - TO_RUN // PER_BATCH):
        counted = {"documents": (batch + 1) * PER_BATCH, "tokens": (batch + 1) * PER_BATCH * tokens}
        (copy.directory / CORPUS / f"batches/{batch}.json").write_text(json.dumps(counted))
    run = copy.snakemake("corpus", *options, timeout=LONG)
    assert run.code == 0, run.output[-5000:]
    assert run.jobs["filter_part"] == run.jobs["tokenize_part"] == TO_RUN
    assert run.jobs["pack_shards"] == run.jobs["record_files"] == run.jobs["tabulate_corpus"] == 1
    assert set(run.jobs).isdisjoint({"download_vocabulary", "count_batch"})
    manifest = json.loads((copy.directory / CORPUS / "shards/manifest.json").read_text())
    assert manifest["parts"] == NAMES and sum(manifest["documents"].values()) > PARTS - 100
    assert len(json.loads((copy.directory / CORPUS / "sources.json").read_text())["files"]) == PARTS
    assert copy.snakemake("corpus", *options, timeout=LONG).jobs == {}


@pytest.mark.campaign
@pytest.mark.parametrize("options", [[], ["--profile", "profiles/slurm", "--cores", "64"]], ids=["here", "cluster"])
def test_ten_thousand_parts_are_planned(checkout, options):
    """By itself Snakemake needed minutes for 3,000 parts, and ended in a RecursionError at 900 batches."""
    corpus = f"corpus={{parts: {PARTS}}}"
    plan = checkout.snakemake(
        "--dry-run", "--quiet", "rules", *options, "--config", "scale=paper", "source=hub", corpus
    )
    assert plan.code == 0, plan.output[-3000:]
    assert plan.jobs["filter_part"] == plan.jobs["tokenize_part"] == plan.jobs["download_part"] == PARTS
    assert plan.jobs["count_batch"] == PARTS // PER_BATCH - 2 and plan.jobs["pack_shards"] == 1
