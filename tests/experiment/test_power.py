"""What a plan says of seeds before the runs: by simulation, and by counting splits and signs."""

import math
import re

import numpy as np
import pytest
from scipy import stats

from symbert.experiment.plan import lines_of
from symbert.experiment.power import DEVIATION, NINE, POWER, lines_of_seeds, smallest_sign_flip_p, smallest_split_p
from symbert.experiment.project import read_config
from symbert.report import published
from symbert.report.statistics import permutation_test, sign_flip_test


def planned(root, monkeypatch, models=(), **sweep):
    """The lines of the paper's scale with these keys of the sweep, beside so many models."""
    monkeypatch.chdir(root)
    named = {name: {"path": f"owner/{name}"} for name in models}
    config = read_config(root, {"scale": "paper", "source": "hub", "sweep": sweep, "models": named})
    return "\n".join(lines_of_seeds(config))


def test_the_assumed_deviation_is_that_of_table_3_over_its_models():
    deviations = [std for _, std, *_ in published.SCORES.values()]
    assert pytest.approx(math.sqrt(np.mean(np.square(deviations))), abs=0.005) == DEVIATION
    assert {column.removesuffix("_matched").removesuffix("_mismatched") for column in published.COLUMNS} == NINE


@pytest.mark.parametrize("seeds", [5, 10])
def test_the_difference_of_the_plan_is_found_in_four_of_five_simulated_experiments(root, monkeypatch, seeds):
    """Two comparisons of operators, unpaired; four models from elsewhere and six of ours, paired."""
    models = ("first", "second", "third", "fourth")
    told = planned(root, monkeypatch, models, finetune_seeds=list(range(seeds)))
    effects = [float(found) for found in re.findall(r"(\d+\.\d) points between", told)]
    source = np.random.default_rng(1).normal(scale=DEVIATION, size=(2, 20_000, seeds))
    of_operators = stats.ttest_ind(source[0] + effects[0], source[1], axis=1).pvalue <= 0.05 / 2
    of_models = stats.ttest_rel(source[0] + effects[1], source[1], axis=1).pvalue <= 0.05 / (3 + 6)
    assert [of_operators.mean(), of_models.mean()] == [pytest.approx(POWER, abs=0.08)] * 2, "0.05 is rounded off"


def test_too_few_seeds_are_told_with_how_many_it_takes(root, monkeypatch):
    told = planned(root, monkeypatch, finetune_seeds=[1, 2, 3], pretrain_seeds=[1, 2, 3], finetuned_pretrain_seeds=[1])
    assert "scores of operators: 3 fine-tuning seeds cannot make a difference significant, 5 can" in told
    assert "losses: 3 pre-training seeds cannot make a difference significant, 7 can" in told
    assert "points" not in told and 2 * 2 / math.comb(8, 4) > 0.05 > 2 * 2 / math.comb(10, 5)
    assert planned(root, monkeypatch, pretrain_seeds=[*range(7)]).count("seeds move") == 1, "at least"


def test_a_plan_of_models_from_elsewhere_speaks_of_their_seeds_alone(root, monkeypatch):
    told = planned(root, monkeypatch, ("first", "second"), attention=[])
    assert "points between models from elsewhere" in told and "operators" not in told and "losses" not in told
    assert "too few" in planned(root, monkeypatch, ("first", "second"), attention=[], finetune_seeds=[1, 2])


def test_a_sweep_is_told_what_its_seeds_can_show_of_all_its_contrasts(root, monkeypatch):
    """Two contrasts at two sizes, tuned or at two rates: nine seeds give 2 / 512 at least, and 8 × 2 / 512 < 0.05."""
    changes = {"pretrain_seeds": [1, 2, 3], "finetuned_pretrain_seeds": [], "curve": {"sizes": []}}
    swept = planned(root, monkeypatch, learning_rate=[1e-4, 2e-4], **changes)
    assert swept.splitlines() == [
        "losses: 3 pre-training seeds cannot make a difference significant, 9 can",
        "escapes: 3 pre-training seeds, and a test takes 5",
    ]
    tune = {"learning_rate": [1e-4, 2e-4], "seeds": [101]}
    assert "significant, 8 can" in planned(root, monkeypatch, tune=tune, **changes)
    assert not planned(root, monkeypatch, tune=tune, **changes | {"pretrain_seeds": [*range(8)]})
    grids = {"one": {"sizes": ["small"]}, "two": {}}
    told = planned(root, monkeypatch, tune=tune, grids=grids, **changes)
    assert "one: losses: 3 pre-training seeds cannot make a difference significant, 7 can" in told and "two: " in told


def test_the_smallest_p_values_are_those_of_the_tests():
    apart = np.arange(4) + 100.0
    assert smallest_split_p(4) == permutation_test(apart, apart - 100)[1] == 2 / 70
    assert smallest_sign_flip_p(4) == sign_flip_test(apart) == 2 / 16
    assert smallest_split_p(9) == smallest_sign_flip_p(15) == 1 / (1 + 2**14)


def test_the_plan_of_the_demo_has_no_points_as_its_tasks_are_stand_ins(experiment):
    told = [line for line in lines_of(experiment, []) if line.startswith("seeds: ")]
    assert told and not any("points" in line for line in told)
