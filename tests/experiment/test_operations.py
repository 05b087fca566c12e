import dataclasses

import pytest
import torch

from symbert.config import merge
from symbert.experiment import operations
from symbert.experiment.layout import Experiment
from symbert.experiment.operations import Work
from symbert.model.bert import SymBertForMaskedLM, build_config
from symbert.pretrain.flops import model_flops
from symbert.sizes import SIZES


@pytest.mark.parametrize("size", SIZES)
def test_a_step_has_the_operations_that_pretraining_counts_on_the_model_itself(size):
    with torch.device("meta"):
        model = SymBertForMaskedLM(build_config(size, "original", vocabulary_size=30522))
    counted = model_flops(model, 256, 512, 0.15 * 256 * 512)
    assert operations.step_flops(SIZES[size], 256, 512, 30522, 0.15) == pytest.approx(counted, rel=1e-12)


@pytest.mark.parametrize(("size", "exaflop"), [("small", 2.68), ("base", 15.4)])
def test_the_papers_runs_take_their_operations_and_a_twentieth_more_for_evaluations(paper, size, exaflop):
    """800 evaluations of 10,000 rows, forward only, beside 200,000 steps of 256 rows: 8e6/3 of 51.2e6 rows."""
    found = operations.pretraining(paper, size)
    assert found.flops == pytest.approx(exaflop * 1e18 * (1 + 8 / 3 / 51.2), rel=0.005)
    assert found.layers == 200_000 * SIZES[size].num_hidden_layers


def test_a_run_that_was_interrupted_has_its_other_steps_and_their_evaluations_before_it(experiment):
    whole, half = operations.pretraining(experiment, "tiny"), operations.pretraining(experiment, "tiny", done=1200)
    assert half.flops == pytest.approx(whole.flops / 2, rel=1e-12) and half.layers * 2 == whole.layers
    assert operations.pretraining(experiment, "tiny", done=2400) == Work(0, 0)


def test_glue_takes_the_papers_number_of_steps(paper):
    """Five seeds of eight tasks, five epochs in batches of 16."""
    assert 5 * sum(operations.finetuning_of(paper, task).steps for task in paper.tasks) == 1_483_075
    assert operations.finetuning_of(paper, "mnli").evaluated == 9_815 + 9_832


def test_limits_and_stand_ins_make_tasks_smaller(experiment):
    """The demo's tasks are stand-ins of 1,000 rows; 500 are evaluated of each split."""
    assert operations.finetuning_of(experiment, "mnli") == (5 * 63, 1000)
    fewer = Experiment(merge(experiment.config, {"glue": {"max_examples": 160, "max_evaluation_examples": 7}}))
    assert operations.finetuning_of(fewer, "mnli") == (5 * 10, 14)
    assert operations.finetuning_of(fewer, "rte") == (5 * 10, 7)


def test_fine_tuning_the_base_model_is_nine_minutes_of_an_h200s_peak(paper):
    """Five seeds of eight tasks, without what is beside the arithmetic (the floor that was estimated)."""
    found = operations.total(operations.finetuning(paper, "base", task, 5) for task in paper.tasks)
    assert found.flops / 790e12 / 60 == pytest.approx(9, abs=0.5)
    assert found.layers == 12 * 1_483_075


def test_robustness_of_models_that_were_not_kept_is_fine_tuned_again(experiment):
    kept = operations.robustness(experiment, "tiny", "rte", 2)
    unkept = Experiment(merge(experiment.config, {"glue": {"keep_finetuned": False}}))
    again = operations.robustness(unkept, "tiny", "rte", 2)
    assert again == kept + operations.finetuning(experiment, "tiny", "rte", 2)
    quiet = Experiment(merge(experiment.config, {"glue": {"robustness": {"noise": []}}}))
    assert operations.robustness(quiet, "tiny", "rte", 2).flops * 4 == pytest.approx(kept.flops), (
        "three levels and none"
    )


def test_work_adds_up():
    assert operations.total([Work(1.0, 2), Work(3.0, 4)]) == Work(4.0, 6)
    assert dataclasses.astuple(operations.total([])) == (0.0, 0)
