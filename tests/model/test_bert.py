"""What is trained, beside Hugging Face's classes, and how it starts."""

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

from model.models import HEADS, IDS, MASK, configured, dense, started, trained
from symbert.errors import ConfigError
from symbert.model.bert import Classifier, MaskedModel, initialize
from symbert.operators import OPERATORS

STOCK = {"masked": BertForMaskedLM, "classification": BertForSequenceClassification}


@pytest.mark.parametrize("head", HEADS)
def test_original_is_hugging_faces_bert_to_the_bit_with_dropout_and_gradients(head):
    """Order counts: the norm of all gradients is summed in it, and optimizers keep their state in it."""
    ours = trained("original", head)
    shape = {key: value for key, value in vars(ours.config).items() if key in BertConfig().to_dict()}
    theirs = STOCK[head](BertConfig(**{**shape, "num_labels": 3} if head == "classification" else shape))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    outputs = []
    for each, read in (
        (ours, lambda: dense(ours, IDS, MASK)),
        (theirs, lambda: theirs(IDS, attention_mask=MASK).logits),
    ):
        torch.manual_seed(1)
        each.train()
        outputs.append(read())
        outputs[-1].square().sum().backward()
    assert torch.equal(*outputs)
    for (name, one), (its_name, its) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert name == its_name and (one.grad is its.grad is None or torch.equal(one.grad, its.grad)), name


def test_the_head_on_masked_positions_equals_the_dense_head_in_loss_and_gradients():
    gradients, positions, targets = [], torch.tensor([1, 4, 13, 22]), torch.tensor([5, 6, 7, 8])
    for read in (
        lambda ours: dense(ours, IDS).flatten(0, 1)[positions],
        lambda ours: ours.masked_logits(IDS, positions),
    ):
        ours = started("tiny", "pairwise").double()
        torch.nn.functional.cross_entropy(read(ours), targets).backward()
        gradients.append([parameter.grad for parameter in ours.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-14)


SELF = ".attention.self."
OTHER_INIT = {"original-gain": "query.weight", "original-symmetric": "key.weight"}  # of controls


def test_all_operators_of_one_seed_start_from_the_same_common_parameters():
    """Embeddings, feed-forward layers and the head are common to all, and what an operator names as original does."""
    original = started("tiny", "original").state_dict()
    outside = {name for name in original if SELF not in name}
    for attention in OPERATORS:
        start = started("tiny", attention).state_dict()
        assert outside == {name for name in start if SELF not in name} and len(outside) == 44 - 2 * 6
        for name in original.keys() & start.keys():
            if not name.endswith(OTHER_INIT.get(attention, "none")):
                assert torch.equal(start[name], original[name]), (attention, name)


def test_initial_parameters_have_berts_distribution():
    """N(0, initializer_range) matrices, zero biases, LayerNorm (1, 0), N(0, 1) factors, and zeros for padding."""
    built = MaskedModel(configured("tiny", "pairwise", vocabulary_size=200))
    built.extra = nn.Conv1d(40, 40, 3)  # a module that BERT lacks
    initialize(built, 1)
    for name, values in built.state_dict().items():
        if "LayerNorm" in name:
            assert (values == (1.0 if name.endswith("weight") else 0.0)).all()
        elif name.endswith("bias"):
            assert (values == 0).all(), name
        elif "token_type" not in name:
            expected = 1.0 if name.endswith("pairwise_factors") else built.config.initializer_range
            assert abs(values.std().item() / expected - 1) < 0.05, name
    assert (built.bert.embeddings.word_embeddings.weight[0] == 0).all()
    assert built.cls["predictions"].decoder.weight is built.bert.embeddings.word_embeddings.weight


def test_a_configuration_of_another_model_is_refused():
    for key, value in (("is_decoder", True), ("add_cross_attention", True), ("hidden_act", "relu")):
        config = configured("tiny", "original", 100)
        setattr(config, key, value)
        with pytest.raises(ConfigError, match=key):
            Classifier(config, 2)
