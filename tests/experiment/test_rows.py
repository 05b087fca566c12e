"""The rows of a host as plans know them: pairs of one's own text before and after they are packed."""

import json
from pathlib import Path

import pytest

from pretrain.parallel import write_text
from symbert.cli import main
from symbert.experiment.plan import rows_of
from symbert.hosts import Rows
from symbert.model.card import model_card
from symbert.paths import Run
from symbert.sizes import SIZES
from symbert.sources import located

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


def test_packed_pairs_are_known_by_their_means(translated):
    run = next(iter(translated.runs))
    assert rows_of(translated, run) == Rows(200, 32, target_tokens=32), "as long as they may be, before"
    packed = json.loads(pack(translated).read_text())
    mean = packed["mean_tokens"]
    assert rows_of(translated, run) == Rows(packed["vocabulary_size"], mean["source"], target_tokens=mean["target"])


@pytest.mark.parametrize("host", ["encoder", "decoder"])
def test_rows_of_a_corpus_are_known_before_it_is_packed(experiment, host):
    tokens = experiment.config["corpus"]["pack"]["sequence_length"]
    pieces = len(Path(located(experiment.vocabulary)).read_text(encoding="utf-8").splitlines())
    assert rows_of(experiment, Run("tiny", "original", 1, host)) == Rows(pieces, tokens, 0.3)
    experiment.vocabulary = "not/downloaded/vocab.txt"
    assert rows_of(experiment, Run("tiny", "original", 1, host)) == Rows(30522, tokens, 0.3)


def test_without_a_text_of_ones_own_the_stand_in_is_packed_and_run_and_card_say_so(changed):
    experiment = changed({"sweep": {"hosts": ["encoder-decoder"]}})
    packed = json.loads(pack(experiment).read_text())
    assert packed["rows"] == {"train": 4000, "validation": 200} and packed["stand_in"] is True
    assert not any(packed["left_out"]["train"].values())
    config = {"model_type": "symbert", "architectures": ["EncoderDecoderModel"], **vars(SIZES["tiny"])}
    facts = {"model_host": "encoder-decoder", "attention": "original", "stand_in": True, "settings_hash": "5e771"}
    assert "a stand-in for parallel text" in model_card({**config, "pretraining": facts})
