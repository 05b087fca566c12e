"""Several classifiers of one shape, one for each seed, computed as one: their weights have a leading axis of seeds.

Shapes: `seed …` for weights, `seed token hidden` or `seed row hidden` for what is computed. A seed's numbers do not
depend on the other seeds: its dropout draws from a generator of its own.
"""

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F

from symbert.model.attention import QueryKeyValue, SelfAttention
from symbert.model.packed import MOVED, TOLERANCE, encode, encoder_for

Stacker = Callable[[Sequence[Tensor]], nn.Parameter]


class Draws:
    """The dropout of each seed. On a CPU it is, to the bit, that of its model alone after `torch.manual_seed(seed)`."""

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        self.generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]
        self.tokens = self.longest = np.zeros(len(seeds), dtype=np.int64)

    def begin(self, lengths: np.ndarray) -> None:
        """A batch of rows of these lengths (tokens), `seed row`: nothing is drawn for what fills up shorter seeds."""
        self.tokens, self.longest = lengths.sum(axis=1), lengths.max(axis=1)

    def dropout(self, values: Tensor, share: float) -> Tensor:
        """`seed token hidden`, or `seed row hidden`, some of it dropped and the rest scaled."""
        kept = torch.zeros_like(values)
        for mask, tokens, generator in zip(kept, self.tokens, self.generators, strict=True):
            mask[:tokens].bernoulli_(1 - share, generator=generator)
        return values * kept.div_(1 - share)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor, dropout_p: float, scale: float
    ) -> Tensor:
        """What PyTorch's `scaled_dot_product_attention` does, with the dropout of each seed in its rows."""
        if not dropout_p:
            return F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask, scale=scale)
        logits = (query * scale) @ key.transpose(-2, -1)
        weights = logits.masked_fill(~attn_mask, -torch.inf).softmax(-1).to(value.dtype)
        kept = torch.zeros_like(weights)
        for mask, longest, generator in zip(
            kept.chunk(len(self.generators)), self.longest, self.generators, strict=True
        ):
            mask = mask[:, :, : min(longest, mask.shape[2]), :longest]
            mask.copy_(
                torch.empty_like(mask, memory_format=torch.contiguous_format).bernoulli_(
                    1 - dropout_p, generator=generator
                )
            )
        return (weights * kept.div_(1 - dropout_p)) @ value


class StackedLinear(nn.Module):
    """Linear layers, `seed token features`."""

    def __init__(self, layers: Sequence[nn.Linear], stacked: Stacker) -> None:
        super().__init__()
        self.weight, self.bias = (stacked([getattr(layer, name) for layer in layers]) for name in ("weight", "bias"))

    def forward(self, values: Tensor) -> Tensor:
        """Of each seed by its own weights."""
        return torch.baddbmm(self.bias.unsqueeze(1), values, self.weight.transpose(1, 2))


class StackedLayerNorm(nn.Module):
    """LayerNorms, `seed token features`."""

    def __init__(self, layers: Sequence[nn.LayerNorm], stacked: Stacker) -> None:
        super().__init__()
        self.weight, self.bias = (stacked([getattr(layer, name) for layer in layers]) for name in ("weight", "bias"))
        self.eps = layers[0].eps

    def forward(self, values: Tensor) -> Tensor:
        """Of each seed by its own weights."""
        normal = F.layer_norm(values, values.shape[-1:], eps=self.eps)
        return torch.addcmul(self.bias.unsqueeze(1), normal, self.weight.unsqueeze(1))


class StackedEmbedding(nn.Module):
    """Embeddings of ids `seed token`."""

    def __init__(self, layers: Sequence[nn.Embedding], stacked: Stacker) -> None:
        super().__init__()
        self.weight = stacked([layer.weight for layer in layers])
        self.padding_idx = layers[0].padding_idx

    def forward(self, ids: Tensor) -> Tensor:
        """Of each seed from its own table; that of padding is not trained, as in PyTorch."""
        seeds, pieces = self.weight.shape[:2]
        own = torch.arange(0, seeds * pieces, pieces, device=ids.device).unsqueeze(1)
        values = F.embedding(ids + own, self.weight.flatten(0, 1))
        if self.padding_idx is None:
            return values
        return torch.where((ids == self.padding_idx).unsqueeze(-1), values.detach(), values)


class StackedDropout(nn.Module):
    """Dropout that draws for each seed apart."""

    def __init__(self, share: float, draws: Draws) -> None:
        super().__init__()
        self.share, self.draws = share, draws

    def forward(self, values: Tensor) -> Tensor:
        """`seed token features`, as they are unless in training."""
        return self.draws.dropout(values, self.share) if self.training and self.share else values


class Projections(nn.Module):
    """An operator as a module whose `forward` is its `query_key_value` of one seed, `token hidden`."""

    def __init__(self, operator: SelfAttention) -> None:
        super().__init__()
        self.operator = operator

    def forward(self, hidden: Tensor) -> QueryKeyValue:
        """Each `heads token head`."""
        return tuple(values.squeeze(0) for values in self.operator.query_key_value(hidden.unsqueeze(0)))


