"""Runs and architectures: how a run is called, which runs an architecture adds, and that the encoder's stay as they
were."""

import pytest

from symbert.architectures import ARCHITECTURES, ENCODER, OTHERS
from symbert.experiment.layout import Experiment
from symbert.paths import Run


@pytest.fixture
def both(changed) -> Experiment:
    """The demo with every architecture."""
    return changed({"sweep": {"architectures": list(ARCHITECTURES)}})


def test_each_architecture_trains_every_operator_with_every_seed_and_changes_no_folder_of_the_encoder(both, experiment):
    assert [*experiment.runs] == experiment.encoders and {run.architecture for run in experiment.encoders} == {ENCODER}
    assert len(both.runs) == len(ARCHITECTURES) * len(both.encoders) and {run.architecture for run in both.runs} == {
        ENCODER,
        *OTHERS,
    }
    assert experiment.runs.items() <= both.runs.items()


def test_without_the_encoder_nothing_is_fine_tuned(changed):
    experiment = changed({"sweep": {"architectures": ["decoder"]}})
    assert (experiment.encoders, experiment.scores) == ([], {})
    assert {run.architecture for run in experiment.runs} == {"decoder"}
    assert not any(experiment.steps(run) for run in experiment.runs)


def test_an_architecture_with_keys_of_its_own_says_so_in_the_report(changed):
    own = {"decoder": {"steps": 300, "schedule_steps": 900}}
    experiment = changed({"sweep": {"architectures": list(ARCHITECTURES)}, "architectures": own})
    decoder = next(run for run in experiment.runs if run.architecture == "decoder")
    assert experiment.training(decoder).steps == 300
    assert experiment.training(experiment.encoders[0]).steps == experiment.final
    assert experiment.extracted_steps(decoder) == [300]
    assert experiment.report_settings.settings["architectures.decoder.steps"] == 300


def test_a_decoder_judges_pairs_at_the_steps_of_the_encoder_that_it_has(changed):
    chosen = {
        "architectures": list(ARCHITECTURES),
        "suites": ["glue", "blimp"],
        "pretrain_seeds": [1, 2],
        "finetuned_pretrain_seeds": [1],
    }
    experiment = changed({"sweep": chosen, "architectures": {"decoder": {"steps": 700}}})
    steps = {
        architecture: experiment.minimal_pair_steps(Run("tiny", "original", 1, architecture))
        for architecture in ARCHITECTURES
    }
    assert {architecture: each for architecture, each in steps.items() if each} == {
        ENCODER: [300, 1200, 2400],
        "decoder": [300, 700],
    }
    assert experiment.minimal_pair_steps(Run("tiny", "original", 2, "decoder")) == [700]
    assert experiment.extracted_steps(Run("tiny", "original", 1, "decoder")) == [300, 700]
    assert experiment.extracted_steps(Run("tiny", "original", 2)) == [], "no seed that is fine-tuned"


def test_a_run_is_called_by_all_that_makes_it_another():
    values = (("learning_rate", 1e-3), ("steps", 9))
    encoder, swept = Run("tiny", "pairwise", 2), Run("tiny", "pairwise", 2, "decoder", values)
    assert str(encoder) == "tiny-pairwise seed 2"
    assert str(swept) == "decoder tiny-pairwise learning_rate=0.001 steps=9 seed 2"
