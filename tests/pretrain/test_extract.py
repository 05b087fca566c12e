import shutil

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertForMaskedLM

from pretrain.corpora import write_corpus, write_run
from symbert.errors import IntegrityError, MissingInputError
from symbert.files import read_json, write_json
from symbert.model.card import model_card
from symbert.model.hf import export
from symbert.model.loading import load_model
from symbert.pretrain.extract import extract
from symbert.pretrain.run import CHECKSUM, extracted_sha256
from symbert.pretrain.train import Trainer


@pytest.fixture
def run(finished, manifest, brief, tmp_path):
    """A copy of a finished run of 30 steps."""
    shutil.copytree(finished, tmp_path / "run")
    write_run(tmp_path / "run", manifest, brief())
    return tmp_path / "run"


@pytest.fixture
def extracted(run):
    """Step 20 of it, extracted."""
    extract(run, 20)
    return run / "step-20"


def test_a_checkpoint_loads_through_the_auto_classes(extracted):
    model = AutoModelForMaskedLM.from_pretrained(extracted).eval()
    assert model.config.attention == "pairwise" and model.config.vocab_size == 60
    tokenizer = AutoTokenizer.from_pretrained(extracted)
    ids = tokenizer("w1 W2 unknown", return_tensors="pt").input_ids
    assert ids.tolist() == [[2, 6, 7, 1, 3]]
    assert torch.isfinite(model(ids).logits).all()


def test_the_remedy_for_a_missing_file_is_a_command_and_not_the_name_of_a_rule(extracted, monkeypatch):
    """tests/workflow/test_reruns.py runs it."""
    monkeypatch.chdir(extracted.parent)
    (extracted / "model.safetensors").unlink()
    with pytest.raises(MissingInputError, match="run: snakemake --cores 1 step-20/model.safetensors$"):
        load_model(extracted)


def test_the_weights_are_those_of_the_step(extracted, run):
    kept, loaded = (
        load_file(run / "state/weights/step-00000020.safetensors"),
        load_file(extracted / "model.safetensors"),
    )
    assert kept.keys() == loaded.keys() and all(torch.equal(kept[key], loaded[key]) for key in kept)
    assert extracted_sha256(extracted) == (extracted / CHECKSUM).read_text().strip()
    assert not torch.equal(
        kept["cls.predictions.bias"], load_file(run / "state/weights/step-00000030.safetensors")["cls.predictions.bias"]
    )


@pytest.fixture
def started(manifest, brief, tmp_path):
    """A trainer before its first step, and step 0 extracted from what its run would leave."""

    def start(attention):
        folder = tmp_path / attention
        run = write_run(folder, manifest, brief(), attention)
        trainer = Trainer(run, brief(), manifest)
        write_json(folder / "state/config.json", trainer.model.config.to_dict())
        packed = read_json(manifest)
        facts = {"steps": 30, "parameters": trainer.parameters, "settings_hash": "5e771", "validation_loss": 2.5}
        facts |= {"corpus_hash": packed["hash"], "vocabulary_sha256": packed["vocabulary_sha256"]}
        write_json(folder / "done.json", {**run.facts, **facts})
        extract(folder, 0)
        return trainer, folder / "step-0"

    return start


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
def test_step_0_is_the_model_that_the_run_starts_from_to_the_bit(started, attention):
    trainer, output = started(attention)
    expected = trainer.model.state_dict()
    loaded = AutoModelForMaskedLM.from_pretrained(output).state_dict()
    assert loaded.keys() == expected.keys() and all(torch.equal(loaded[name], expected[name]) for name in expected)


def test_step_0_needs_nothing_that_was_kept_and_does_not_train_a_finished_run(extracted, run):
    """It differs from every kept step, and its head's bias is still zero."""
    extract(run, 0)
    start, later = (load_file(path / "model.safetensors") for path in (run / "step-0", extracted))
    assert start.keys() == later.keys() and not start["cls.predictions.bias"].any()
    assert later["cls.predictions.bias"].any() and not (run / "state/weights/step-00000000.safetensors").exists()


def test_a_step_that_was_not_kept_names_the_nearest_and_writes_nothing(extracted, run):
    with pytest.raises(MissingInputError, match="step 15 was not kept; the nearest kept steps: 10, 20"):
        extract(run, 15)
    assert not (run / "step-15").exists()


@pytest.mark.parametrize("step", [0, 20])
def test_a_vocabulary_that_the_run_did_not_learn_is_refused(run, manifest, step):
    """It was believed that the file beside the rows stays what they were made with: 301 pieces went with 300."""
    vocabulary = manifest.parent / "vocab.txt"
    words = vocabulary.read_text().splitlines()
    others = {
        "61 pieces, the model has 60": [*words, "w55"],
        "59 pieces, the model has 60": words[:-1],
        r"sha256 expected \w{64}, found \w{64}": [*words[:-2], words[-1], words[-2]],
    }
    for message, pieces in others.items():
        vocabulary.write_text("\n".join(pieces) + "\n")
        with pytest.raises(IntegrityError, match=rf"vocab\.txt: {message}; restore the vocabulary"):
            extract(run, step)
    assert not (run / f"step-{step}").exists()


def test_a_run_of_other_rows_than_its_corpus_has_today_is_refused(run, tmp_path):
    """Its folder does not say which corpus its rows were packed from."""
    write_corpus(tmp_path / "shards", rows=60)
    with pytest.raises(IntegrityError, match=r"manifest.json: hash \w{16}, but .*done.json is of \w{16}; restore the"):
        extract(run, 20)
    (tmp_path / "shards/manifest.json").unlink()
    extract(run, 20)


def test_the_facts_of_the_run_stand_in_config_json_and_in_the_model_card(extracted):
    card, done = (extracted / "README.md").read_text(), read_json(extracted.parent / "done.json")
    config = read_json(extracted / "config.json")
    assert config["pretraining"] == {**done, "step": 20, "corpus_source": "embedded"}
    assert card == model_card(config)
    settings = done["settings"]
    assert f"batch_size {settings['batch_size']}, steps 30, learning_rate {settings['learning_rate']}" in card
    assert "Common Crawl" not in card
    for fact in ("tiny-pairwise, step 20 of 30", "a stand-in corpus", done["settings_hash"], done["corpus_hash"]):
        assert fact in card
    assert "import symbert.model.hf " in card and "auto_map" not in config


def test_an_extracted_checkpoint_is_exported_as_plain_bert_with_the_same_facts(extracted, tmp_path):
    export(extracted, tmp_path / "bert")
    ours, plain = (AutoModelForMaskedLM.from_pretrained(path).eval() for path in (extracted, tmp_path / "bert"))
    assert type(plain) is BertForMaskedLM and plain.config.pretraining == ours.config.pretraining
    ids = torch.arange(5, 60)[None]
    torch.testing.assert_close(plain(ids).logits, ours(ids).logits, rtol=0, atol=1e-5)
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / "bert" / name).read_bytes() == (extracted / name).read_bytes()
    assert "step 20 of 30" in (tmp_path / "bert/README.md").read_text()
