import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch

from benchmarks import learned, scored
from benchmarks.finetuners import (
    MAX_LENGTH,
    UNTIMED,
    Enough,
    Finetuning,
    Ours,
    PaddedRows,
    Stopwatch,
    stock_classifier,
)
from benchmarks.glue import describe, speed_figures, speed_table, stage_table, table_figures, write_checkpoint
from benchmarks.learned import compare
from benchmarks.measure import Usage
from benchmarks.paper import finetuning_settings
from benchmarks.prepared import LENGTHS, PIECES, real_rows, stand_in
from benchmarks.scored import measure_tables, write_scores
from benchmarks.stages import STAGES
from benchmarks.tables import figure_table
from symbert import cli
from symbert.report.scores import read_scores
from symbert.tasks import GLUE

ROWS = {"train": 960, "validation": 24}  # 300 steps: the Trainer evaluates after every second
MEASURE = """
import json, sys
from pathlib import Path
import torch
from benchmarks import glue
from benchmarks.test_glue import finetuning_in
torch.set_num_threads(1)
folder = Path(sys.argv[1])
finetuning, checkpoints = finetuning_in(folder), {"original": folder / "original"}
said = glue.compare(finetuning, checkpoints, folder)
built = glue.build(finetuning, checkpoints, folder)
trainer, seen = built["mrpc: stock Trainer"].trainer, []
compute_loss = trainer.compute_loss
def see(model, inputs, *options, **named):
    seen.append((trainer.state.global_step, model.training, *inputs["input_ids"].shape))
    return compute_loss(model, inputs, *options, **named)
trainer.compute_loss = see
found = glue.measure_round(built, 0)
keys = ("weight_decay", "eps", "betas", "fused", "lr")
print(json.dumps({
    "said": said,
    "found": found,
    "seen": seen,
    "groups": [{key: group[key] for key in keys} for group in trainer.optimizer.param_groups],
    "clip": trainer.args.max_grad_norm,
    "dropout": trainer.model.config.attention_probs_dropout_prob,
    "attention": trainer.model.config._attn_implementation,
}))
"""


