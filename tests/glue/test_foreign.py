"""`symbert score` of models from elsewhere, and at learning rates that are tuned."""

import json
import os
import shutil
import signal
from pathlib import Path
from statistics import fmean

import pytest
import torch
from safetensors.torch import load_file
from transformers import ElectraForSequenceClassification

from glue.laboratory import records_in
from symbert.console import Progress
from symbert.errors import DivergedError, IntegrityError, UsageError
from symbert.files import sha256_of
from symbert.foreign import Tuning
from symbert.glue import finetuning as module
from symbert.glue import score as scoring
from symbert.glue.export import export_classifier
from symbert.glue.metrics import METRICS

NOISE = {"noise": [0.3], "kinds": ["drop"]}
FEW = {"max_examples": 32, "max_evaluation_examples": 20}
TUNING = Tuning(rates=[1e-3, 1e-2, 1e-4], seeds=[101, 102])


@pytest.fixture
def scored(laboratory):
    """Scores a model from elsewhere on tasks; gives how, and the file."""

    def go(family, tasks=("rte",), seeds=(1,), keep=None, **protocol):
        checkpoint, model = laboratory.foreign(family)
        rows = laboratory.rows(tasks[0], tokenizer=model.tokenizer, **FEW)
        for task in tasks:
            if not Path(rows.file(task)).exists():
                laboratory.prepared(rows, task)
        how = laboratory.protocol(rows, **protocol)
        return how, laboratory.score(how, checkpoint, list(tasks), list(seeds), keep)

    return go


HEADS = [
    ("bert", ["rte", "cola"], "BertForSequenceClassification"),
    ("bert", ["squad2"], "BertForQuestionAnswering"),
    ("modernbert", ["rte", "stsb"], "ModernBertForSequenceClassification"),
    ("modernbert", ["copa", "multirc"], "ModernBertForSequenceClassification"),
    ("modernbert", ["squad2"], "ModernBertForQuestionAnswering"),
]


@pytest.mark.parametrize(("family", "tasks", "kind"), HEADS)
def test_heads_of_every_kind_are_scored_and_a_record_says_of_which_model(
    family, tasks, kind, scored, laboratory, capsys
):
    checkpoint, model = laboratory.foreign(family)
    _, file = scored(family, tasks, dropout=0.2)
    assert file.parent.parts[-2:] == ("models", checkpoint.name)
    for record, task in zip(records_in(file), tasks, strict=True):
        named = ("size", "attention", "pretrain_seed", "model_type", "origin", "task")
        assert [record[key] for key in named] == ["", "mine", 1, family, model.origin, task]
        assert record["checkpoint_sha256"] == sha256_of(model.checkpoint / "model.safetensors")
        assert record["head"] == kind and not {"step", "learning_rate", "tuned"} & record.keys()
        kept = json.loads((file.parent / f"finetuned/{task}/seed-1.json").read_text())
        assert set(kept["dropout"].values()) == {0.2} and len(kept["dropout"]) >= 2
    told = capsys.readouterr().err
    assert all(key in told for key in kept["dropout"])


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_kept_weights_give_what_fine_tuning_again_gives_on_sets_of_noise(family, laboratory, scored, counted):
    how, file = scored(family, seeds=[1, 2], keep=0)
    sets = laboratory.sets(how.rows, **NOISE)
    laboratory.prepared(sets, "rte")
    robust, checkpoint = laboratory.robustness(sets, how), laboratory.foreign(family)[0]
    known = records_in(laboratory.score(robust, checkpoint, ["rte"], [1, 2]))
    assert counted == [1, 2] and len([*file.parent.rglob("seed-*.safetensors")]) == 2
    assert [record["clean"] for record in known] == [record["metrics"] for record in records_in(file)]
    shutil.rmtree(file.parent / "finetuned")
    assert records_in(laboratory.score(robust, checkpoint, ["rte"], [1, 2])) == known and counted == [1, 2] * 2


def test_transformers_loads_kept_weights_as_the_refusal_of_their_export_says(scored, laboratory, tmp_path):
    checkpoint, origin = laboratory.foreign("electra")
    _, file = scored("electra", keep=0)
    weights = file.parent / "finetuned/rte/seed-1.safetensors"
    with pytest.raises(UsageError, match="load it as ElectraForSequenceClassification, then") as refused:
        export_classifier(weights, checkpoint, tmp_path / "out")
    model = ElectraForSequenceClassification.from_pretrained(origin.origin, num_labels=2)
    eval(str(refused.value).partition("then its weights: ")[2], {"load_file": load_file, "model": model})
    kept = load_file(weights)
    assert all(torch.equal(values, kept[name]) for name, values in model.state_dict().items())


def test_a_model_that_was_changed_since_the_start_is_refused(laboratory, scored):
    how, _ = scored("distilbert")
    checkpoint, model = laboratory.foreign("distilbert")
    for name in ("config.json", "model.safetensors"):
        file = model.checkpoint / name
        intact = file.read_bytes()
        file.write_bytes(intact + b" ")
        with pytest.raises(IntegrityError, match=rf"{name}: sha256 expected"):
            laboratory.score(how, checkpoint, ["rte"], [1])
        file.write_bytes(intact)


