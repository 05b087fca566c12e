"""Checks of the assumptions that every stage makes about an operator, without knowing its formula.

All run on the CPU, on two layers as wide as the size tiny, in float64 unless they say otherwise, on rows as long as the
model's, in training and in evaluation mode.
"""

import copy
import json
from collections.abc import Callable
from itertools import product

import numpy as np
import torch
from torch import Tensor, nn

from symbert.errors import ConfigError, FailedCheckError, UsageError
from symbert.model.attention import SelfAttention
from symbert.model.bert import Classifier, checked_pair, initialize, keeps_tokens_apart
from symbert.model.configuration import configuration_of
from symbert.model.hf import fold
from symbert.model.loading import model_of, refuse_unrestored
from symbert.model.packed import Packing, encode, encoder_for
from symbert.operators import Operator, define, name_of, operator_named

MOVED = 0.1  # standard deviation of the noise on all weights: five times that of a start
CLOSE = 1e-9  # largest difference between equal results, relative to the largest value
STEP = 1e-6  # of a finite difference
MODES = True, False  # training and evaluation; no dropout but an operator's own


def check_operator(operator: str, /, arguments: str = "{}") -> None:
    """Check an operator without its formula: `my_package.operators:LowRank`, or the name of one that is known.

    `arguments` are those of the class, as JSON: '{"rank": 8}'. Prints a line per check, in less than a minute on a CPU;
    FailedCheckError when one fails.
    """
    checked = _operator(operator, arguments)
    model, failed = _model(checked.name), []
    for name, check in CHECKS.items():
        try:
            outcome, line = "ok", check(checked, model)
        except Exception as error:  # the operator's code raises what it likes
            kind = "" if isinstance(error, FailedCheckError) else f"{type(error).__name__}: "
            outcome, line = "FAIL", kind + " ".join(str(error).split())
            failed.append(name)
        print(f"{outcome:5} {name:12} {line}", flush=True)
    if failed:
        raise FailedCheckError(f"{operator}: {len(failed)} of {len(CHECKS)} checks failed: {', '.join(failed)}")


def _operator(operator: str, arguments: str) -> Operator:
    try:
        values = dict(json.loads(arguments))
    except (TypeError, ValueError) as error:
        raise UsageError(f"--arguments {arguments}: no JSON object ({error}); write '{{\"rank\": 8}}'") from None
    if ":" in operator:
        return define(name_of(operator.partition(":")[2]), {"class": operator, **values})
    if values:
        raise UsageError(f"--arguments: the operator '{operator}' has a name already; give its class, module:Class")
    return operator_named(operator)


def _model(name: str, attention_dropout: float = 0.0) -> Classifier:
    config = configuration_of("tiny", name, vocabulary_size=100, dropout=0.0)
    config.attention_probs_dropout_prob = attention_dropout
    config.architectures = ["SymBertForSequenceClassification"]
    model = model_of(config)
    initialize(model, 1)
    return model.eval()


def _moved(model: Classifier) -> Classifier:
    """A copy in float64 with noise on every weight, so that weights that start at zero show, too."""
    moved, generator = copy.deepcopy(model).double(), torch.Generator().manual_seed(0)
    for parameter in moved.parameters():
        parameter.data += MOVED * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return moved


def _attention(model: Classifier) -> SelfAttention:
    return model.bert.encoder.layer[0].attention.self


def _ids(model: Classifier) -> Tensor:
    """Two rows as long as the model's."""
    shape = 2, model.config.max_position_embeddings
    return torch.randint(5, 100, shape, generator=torch.Generator().manual_seed(4))


def _differ(one: Tensor, other: Tensor) -> bool:
    return not (one - other).abs().max() <= CLOSE * other.abs().max()


def check_start(operator: Operator, model: Classifier) -> str:
    """Every weight is drawn from the seed, and from nothing else; a checkpoint restores all state."""
    starts = []
    for _ in range(2):
        drawn = copy.deepcopy(model)
        for parameter in drawn.parameters():
            parameter.data.fill_(torch.nan)
        initialize(drawn, 1)
        starts.append(dict(drawn.named_parameters()))
    for name, values in starts[0].items():
        if not values.isfinite().all():
            raise FailedCheckError(f"{name} is never filled; fill it in `initialize`")
        if not torch.equal(values, starts[1][name]):
            raise FailedCheckError(f"{name} starts differently under one seed; draw it with torch's generator")
    refuse_unrestored(_model(operator.name), _model(operator.name), _ids(model))
    return "every weight follows from the seed, and checkpoints restore all state"


def check_gradients(operator: Operator, model: Classifier) -> str:
    """Each gradient is the finite difference along a random direction (gradcheck is slow where a long row fails)."""
    attention, generator = _attention(_moved(model)), torch.Generator().manual_seed(1)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    for tokens, is_training in product((5, model.config.max_position_embeddings), MODES):
        attention.train(is_training)
        hidden, weights = (drawn(2, tokens, model.config.hidden_size) for _ in range(2))
        inputs = {"the hidden states": hidden.requires_grad_(), **dict(attention.named_parameters())}

        def total(hidden: Tensor = hidden, weights: Tensor = weights) -> Tensor:
            torch.manual_seed(1)  # in training it draws the same numbers each time
            return (checked_pair(attention, attention(hidden))[0] * weights).sum()

        gradients = torch.autograd.grad(total(), list(inputs.values()), allow_unused=True)
        for (name, values), gradient in zip(inputs.items(), gradients, strict=True):
            direction, totals = drawn(*values.shape), []
            for step in (STEP, -2 * STEP):
                values.data += step * direction
                totals.append(total().item())
            values.data += STEP * direction
            difference = (totals[0] - totals[1]) / (2 * STEP)
            along = 0.0 if gradient is None else (gradient * direction).sum().item()
            if not abs(difference - along) <= 1e-5 * max(1, abs(difference)):
                raise FailedCheckError(f"{name}: {along:.6g} along a direction, but outputs differ by {difference:.6g}")
        if unused := [name for name, gradient in zip(inputs, gradients, strict=True) if gradient is None]:
            raise FailedCheckError(f"no gradient reaches {', '.join(unused)}; use it in the forward pass, or remove it")
    return f"of {len(inputs) - 1} parameters and the hidden states they are finite differences"


