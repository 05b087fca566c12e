"""Decoders and encoder-decoders beside Hugging Face's: no token sees a later one; and all hosts' FLOPs and memory."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertLMHeadModel, BertModel
from transformers import EncoderDecoderModel as StockModel

import model.models as models
from model.models import Averaged, Doubled, LateMixing, Near, Rectified, Shifted, define, moved, small_config
from symbert.errors import ConfigError
from symbert.hosts import HOSTS, Rows
from symbert.model.anatomy import describe_attention
from symbert.model.attention import OriginalAttention
from symbert.model.bert import DecoderModel, EncoderDecoderModel, MaskedModel, layer_weights

GENERATOR = torch.Generator().manual_seed(0)
IDS = torch.randint(100, (2, 12), generator=GENERATOR)
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
    decoder = moved(DecoderModel(small_config())).to(precision)
    pair = moved(EncoderDecoderModel(small_config())).to(precision)
    theirs, their_pair = models.stock(decoder, BertLMHeadModel), stock(pair)
    assert list(decoder.state_dict()) == list(theirs.state_dict())
    assert list(pair.state_dict()) == list(their_pair.state_dict())
    compared = [(decoder(IDS), theirs(IDS).logits)]
    for mask in (MASK, torch.ones_like(MASK)):
        expected = their_pair(input_ids=SOURCE, attention_mask=mask, decoder_input_ids=TARGET).logits
        compared.append((pair(SOURCE, mask, TARGET), expected))
    for found, expected in compared:
        torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)
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


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["original", "pairwise", "shared"])
def test_a_later_token_changes_no_earlier_logits_and_an_earlier_one_changes_all_that_follow(name, kernel):
    model = moved(DecoderModel(small_config(name, _attn_implementation=kernel)))
    expected = model(IDS)
    for place in (1, 5, 11):
        changed = IDS.clone()
        changed[:, place] = (changed[:, place] + 1) % 100
        found = model(changed)
        torch.testing.assert_close(found[:, :place], expected[:, :place], rtol=0, atol=1e-12)
        assert ((found - expected)[:, place:].abs().amax(-1) > 1e-6).all()


@pytest.mark.parametrize("name", ["original", "pairwise", "shared"])
def test_padding_and_later_tokens_change_nothing_and_the_source_changes_all(name):
    model = moved(EncoderDecoderModel(small_config(name)))
    expected = model(SOURCE, MASK, TARGET)
    padded = SOURCE.where(MASK.bool(), 7)
    torch.testing.assert_close(model(padded, MASK, TARGET), expected, rtol=0, atol=1e-12)
    alone = model(SOURCE[1:, :5], MASK[1:, :5], TARGET[1:])
    torch.testing.assert_close(alone, expected[1:], rtol=0, atol=1e-12)
    later = TARGET.clone()
    later[:, 4:] = 7
    torch.testing.assert_close(model(SOURCE, MASK, later)[:, :4], expected[:, :4], rtol=0, atol=1e-12)
    other = SOURCE.clone()
    other[:, 2] = 7
    assert ((model(other, MASK, TARGET) - expected).abs().amax(-1) > 1e-6).all()


class Rolled(nn.Linear):
    """A projection of each token's successor."""

    def __init__(self, width):
        super().__init__(width, width)

    def forward(self, hidden):
        return super().forward(hidden.roll(-1, 1))


class Projected(OriginalAttention):
    """Of its own in a projection alone."""

    def __init__(self, config):
        super().__init__(config)
        self.query = Rolled(config.hidden_size)


class Inherited(Near):
    """Of a class that keeps tokens apart, with values that do not."""

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return query, key, value + value.roll(-1, 2)


class OfBoth(OriginalAttention):
    """A query that also reads the other sequence."""

    keeps_tokens_apart = True

    def query_key_value(self, hidden, context=None):
        query, key, value = super().query_key_value(hidden)
        return query if context is None else query + super().query_key_value(context)[0].mean(2, True), key, value


