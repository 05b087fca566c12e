"""An experiment is the paper's only where every setting that changes its numbers is."""

from pathlib import Path

import pytest
import yaml

from symbert.configuration import Execution, ReportSettings, merge, report_of, settings_from
from symbert.report import published
from symbert.report.captions import (
    constant_predictions,
    finetuning_of,
    is_pretrained_as_the_paper,
    is_the_papers,
    wording_of,
)
from symbert.report.collect import read_scores

NO_SCIENCE = ("evaluate_every", "save_every", *Execution.__struct_fields__)  # how often, and how it is computed

NO_SCORES = ("source", "revision", "files", "allow_partial", "keep_finetuned", "robustness")  # of GLUE's own rows


@pytest.fixture
def paper(root):
    """The configuration as it stands, from the publishers."""
    base = yaml.safe_load((root / "workflow/defaults.yaml").read_text())
    return merge(base, {"scale": "paper", "source": "hub"})


def settings_of(config):
    return settings_from(report_of(config), ReportSettings, "report")


def keys_of(stage, *without):
    """The keys of a stage of the configuration, read from its file so that a new one is tested too."""
    values = yaml.safe_load((Path(__file__).parents[2] / "workflow/defaults.yaml").read_text())[stage]
    return [key for key in values if key not in without]


def changed(config, stage, key):
    """The configuration with another value that the key may have."""
    value = config[stage][key]
    if isinstance(value, str):
        return merge(config, {stage: {key: "mine:own"}})
    other = value / 2 or 0.5 if isinstance(value, float) else 1 if value is None else value * 2 + 1
    return merge(config, {stage: {key: other}})


def test_the_configuration_as_it_stands_is_the_papers(paper):
    assert is_pretrained_as_the_paper(settings_of(paper)) and is_the_papers(settings_of(paper))


@pytest.mark.parametrize("key", keys_of("pretrain", *NO_SCIENCE))
def test_another_value_of_any_scientific_key_of_pretraining_is_not_the_papers(paper, key):
    """Steps, batch and length alone were compared: a learning rate of 1e-3 got the authors' markers."""
    settings = settings_of(changed(paper, "pretrain", key))
    assert not is_pretrained_as_the_paper(settings) and not is_the_papers(settings)


@pytest.mark.parametrize("key", keys_of("glue", *NO_SCORES))
def test_another_fine_tuning_leaves_the_losses_the_papers_and_not_the_scores(paper, key):
    settings = settings_of(changed(paper, "glue", key))
    assert is_pretrained_as_the_paper(settings) and not is_the_papers(settings)


@pytest.mark.parametrize(
    "changes",
    [
        {"scale": "demo"},
        {"recipe": "fast"},
        {"corpus": {"source": "mirror"}, "mirror": "/here"},
        {"corpus": {"pack": {"sequence_length": 128}}},
    ],
)
def test_another_scale_recipe_corpus_or_length_is_not_the_papers(paper, changes):
    """The fast recipe rounds the dropout of attention."""
    assert not is_pretrained_as_the_paper(settings_of(merge(paper, changes)))


@pytest.mark.parametrize("key", NO_SCIENCE)
def test_how_often_and_how_a_run_is_computed_leave_it_the_papers(paper, key):
    assert is_the_papers(settings_of(changed(paper, "pretrain", key)))


def test_glues_original_files_are_the_papers_tasks_and_not_somebodys_own(paper):
    settings = settings_of(merge(paper, {"glue": {"source": "files", "files": "/here"}}))
    assert wording_of(settings).tasks == "GLUE from its original files" and is_the_papers(settings)
    assert not is_the_papers(settings_of(merge(paper, {"glue": {"source": "mirror"}, "mirror": "/here"})))


def test_a_key_that_the_paper_does_not_know_is_not_the_papers(paper):
    settings = report_of(paper)
    assert settings["pretrain"] == published.PRETRAIN and settings["glue"] == published.GLUE
    settings["pretrain"]["layer_decay"] = 0.9
    assert not is_pretrained_as_the_paper(settings_from(settings, ReportSettings, "report"))


def test_constant_predictions_are_named_with_their_seeds_and_out_of_how_many(record, write_scores):
    collapsed = {("cola", 1, 2), ("cola", 2, 2), ("cola", 2, 3), ("rte", 1, 1)}
    records = [
        record("tiny", "original", step, task, seed, pretrain_seed=run)
        | {"constant_prediction": (task, run, seed) in collapsed and step > 0}
        for step in (0, 1800)
        for task in ("cola", "rte")
        for run in (1, 2)
        for seed in (1, 2, 3)
    ]
    records[0]["constant_prediction"] = True
    assert constant_predictions(read_scores(write_scores(records), ["cola", "rte"], [1, 2, 3])) == [
        "cola by tiny-original, no pre-training (1 of 6 runs, fine-tuning seed 1)",
        "cola by tiny-original (3 of 6 runs, fine-tuning seeds 2, 3)",
        "rte by tiny-original (1 of 6 runs, fine-tuning seed 1)",
    ]


def test_stand_ins_of_another_source_are_named_by_their_records(report_settings, record, write_scores):
    """A mirror may hold stand-ins in the publisher's layout; they say of themselves what they are."""
    records = [record("tiny", "original", 1800, task, 1, stand_in=task == "rte") for task in ("rte", "cola")]
    scores = read_scores(write_scores(records), ["rte", "cola"], [1])
    settings = report_settings(glue_source="mirror")
    assert "GLUE from a local mirror" in finetuning_of(settings, scores)
    assert "Stand-ins for GLUE's tasks, not GLUE: rte." in finetuning_of(settings, scores)
    assert "Stand-ins for" not in finetuning_of(settings, scores[scores["task"] == "cola"])
