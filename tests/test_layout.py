import re
from pathlib import Path

import pytest

from symbert.config import merge
from symbert.paths import Experiment, Run
from symbert.project import read_config


def test_large_files_lie_where_the_storage_says_and_the_rest_under_results(config):
    elsewhere = merge(config, {"storage": {"raw": "/scratch", "shards": "/fast", "checkpoints": "/large"}})
    experiment = Experiment(elsewhere)
    assert experiment.raw == "/scratch/demo-embedded/corpus/raw"
    assert experiment.shards == "/fast/demo-embedded/corpus/shards"
    assert experiment.state == "/large/demo-embedded/pretrain/{size}-{attention}/seed-{seed}/state"
    assert experiment.run == "results/demo-embedded/pretrain/{size}-{attention}/seed-{seed}"
    assert Experiment(config).state == Experiment(config).run + "/state"


def test_runs_are_every_size_with_every_operator_and_every_seed(config):
    several = Experiment(merge(config, {"sweep": {"sizes": ["small", "base"], "pretrain_seeds": [1, 2]}}))
    assert len(several.runs()) == 2 * 4 * 2 and len(several.runs(["base"])) == 4 * 2
    assert str(several.runs()[0]) == "small-original seed 1"


def test_a_size_outside_the_curve_has_its_last_step_only(config):
    curve = {"sizes": ["tiny"], "steps": {"tiny": [300, 1200]}}
    experiment = Experiment(merge(config, {"sweep": {"sizes": ["tiny", "small"], "curve": curve}}))
    tiny, small = Run("tiny", "original", 1), Run("small", "original", 1)
    assert experiment.steps(tiny) == [300, 1200, 2400] and experiment.steps(small) == [2400]
    untrained = Experiment(merge(experiment.config, {"sweep": {"untrained": True}}))
    assert untrained.steps(small) == [0, 2400] and untrained.curve_steps("tiny") == [300, 1200, 2400]


@pytest.mark.parametrize(("chosen", "finetuned"), [(None, [1, 2, 3]), ([2], [2]), ([], [])])
def test_pre_training_seeds_may_be_compared_by_their_losses_alone(config, chosen, finetuned):
    sweep = {"pretrain_seeds": [1, 2, 3], "finetuned_pretrain_seeds": chosen}
    experiment = Experiment(merge(config, {"sweep": sweep}))
    assert sorted({run.pretrain_seed for run in experiment.runs()}) == [1, 2, 3]
    assert sorted({run.pretrain_seed for run, _ in experiment.checkpoints()}) == finetuned
    report = experiment.settings["report"]
    assert {run[-1] for run in report["runs"]} == {1, 2, 3}
    assert {run[-1] for run in report["scored_runs"]} == {run[-1] for run in report["curve_runs"]} == {*finetuned}


def test_a_checkpoint_of_the_curve_has_the_curves_seeds_and_the_last_one_all(experiment):
    """The demo fine-tunes with seeds 1 and 2, the curve with 1; a step that nobody asked for has the comparison's."""
    assert experiment.finetune_seeds("tiny", 300) == [1]
    assert experiment.finetune_seeds("tiny", 2400) == [1, 2]
    assert experiment.finetune_seeds("tiny", 600) == [1, 2]


def test_a_pattern_has_its_place_for_each_run(experiment):
    run = experiment.runs()[2]
    assert experiment.place(experiment.state, run) == Path("results/demo-embedded/pretrain/tiny-pairwise/seed-1/state")
    score = experiment.scores(run, 300, "rte")
    assert score == Path("results/demo-embedded/glue/tiny-pairwise/seed-1/step-300/rte.json")
    of_suite = experiment.scores(run, 300, "boolq")
    assert of_suite == Path("results/demo-embedded/superglue/tiny-pairwise/seed-1/step-300/boolq.json")


def test_the_checkpoints_that_documentation_names_are_those_of_the_demo(root):
    """Believed when the demo got other steps: that no page named the old ones."""
    demo = Experiment(read_config(root))
    pages = [root / "README.md", *(root / "docs").glob("*.md")]
    named = {int(step) for page in pages for step in re.findall(r"/step-(\d+)", page.read_text(encoding="utf-8"))}
    assert named and named <= {*demo.curve_steps("tiny")}
