import shutil

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, AutoTokenizer

import symbert.model.hf  # noqa: F401  (the Auto classes know its types)
from pretrain.corpora import write_corpus, write_run
from symbert.errors import IntegrityError, MissingInputError
from symbert.files import read_json
from symbert.paths import Run
from symbert.pretrain.extract import extract
from symbert.pretrain.run import CHECKSUM, extracted_sha256
from symbert.pretrain.train import Trainer

WEIGHTS, BIAS = "model.safetensors", "cls.predictions.bias"


@pytest.fixture
def run(finished, manifest, brief, tmp_path):
    """A copy of a finished run of 30 steps."""
    run = shutil.copytree(finished, tmp_path / "run")
    write_run(run, manifest, brief())
    return run


@pytest.fixture
def extracted(run):
    """Step 20 of it, extracted."""
    extract(run, 20)
    return run / "step-20"


def test_an_extracted_checkpoint_has_the_weights_of_its_step_and_loads_through_the_auto_classes(extracted, run):
    kept, loaded = load_file(run / "state/weights/step-00000020.safetensors"), load_file(extracted / WEIGHTS)
    assert kept.keys() == loaded.keys() and all(torch.equal(kept[key], loaded[key]) for key in kept)
    assert not torch.equal(kept[BIAS], load_file(run / "state/weights/step-00000030.safetensors")[BIAS])
    assert extracted_sha256(extracted) == (extracted / CHECKSUM).read_text().strip()
    model = AutoModelForMaskedLM.from_pretrained(extracted).eval()
    ids = AutoTokenizer.from_pretrained(extracted)("w1 W2 unknown", return_tensors="pt").input_ids
    assert ids.tolist() == [[2, 6, 7, 1, 3]] and torch.isfinite(model(ids).logits).all()
    done, config = read_json(run / "done.json"), read_json(extracted / "config.json")
    assert config["attention"] == "pairwise" and "auto_map" not in config
    assert config["pretraining"] == {**done, "step": 20, "corpus_source": "embedded"}
    card = (extracted / "README.md").read_text()
    for fact in ("# tiny-pairwise", "* step: 20\n", "a stand-in corpus", done["settings_hash"], done["corpus_hash"]):
        assert fact in card


def test_step_0_is_the_model_that_the_run_starts_from_to_the_bit_though_it_was_not_kept(run, manifest, brief):
    extract(run, 0)
    expected = Trainer(Run("tiny", "pairwise", 1), brief(), manifest).model.state_dict()
    loaded = AutoModelForMaskedLM.from_pretrained(run / "step-0").state_dict()
    assert loaded.keys() == expected.keys() and all(torch.equal(loaded[name], expected[name]) for name in expected)
    assert not (run / "state/weights/step-00000000.safetensors").exists()


def test_a_step_that_was_not_kept_names_the_nearest_and_writes_nothing(extracted, run):
    with pytest.raises(MissingInputError, match="step 15 was not kept; the nearest kept steps: 10, 20"):
        extract(run, 15)
    assert not (run / "step-15").exists()


@pytest.mark.parametrize("step", [0, 20])
def test_a_vocabulary_that_the_run_did_not_learn_is_refused(run, manifest, step):
    """It was believed that the file beside the rows stays what they were made with: 301 pieces went with 300."""
    vocabulary = manifest.parent / "vocab.txt"
    words = vocabulary.read_text().splitlines()
    for pieces in ([*words, "w55"], [*words[:-2], words[-1], words[-2]]):
        vocabulary.write_text("\n".join(pieces) + "\n")
        with pytest.raises(IntegrityError, match=r"vocab\.txt: sha256 expected .*; restore the vocabulary"):
            extract(run, step)
    assert not (run / f"step-{step}").exists()


def test_a_run_of_other_rows_than_its_corpus_has_today_is_refused(run, tmp_path):
    """Its folder does not say which corpus its rows were packed from."""
    write_corpus(tmp_path / "shards", rows=60)
    with pytest.raises(IntegrityError, match=r"manifest.json: hash \w{16}, but .*done.json is of \w{16}; restore the"):
        extract(run, 20)
    (tmp_path / "shards/manifest.json").unlink()
    extract(run, 20)
