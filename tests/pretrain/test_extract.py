import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from pretrain.corpora import write_corpus
from symbert.errors import MissingInputError
from symbert.files import read_json
from symbert.pretrain.extract import extract_checkpoint
from symbert.pretrain.run import pretrain_model

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(55))]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tmp_path_factory.mktemp("run")


@pytest.fixture
def extracted(run, brief, tmp_path):
    """Step 20 of a run of 30 steps, extracted."""
    (run / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    if not (run / "done.json").exists():
        manifest = write_corpus(run / "shards")
        paths = (run / "state", run / "done.json", run / "metrics.jsonl")
        pretrain_model(manifest, brief(), "tiny", "pairwise", 1, *paths, threads=1)
    extract_checkpoint(run / "state", 20, run / "vocab.txt", run / "done.json", "embedded", run / "step-20")
    return run / "step-20"


def test_a_checkpoint_loads_through_the_auto_classes(extracted):
    model = AutoModelForMaskedLM.from_pretrained(extracted).eval()
    assert model.config.attention == "pairwise" and model.config.vocab_size == 60
    tokenizer = AutoTokenizer.from_pretrained(extracted)
    ids = tokenizer("w1 W2 unknown", return_tensors="pt").input_ids
    assert ids.tolist() == [[2, 6, 7, 1, 3]]
    assert torch.isfinite(model(ids).logits).all()


def test_the_weights_are_those_of_the_step(extracted, run):
    from safetensors.torch import load_file

    kept, loaded = (
        load_file(run / "state/weights/step-00000020.safetensors"),
        load_file(extracted / "model.safetensors"),
    )
    assert kept.keys() == loaded.keys() and all(torch.equal(kept[key], loaded[key]) for key in kept)
    assert not torch.equal(
        kept["cls.predictions.bias"], load_file(run / "state/weights/step-00000030.safetensors")["cls.predictions.bias"]
    )


def test_a_step_that_was_not_kept_names_the_nearest_and_writes_nothing(extracted, run):
    with pytest.raises(MissingInputError, match="step 15 was not kept; the nearest kept steps: 10, 20"):
        extract_checkpoint(run / "state", 15, run / "vocab.txt", run / "done.json", "embedded", run / "step-15")
    assert not (run / "step-15").exists()


def test_the_model_card_says_what_it_is_and_how_to_load_it(extracted):
    card, done = (extracted / "README.md").read_text(), read_json(extracted.parent / "done.json")
    for fact in (
        "pairwise",
        "stand-in corpus",
        "step 20 of 30",
        done["settings_hash"],
        done["corpus_hash"],
        "import symbert.model.bert",
    ):
        assert fact in card
