"""Operators against their formulas, written out in float64."""

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM
from transformers.models.bert.modeling_bert import BertSelfAttention

from symbert.errors import ConfigError
from symbert.model.attention import ATTENTION, SelfAttention, attention_class
from symbert.model.bert import SymBertForMaskedLM, build_config, initialize

HIDDEN, HEADS, HEAD = 12, 3, 4


def config(implementation: str = "sdpa") -> BertConfig:
    return BertConfig(
        hidden_size=HIDDEN,
        num_attention_heads=HEADS,
        attention_probs_dropout_prob=0.0,
        attn_implementation=implementation,
    )


def operator(name: str, implementation: str = "sdpa") -> SelfAttention:
    torch.manual_seed(5)
    module = ATTENTION[name](config(implementation)).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module.eval()


def hidden_states(seed: int = 0, tokens: int = 7) -> torch.Tensor:
    return torch.randn(2, tokens, HIDDEN, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def written_out_logits(module: SelfAttention, name: str, hidden: torch.Tensor) -> torch.Tensor:
    """Scores `batch heads x y` by the paper's equations 2, 3 and 6, one head at a time, with explicit sums."""
    scores = []
    for head in range(HEADS):
        rows = slice(head * HEAD, (head + 1) * HEAD)
        q = hidden @ module.query.weight[rows].T + module.query.bias[rows]
        if name == "original":
            k = hidden @ module.key.weight[rows].T + module.key.bias[rows]
            score = torch.einsum("bxd,byd->bxy", q, k)
        elif name == "symmetric":
            score = torch.einsum("bxd,byd->bxy", q, q)
        else:
            score = torch.einsum("bxd,de,bye->bxy", q, module.pairwise_factors[head], q)
        scores.append(score / HEAD**0.5)
    return torch.stack(scores, 1)


def written_out(module: SelfAttention, name: str, hidden: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
    logits = written_out_logits(module, name, hidden).masked_fill(~attended[:, None, None, :], -torch.inf)
    weights = logits.exp() / logits.exp().sum(-1, keepdim=True)
    value = (hidden @ module.value.weight.T + module.value.bias).reshape(*hidden.shape[:2], HEADS, HEAD)
    return torch.einsum("bhxy,byhd->bxhd", weights, value).reshape(hidden.shape)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ATTENTION)
def test_an_operator_equals_its_formula(name, implementation):
    module, hidden = operator(name, implementation), hidden_states()
    everything = torch.ones(2, 7, dtype=torch.bool)
    torch.testing.assert_close(module(hidden)[0], written_out(module, name, hidden, everything), rtol=0, atol=1e-12)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ATTENTION)
def test_an_operator_equals_its_formula_with_padding(name, implementation):
    module, hidden = operator(name, implementation), hidden_states()
    attended = torch.tensor([[1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1]], dtype=torch.bool)
    mask = torch.where(attended, 0.0, -torch.inf)[:, None, None, :].double()
    expected = written_out(module, name, hidden, attended)
    torch.testing.assert_close(module(hidden, mask.expand(2, 1, 7, 7))[0], expected, rtol=0, atol=1e-12)


def logits_of(module: SelfAttention, hidden: torch.Tensor) -> torch.Tensor:
    query, key = module.query_and_key(hidden)
    return query @ key.transpose(-1, -2)


def test_symmetric_scores_equal_their_transpose():
    logits = logits_of(operator("symmetric"), hidden_states())
    torch.testing.assert_close(logits, logits.transpose(-1, -2), rtol=0, atol=0)


def test_pairwise_scores_are_not_symmetric_because_s_is_free():
    logits = logits_of(operator("pairwise"), hidden_states())
    assert (logits - logits.transpose(-1, -2)).abs().max() > 1


def test_pairwise_with_the_identity_is_symmetric():
    pairwise, symmetric = operator("pairwise"), operator("symmetric")
    symmetric.load_state_dict({k: v for k, v in pairwise.state_dict().items() if k != "pairwise_factors"})
    pairwise.pairwise_factors.data.copy_(torch.eye(HEAD, dtype=torch.float64).expand(HEADS, HEAD, HEAD))
    torch.testing.assert_close(pairwise(hidden_states())[0], symmetric(hidden_states())[0], rtol=0, atol=1e-12)


def test_original_equals_hugging_faces_own_attention():
    ours, theirs = operator("original"), BertSelfAttention(config()).double().eval()
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(hidden_states())[0], theirs(hidden_states())[0], rtol=0, atol=0)


def test_the_whole_model_with_original_equals_hugging_faces_bert():
    ours = SymBertForMaskedLM(build_config("tiny", "original", vocabulary_size=100))
    initialize(ours, 3)
    theirs = BertForMaskedLM(BertConfig(**{k: getattr(ours.config, k) for k in STOCK}))
    theirs.load_state_dict(ours.state_dict())
    ids = torch.randint(0, 100, (2, 9), generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[1] * 9, [1] * 5 + [0] * 4])
    torch.testing.assert_close(
        ours.eval()(ids, attention_mask=mask).logits, theirs.eval()(ids, attention_mask=mask).logits, rtol=0, atol=0
    )


STOCK = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")


@pytest.mark.parametrize("name", ATTENTION)
def test_gradients_equal_finite_differences(name):
    module = operator(name)
    names = [key for key, _ in module.named_parameters()]

    def output(hidden, *parameters):
        return torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), (hidden,))[0]

    hidden = hidden_states(tokens=3)[:1].requires_grad_()
    assert torch.autograd.gradcheck(output, (hidden, *module.parameters()), fast_mode=True)


def test_the_published_initial_logit_spread_of_pairwise_shows():
    """N(0, 1) factors make the scores of pairwise start several times wider than original's (a known confound)."""
    spreads = {}
    for name in ("original", "pairwise"):
        model = SymBertForMaskedLM(build_config("small", name, vocabulary_size=100))
        initialize(model, 1)
        hidden = model.bert.embeddings(torch.arange(100)[None])
        spreads[name] = (logits_of(model.bert.encoder.layer[0].attention.self, hidden) / 8).std().item()
    assert spreads["pairwise"] > 5 * spreads["original"]


def test_an_unknown_operator_names_the_near_one_and_never_falls_back():
    with pytest.raises(ConfigError, match="did you mean symmetric"):
        attention_class("symetric")
    with pytest.raises(ConfigError, match="vanilla"):
        build_config("tiny", "vanilla")
