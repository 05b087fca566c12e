import subprocess
import sys

import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification

from symbert.model.attention import ATTENTION
from symbert.model.bert import (
    SymBertForMaskedLM,
    SymBertForSequenceClassification,
    SymBertModel,
    build_config,
    initialize,
)


def model(attention: str = "pairwise", seed: int = 1) -> SymBertForMaskedLM:
    built = SymBertForMaskedLM(build_config("tiny", attention, vocabulary_size=200))
    initialize(built, seed)
    return built.eval()


IDS = torch.arange(24).reshape(2, 12)


@pytest.mark.parametrize("attention", ATTENTION)
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


def test_a_fresh_process_reloads_the_same_bits_after_importing_the_model(tmp_path):
    saved = model()
    saved.save_pretrained(tmp_path)
    code = f"""
import torch, symbert.model.bert
from transformers import AutoModelForMaskedLM
logits = AutoModelForMaskedLM.from_pretrained({str(tmp_path)!r}).eval()(torch.arange(24).reshape(2, 12)).logits
print(logits.double().sum().item().hex())
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float.fromhex(said.strip()) == saved(IDS).logits.double().sum().item()


def test_no_auto_map_is_written_because_it_would_ask_for_remote_code(tmp_path):
    model().save_pretrained(tmp_path)
    assert "auto_map" not in (tmp_path / "config.json").read_text()


def test_the_head_on_masked_positions_equals_the_dense_head_in_loss_and_gradients():
    torch.manual_seed(0)
    dense, sparse = model().double(), model().double()
    positions, targets = torch.tensor([1, 4, 13, 22]), torch.tensor([5, 6, 7, 8])
    labels = torch.full((24,), -100)
    labels[positions] = targets
    dense(IDS, labels=labels.reshape(2, 12)).loss.backward()
    torch.nn.functional.cross_entropy(sparse.masked_logits(IDS, positions), targets).backward()
    for (name, one), (_, other) in zip(dense.named_parameters(), sparse.named_parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=1e-14, msg=name)


def test_all_operators_of_one_seed_start_from_the_same_shared_parameters():
    start = {name: model(name).state_dict() for name in ATTENTION}
    for name, values in start.items():
        common = values.keys() & start["original"].keys()
        assert len(common) == 44 if name == "original" else len(common) == 40
        assert all(torch.equal(values[key], start["original"][key]) for key in common)


def test_another_seed_starts_elsewhere():
    one, two = model(seed=1).state_dict(), model(seed=2).state_dict()
    assert not torch.equal(one["bert.embeddings.word_embeddings.weight"], two["bert.embeddings.word_embeddings.weight"])


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


def test_the_decoder_is_tied_to_the_embeddings():
    built = model()
    assert built.cls.predictions.decoder.weight is built.bert.embeddings.word_embeddings.weight