def check_tokens(operator: Operator, model: Classifier) -> str:
    """Rows that are computed together, or padded, have the outputs that each has alone, as the class says."""
    moved, lengths = _moved(model), [7, 1, 12, 12, model.config.max_position_embeddings, 3]
    is_said, encoder, bert = keeps_tokens_apart(_attention(moved)), encoder_for(moved.bert), moved.bert
    rows = torch.randint(100, (sum(lengths),), generator=torch.Generator().manual_seed(2)).split(lengths)
    packing = Packing.of(np.array(lengths), torch.device("cpu"))
    for module in moved.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):  # a batch norm would hide behind it
            module.p = 0.0
    for is_training in MODES[draws_in_training(moved) :]:  # random numbers differ from row to row
        moved.train(is_training)
        alone = torch.cat([bert.pooler(bert(row[None])[:, 0]) for row in rows])
        embedded = bert.embeddings(torch.cat(rows)[None], None, packing.position_ids[None])
        padded = bert(packing.padded(torch.cat(rows), 50), packing.attended)[:, 0]
        if _differ(encoder(bert, embedded, packing), alone) or (is_said and _differ(bert.pooler(padded), alone)):
            raise FailedCheckError(
                "a row has other outputs beside other rows or padding than alone; treat each token by itself, hand "
                "`attention_mask` on, and leave out keeps_tokens_apart until then"
            )
    how = "end to end" if encoder is encode else "one length at a time"
    advice = "" if is_said else "; if padding changes none, keeps_tokens_apart = True is faster and admits decoders"
    return f"each row is as if alone, computed {how}{advice}"


@torch.no_grad()
def draws_in_training(model: Classifier) -> bool:
    """Whether an operator draws random numbers in training."""
    torch.manual_seed(1)
    before = torch.get_rng_state()
    model.train().bert(_ids(model))
    return not torch.equal(torch.get_rng_state(), before)


@torch.no_grad()
def check_dropout(operator: Operator, model: Classifier) -> str:
    """Whether the dropout of attention weights changes outputs in training; in evaluation it may change none."""
    note = "attention weights are dropped in training alone"
    for is_training in MODES:
        outputs = []
        for dropout in (0.0, 0.5):
            dropped = _moved(_model(operator.name, dropout)).train(is_training)
            torch.manual_seed(1)  # so that random numbers of the operator's own are the same
            outputs.append(dropped.bert(_ids(model)))
        if _differ(*outputs) and not is_training:
            raise FailedCheckError(
                "config.attention_probs_dropout_prob drops weights in evaluation; drop them in training alone"
            )
        if is_training and not _differ(*outputs):
            note = (
                "config.attention_probs_dropout_prob changes nothing in training: compare it with others at dropout 0"
            )
    return note


def check_fold(operator: Operator, model: Classifier) -> str:
    """Whether a plain BERT equals it; no condition."""
    try:
        fold(_moved(model))
    except ConfigError as error:
        return f"`symbert export` refuses it: {error}"
    return "a plain BERT has the same logits in evaluation mode"


def check_parameters(operator: Operator, model: Classifier) -> str:
    """The formula of its parameters, where it states one, gives the number that is counted."""
    counted, formula = sum(each.numel() for each in _attention(model).parameters()), operator.counted_as.parameters
    expected = operator.count(model.config.hidden_size, model.config.num_attention_heads)
    if expected not in (None, counted):
        raise FailedCheckError(f"{counted:,} in a layer of tiny, but {formula} is {expected:,}; correct `description`")
    return f"{counted:,} in a layer of tiny" + (f", as {formula} says" if formula else "; no formula is stated")


def check_bf16(operator: Operator, model: Classifier) -> str:
    """Loss and gradients at the start are finite in the arithmetic of most training."""
    started, ids = copy.deepcopy(model).train(), _ids(model)
    with torch.autocast("cpu", torch.bfloat16):
        logits = started.classifier(started.bert.pooler(started.bert(ids)[:, 0]))
        loss = nn.functional.cross_entropy(logits.float(), torch.zeros(len(ids), dtype=torch.long))
    loss.backward()
    values = {"loss": loss} | {f"gradient of {name}": each.grad for name, each in started.named_parameters()}
    for name, value in values.items():
        if value is not None and not value.isfinite().all():
            raise FailedCheckError(f"the {name} is not finite at the start")
    return "loss and gradients are finite at the start"


CHECKS: dict[str, Callable[[Operator, Classifier], str]] = {
    "start": check_start,
    "gradients": check_gradients,
    "tokens": check_tokens,
    "dropout": check_dropout,
    "fold": check_fold,
    "parameters": check_parameters,
    "bf16": check_bf16,
}