def finetuning_in(folder):
    """A made-up MRPC of few rows in the paper's protocol."""
    return Finetuning(GLUE["mrpc"], stand_in(GLUE["mrpc"], folder / "rows", ROWS), finetuning_settings())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a benchmark of the tiny size works, with its checkpoints."""
    folder = tmp_path_factory.mktemp("bench")
    for attention in ("original", "pairwise"):
        write_checkpoint("tiny", attention, folder / attention)
    return folder


@pytest.fixture(scope="module")
def finetuning(folder):
    """What its contestants fine-tune."""
    return finetuning_in(folder)


@pytest.fixture(scope="module")
def measured(root, folder):
    """What a process that finds accelerate measures, and what its Trainer computed meanwhile."""
    if not importlib.util.find_spec("accelerate") and not (root / ".venv/bench-pretrain/complete").is_file():
        pytest.skip("accelerate is absent: transformers.Trainer needs it; `make test` installs it")
    places = [root, root / "tests", root / "src", root / ".venv/bench-pretrain"]
    environment = {**os.environ, "PYTHONPATH": ":".join(map(str, places))}
    command = [sys.executable, "-c", MEASURE, folder]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rows_of(data, split):
    return pq.read_table(data).filter(pc.field("split") == split)


def lengths_of(rows):
    """At 0, 5, … 100 % of the rows."""
    return np.percentile(pc.list_value_length(rows["input_ids"]), np.linspace(0, 100, len(LENGTHS["rte"])))


def pieces_of(rows):
    return len(pc.unique(pc.list_flatten(rows["input_ids"])))


@pytest.mark.parametrize("name", LENGTHS)
def test_stand_ins_have_the_lengths_and_word_pieces_of_glue_s_rows(name, tmp_path):
    data = stand_in(GLUE[name], tmp_path)
    assert {split: len(rows_of(data, split)) for split in GLUE[name].splits} == GLUE[name].official_rows
    np.testing.assert_allclose(lengths_of(rows_of(data, "train")), LENGTHS[name], atol=4)
    assert pieces_of(rows_of(data, "train")) == pytest.approx(PIECES[name], rel=0.01)


@pytest.mark.parametrize("name", LENGTHS)
def test_the_stated_lengths_and_word_pieces_are_those_of_glue_s_rows(name, mirror, tmp_path):
    rows = rows_of(real_rows(GLUE[name], mirror, tmp_path), "train")
    np.testing.assert_allclose(lengths_of(rows), LENGTHS[name], atol=0.5)
    assert pieces_of(rows) == PIECES[name]


def test_the_authors_rows_are_those_of_the_prepared_file_padded_to_128(finetuning):
    rows = rows_of(finetuning.data, "validation").to_pylist()
    padded = PaddedRows(finetuning.data, "validation")
    assert len(padded) == len(rows) == 24
    for ours, theirs in zip(rows, padded, strict=True):
        length = len(ours["input_ids"])
        rest = [0] * (MAX_LENGTH - length)
        assert theirs["input_ids"] == ours["input_ids"] + rest
        assert theirs["token_type_ids"] == ours["token_type_ids"] + rest
        assert theirs["attention_mask"] == [1] * length + rest
        assert theirs["label"] == ours["label"]


def test_a_round_times_as_many_steps_as_the_authors_take_between_two_evaluations(finetuning):
    rte = Finetuning(GLUE["rte"], finetuning.data, finetuning.settings)
    rte.__dict__["rows"] = GLUE["rte"].official_rows
    assert (rte.steps, rte.interval) == (780, 4)
    assert (finetuning.steps, finetuning.interval) == (300, 2)
    assert "every 2 steps (0.75 rows for each row trained), this project once, after 300 (0.005)" in describe(
        finetuning
    )


def test_the_clock_runs_between_two_steps_and_stops_the_training(monkeypatch):
    moments = iter((10.0, 13.0))
    monkeypatch.setattr("benchmarks.finetuners.now", lambda: next(moments))
    clock = Stopwatch(1, 3)
    clock.tell(1)
    clock.tell(2)
    with pytest.raises(Enough):
        clock.tell(3)
    assert clock.seconds == 3.0


def test_each_of_our_rounds_trains_a_few_steps_with_another_seed_and_predicts_all_rows(finetuning, folder, monkeypatch):
    done, predicted = [], []

    def train(model, rows, settings, precision, seed, tell):
        for step in range(1, 300):
            done.append((seed, step))
            tell(step)

    monkeypatch.setattr("benchmarks.finetuners.train", train)
    monkeypatch.setattr("benchmarks.finetuners.predict", lambda model, rows, precision: predicted.append(len(rows)))
    ours = Ours(finetuning, folder / "original")
    ours.measure()
    ours.measure()
    assert done == [(seed, step) for seed in (1, 2) for step in range(1, UNTIMED + 3)]
    assert predicted == [24, 24]


def test_the_stages_of_a_step_are_all_its_time(finetuning, folder):
    stages = Ours(finetuning, folder / "pairwise").stages()
    assert stages.keys() == set(STAGES)
    assert min(stages.values()) > 0
    shares = [float(share) for share in stage_table({"tiny": stages}).splitlines()[2].split("|")[2:-1]]
    assert sum(shares) == pytest.approx(100, abs=0.3)


def test_outputs_other_than_the_stock_model_s_stop_the_benchmark(finetuning, folder, monkeypatch):
    swapped = {"original": "pairwise", "pairwise": "original"}
    other = lambda path, *rest: stock_classifier(path.with_name(swapped[path.name]), *rest)  # noqa: E731
    monkeypatch.setattr(learned, "stock_classifier", other)
    with pytest.raises(SystemExit, match="mrpc, .*: the contestants do not compute the same: outputs .* differ by"):
        compare(finetuning, {name: folder / name for name in swapped}, folder)


def test_another_loss_than_the_trainer_s_stops_the_benchmark(finetuning, folder, monkeypatch):
    monkeypatch.setattr(learned, "losses_of", lambda *_: (0.7, 0.6, 0.61))
    with pytest.raises(SystemExit, match="mrpc: the contestants do not learn the same: loss 0.7, then 0.6 and 0.61"):
        compare(finetuning, {"original": folder / "original"}, folder)


def test_the_authors_way_trains_and_evaluates_as_their_scripts_do(measured):
    training, evaluating = [16, MAX_LENGTH], [24, MAX_LENGTH]
    assert [(step, *shape) for step, is_training, *shape in measured["seen"] if is_training] == [
        (step, *training) for step in range(UNTIMED + 2)
    ]
    assert [(step, *shape) for step, is_training, *shape in measured["seen"] if not is_training] == [(2, *evaluating)]
    rate = 1e-5 * 3 / 30  # of the fourth step, while the rate grows over a tenth of 300 steps
    common = {"weight_decay": 0.0, "eps": 1e-8, "betas": [0.9, 0.999], "fused": True, "lr": pytest.approx(rate)}
    assert measured["groups"] == [common] * 2
    assert (measured["clip"], measured["dropout"], measured["attention"]) == (1.0, 0.1, "sdpa")


def test_this_project_and_the_trainer_learn_the_same(measured):
    assert "after 5 steps on 8 rows this project's loss equals the Trainer's" in measured["said"]


def test_examples_per_second_are_promised_with_the_evaluations_of_both(measured):
    found = measured["found"]
    figures = speed_figures("mrpc", ["original"])
    assert [figure.target for figure in figures] == [None, "≥ 3"]
    assert figure_table(figures, [found]).count("\n") == 4
    assert speed_table([found]).count("| mrpc: ") == 2
    step, evaluation = (found[f"mrpc: stock Trainer: {what}"] for what in ("training", "evaluation"))
    assert found["mrpc: stock Trainer: training and evaluation"] == pytest.approx(step + evaluation / 2 / 16)
    step, evaluation = (found[f"mrpc: original: {what}"] for what in ("training", "evaluation"))
    assert found["mrpc: original: training and evaluation"] == pytest.approx(step + evaluation / 300 / 16)


def test_made_up_scores_fill_the_matrix_in_either_layout(tmp_path, monkeypatch):
    monkeypatch.setattr(scored, "steps", lambda: [1000, 200_000])
    layouts = [write_scores(tmp_path, count) for count in (5, 1)]
    assert [len(files) for files in layouts] == [6 * 2 * 9, 6 * 2 * 9 * 5]
    for files in layouts:
        scores = read_scores(files, list(GLUE), list(scored.SEEDS))
        assert len(scores) == 6 * 2 * 10 * 5


def test_the_matrix_has_972_files_of_five_records():
    assert len(scored.MODELS) * len(scored.steps()) * len(GLUE) == 972


def test_each_table_is_timed_from_each_layout_and_beside_its_imports(tmp_path, monkeypatch):
    monkeypatch.setattr(scored, "steps", lambda: [200_000])
    monkeypatch.setattr(scored, "interleave", run_in_turn)
    (found,) = measure_tables(tmp_path, 1, ["table-table3_glue"])
    figures = [(figure.name, figure.value(found), figure.target) for figure in table_figures(found)]
    assert figures == [
        ("table-table3_glue, 54 files", 2, "≤ 5"),
        ("table-table3_glue, 270 files", 3, "≤ 5"),
        ("table-table3_glue, 54 files, beside imports", 1, None),
        ("table-table3_glue, 270 files, beside imports", 2, None),
    ]
    assert (tmp_path / "tables/table-table3_glue.md").read_text().count("| small-") == 3


def run_in_turn(contestants, rounds, prepare):
    """The commands' work in this process; the n-th contestant takes n seconds."""
    for contestant in contestants[1:]:
        assert cli.main(contestant.jobs[0][0][3:]) == 0
    return [{contestant.name: Usage(0, number, 0) for number, contestant in enumerate(contestants, start=1)}]


@pytest.fixture(autouse=True)
def one_thread():
    """Small matrices need no more."""
    torch.set_num_threads(1)