class StackedOperator(nn.Module):
    """Operators of any class, the user's own too: `torch.vmap` takes the code of one over the weights of all."""

    def __init__(self, operators: Sequence[SelfAttention], stacked: Stacker) -> None:
        super().__init__()
        named = [dict(operator.named_parameters()) for operator in operators]
        self.names = [f"operator.{name}" for name in named[0]]
        self.weights = nn.ParameterList([stacked([one[name] for one in named]) for name in named[0]])
        self.config, self.scaling = operators[0].config, operators[0].scaling
        self.has_rotary_positions = operators[0].has_rotary_positions
        code = Projections(operators[0])
        self.computed = vmap(lambda weights, hidden: functional_call(code, weights, (hidden,)))

    def query_key_value(self, hidden: Tensor) -> QueryKeyValue:
        """As an operator's, of each seed by its own weights; each `seed heads token head`."""
        return self.computed(dict(zip(self.names, self.weights, strict=True)), hidden)


STACKED = {nn.Linear: StackedLinear, nn.LayerNorm: StackedLayerNorm, nn.Embedding: StackedEmbedding}


class Stack:
    """The models of some seeds as `model`, whose parameters have a leading axis of seeds, and whose dropout `draws`."""

    def __init__(self, models: dict[int, nn.Module]) -> None:
        first, *_ = models.values()
        self.draws = Draws(list(models), next(first.parameters()).device)
        self._pairs: list[tuple[nn.Parameter, Sequence[Tensor]]] = []
        self.model = copy.deepcopy(first)
        self._replace(self.model, list(models.values()))

    def _replace(self, target: nn.Module, sources: Sequence[nn.Module]) -> None:
        for name, child in list(target.named_children()):
            children = [getattr(source, name) for source in sources]
            if isinstance(child, SelfAttention):
                setattr(target, name, StackedOperator(children, self._stacked))
            elif isinstance(child, nn.Dropout):
                setattr(target, name, StackedDropout(child.p, self.draws))
            elif type(child) in STACKED:
                setattr(target, name, STACKED[type(child)](children, self._stacked))
            else:
                self._replace(child, children)

    def _stacked(self, weights: Sequence[Tensor]) -> nn.Parameter:
        together = nn.Parameter(torch.stack([each.detach() for each in weights]), weights[0].requires_grad)
        self._pairs.append((together, weights))
        return together

    @torch.no_grad()
    def write_back(self) -> None:
        """Give each model its weights."""
        for together, weights in self._pairs:
            for own, trained in zip(weights, together, strict=True):
                own.copy_(trained)

    @torch.no_grad()
    def clip(self, limit: float) -> Tensor:
        """Clip the norm of each seed's gradient, as `clip_grad_norm_` does that of one; returns the norms before."""
        every = [weights.grad.unbind() for weights in self.model.parameters() if weights.grad is not None]
        norms = []
        for gradients in map(list, zip(*every, strict=True)):
            norms.append(nn.utils.get_total_norm(gradients))
            torch._foreach_mul_(gradients, (limit / (norms[-1] + 1e-6)).clamp(max=1.0))
        return torch.stack(norms)


@torch.no_grad()
def why_not_stacked(model: nn.Module) -> str | None:
    """Why the classifier of an operator is not computed with others as one; None where it can be.

    Its operator is tried on two models whose weights are moved at random: each has to compute what it computes alone.
    """
    bert = model.bert
    if encoder_for(bert) is not encode:
        return "mixes tokens or has a forward of its own"
    every = list(model.named_parameters(remove_duplicate=False))
    if len(every) != len(list(model.parameters())):
        return "shares weights between its layers"
    generator = torch.Generator().manual_seed(0)
    device = bert.embeddings.word_embeddings.weight.device
    operators = [copy.deepcopy(bert.encoder.layer[0].attention.self).double() for _ in range(2)]
    for operator in operators:
        for weights in operator.parameters():
            weights += MOVED * torch.randn(weights.shape, generator=generator, dtype=weights.dtype).to(device)
    hidden = torch.randn(2, 7, bert.config.hidden_size, generator=generator, dtype=torch.float64).to(device)
    try:
        together = StackedOperator(operators, lambda each: nn.Parameter(torch.stack(list(each)))).query_key_value(
            hidden
        )
    except Exception as error:  # the user's own code raises what it likes
        return f"cannot be computed by torch.vmap ({type(error).__name__}: {' '.join(str(error).split())})"
    for number, operator in enumerate(operators):
        alone = operator.query_key_value(hidden[number : number + 1])
        for one, other in zip(together, alone, strict=True):
            if not (one[number] - other[0]).abs().max() <= TOLERANCE * other.abs().max():
                return "computes something else under torch.vmap"
    return None