def test_an_operator_of_the_users_own_stands_there_or_is_refused_with_the_reason(monkeypatch):
    """One that changed a projection alone, or a method of a class that says it, trained a decoder on what follows."""
    define(monkeypatch, "own", Rectified)
    assert moved(EncoderDecoderModel(small_config("own")))(SOURCE, MASK, TARGET).isfinite().all()
    refused = [(DecoderModel, kind, "keeps_tokens_apart") for kind in (Averaged, Shifted, LateMixing)]
    refused += [(DecoderModel, kind, "keeps_tokens_apart") for kind in (Projected, Inherited)]
    refused += [(EncoderDecoderModel, kind, "keeps_tokens_apart") for kind in (Averaged, Doubled)]
    refused += [
        (EncoderDecoderModel, Near, "forward"),
        (EncoderDecoderModel, OfBoth, "query_key_value with a context"),  # its context was never given
    ]
    for host, kind, reason in refused:
        define(monkeypatch, "own", kind)
        with pytest.raises(ConfigError, match=f"attention 'own'.* {reason}"):
            host(small_config("own"))


FORWARD = {
    MaskedModel: lambda model: model.masked_logits(IDS, torch.arange(6)),
    DecoderModel: lambda model: model(IDS),
    EncoderDecoderModel: lambda model: model(SOURCE, MASK, TARGET),
}


@pytest.mark.parametrize(
    ("host", "rows", "names"),
    [
        ("encoder", Rows(100, 12, 6 / 24), ("original", "pairwise", "shared")),
        ("decoder", Rows(100, 13), ("original", "pairwise", "shared")),
        ("encoder-decoder", Rows(100, 9, target_tokens=6), ("original",)),
    ],
)
def test_the_formula_of_flops_is_what_pytorch_counts_but_for_what_is_dropped(host, rows, names):
    """`original` computes keys and values of the target and queries of the source, and drops them: forward alone."""
    for name in names:
        config = small_config(name, _attn_implementation="eager")  # products that the counter sees on every device
        model = HOSTS[host].model_class(config)
        with FlopCounterMode(display=False) as counter:
            FORWARD[type(model)](model).sum().backward()
        across = config.num_hidden_layers * 2 * 2 * (2 * 6 + 9) * config.hidden_size**2
        counted = counter.get_total_flops() - (across if host == "encoder-decoder" else 0)
        assert HOSTS[host].step_flops(config, layer_weights(model), rows, 2) == counted, name


def test_the_model_compiles_to_one_graph():
    model = moved(EncoderDecoderModel(small_config("pairwise")))
    compiled = torch.compile(model.forward, backend="eager", fullgraph=True)
    expected = model(SOURCE, MASK, TARGET)
    torch.testing.assert_close(compiled(SOURCE, MASK, TARGET), expected, rtol=0, atol=1e-12)


def evenly(model, sites):
    """The model, whose attention at these sites is even."""
    for site in sites:
        for parameter in site.query.parameters():
            parameter.data.zero_()
    return model


def test_a_described_token_attends_to_no_later_one_and_to_no_padding_of_a_source():
    """Of even attention, the entropy is ln t of a decoder's token t, ln 9 of the full source, ln 5 of the padded."""
    model = moved(DecoderModel(small_config()))
    described = describe_attention(evenly(model, [layer.attention.self for layer in model.bert.encoder.layer]), IDS)
    assert described["attention_entropy"] == pytest.approx([math.log(math.factorial(12)) / 12] * 2)
    assert described["logit_std"] == pytest.approx([0, 0])
    model = moved(EncoderDecoderModel(small_config()))
    crossing = [layer.crossattention.self for layer in model.decoder.bert.encoder.layer]
    described = describe_attention(evenly(model, crossing), SOURCE, MASK, TARGET)
    entropies, spreads = described["attention_entropy"], described["logit_std"]
    assert len(entropies) == 2 + 2 * 2  # layers of the source, then each layer's own and its cross-attention
    assert entropies[3::2] == pytest.approx([(math.log(9) + math.log(5)) / 2] * 2)
    assert spreads[3::2] == [0, 0] and min(spreads[:3]) > 0
    alone = describe_attention(model, SOURCE[1:, :5], MASK[1:, :5], TARGET[:1])
    padded = describe_attention(model, SOURCE[1:], MASK[1:], TARGET[:1])
    for measure, values in padded.items():
        assert values == pytest.approx(alone[measure], rel=1e-5)
