"""The rows of a host as plans and states know them: pairs of one's own text before and after they are packed."""

import json
from pathlib import Path

import pytest
from symbert.pretrain.state import pretraining_work, run_state

from pretrain.parallel import write_text
from symbert.card import model_card
from symbert.cli import main
from symbert.hosts import HOSTS, Rows
from symbert.paths import Run
from symbert.pretrain.rows import held_out, manifest_read_by, pairs_home, rows_hash, rows_of
from symbert.sizes import SIZES

TEXT = {"vocabulary_size": 200, "max_length": 32}


@pytest.fixture
def translated(changed, folder):
    """An experiment that translates the stand-in."""

    def make(**others):
        files = write_text(folder, 40, 8) if not (folder / "source.txt").exists() else {}
        files = files or {key: str(folder / f"{key}.txt") for key in ("source", "target")}
        files |= {f"validation_{key}": str(folder / f"validation_{key}.txt") for key in ("source", "target")}
        return changed({"sweep": {"hosts": ["encoder-decoder"]}, "parallel": {**files, **TEXT}, **others})

    return make


def pack(experiment) -> Path:
    """Write the section of settings of the text, and pack it, as the workflow does."""
    settings = Path(experiment.results) / "settings/parallel.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps(experiment.parallel["parallel"]))
    output = Path(experiment.results) / "parallel/manifest.json"
    assert main(["pack-pairs", "--settings", str(settings), "--output", str(output)]) == 0
    return output


def test_before_pairs_are_packed_they_are_as_long_as_they_may_be(translated):
    experiment = translated()
    assert rows_of(experiment, "encoder-decoder") == Rows(200, 32, target_tokens=32)
    assert (held_out(experiment, "encoder-decoder"), manifest_read_by(experiment, "encoder-decoder")) == (8, None)
    assert rows_hash(experiment, "encoder-decoder") is None


def test_packed_pairs_are_known_by_their_means_and_their_hash(translated):
    experiment = translated()
    packed = json.loads(pack(experiment).read_text())
    mean = packed["mean_tokens"]
    assert rows_of(experiment, "encoder-decoder") == Rows(
        packed["vocabulary_size"], mean["source"], target_tokens=mean["target"]
    )
    assert rows_hash(experiment, "encoder-decoder") == packed["hash"]
    work = pretraining_work(experiment, Run("tiny", "original", 1, "encoder-decoder"))
    before = pretraining_work(translated(), Run("tiny", "original", 1, "encoder-decoder"))
    assert 0 < work.flops == before.flops


def test_pairs_of_a_text_that_changed_are_no_longer_those_of_the_experiment(translated, folder):
    pack(translated())
    source = folder / "source.txt"
    source.write_text(source.read_text().replace("hundred", "dozen", 1))
    assert manifest_read_by(translated(), "encoder-decoder") is None


def test_an_extending_experiment_reads_the_pairs_that_the_other_one_packed(translated, folder):
    experiment = translated()
    manifest = pack(experiment)
    other = translated(experiment="other", extends=experiment.name)
    assert pairs_home(other).name == experiment.name
    assert manifest_read_by(other, "encoder-decoder") == manifest


def test_a_run_of_other_text_is_of_other_settings(translated, folder):
    """As its identity says what it was trained on."""
    experiment, run = translated(), Run("tiny", "original", 1, "encoder-decoder")
    hash_of_rows = json.loads(pack(experiment).read_text())["hash"]
    state = Path(experiment.place(experiment.state, run))
    state.mkdir(parents=True)
    identity = {
        **run.facts,
        **run.model,
        **experiment.settings["pretrain-encoder-decoder"],
        "corpus_hash": hash_of_rows,
    }
    (state / "identity.json").write_text(json.dumps(identity))
    assert run_state(experiment, run).state == "missing"
    (state / "identity.json").write_text(json.dumps({**identity, "corpus_hash": "0" * 16}))
    found = run_state(experiment, run)
    assert found.state == "other settings" and "corpus_hash: 0000" in found.note


@pytest.mark.parametrize("host", [name for name, host in HOSTS.items() if host.reads_corpus])
def test_other_hosts_are_planned_as_before(experiment, host):
    pack = experiment.config["corpus"]["pack"]
    assert rows_of(experiment, host) == Rows(experiment.vocabulary_size, pack["sequence_length"], 0.15)
    assert held_out(experiment, host) == pack["validation_sequences"]
    assert rows_hash(experiment, host) is None


def test_without_a_text_of_ones_own_the_stand_in_is_packed_and_run_and_card_say_so(changed):
    experiment = changed({"sweep": {"hosts": ["encoder-decoder"]}})
    packed = json.loads(pack(experiment).read_text())
    assert packed["rows"] == {"train": 4000, "validation": 200} and packed["stand_in"] is True
    assert not any(packed["left_out"]["train"].values()) and held_out(experiment, "encoder-decoder") == 200
    assert experiment.settings["report"]["stand_in_text"] is True
    config = {"model_type": "symbert", "architectures": ["EncoderDecoderModel"], **vars(SIZES["tiny"])}
    facts = {"model_host": "encoder-decoder", "attention": "original", "stand_in": True, "settings_hash": "5e771"}
    assert "a stand-in for parallel text" in model_card({**config, "pretraining": facts})
