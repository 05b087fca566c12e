"""The encoder-decoder beside Hugging Face's, and cross-attention of every operator against its formula."""

import math

import pytest
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertLMHeadModel, BertModel
from transformers import EncoderDecoderModel as StockModel

from model.models import FOLDING, Averaged, Doubled, Near, Rectified, define, moved, small_config
from model.test_attention import HEAD, HEADS, HIDDEN, operator, written_out_query_key_value
from symbert.errors import ConfigError
from symbert.hosts import HOSTS, Rows
from symbert.model.anatomy import describe_attention
from symbert.model.attention import OriginalAttention
from symbert.model.bert import EncoderDecoderModel, attend, layer_weights, query_key_value
from symbert.model.hf import fold
from symbert.operators import OPERATORS

GENERATOR = torch.Generator().manual_seed(0)
SOURCE, TARGET = torch.randint(1, 100, (2, 9), generator=GENERATOR), torch.randint(1, 100, (2, 6), generator=GENERATOR)
MASK = torch.tensor([[1] * 9, [1] * 5 + [0] * 4])


def stock(model: EncoderDecoderModel) -> StockModel:
    """Hugging Face's model of the same shape with the same weights."""
    plain = {key: value for key, value in vars(model.encoder.config).items() if key in BertConfig().to_dict()}
    encoder = BertModel(BertConfig(**plain), add_pooling_layer=False)
    decoder = BertLMHeadModel(BertConfig(**{**plain, "is_decoder": True, "add_cross_attention": True}))
    theirs = StockModel(encoder=encoder, decoder=decoder).to(next(model.parameters()).dtype).eval()
    theirs.load_state_dict(model.state_dict())
    return theirs


