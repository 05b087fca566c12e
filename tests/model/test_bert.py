import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification

from symbert.errors import ConfigError
from symbert.model.bert import MaskedModel, initialize
from symbert.model.configuration import configuration_of
from symbert.model.hf import SymBertForMaskedLM, SymBertForSequenceClassification, SymBertModel, build_config
from symbert.operators import OPERATORS


def model(attention: str = "pairwise", seed: int = 1) -> SymBertForMaskedLM:
    built = SymBertForMaskedLM(build_config("tiny", attention, vocabulary_size=200))
    initialize(built, seed)
    return built.eval()


IDS = torch.arange(24).reshape(2, 12)


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
def test_auto_classes_reload_a_model_bit_for_bit(tmp_path, attention):
    saved = model(attention)
    saved.save_pretrained(tmp_path)
    loaded = AutoModelForMaskedLM.from_pretrained(tmp_path)
    assert type(loaded) is SymBertForMaskedLM and loaded.config.attention == attention
    assert torch.equal(loaded.eval()(IDS).logits, saved(IDS).logits)
    assert type(AutoModel.from_pretrained(tmp_path)) is SymBertModel
    classifier = AutoModelForSequenceClassification.from_pretrained(tmp_path, num_labels=3)
    assert type(classifier) is SymBertForSequenceClassification
    assert torch.equal(classifier.eval().bert(IDS).last_hidden_state, saved.bert(IDS).last_hidden_state)


FRESH = """
import sys, torch, symbert.model.hf, transformers
from safetensors.torch import save_file
for auto in sys.argv[1:]:
    model = getattr(transformers, auto).from_pretrained(auto).eval()
    save_file({"logits": model(torch.arange(24).reshape(2, 12)).logits}, f"{auto}/logits")
"""


def test_a_fresh_process_reloads_the_same_bits_after_import_symbert_model_bert(tmp_path):
    """With either head, in one process: its imports take longer than all else."""
    classifier = SymBertForSequenceClassification(build_config("tiny", "pairwise-scaled", vocabulary_size=200)).eval()
    saved = {"AutoModelForMaskedLM": model("pairwise-scaled"), "AutoModelForSequenceClassification": classifier}
    for auto, kept in saved.items():
        kept.save_pretrained(tmp_path / auto)
    subprocess.run([sys.executable, "-c", FRESH, *saved], check=True, capture_output=True, cwd=tmp_path)
    for auto, kept in saved.items():
        assert torch.equal(load_file(tmp_path / auto / "logits")["logits"], kept(IDS).logits), auto


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
def test_loading_never_rescales_or_redraws_an_operators_weights(tmp_path, attention):
    """Every weight is set to a number that no initialisation gives."""
    saved = model(attention)
    for number, parameter in enumerate(saved.parameters()):
        parameter.data.fill_(0.5 + number)
    saved.save_pretrained(tmp_path)
    loaded = AutoModelForMaskedLM.from_pretrained(tmp_path)
    for (name, one), (_, other) in zip(saved.named_parameters(), loaded.named_parameters(), strict=True):
        assert torch.equal(one, other), name


def test_no_auto_map_is_written_because_it_would_ask_for_remote_code(tmp_path):
    model().save_pretrained(tmp_path)
    assert "auto_map" not in (tmp_path / "config.json").read_text()


def test_the_head_on_masked_positions_equals_the_dense_head_in_loss_and_gradients():
    dense, sparse = model().double(), MaskedModel(configuration_of("tiny", "pairwise", 200))
    initialize(sparse, 1)
    sparse.eval().double()
    positions, targets = torch.tensor([1, 4, 13, 22]), torch.tensor([5, 6, 7, 8])
    labels = torch.full((24,), -100)
    labels[positions] = targets
    dense(IDS, labels=labels.reshape(2, 12)).loss.backward()
    torch.nn.functional.cross_entropy(sparse.masked_logits(IDS, positions), targets).backward()
    for (name, one), (_, other) in zip(dense.named_parameters(), sparse.named_parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=1e-14, msg=name)


SELF = ".attention.self."
OWN_START = {
    "original-gain": "query.weight",
    "original-symmetric": "key.weight",
}  # of controls


@pytest.mark.parametrize("attention", OPERATORS)
def test_all_operators_of_one_seed_start_from_the_same_common_parameters(attention):
    """Embeddings, feed-forward layers and the head are common to all, and what an operator names as original does."""
    original, start = model("original").state_dict(), model(attention).state_dict()
    outside = {name for name in original if SELF not in name}
    assert outside == {name for name in start if SELF not in name} and len(outside) == 44 - 2 * 6
    for name in original.keys() & start.keys():
        if not name.endswith(OWN_START.get(attention, "none")):
            assert torch.equal(start[name], original[name]), name


def test_initial_parameters_have_berts_distribution():
    """N(0, initializer_range) matrices, zero biases, LayerNorm (1, 0), N(0, 1) factors, and zeros for padding."""
    for name, values in model().state_dict().items():
        if "LayerNorm" in name:
            assert (values == (1.0 if name.endswith("weight") else 0.0)).all()
        elif name.endswith("bias"):
            assert (values == 0).all(), name
        elif "token_type" not in name:
            expected = 1.0 if name.endswith("pairwise_factors") else model().config.initializer_range
            assert abs(values.std().item() / expected - 1) < 0.05, name
    assert (model().bert.embeddings.word_embeddings.weight[0] == 0).all()


@pytest.mark.parametrize(
    "first",
    ["import symbert.cli", ""],
)
def test_the_auto_classes_load_a_checkpoint_whatever_was_imported_first(tmp_path, first):
    """After `import symbert.cli` they did not know the model type."""
    model().save_pretrained(tmp_path)
    code = f"{first}\nimport sys, symbert.model.hf\nfrom transformers import AutoModelForMaskedLM\n"
    code += "print(type(AutoModelForMaskedLM.from_pretrained(sys.argv[1])).__name__)"
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert run.stdout == "SymBertForMaskedLM\n"


def test_the_decoder_is_tied_to_the_embeddings():
    built = model()
    assert built.cls.predictions.decoder.weight is built.bert.embeddings.word_embeddings.weight


@pytest.mark.parametrize("key", ["is_decoder", "add_cross_attention"])
@pytest.mark.parametrize("kind", [AutoModelForMaskedLM])
def test_a_decoder_is_refused_and_not_silently_bidirectional(tmp_path, kind, key):
    """Later tokens changed the logits of earlier ones."""
    config = build_config("tiny", "symmetric", 300)
    setattr(config, key, True)
    expected = f"config: '{key}' is true, but this model attends in both directions, to one sequence; set it to false"
    with pytest.raises(ConfigError) as refused:
        kind.from_config(config)
    assert str(refused.value) == expected
    kind.from_config(build_config("tiny", "symmetric", 300)).save_pretrained(tmp_path)
    config.save_pretrained(tmp_path)
    with pytest.raises(ConfigError) as refused:
        kind.from_pretrained(tmp_path)
    assert str(refused.value) == expected
