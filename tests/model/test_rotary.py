"""Rotary positions: Hugging Face's own, the same in every way in which a row is computed, or refused."""

import math

import numpy as np
import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from model.models import moved, small_config
from symbert.errors import ConfigError
from symbert.model.anatomy import describe_attention, weights_of
from symbert.model.attention import OriginalAttention
from symbert.model.bert import Classifier, DecoderModel, EncoderDecoderModel, MaskedModel, attention_of
from symbert.model.from_transformers import turned
from symbert.model.hf import fold
from symbert.model.packed import Packing, encode, encode_by_length, encoder_for
from symbert.model.parameters import counts_of
from symbert.operators import OPERATORS, Operator
from symbert.paths import Run
from symbert.sizes import SIZES, define

ROTARY = {"position_embedding_type": "rotary"}
IDS = torch.randint(1, 100, (2, 9), generator=torch.Generator().manual_seed(0))


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_queries_and_keys_are_turned_as_hugging_face_turns_those_of_llama():
    config = LlamaConfig(hidden_size=64, num_attention_heads=2)
    query, key = drawn(2, 2, 40, 32).float(), 2 * drawn(2, 2, 40, 32).float()
    cosines, sines = LlamaRotaryEmbedding(config)(query, torch.arange(40)[None])
    expected = apply_rotary_pos_emb(query, key, cosines, sines)
    for found, theirs in zip((turned(query), turned(key)), expected, strict=True):
        torch.testing.assert_close(found, theirs, rtol=0, atol=1e-5)
    assert (turned(query)[:, :, 1:] - query[:, :, 1:]).abs().amax() > 0.5


def test_a_product_is_that_of_complex_numbers_turned_by_the_difference_of_places():
    """Re(q k̄ e^{i(m − n)θ}), summed over the pairs of a head (Su et al. 2021, equation 16)."""
    query, key = drawn(7, 8), drawn(14, 8)[7:]
    angles = (torch.arange(7)[:, None] - torch.arange(7))[..., None] * 10_000 ** (-torch.arange(4).double() / 4)
    of_query, of_key = (torch.complex(side[:, :4], side[:, 4:]) for side in (query, key))
    expected = of_query[:, None] * of_key.conj() * torch.polar(torch.ones_like(angles), angles)
    torch.testing.assert_close(turned(query) @ turned(key).T, expected.real.sum(-1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_a_model_attends_with_turned_sides_and_has_no_embeddings_of_places(implementation):
    config = small_config(**ROTARY)
    config._attn_implementation = implementation
    model = moved(MaskedModel(config))
    site, hidden = model.bert.encoder.layer[0].attention.self, drawn(2, 9, 64)
    query, key, value = site.query_key_value(hidden)
    weights = (turned(query) @ turned(key).mT / math.sqrt(32)).softmax(-1)
    expected = (weights @ value).transpose(1, 2).flatten(2)
    torch.testing.assert_close(site(hidden)[0], expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(weights_of(site, hidden), weights.float())
    assert not any("position" in name for name in model.state_dict())
    assert describe_attention(model, IDS)["logit_std"][0] > 0


def test_packed_rows_have_what_each_has_alone():
    model = moved(Classifier(small_config(**ROTARY), 3))
    lengths = np.array([5, 2, 9, 5, 3])
    packing, ids = Packing.of(lengths, torch.device("cpu")), IDS.flatten().repeat(2)[: lengths.sum()]
    embedded = model.bert.embeddings(ids[None], None, packing.position_ids[None])
    assert encoder_for(model.bert) is encode
    found, expected = encode(model.bert, embedded, packing), encode_by_length(model.bert, embedded, packing)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)


def test_a_decoder_sees_no_later_tokens_and_its_source_has_no_places():
    model = moved(DecoderModel(small_config(**ROTARY)))
    later = IDS.clone()
    later[:, 5:] = 7
    torch.testing.assert_close(model.logits(later)[:, :5], model.logits(IDS)[:, :5], rtol=0, atol=1e-12)
    pair = moved(EncoderDecoderModel(small_config(**ROTARY)))
    sites = [layer.crossattention.self for layer in pair.decoder.bert.encoder.layer]
    assert not any(site.has_rotary_positions for site in sites)
    assert pair.decoder.bert.encoder.layer[0].attention.self.has_rotary_positions


class Halved(OriginalAttention):
    """As `original`, half as much."""

    def forward(self, hidden, attention_mask=None, **kwargs):
        return super().forward(hidden, attention_mask, **kwargs)[0] / 2, None


def test_an_operator_with_a_forward_of_its_own_is_refused_by_name(monkeypatch):
    """It may compute the logits itself, of sides that nothing has turned."""
    monkeypatch.setitem(OPERATORS, "halved", Operator("halved", f"{__name__}:Halved"))
    with pytest.raises(ConfigError, match="attention 'halved': has a forward of its own, which may not turn"):
        attention_of(small_config("halved", **ROTARY))
    assert not attention_of(small_config("halved")).has_rotary_positions


def test_what_hugging_faces_bert_cannot_be_is_refused():
    for model in (MaskedModel, DecoderModel, EncoderDecoderModel):
        with pytest.raises(ConfigError, match="'position_embedding_type' is rotary, which Hugging Face's BERT"):
            fold(moved(model(small_config(**ROTARY))))


def test_a_size_says_so_by_data_alone_and_its_parameters_are_counted(nothing_of_ones_own):
    shape = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 256}
    rope = define("rope", {**shape, **ROTARY})
    assert Run("rope", "original", 1).model["position_embedding_type"] == "rotary"
    assert rope.parameters() == counts_of("rope", ["original"])["parameters"]["original"]
    assert SIZES["tiny"].parameters() - rope.parameters() == 512 * 64
