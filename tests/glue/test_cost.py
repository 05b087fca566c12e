import math

import pyarrow.parquet as pq
import pytest

from symbert.blimp import PIECES
from symbert.config import merge
from symbert.cost import Work
from symbert.flops import encoder_flops, step_flops
from symbert.glue.cost import (
    bytes_to_download,
    evaluated_rows,
    finetuning_steps,
    finetuning_work,
    judging_work,
)
from symbert.glue.forms import candidates
from symbert.glue.sources import published_split
from symbert.layout import Experiment, Run
from symbert.sizes import SIZES
from symbert.sources import DEMO
from symbert.suites import SUITES
from symbert.tasks import task_named
from traces import write


def test_the_rows_of_a_task_of_ones_own_are_reckoned_from_its_bytes_and_none_are_downloaded(with_own_task):
    experiment = with_own_task(1000)
    assert (finetuning_steps(experiment, "own"), evaluated_rows(experiment, "own")) == (5 * 63, 500)
    assert evaluated_rows(with_own_task(30), "own") == 30
    hub = Experiment(merge(experiment.config, {"glue": {"source": "hub"}}))
    alone = Experiment(merge(hub.config, {"sweep": {"tasks": ["rte"]}}))
    assert bytes_to_download(hub) == bytes_to_download(alone) > 0


def test_glue_takes_the_papers_number_of_steps(paper):
    """Five seeds of eight tasks, five epochs in batches of 16."""
    assert 5 * sum(finetuning_steps(paper, task) for task in paper.tasks) == 1_483_075
    assert evaluated_rows(paper, "mnli") == 9_815 + 9_832


def test_a_step_on_record_was_thought_to_take_queries_where_it_takes_candidates(paper):
    """A plan had 62,960 steps, and a tenth of the time that steps take beside their arithmetic."""
    every = Experiment(merge(paper.config, {"sweep": {"suites": ["superglue"], "tasks": [*SUITES["superglue"].tasks]}}))
    wanted = {"record": 1_007_300, "multirc": 27_243, "copa": 400}  # candidates, answers, and pairs of choices
    assert {task: finetuning_steps(every, task) for task in wanted} == {
        task: 10 * math.ceil(examples / 16) for task, examples in wanted.items()
    }
    assert (evaluated_rows(every, "record"), evaluated_rows(every, "copa")) == (100_000, 200)
    trained = encoder_flops(SIZES["base"], SIZES["base"].layer_weights, 3 * 10 * 1_007_300 + 100_000, 250)
    assert finetuning_work(every, "base", "record").flops == pytest.approx(trained)


def test_a_stand_in_of_record_was_thought_to_have_as_many_candidates_as_a_published_query(experiment):
    every = Experiment(merge(experiment.config, {"sweep": {"suites": ["superglue"], "tasks": ["record"]}}))
    task = task_named("record")
    rows = pq.read_table(DEMO / published_split(task, "train").location).to_pylist()
    made = math.ceil(len(list(candidates(rows))) / every.finetuning("record").batch_size)
    assert finetuning_steps(every, "record") == pytest.approx(every.finetuning("record").epochs * made, rel=0.03)


def test_fine_tuning_the_base_model_is_nine_minutes_of_an_h200s_peak(paper):
    """Five seeds of eight tasks, without what is beside the arithmetic (the floor that was estimated)."""
    found = sum((finetuning_work(paper, "base", task, 5) for task in paper.tasks), Work())
    assert found.flops / 790e12 / 60 == pytest.approx(9, abs=0.5)
    assert found.layers == 12 * 1_483_075


def test_the_pairs_are_downloaded_once_and_judged_as_many_copies_as_they_have_tokens(paper, folder):
    chosen = Experiment(merge(paper.config, {"sweep": {"suites": ["blimp"]}}))
    assert bytes_to_download(chosen) == bytes_to_download(paper) + SUITES["blimp"].bytes
    write(folder / chosen.pairs, 0)
    assert bytes_to_download(chosen) == bytes_to_download(paper)
    second = Experiment(merge(chosen.config, {"experiment": "second", "extends": chosen.name}))
    assert bytes_to_download(second) == bytes_to_download(paper), "they are read where they are"
    copies, base, run = 67_000 * 2 * (PIECES - 2), SIZES["base"], Run("base", "original", 1)
    forward = step_flops(base, base.layer_weights, chosen.vocabulary_size, copies, PIECES, copies) / 3
    assert judging_work(chosen, run).flops == pytest.approx(forward)
    tenth = Experiment(merge(chosen.config, {"suites": {"blimp": {"max_evaluation_examples": 100}}}))
    assert judging_work(tenth, run).flops == pytest.approx(judging_work(chosen, run).flops / 10)


def test_judging_pairs_was_thought_to_take_no_scores_of_word_pieces(paper):
    """They are most of what a small model computes, and every token of a sentence has them, whichever host it is."""
    sentences, tiny = 67_000 * 2, SIZES["tiny"]
    scores = 2 * sentences * (PIECES - 2) * tiny.hidden_size * (tiny.hidden_size + 30_522)
    for host, read in (("encoder", sentences * (PIECES - 2)), ("decoder", sentences)):
        layers = encoder_flops(tiny, tiny.layer_weights, read, PIECES)
        assert judging_work(paper, Run("tiny", "original", 1, host)).flops == pytest.approx(layers + scores)