# --- rates ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tuned(laboratory, monkeypatch):
    """Scores a checkpoint of this project at a tuned rate, where each rate has the accuracy that is given; gives the
    file."""

    def go(accuracy=None, seeds=(1,), name=None, keep=None):
        rates, train = [], module.train
        if accuracy:
            learned = lambda *given: rates.append(given[2].learning_rate) or train(*given)  # noqa: E731
            monkeypatch.setattr(module, "train", learned)
            monkeypatch.setitem(METRICS, "accuracy", lambda labels, predictions: accuracy(rates[-1]))
        rows = laboratory.rows("rte", **FEW)
        laboratory.prepared(rows, "rte")
        return laboratory.score(
            laboratory.protocol(rows, TUNING), laboratory.checkpoint(), ["rte"], list(seeds), keep, name
        )

    return go


def test_the_rate_with_the_best_mean_over_the_tuning_seeds_is_that_of_the_seeds_that_are_reported(tuned, counted):
    file = tuned({1e-4: 0.5, 1e-3: 0.7, 1e-2: 0.6}.get, seeds=[1, 2])
    assert counted == [101, 102] * 3 + [1, 2]
    for record in records_in(file):
        assert record["learning_rate"] == 1e-3 and record["metrics"] == {"rte": 0.7}
        assert record["tuned"] == {"0.0001": [0.5, 0.5], "0.001": [0.7, 0.7], "0.01": [0.6, 0.6]}
    kept = sorted(str(path.relative_to(file.parent)) for path in file.parent.rglob("seed-*.json"))
    tried = [f"finetuned/rte/rate-{rate}/seed-{seed}.json" for rate in (0.0001, 0.001, 0.01) for seed in (101, 102)]
    assert kept == [*tried, "finetuned/rte/seed-1.json", "finetuned/rte/seed-2.json"]


def test_of_equally_good_rates_the_lowest_is_taken_and_another_selection_tries_none_again(tuned, counted):
    (first,) = records_in(tuned(lambda rate: 0.5))
    assert first["learning_rate"] == 1e-4
    again, second = records_in(tuned(seeds=[1, 2]))
    assert again == first and second["tuned"] == first["tuned"] and counted == [101, 102] * 3 + [1, 2]


def test_a_rate_at_which_a_seed_diverges_is_out_and_where_all_do_there_are_no_scores(tuned, monkeypatch):
    train = module.train

    def ruined(trainee, rows, settings, seed, tell):
        if settings.learning_rate in diverging and seed == 102:
            raise DivergedError("loss nan in epoch 1")
        train(trainee, rows, settings, seed, tell)

    monkeypatch.setattr(module, "train", ruined)
    diverging = [1e-4, 1e-2]
    (record,) = records_in(tuned())
    assert record["learning_rate"] == 1e-3 and record["tuned"]["0.01"] == record["tuned"]["0.0001"] == []
    diverging.append(1e-3)
    with pytest.raises(DivergedError, match="rte rate 0.01 seed 102: loss nan"):
        tuned()


class KilledAtTheSecondRate(Progress):
    def update(self, done, note=""):
        if "rate 0.001 seed 102" in self.label and done == 2:
            os.kill(os.getpid(), signal.SIGKILL)


def test_after_a_kill_in_the_tuning_only_what_is_missing_is_tried(tuned, counted, monkeypatch):
    if not (child := os.fork()):
        monkeypatch.setattr(module, "Progress", KilledAtTheSecondRate)
        tuned()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    resumed = tuned()
    assert counted == [102, 101, 102, 1]
    content = resumed.read_bytes()
    assert tuned().read_bytes() == content, "a forced job tries all rates again"
    assert counted == [102, 101, 102, 1] + [101, 102] * 3 + [1]


def test_robustness_is_measured_at_the_rate_that_was_chosen(laboratory, tuned, counted):
    file, rows = tuned(lambda rate: rate, keep=300), laboratory.rows("rte", **FEW)
    sets = laboratory.sets(rows, **NOISE)
    laboratory.prepared(sets, "rte")
    how = laboratory.robustness(sets, laboratory.protocol(rows, TUNING))
    (known,), (score,) = records_in(laboratory.score(how, laboratory.checkpoint(), ["rte"], [1])), records_in(file)
    assert known["learning_rate"] == 1e-2 and known["tuned"] == score["tuned"] and len(counted) == 7
    shutil.rmtree(file.parent / "finetuned")
    (again,) = records_in(laboratory.score(how, laboratory.checkpoint(), ["rte"], [1]))
    assert again == known and counted[7:] == [101, 102] * 3 + [1]
    assert fmean(known["tuned"]["0.01"]) == max(map(fmean, known["tuned"].values()))
    assert scoring.kept_at(Path(), "rte", 1, 1e-2) == Path("finetuned/rte/rate-0.01/seed-1.json")
