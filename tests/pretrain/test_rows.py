"""The rows of a host as plans know them: pairs of one's own text before and after they are packed."""

import json
from pathlib import Path

import pytest

from pretrain.parallel import write_text
from symbert.card import model_card
from symbert.cli import main
from symbert.hosts import HOSTS, Rows
from symbert.pretrain.rows import held_out, rows_of, vocabulary_size
from symbert.sizes import SIZES

TEXT = {"vocabulary_size": 200, "max_length": 32}


def pack(experiment) -> Path:
    """Pack the pairs of an experiment's text, as the workflow does."""
    experiment.write()
    assert main(["pack-pairs", f"{experiment.pairs}/manifest.json"]) == 0
    return Path(experiment.pairs, "manifest.json")


@pytest.fixture
def translated(changed, folder):
    """An experiment that translates lines of its user's own."""
    return changed({"sweep": {"hosts": ["encoder-decoder"]}, "parallel": {**write_text(folder, 40, 8), **TEXT}})


def test_before_pairs_are_packed_they_are_as_long_as_they_may_be(translated):
    assert rows_of(translated, "encoder-decoder") == Rows(200, 32, target_tokens=32)
    assert held_out(translated, "encoder-decoder") == 8


def test_packed_pairs_are_known_by_their_means(translated):
    packed = json.loads(pack(translated).read_text())
    mean = packed["mean_tokens"]
    assert rows_of(translated, "encoder-decoder") == Rows(
        packed["vocabulary_size"], mean["source"], target_tokens=mean["target"]
    )


@pytest.mark.parametrize("host", [name for name, host in HOSTS.items() if host.reads_corpus])
def test_rows_of_a_corpus_are_known_from_its_settings(experiment, host):
    pack = experiment.config["corpus"]["pack"]
    assert rows_of(experiment, host) == Rows(vocabulary_size(experiment), pack["sequence_length"], 0.15)
    assert held_out(experiment, host) == pack["validation_sequences"]


def test_a_vocabulary_that_is_not_downloaded_yet_has_the_size_of_berts(experiment):
    experiment.vocabulary = "nowhere/vocab.txt"
    assert vocabulary_size(experiment) == 30522


def test_without_a_text_of_ones_own_the_stand_in_is_packed_and_run_and_card_say_so(changed):
    experiment = changed({"sweep": {"hosts": ["encoder-decoder"]}})
    packed = json.loads(pack(experiment).read_text())
    assert packed["rows"] == {"train": 4000, "validation": 200} and packed["stand_in"] is True
    assert not any(packed["left_out"]["train"].values()) and held_out(experiment, "encoder-decoder") == 200
    config = {"model_type": "symbert", "architectures": ["EncoderDecoderModel"], **vars(SIZES["tiny"])}
    facts = {"model_host": "encoder-decoder", "attention": "original", "stand_in": True, "settings_hash": "5e771"}
    assert "a stand-in for parallel text" in model_card({**config, "pretraining": facts})