@pytest.mark.parametrize(("precision", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_original_equals_stock_hugging_face(precision, tolerance):
    model = moved(EncoderDecoderModel(small_config())).to(precision)
    theirs = stock(model)
    assert list(model.state_dict()) == list(theirs.state_dict())
    for mask in (MASK, torch.ones_like(MASK)):
        expected = theirs(input_ids=SOURCE, attention_mask=mask.long(), decoder_input_ids=TARGET).logits
        torch.testing.assert_close(model.logits(SOURCE, mask, TARGET), expected, rtol=0, atol=tolerance)
        assert expected.std() > 0.1


def test_greedy_generation_is_that_of_stock_hugging_face():
    """Of a model that writes varied rows: places count for much, and no token is the likeliest everywhere."""
    model = moved(EncoderDecoderModel(small_config()))
    model.decoder.cls["predictions"].bias.data.zero_()
    model.decoder.bert.embeddings.position_embeddings.weight.data.mul_(10)
    free = model.generate(SOURCE, MASK, start_id=2, end_id=101, length=8)
    end = free[0, 1].item()
    for end_id, written in ((None, free), (end, model.generate(SOURCE, MASK, start_id=2, end_id=end, length=8))):
        ids = {"decoder_start_token_id": 2, "bos_token_id": 2, "eos_token_id": end_id, "pad_token_id": 0}
        greedy = {"max_new_tokens": 8, "do_sample": False, "num_beams": 1}
        theirs = stock(model).generate(SOURCE, attention_mask=MASK, **ids, **greedy)[:, 1:]
        assert torch.equal(written, F.pad(theirs, (0, 8 - theirs.shape[1])))
    assert len(free.unique()) > 3 and written[0].tolist()[2:] == [0] * 6


def written_out_across(module, name: str, hidden: torch.Tensor, context: torch.Tensor, mask: torch.Tensor):
    """Queries by the papers' equations of `hidden`, keys and values of `context`, one head at a time."""
    mixed = []
    for head in range(HEADS):
        query = written_out_query_key_value(module, name, hidden, head)[0]
        _, key, value = written_out_query_key_value(module, name, context, head)
        logits = torch.einsum("bxd,byd->bxy", query, key) / math.sqrt(HEAD)
        exponentials = logits.exp() * mask[:, None, :]
        mixed.append(torch.einsum("bxy,byd->bxd", exponentials / exponentials.sum(-1, keepdim=True), value))
    return torch.cat(mixed, -1)


@pytest.mark.parametrize("name", OPERATORS)
def test_cross_attention_equals_its_formula(name):
    hidden = torch.randn(2, 6, HIDDEN, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    context = torch.randn(2, 9, HIDDEN, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    for implementation in ("sdpa", "eager"):
        module = operator(name, implementation)
        found = attend(module, *query_key_value(module, hidden, context), MASK.bool()[:, None, None])
        expected = written_out_across(module, name, hidden, context, MASK)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["original", "pairwise", "shared"])
def test_padding_and_later_tokens_change_nothing_and_the_source_changes_all(name):
    model = moved(EncoderDecoderModel(small_config(name)))
    expected = model.logits(SOURCE, MASK, TARGET)
    padded = SOURCE.where(MASK.bool(), 7)
    torch.testing.assert_close(model.logits(padded, MASK, TARGET), expected, rtol=0, atol=1e-12)
    alone = model.logits(SOURCE[1:, :5], MASK[1:, :5], TARGET[1:])
    torch.testing.assert_close(alone, expected[1:], rtol=0, atol=1e-12)
    later = TARGET.clone()
    later[:, 4:] = 7
    torch.testing.assert_close(model.logits(SOURCE, MASK, later)[:, :4], expected[:, :4], rtol=0, atol=1e-12)
    other = SOURCE.clone()
    other[:, 2] = 7
    assert ((model.logits(other, MASK, TARGET) - expected).abs().amax(-1) > 1e-6).all()


class OfBoth(OriginalAttention):
    """A query that also reads the other sequence."""

    keeps_tokens_apart = True

    def query_key_value(self, hidden, context=None):
        query, key, value = super().query_key_value(hidden)
        return query if context is None else query + super().query_key_value(context)[0].mean(2, True), key, value


def test_an_operator_of_the_users_own_stands_there_or_is_refused(monkeypatch):
    define(monkeypatch, "own", Rectified)
    assert moved(EncoderDecoderModel(small_config("own"))).logits(SOURCE, MASK, TARGET).isfinite().all()
    refused = (
        *((Averaged, "keeps_tokens_apart"), (Doubled, "keeps_tokens_apart"), (Near, "forward")),
        (OfBoth, "query_key_value with a context"),  # its context was never given, so it computed another function
    )
    for kind, reason in refused:
        define(monkeypatch, "own", kind)
        with pytest.raises(ConfigError, match=f"attention 'own'.* {reason}"):
            EncoderDecoderModel(small_config("own"))


def test_the_formula_of_flops_is_what_pytorch_counts_but_for_what_is_dropped():
    """`original` computes keys and values of the target and queries of the source, and drops them: forward alone."""
    config = small_config(_attn_implementation="eager")
    model, (sequences, source), target = EncoderDecoderModel(config), SOURCE.shape, TARGET.shape[1]
    with FlopCounterMode(display=False) as counter:
        model.logits(SOURCE, MASK, TARGET).sum().backward()
    expected = HOSTS["encoder-decoder"].step_flops(
        config, layer_weights(model), Rows(100, source, target_tokens=target), sequences
    )
    dropped = config.num_hidden_layers * 2 * sequences * (2 * target + source) * config.hidden_size**2
    assert expected == counter.get_total_flops() - dropped


def test_the_model_compiles_to_one_graph():
    model = moved(EncoderDecoderModel(small_config("pairwise")))
    compiled = torch.compile(model.logits, backend="eager", fullgraph=True)
    expected = model.logits(SOURCE, MASK, TARGET)
    torch.testing.assert_close(compiled(SOURCE, MASK, TARGET), expected, rtol=0, atol=1e-12)


def test_a_folded_model_is_stock_and_has_equal_logits():
    for name in FOLDING:
        model = moved(EncoderDecoderModel(small_config(name)))
        folded = fold(model)
        assert type(folded) is StockModel
        found = folded(input_ids=SOURCE, attention_mask=MASK, decoder_input_ids=TARGET).logits
        torch.testing.assert_close(found, model.logits(SOURCE, MASK, TARGET), rtol=0, atol=1e-12)


def test_cross_attention_is_described_after_the_layers_own_and_without_padding():
    """Of even attention, the entropy is ln 9 of the full source and ln 5 of the padded one."""
    model = moved(EncoderDecoderModel(small_config()))
    for layer in model.decoder.bert.encoder.layer:
        for parameter in layer.crossattention.self.query.parameters():
            parameter.data.zero_()
    described = describe_attention(model, SOURCE, MASK, TARGET)
    entropies, spreads = described["attention_entropy"], described["logit_std"]
    assert len(entropies) == 2 + 2 * 2
    assert entropies[3::2] == pytest.approx([(math.log(9) + math.log(5)) / 2] * 2)
    assert spreads[3::2] == [0, 0] and min(spreads[:3]) > 0


def test_described_layers_of_a_source_have_no_padding_either():
    """They attended to it and were averaged over it, unlike cross-attention in the same list."""
    model = moved(EncoderDecoderModel(small_config("pairwise")))
    alone = describe_attention(model, SOURCE[1:, :5], MASK[1:, :5], TARGET[:1])
    padded = describe_attention(model, SOURCE[1:], MASK[1:], TARGET[:1])
    assert padded.keys() == alone.keys() and len(padded) >= 2
    for measure, values in padded.items():
        assert values == pytest.approx(alone[measure], rel=1e-5)
