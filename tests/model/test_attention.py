"""Operators against their formulas, written out in float64."""

import math

import pytest
import torch
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertSelfAttention

from model.models import configured, defined
from model.models import started as model_of
from symbert.model.anatomy import logits_of
from symbert.model.attention import SelfAttention
from symbert.model.bert import MaskedModel, attention_of, initialize, mask_for
from symbert.operators import OPERATORS

HIDDEN, HEADS, HEAD = 15, 3, 5  # of 4 the half is the root
PUBLISHED = ("qk-norm", "key-value", "identity-query", "coupled", "exclusive")


def config(implementation: str = "sdpa", attention: str = "original", **own: object) -> BertConfig:
    return BertConfig(
        attention=attention,
        hidden_size=HIDDEN,
        num_attention_heads=HEADS,
        attention_probs_dropout_prob=0.0,
        attn_implementation=implementation,
        **own,
    )


def operator(name: str, implementation: str = "sdpa", **own: object) -> SelfAttention:
    torch.manual_seed(5)
    module = attention_of(config(implementation, name, **own)).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module.eval()


def hidden_states(seed: int = 0, tokens: int = 7) -> torch.Tensor:
    return torch.randn(2, tokens, HIDDEN, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def written_out_query_key_value(module: SelfAttention, name: str, hidden: torch.Tensor, head: int) -> tuple:
    """One head's sides of the dot product and its values, each `batch token head`, by the papers' equations."""
    rows = slice(head * HEAD, (head + 1) * HEAD)

    def project(linear: torch.nn.Linear) -> torch.Tensor:
        return torch.einsum("bxh,dh->bxd", hidden, linear.weight[rows]) + linear.bias[rows]

    if name == "shared":
        shared = project(module.projection)
        diagonals = (module.query_scale, module.key_scale, module.value_scale)
        return tuple(torch.einsum("bxd,de->bxe", shared, torch.diag(scale[rows])) for scale in diagonals)
    if name == "identity-query":
        return hidden[..., rows] / 2, project(module.key), project(module.value)
    query = project(module.query)
    if name == "key-value":
        return query, project(module.key), project(module.key)
    value = project(module.value)
    if name == "qk-norm":
        key = project(module.key)
        lengths = [torch.einsum("bxd,bxd->bx", side, side).sqrt()[..., None] for side in (query, key)]
        return module.gain[head] * HEAD * query / lengths[0], key / lengths[1], value
    if name == "coupled":
        key, (first, _, last) = project(module.key), module.dynamics
        units = torch.einsum("bxd,ed->bxe", query, first.weight) + first.bias
        moved = torch.einsum("bxe,de->bxd", units / (1 + (-units).exp()), last.weight) + last.bias
        return query + module.step * key, key + module.step * moved, value
    if name.startswith(("original", "exclusive")):
        factor = math.sqrt(HEAD) if name == "original-unscaled" else 1
        return factor * query, project(module.key), value
    if name.startswith("symmetric"):
        return query, query, value
    return torch.einsum("bxd,de->bxe", query, module.pairwise_factors[head]), query, value


def written_out(module: SelfAttention, name: str, hidden, attended) -> torch.Tensor:
    """The mixed values `batch token hidden`, one head at a time, with the softmax as a quotient of sums; `attended` is
    `batch query key`."""
    if name == "symmetric-others":
        others = attended & ~torch.eye(hidden.shape[1], dtype=torch.bool)
        attended = others.where(others.any(-1, keepdim=True), attended)  # a token that stands alone sees itself
    mixed = []
    for head in range(HEADS):
        query, key, value = written_out_query_key_value(module, name, hidden, head)
        logits = torch.einsum("bxd,byd->bxy", query, key) / math.sqrt(HEAD)
        exponentials = logits.masked_fill(~attended, -torch.inf).exp()
        mixed.append(torch.einsum("bxy,byd->bxd", exponentials / exponentials.sum(-1, keepdim=True), value))
        if name == "exclusive":
            share = torch.einsum("bxd,bxd->bx", mixed[-1], value) / torch.einsum("bxd,bxd->bx", value, value)
            mixed[-1] = mixed[-1] - share[..., None] * value
    return torch.cat(mixed, -1)


def attended_by(lengths: tuple[int, ...], tokens: int) -> torch.Tensor:
    """The tokens, `batch query key`, of rows of these lengths that are padded to so many."""
    return (torch.arange(tokens) < torch.tensor(lengths)[:, None])[:, None].expand(-1, tokens, -1)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_equals_its_formula_in_whole_and_padded_rows_and_where_a_token_stands_alone(name, implementation):
    module = operator(name, implementation)
    for lengths in ((7, 7), (5, 7), (1, 7), (1, 1)):
        hidden, tokens = hidden_states(tokens=max(lengths)), max(lengths)
        attended = attended_by(lengths, tokens)
        mask = None if attended.all() else torch.where(attended, 0.0, -torch.inf)[:, None].double()
        expected = written_out(module, name, hidden, attended)
        torch.testing.assert_close(module(hidden, mask)[0], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", OPERATORS)
def test_causal_attention_equals_its_formula(name, implementation):
    module, hidden = operator(name, implementation, is_decoder=True), hidden_states()
    expected = written_out(module, name, hidden, torch.ones(2, 7, 7, dtype=torch.bool).tril())
    torch.testing.assert_close(module(hidden, mask_for(module, hidden))[0], expected, rtol=0, atol=1e-12)


def test_original_equals_hugging_faces_own_attention():
    ours, theirs = operator("original"), BertSelfAttention(config()).double().eval()
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(hidden_states())[0], theirs(hidden_states())[0], rtol=0, atol=0)


@pytest.mark.parametrize("name", OPERATORS)
def test_gradients_equal_finite_differences(name):
    module = operator(name)
    names = [key for key, _ in module.named_parameters()]

    def output(hidden, *parameters):
        return torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), (hidden,))[0]

    hidden = hidden_states(tokens=3)[:1].requires_grad_()
    assert torch.autograd.gradcheck(output, (hidden, *module.parameters()), fast_mode=True)


