"""An experiment is the paper's only where every setting that changes its numbers is."""

from pathlib import Path

import pytest
import yaml

from symbert.configuration import Execution, ReportSettings, merge, report_of, settings_from
from symbert.report import published
from symbert.report.captions import (
    is_pretrained_as_the_paper,
    is_the_papers,
    wording_of,
)

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


def test_another_value_of_any_scientific_key_is_not_the_papers(paper):
    """Steps, batch and length alone were compared: a learning rate of 1e-3 got the authors' markers."""
    for key in keys_of("pretrain", *NO_SCIENCE):
        settings = settings_of(changed(paper, "pretrain", key))
        assert not is_pretrained_as_the_paper(settings) and not is_the_papers(settings), key
    for key in keys_of("glue", *NO_SCORES):
        settings = settings_of(changed(paper, "glue", key))
        assert is_pretrained_as_the_paper(settings) and not is_the_papers(settings), key
    other = {"corpus": {"source": "mirror"}, "mirror": "/here"}, {"corpus": {"pack": {"sequence_length": 128}}}
    for changes in ({"scale": "demo"}, {"recipe": "fast"}, *other):
        assert not is_pretrained_as_the_paper(settings_of(merge(paper, changes))), changes


def test_how_often_and_how_a_run_is_computed_leave_it_the_papers(paper):
    for key in NO_SCIENCE:
        assert is_the_papers(settings_of(changed(paper, "pretrain", key))), key


def test_glues_original_files_are_the_papers_tasks_and_not_somebodys_own(paper):
    settings = settings_of(merge(paper, {"glue": {"source": "files", "files": "/here"}}))
    assert wording_of(settings).tasks == "GLUE from its original files" and is_the_papers(settings)
    assert not is_the_papers(settings_of(merge(paper, {"glue": {"source": "mirror"}, "mirror": "/here"})))


def test_a_key_that_the_paper_does_not_know_is_not_the_papers(paper):
    settings = report_of(paper)
    assert settings["pretrain"] == published.PRETRAIN and settings["glue"] == published.GLUE
    settings["pretrain"]["layer_decay"] = 0.9
    assert not is_pretrained_as_the_paper(settings_from(settings, ReportSettings, "report"))
