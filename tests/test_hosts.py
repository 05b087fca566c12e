"""Hosts: their runs have folders, identities and costs of their own, and those of the encoder stay as they were."""

import math
from pathlib import Path

import pytest
from symbert.pretrain.state import is_wanted, pretraining_work, run_of

from symbert.config import runs_of
from symbert.hosts import ENCODER, HOSTS, OTHERS, host_named_in
from symbert.paths import Experiment, Run, of_host


@pytest.fixture
def both(changed) -> Experiment:
    """The demo with every host."""
    return changed({"sweep": {"hosts": list(HOSTS)}})


def test_by_default_operators_are_compared_in_the_encoder_alone(experiment):
    assert experiment.pretrainings() == experiment.runs()
    assert {run.host for run in experiment.runs()} == {ENCODER}


def test_each_host_trains_every_operator_with_every_seed(both):
    assert len(both.pretrainings()) == len(HOSTS) * len(both.runs())
    assert {run.host for run in both.runs_of_others()} == set(OTHERS)


def test_without_the_encoder_nothing_is_fine_tuned(changed):
    experiment = changed({"sweep": {"hosts": ["decoder"]}})
    assert (runs_of(experiment.config), experiment.runs(), experiment.checkpoints()) == ([], [], [])
    assert {run.host for run in experiment.pretrainings()} == {"decoder"}
    assert not any(experiment.steps(run) for run in experiment.pretrainings())


def test_the_folder_of_another_host_is_below_one_of_its_name(both):
    run, other = Run("tiny", "original", 1), Run("tiny", "original", 1, "decoder")
    assert both.place(both.state, run) == Path("results/demo-embedded/pretrain/tiny-original/seed-1/state")
    assert both.place(both.state, other) == Path("results/demo-embedded/pretrain/decoder/tiny-original/seed-1/state")
    assert of_host(both.run, "decoder") == "results/demo-embedded/pretrain/decoder/{size}-{attention}/seed-{seed}"


def test_a_report_is_told_which_runs_of_other_hosts_were_asked_for(both, experiment):
    """And one of the encoder alone has the settings of before there were others."""
    asked = [[run.host, run.size, run.attention, run.pretrain_seed] for run in both.runs_of_others()]
    assert asked and both.settings["report"]["host_runs"] == asked
    assert "host_runs" not in experiment.settings["report"]


def test_runs_of_the_encoder_name_no_host_in_files():
    """So hashes and identities of all runs made before other hosts existed are the same."""
    facts = {"size": "tiny", "attention": "original", "pretrain_seed": 1}
    assert Run("tiny", "original", 1).facts == facts
    assert Run("tiny", "original", 1, "decoder").facts == {**facts, "model_host": "decoder"}
    assert [str(Run("tiny", "original", 1, host)) for host in (ENCODER, "decoder")] == [
        "tiny-original seed 1",
        "decoder tiny-original seed 1",
    ]


def test_an_identity_is_of_the_run_of_its_host(both, experiment):
    for run in (Run("tiny", "original", 1), Run("tiny", "original", 1, "decoder")):
        assert run_of(both, {**run.facts, "learning_rate": 1.0}) == run
    assert run_of(experiment, Run("tiny", "original", 1, "decoder").facts) is None


def test_the_state_of_a_decoder_is_not_taken_for_that_of_the_encoder(both, traces):
    decoder = Run("tiny", "original", 1, "decoder")
    state = traces.run(decoder, "preempted", 200)
    assert is_wanted(both, state) and not is_wanted(traces.experiment, state)


def test_a_decoder_predicts_every_token_and_an_encoder_the_masked_ones(both):
    """By hand: of a row the decoder reads all tokens but the last, and its head is on each of them."""
    settings, pack = both.pretraining, both.config["corpus"]["pack"]
    layers, head = 2 * (4 * 64**2 + 2 * 64 * 256), 64 * (64 + both.vocabulary_size)
    # Steps, and evaluations, which are forward only.
    rows = settings.steps * settings.batch_size
    rows += math.ceil(settings.steps / settings.evaluate_every) * pack["validation_sequences"] / 3
    length = pack["sequence_length"]
    for host, tokens, predicted in (("decoder", length - 1, 1.0), (ENCODER, length, settings.mask_probability)):
        by_token = 6 * layers + 3 * 4 * 2 * tokens * 64 + 6 * predicted * head
        work = pretraining_work(both, Run("tiny", "original", 1, host))
        assert work.flops == pytest.approx(rows * tokens * by_token)


def test_a_host_is_trained_by_the_keys_of_pretrain_but_for_its_own(changed):
    """All hosts had as many steps."""
    own = {"decoder": {"steps": 300, "schedule_steps": 900}}
    experiment = changed({"sweep": {"hosts": list(HOSTS)}, "hosts": own})
    steps = {host: experiment.last_step(host) for host in HOSTS}
    assert steps["decoder"] == 300 and steps[ENCODER] == experiment.final
    runs = {run.host: run for run in experiment.pretrainings()}
    assert experiment.extracted_steps(runs["decoder"]) == [300]
    assert experiment.training("decoder").learning_rate == experiment.pretraining.learning_rate
    sections = experiment.settings
    assert sections["pretrain-decoder"] == {**sections["pretrain"], "steps": 300, "schedule_steps": 900}
    assert sections["report"]["host_steps"]["decoder"] == 300
    assert sections["report"]["overrides"]["hosts.decoder.steps"] == 300
    assert pretraining_work(experiment, runs["decoder"]).layers == 300 * 2


def test_another_host_changes_no_section_of_the_encoder(both, experiment):
    """Nor is its existence a reason to train anything anew."""
    for name, values in experiment.settings.items():
        if name != "report":
            assert both.settings[name] == values
    assert not {"host_runs", "host_steps"} & experiment.settings["report"].keys()


def test_a_decoder_judges_pairs_at_the_steps_of_the_encoder_that_it_has(changed):
    chosen = {"hosts": list(HOSTS), "suites": ["glue", "blimp"], "finetuned_pretrain_seeds": [1]}
    experiment = changed({"sweep": chosen, "hosts": {"decoder": {"steps": 700}}})
    steps = {host: experiment.judging_steps(Run("tiny", "original", 1, host)) for host in HOSTS}
    assert {host: each for host, each in steps.items() if each} == {ENCODER: [300, 1200, 2400], "decoder": [300, 700]}
    assert experiment.judging_steps(Run("tiny", "original", 2, "decoder")) == [700]
    assert experiment.extracted_steps(Run("tiny", "original", 1, "decoder")) == [300, 700]
    assert experiment.extracted_steps(Run("tiny", "original", 2)) == [2400]


@pytest.mark.parametrize("host", OTHERS)
def test_a_model_of_translations_is_not_named_as_one_of_letters(host):
    """Two hosts had one class, so a translation was told to be the other."""
    assert host_named_in([HOSTS[host].model.split(":")[1]]) == host
