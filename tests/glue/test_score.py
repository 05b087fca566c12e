"""`symbert score`: fine-tunings of a checkpoint."""

import json
import os
import shutil
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file

from damage import CONTENTS
from glue.laboratory import records_in
from symbert.console import Progress
from symbert.errors import DataError, DivergedError, InputOutputError, IntegrityError
from symbert.files import sha256_of, single_writer
from symbert.glue import finetuning as module
from symbert.glue.metrics import METRICS
from symbert.glue.tasks import GLUE
from symbert.model.loading import extracted_sha256
from symbert.paths import CHECKSUM


@pytest.fixture
def finetune(laboratory):
    """Fine-tunes a checkpoint; gives the file of its scores."""
    return laboratory.finetune


def test_every_task_is_scored_in_its_columns_in_the_order_of_the_selection(finetune):
    tasks = [name for name in GLUE if name != "wnli"]
    for task, record in zip(tasks, records_in(finetune(tasks)), strict=True):
        assert record["task"] == task and record["finetune_seed"] == 1
        assert set(record["metrics"]) == set(record["majority"]) == set(GLUE[task].scores.values())
        for column, score in record["metrics"].items():
            parts = record["details"][column]
            assert set(parts) == set(GLUE[task].metrics)
            assert score == pytest.approx(sum(parts.values()) / len(parts)) and -1 <= score <= 1


def test_a_checkpoint_is_read_once_for_all_tasks_and_seeds(finetune, monkeypatch):
    """And each of them starts from its weights: the second seed gives what it gives alone."""
    read, times = module.read_checkpoint, []
    monkeypatch.setattr(module, "read_checkpoint", lambda folder: times.append(folder) or read(folder))
    both = records_in(finetune(["rte", "mrpc"], seeds=(1, 2)))
    assert len(times) == 1 and len(both) == 4
    kept = {file: file.unlink() for file in Path("results/scores").glob("**/finetuned/*/seed-2.json")}
    assert len(kept) == 2 and records_in(finetune(["mrpc"], seeds=(2,))) == both[-1:]


def test_one_more_seed_or_task_computes_only_the_new_ones(finetune, counted):
    (first,) = records_in(finetune(["rte"], [1]))
    again, second = records_in(finetune(["rte"], [1, 2]))
    assert counted == [1, 2] and again == first and second["settings_hash"] == first["settings_hash"]
    every = records_in(finetune(["cola", "rte"], [2, 1]))
    assert counted == [1, 2, 2, 1] and every[2:] == [second, first]
    assert [(one["task"], one["finetune_seed"]) for one in every] == [("cola", 2), ("cola", 1), ("rte", 2), ("rte", 1)]


OTHERS = [
    *(({"learning_rate": 5e-4}, "settings_hash"), ({"weights": 2}, "checkpoint_sha256")),
    *(({"rows": {"max_examples": 48}}, "data_sha256"), ({"attention": "symmetric"}, "attention")),
    ("replaced", "checkpoint_sha256"),  # a training that was forced on a GPU, extracted again
    ("bf16", "precision"),  # of another device
]


@pytest.mark.parametrize(("other", "key"), OTHERS)
def test_results_of_another_origin_are_never_mixed_in(laboratory, finetune, counted, monkeypatch, other, key):
    (first,) = records_in(finetune(seeds=[1]))
    if other == "replaced":
        shutil.copy(laboratory.checkpoint(weights=2) / "model.safetensors", laboratory.checkpoint(weights=1))
    elif other == "bf16":
        monkeypatch.setattr(module, "resolve_precision", lambda *given: "bf16")
    changed, second = records_in(finetune(seeds=[1, 2], **(other if isinstance(other, dict) else {})))
    assert counted == [1, 1, 2] and changed[key] == second[key] != first[key]


def test_predictions_are_kept_beside_the_scores(finetune, prepared):
    file = finetune()
    (record,) = records_in(file)
    predictions = json.loads((file.parent / "finetuned/rte/seed-1.json").read_text())["predictions"]["validation"]
    labels = pq.read_table(prepared("rte"))["label"].to_pylist()[64:]
    right = sum(p == label for p, label in zip(predictions, labels, strict=True))
    assert record["metrics"]["rte"] == pytest.approx(right / 40)
    assert record["constant_prediction"] == (len(set(predictions)) == 1)


def weights_of(file):
    return sorted(path.name for path in (file.parent / "finetuned/rte").glob("*.safetensors"))


def test_weights_are_kept_at_the_step_that_is_asked_for(finetune, counted):
    plain = finetune(seeds=[1, 2], keep=600)
    records = records_in(plain)
    assert weights_of(plain) == []
    kept = finetune(seeds=[1, 2], keep=300)
    assert counted == [1, 2, 1, 2] and records_in(kept) == records
    assert weights_of(kept) == ["seed-1.safetensors", "seed-2.safetensors"]
    for weights in (kept.parent / "finetuned/rte").glob("*.safetensors"):
        assert json.loads(weights.with_suffix(".json").read_text())["weights_sha256"] == sha256_of(weights)
    assert weights_of(finetune(seeds=[1, 2])) == [], "those of an earlier job do not stay beside a new record"