def started(name: str, seed: int = 1) -> dict[str, torch.Tensor]:
    model = MaskedModel(configured("tiny", name, vocabulary_size=100))
    initialize(model, seed)
    return {key.split(".self.")[1]: values for key, values in model.state_dict().items() if ".0.attention.self." in key}


HEAD_OF_TINY = 32


def test_the_query_of_original_gain_starts_wider_by_the_root_of_the_head():
    expected = started("original")["query.weight"] * math.sqrt(HEAD_OF_TINY)
    torch.testing.assert_close(started("original-gain")["query.weight"], expected, rtol=1e-6, atol=0)


def test_original_symmetric_starts_with_equal_query_and_key_that_are_trained_apart():
    start, symmetric = started("original-symmetric"), started("symmetric")
    assert torch.equal(start["key.weight"], start["query.weight"])
    assert all(torch.equal(start[key], values) for key, values in symmetric.items())
    module = MaskedModel(configured("tiny", "original-symmetric")).bert.encoder.layer[0].attention.self
    assert module.key.weight is not module.query.weight and len(list(module.parameters())) == 6


def test_factors_and_diagonals_start_as_each_operator_says():
    scaled, pairwise = started("pairwise-scaled")["pairwise_factors"], started("pairwise")["pairwise_factors"]
    torch.testing.assert_close(scaled, pairwise / math.sqrt(HEAD_OF_TINY), rtol=1e-6, atol=0)
    assert abs(pairwise.std().item() - 1) < 0.05
    identity = started("pairwise-identity")["pairwise_factors"]
    assert torch.equal(identity, torch.eye(HEAD_OF_TINY).expand(2, -1, -1))
    diagonals = [values for name, values in started("shared").items() if name.endswith("_scale")]
    assert len(diagonals) == 3 and all((values == 1).all() for values in diagonals)


