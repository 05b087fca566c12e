"""An experiment is the paper's only where every setting that changes its numbers is."""

from pathlib import Path

import pytest
import yaml

from symbert.config import merge, sections
from symbert.report import published
from symbert.report.captions import is_pretrained_as_the_paper, is_the_papers
from symbert.settings import ReportSettings, settings_from

NO_SCIENCE = ("evaluate_every", "save_every", "micro_batch_size", "tensorboard")  # how often, and how it is computed


@pytest.fixture
def paper(root):
    """The configuration as it stands, from the publishers."""
    base = yaml.safe_load((root / "config.yaml").read_text())
    return merge(base, {"scale": "paper", "source": "hub"})


def settings_of(config):
    return settings_from(sections(config, "embedded")["report"], ReportSettings, "report")


def keys_of(stage, *without):
    """The keys of a stage of the configuration, read from its file so that a new one is tested too."""
    values = yaml.safe_load((Path(__file__).parents[2] / "config.yaml").read_text())[stage]
    return [key for key in values if key not in without]


def changed(config, stage, key):
    value = config[stage][key]
    return merge(config, {stage: {key: 1 if value is None else value * 2 + 1}})


def test_the_configuration_as_it_stands_is_the_papers(paper):
    assert is_pretrained_as_the_paper(settings_of(paper)) and is_the_papers(settings_of(paper))


@pytest.mark.parametrize("key", keys_of("pretrain", *NO_SCIENCE))
def test_another_value_of_any_scientific_key_of_pretraining_is_not_the_papers(paper, key):
    """Steps, batch and length alone were compared: a learning rate of 1e-3 got the authors' markers."""
    settings = settings_of(changed(paper, "pretrain", key))
    assert not is_pretrained_as_the_paper(settings) and not is_the_papers(settings)


@pytest.mark.parametrize("key", keys_of("glue", "source", "revision", "allow_partial"))
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


def test_a_key_that_the_paper_does_not_know_is_not_the_papers(paper):
    settings = sections(paper, "embedded")["report"]
    assert settings["pretrain"] == published.PRETRAIN and settings["glue"] == published.GLUE
    settings["pretrain"]["layer_decay"] = 0.9
    assert not is_pretrained_as_the_paper(settings_from(settings, ReportSettings, "report"))