class KilledInSeed2(Progress):
    def update(self, done, note=""):
        if "seed 2" in self.label.rpartition(":")[2] and done == 3:
            os.kill(os.getpid(), signal.SIGKILL)


def test_after_a_kill_only_the_missing_seeds_are_computed_and_the_file_is_that_of_a_job_at_one_go(
    laboratory, finetune, counted, monkeypatch
):
    if not (child := os.fork()):
        monkeypatch.setattr(module, "Progress", KilledInSeed2)
        finetune(seeds=[1, 2, 3])
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not list((laboratory.results / "scores").rglob("step-300/*.json"))
    resumed = finetune(seeds=[1, 2, 3])
    content = resumed.read_bytes()
    assert counted == [2, 3] and not (resumed.parent / "state").exists()
    assert finetune(seeds=[1, 2, 3]).read_bytes() == content and counted == [2, 3, 1, 2, 3]


def test_two_jobs_do_not_work_on_one_checkpoint(laboratory, finetune):
    """A job whose Snakemake was killed goes on."""
    file = finetune()
    with (
        single_writer(file.parent / "state"),
        pytest.raises(InputOutputError, match=r"step-300/state: in use by process"),
    ):
        finetune(seeds=[2])


def test_a_kept_record_that_is_damaged_is_refused(finetune):
    """A flipped digit is JSON of the right shape, too."""
    (before,), kept = records_in(file := finetune()), file.parent / "finetuned/rte/seed-1.json"
    text = kept.read_text()
    place = text.index('"metrics"')
    place = next(i for i in range(text.index("0.", place), len(text)) if text[i] in "123456789")
    for content in (*CONTENTS, text[:place] + str(int(text[place]) - 1) + text[place + 1 :]):
        kept.write_text(content)
        with pytest.raises(DataError, match=rf"{kept.name}: .*; delete it and run again"):
            finetune(seeds=[1, 2])
    kept.unlink()
    assert records_in(finetune(seeds=[1, 2]))[0] == before


def test_weights_that_load_are_not_taken_for_those_that_were_extracted(finetune, checkpoint):
    """One flipped bit is another model, whose scores were computed without a word."""
    folder, (before,) = checkpoint("pairwise", 1), records_in(finetune())
    weights = folder / "model.safetensors"
    (folder / CHECKSUM).write_text(sha256_of(weights) + "\n")
    assert extracted_sha256(folder) == before["checkpoint_sha256"] == sha256_of(weights)
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(IntegrityError, match=r"model\.safetensors: sha256 expected"):
        finetune(seeds=[2])


def test_a_seed_that_diverges_in_its_last_step_is_named_and_leaves_no_record(laboratory, finetune, monkeypatch):
    """It was scored, as a classifier of one class."""
    train = module.train

    def ruined(trainee, rows, settings, seed, tell):
        train(trainee, rows, settings, seed, tell)
        if seed == 2:
            trainee.model.classifier.weight.data.fill_(float("inf"))

    monkeypatch.setattr(module, "train", ruined)
    with pytest.raises(DivergedError, match=r"^finetune tiny-pairwise seed 1 step 300: rte seed 2: a logit is not"):
        finetune(seeds=[1, 2])
    (folder,) = (laboratory.results / "scores").rglob("step-300")
    assert [path.name for path in folder.rglob("*.json")] == ["seed-1.json"]


def test_a_start_with_infinite_logits_is_a_divergence(laboratory, finetune):
    """It ended as a bug."""
    file = laboratory.checkpoint() / "model.safetensors"
    weights = load_file(file)
    weights["bert.embeddings.LayerNorm.weight"].fill_(torch.inf)
    save_file(weights, file, metadata={"format": "pt"})
    for task in ("rte", "stsb", "copa", "squad2"):
        with pytest.raises(DivergedError, match=f"^finetune tiny-pairwise seed 1 step 300: {task} seed 1: "):
            finetune([task])


def test_a_forced_job_computes_and_takes_no_scores_of_another_selection(finetune, counted, monkeypatch):
    """`-R score` said "done" and published the old scores: what is kept beside is for interrupted jobs alone."""
    (first, _), (copied,) = (records_in(finetune(seeds=seeds)) for seeds in ([1, 2], [1]))
    monkeypatch.setitem(METRICS, "accuracy", lambda labels, predictions: 0.123)
    (forced,) = records_in(finetune(seeds=[1]))
    assert copied == first and forced["metrics"] == {"rte": 0.123} and counted == [1, 2, 1]


def test_a_selection_for_weights_fine_tunes_again_what_has_none_and_takes_the_rest(finetune, counted):
    first = records_in(finetune(seeds=[1], keep=300)) + records_in(finetune(seeds=[2]))
    file = finetune(seeds=[1, 2], keep=300, name="weights")
    assert records_in(file) == first and counted == [1, 2, 2]
    assert len(list(file.parent.rglob("seed-*.safetensors"))) == 2