def test_a_gain_of_qk_norm_is_the_width_of_the_logits_and_is_trained_unless_it_is_fixed():
    hidden = torch.randn(1, 256, 64, generator=torch.Generator().manual_seed(0))
    for arguments, trained in (({}, True), ({"gain": 5}, True), ({"gain": 5, "learned": False}, False)):
        own = defined("own", **{"class": "qk-norm", **arguments})
        site = model_of("tiny", own).bert.encoder.layer[0].attention.self
        assert site.gain.tolist() == [arguments.get("gain", 1.0)] * 2
        assert ("gain" in dict(site.named_parameters())) is trained and "gain" in site.state_dict()
        assert own.count(64, 2, OPERATORS) == sum(each.numel() for each in site.parameters())
        logits = logits_of(site, hidden)[..., ~torch.eye(256, dtype=torch.bool)]
        assert logits.std().item() == pytest.approx(site.gain[0].item(), rel=0.1)
        assert logits.abs().max() <= site.gain[0] * math.sqrt(HEAD_OF_TINY)


def test_what_a_token_mixes_is_orthogonal_to_its_own_value_in_exclusive():
    """The issue's words for it were a mask of the own position; the published formula is a projection."""
    module, hidden = operator("exclusive"), hidden_states()
    mixed, values = (each.unflatten(-1, (HEADS, HEAD)) for each in (module(hidden)[0], module.value(hidden)))
    assert (mixed * values).sum(-1).abs().max() < 1e-12 < mixed.abs().mean()


def test_operators_start_from_the_weights_of_original_where_they_have_them():
    original = started("original")
    for name in PUBLISHED:
        start = started(name)
        shared = start.keys() & original.keys()
        assert len(shared) >= 4 and all(torch.equal(start[key], original[key]) for key in shared), name
    assert started("coupled")["step"].tolist() == pytest.approx([0.1])


def test_published_operators_are_one_graph_for_the_compiler():
    for name in PUBLISHED:
        torch._dynamo.reset()
        module, hidden = operator(name), hidden_states()
        compiled = torch.compile(module, backend="eager", fullgraph=True)  # which refuses a graph break
        torch.testing.assert_close(compiled(hidden)[0], module(hidden)[0], rtol=0, atol=1e-12)


def test_under_autocast_all_that_the_kernel_gets_is_bf16():
    """Parameters are float32: a product with one of them that autocast does not know would be, too."""
    for name in ("original", "pairwise", "shared", "qk-norm", "identity-query", "coupled"):
        with torch.autocast("cpu", torch.bfloat16):
            sides = operator(name).float().query_key_value(hidden_states().float())
        assert {side.dtype for side in sides} == {torch.bfloat16}, name


OUTPUTS = {  # the mean magnitude of a layer's output as it starts, by operator, and the versions of its classes then
    "original": (0.130288, {}),
    "symmetric": (0.198048, {}),
    "pairwise": (0.256948, {}),
    "shared": (0.205600, {}),
    "original-gain": (0.263746, {}),
    "original-symmetric": (0.198048, {}),
    "original-unscaled": (0.263746, {}),
    "pairwise-identity": (0.198048, {}),
    "pairwise-scaled": (0.130595, {}),
    "symmetric-others": (0.136583, {}),
    "qk-norm": (0.182095, {}),
    "key-value": (0.140652, {}),
    "identity-query": (0.128855, {}),
    "coupled": (0.131241, {}),
    "exclusive": (0.121150, {}),
}


def test_an_operator_has_the_numbers_of_its_version():
    hidden = torch.randn(2, 12, 64, generator=torch.Generator().manual_seed(0))
    assert OUTPUTS.keys() == OPERATORS.keys()
    for name, (expected, versions) in OUTPUTS.items():
        with torch.no_grad():
            mixed, _ = model_of("tiny", name).bert.encoder.layer[0].attention.self(hidden)
        assert OPERATORS[name].versions == versions, f"write the numbers of the new version of {name} here"
        assert mixed.abs().mean().item() == pytest.approx(expected, rel=1e-4), (
            f"{name}: raise its class's version (of code that all operators share Pretraining's), and say "
            "why under 'Breaks results'"
        )
