"""Checks of the assumptions that every stage makes about an operator, without knowing its formula.

`symbert check-operator` makes all, on the CPU in float64; a training of an operator of the user's own makes those
`BEFORE_TRAINING`, on its device and as wide as it trains. All are of two layers, on rows as long as the model's, in
training and in evaluation mode. docs/operators.md says which findings a training refuses.
"""

import copy
import json
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import product
from types import FunctionType, ModuleType
from typing import Annotated, Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from symbert.errors import ConfigError, FailedCheckError, SymbertError, UsageError, line_of
from symbert.model.attention import SelfAttention
from symbert.model.bert import Classifier, DecoderModel, checked_pair, initialize, is_token_wise, told
from symbert.model.configuration import Configuration, configuration_of
from symbert.model.loading import Tensors, model_of, weights_of, written
from symbert.model.packed import Packing, encode, encoder_for
from symbert.model.projections import projections_of
from symbert.operators import OPERATORS, Operator, name_of, operator_named, operators_of
from symbert.sizes import SIZES, Shape

MOVED = 0.1  # standard deviation of the noise on all weights: five times that of a start
# Largest difference between equal results, relative to the largest value, by the coarsest type that computes them.
CLOSE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 0.05, torch.bfloat16: 0.2}
# Finite differences: steps, of which another may miss a kink that one crosses, and their largest relative error.
FINE = (1e-6, 1e-8), 1e-5
COARSE = (1e-3, 1e-2), 0.01  # of an operator that computes in 32 bits or fewer
MODES = True, False  # training and evaluation; no dropout but an operator's own
OTHER_CONSTANTS = 1  # a seed of the numbers that a class draws when it is made


class Noted(str):
    """A line that a training says, and goes on."""


class Skipped(str):
    """Why a check was not made; a training does not say it."""


# --- the command, and the start of a training -------------------------------------------------------------------------


def check_operator(
    operator: Annotated[str, "my_package.my_module:Class, or the name of an operator of the project"],
    /,
    arguments: Annotated[str, """arguments of the class, as JSON: '{"rank": 8}'"""] = "{}",
    size: Annotated[str, "size whose width and heads the operator gets"] = "tiny",
) -> None:
    """Check whether an operator is what all stages take it for, without knowing its formula.

    Prints a line per check, in less than a minute on a CPU; FailedCheckError when one fails.
    """
    checked = _operator(operator, arguments)
    model, failed = model_for(checked, SIZES[size]), []
    for name, check in CHECKS.items():
        outcome, line = outcome_of(check, checked, model)
        if outcome == "FAIL":
            line += "; training refuses it" if name in REFUSED else "; training goes on"
            failed.append(name)
        print(f"{outcome:5} {name:12} {line}", flush=True)
    if failed:
        raise FailedCheckError(f"{operator}: {len(failed)} of {len(CHECKS)} checks failed: {', '.join(failed)}")


def refuse_untrue(operator: Operator, shape: Shape, device: torch.device) -> None:
    """FailedCheckError, before a training of an operator of the user's own, for one that is not what the stages take it
    for; lines on stderr for what only its user has to know."""
    if operator.is_of_project:
        return
    model = model_for(operator, shape, device)
    for name in BEFORE_TRAINING:
        outcome, line = outcome_of(CHECKS[name], operator, model)
        if outcome == "FAIL" and name in REFUSED:
            raise FailedCheckError(f"attention '{operator.name}': {name}: {line}")
        if outcome in ("note", "FAIL"):
            print(f"warning: attention '{operator.name}': {name}: {line}", file=sys.stderr)


def outcome_of(check: Callable[[Operator, Classifier], str], operator: Operator, model: Classifier) -> tuple[str, str]:
    """ok, note, skip or FAIL, and the line of a check; `torch.compile` compiles nothing in it, which takes minutes."""
    try:
        with torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext():
            line = check(operator, model)
    except SymbertError as error:
        return "FAIL", line_of(error)
    except Exception as error:  # the operator's code raises what it likes
        return "FAIL", told(error)
    return "note" if isinstance(line, Noted) else "skip" if isinstance(line, Skipped) else "ok", line


def _operator(operator: str, arguments: str) -> Operator:
    try:
        values = dict(json.loads(arguments))
    except (TypeError, ValueError) as error:
        raise UsageError(f"--arguments {arguments}: no JSON object ({error}); write '{{\"rank\": 8}}'") from None
    name = name_of(operator.partition(":")[2]) if ":" in operator else operator
    if name in OPERATORS and values:
        name += "-own"
    elif name == operator:
        return operator_named(operator)
    return operators_of({name: {"class": operator, **values}})[name]


# --- models -----------------------------------------------------------------------------------------------------------


def model_for(operator: Operator, shape: Shape = SIZES["tiny"], device: torch.device | str = "cpu") -> Classifier:
    """A classifier of two layers as wide as a shape, as it starts; in the feed-forward half no operator shows."""
    config = configuration_of(shape, operator, vocabulary_size=100, dropout=0.0)
    config.num_hidden_layers, config.intermediate_size = 2, config.hidden_size
    config.architectures = ["SymBertForSequenceClassification"]
    return _started(config, device)


def _started(config: Configuration, device: torch.device | str, seed: int = 1, **changes: Any) -> Classifier:
    config = copy.copy(config)
    vars(config).update(changes)
    model = model_of(config)
    initialize(model, seed)
    return model.to(device).eval()


def _moved(model: nn.Module) -> Any:
    """A copy with noise on every weight, so that weights that start at zero show, too; in float64 on the CPU."""
    moved, generator = copy.deepcopy(model), torch.Generator().manual_seed(0)
    if _device(model).type == "cpu":
        moved.double()
    for parameter in moved.parameters():
        parameter.data += MOVED * torch.randn(parameter.shape, generator=generator, dtype=torch.float64).to(parameter)
    return moved


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def _attention(model: Classifier) -> SelfAttention:
    return model.bert.encoder.layer[0].attention.self


def _ids(model: Classifier, rows: int = 2) -> Tensor:
    """Rows as long as the model's."""
    shape = rows, model.config.max_position_embeddings
    return torch.randint(5, 100, shape, generator=torch.Generator().manual_seed(4)).to(_device(model))


class _Even(TorchDispatchMode):
    """Random numbers of an operator's own are all 0.5, so that no two rows differ by them. Remembers the coarsest type
    that numbers had."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.coarsest = torch.float64

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result, name = func(*args, **(kwargs or {})), func.name()
        is_drawn = (
            torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())
            and "attention" not in name
            and "dropout" not in name
        )
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and tensor.dtype in CLOSE:
                self.coarsest = max(self.coarsest, tensor.dtype, key=CLOSE.get)
                if is_drawn:
                    tensor.fill_(0.5)
        return result

    def differ(self, one: Tensor, other: Tensor) -> bool:
        """Whether two results are not equal but for rounding."""
        return not (one - other).abs().max() <= CLOSE[self.coarsest] * other.abs().max()


def _restoring(module: nn.Module) -> Callable[[], None]:
    """A function that gives a module's buffers, which a training pass may change, the values that they have now."""
    before = [buffer.clone() for buffer in module.buffers()]

    def restore(*_: Any) -> None:
        for buffer, values in zip(module.buffers(), before, strict=False):
            buffer.copy_(values)

    return restore


# --- checks -----------------------------------------------------------------------------------------------------------


def check_init(operator: Operator, model: Classifier) -> str:
    """Every weight is drawn from the seed, and from nothing else."""
    config, device = model.config, _device(model)
    start, again, other = (_weights(_started(config, device, seed)) for seed in (1, 1, 2))
    made = _weights(_with_other_constants(operator, model))
    for name, values in start.items():
        if made[name].isnan().any():
            raise FailedCheckError(f"{name} is never filled; fill it in `initialize`")
        if not torch.equal(values, again[name]):
            raise FailedCheckError(f"{name} starts differently under one seed; draw it with torch's generator")
        if not torch.equal(values, made[name]):
            raise FailedCheckError(
                f"{name} starts with numbers of __init__, alike for all seeds and layers; fill it in `initialize`"
            )
    of_own = [name for name in start if ".parametrizations." not in name]  # the weights that these make are told
    if alike := [name for name in of_own if _is_pattern(start[name], other[name])]:
        return Noted(f"{alike[0]} starts with the same numbers for every seed")
    return "every weight follows from the seed"


def _weights(model: Classifier) -> Tensors:
    """The parameters of the operators by name, and the weights that parametrizations make of them; copies, as a class
    may give the next model the modules of one that is gone."""
    weights = {}
    for place, site in _sites(model):
        weights |= {f"{place}.{name}": values for name, values in site.named_parameters()}
        for name, module in site.named_modules(prefix=place):
            if parametrize.is_parametrized(module):
                weights |= {f"{name}.{key}": getattr(module, key) for key in module.parametrizations}
    return {name: values.detach().clone() for name, values in weights.items()}


def _is_pattern(values: Tensor, other: Tensor) -> bool:
    return torch.equal(values, other) and bool((values != values.flatten()[0]).any())


def _sites(model: nn.Module) -> list[tuple[str, SelfAttention]]:
    """The operators of a model by their places: layer.0."""
    sites = [(name, module) for name, module in model.named_modules() if isinstance(module, SelfAttention)]
    return [(_short(name), module) for name, module in sites]


def _short(name: str) -> str:
    return name.removeprefix("bert.encoder.").replace(".attention.self", "")


def _with_other_constants(operator: Operator, model: Classifier) -> Classifier:
    """The model as it starts from seed 1 where its operators drew other numbers when they were made, and memory that
    nobody filled is NaN."""
    other, kind = copy.deepcopy(model).cpu(), type(_attention(model))
    torch.manual_seed(OTHER_CONSTANTS)
    for layer in other.bert.encoder.layer:
        with _Unfilled():
            layer.attention.self = kind(other.config, **operator.arguments)
    initialize(other, 1)
    return other.to(_device(model))


class _Unfilled(TorchDispatchMode):
    """New memory holds NaN."""

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        is_new = isinstance(result, Tensor) and "empty" in func.name() and result.is_floating_point()
        return result.fill_(torch.nan) if is_new else result


@torch.no_grad()
def check_state(operator: Operator, model: Classifier) -> str:
    """A checkpoint holds and restores all state, and another process starts from the same."""
    started, used = (_started(model.config, _device(model)) for _ in range(2))
    others = set(used.parameters())
    if common := [name for name, values in started.named_parameters() if values in others]:
        raise FailedCheckError(f"{_short(common[0])} is one in all models; make it in __init__, for each model")
    ids = _ids(model, rows=1)
    drawn = "draw numbers with torch's generator in __init__"
    kept_so = "keep what changes in parameters and persistent buffers that __init__ registers"
    own, other = started.state_dict(), used.state_dict()
    _saved(started)
    differing = next((name for name in own if not _is_equal(own[name], other.get(name))), None)
    if differing or not _computes_alike(started, used, ids):
        raise FailedCheckError(f"{_short(differing or 'its output')} differs between two starts of one seed; {drawn}")
    for _ in range(2):  # the first pass may fill caches
        before, kept = dict(_attributes(used)), copy.deepcopy(used.state_dict())
        _output(used, True, ids)
    after, now = dict(_attributes(used)), used.state_dict()
    if changed := [name for name in {**before, **after} if before.get(name) != after.get(name)]:
        raise FailedCheckError(f"{changed[0]} changes from pass to pass, and no checkpoint restores it; {kept_so}")
    saved, restored = _saved(used), model_of(model.config).to(_device(model))  # as a process that loads it
    try:
        restored.load_state_dict(saved)
    except RuntimeError as error:  # of buffers of another name or shape, or of several numbers in one place
        said = line_of(error)
        raise FailedCheckError(f"its model takes back no checkpoint of itself ({said}); {kept_so}") from None
    if not _computes_alike(used, restored, ids):
        raise FailedCheckError(f"its model computes otherwise once a checkpoint has restored it; {drawn}, {kept_so}")
    given = torch.randn(1, ids.shape[1], model.config.hidden_size, generator=torch.Generator().manual_seed(5))
    hidden = given.to(ids.device, copy=True)
    _attention(used)(hidden)
    if not torch.equal(hidden.cpu(), given):
        raise FailedCheckError(
            "it changes the hidden states that it is given, which are then added to its result; write hidden = hidden "
            "+ … in the place of hidden += …"
        )
    if counting := [name for name, values in kept.items() if not _is_equal(values, now[name])]:
        return Noted(
            f"{_short(counting[0])} changes with every training pass, so another number of processes or another "
            "pretrain.micro_batch_size gives another result; checkpoints restore it"
        )
    return "checkpoints restore all state"


def _is_equal(one: Any, other: Any) -> bool:
    return torch.equal(one, other) if isinstance(one, Tensor) and isinstance(other, Tensor) else one is other


def _saved(model: Classifier) -> Tensors:
    """The weights of a model as a checkpoint gives them back. FailedCheckError names one that it cannot hold."""
    weights = weights_of(model)
    for name, values in weights.items():
        try:
            safetensors.torch.save(written({name: values}))
        except Exception as error:  # safetensors raises errors of several types
            said = line_of(error)
            raise FailedCheckError(f"no checkpoint can hold {_short(name)} ({said}); keep plain tensors") from None
    return safetensors.torch.load(safetensors.torch.save(written(weights)))


def _attributes(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """What an operator's modules, classes and files keep beside parameters and persistent buffers: by name a number,
    a text, or bytes."""
    for place, site in _sites(model):
        known: dict[int, Any] = {}
        for name, module in site.named_modules(prefix=place):
            buffers = {key: module._buffers[key] for key in module._non_persistent_buffers_set}
            kept = {
                key: value for key, value in vars(module).items() if key not in ("_parameters", "_buffers", "_modules")
            }
            yield from _leaves({**kept, **buffers}, name, known)
        for kind in type(site).__mro__[: type(site).__mro__.index(SelfAttention)]:
            yield from _leaves(dict(vars(kind)), kind.__name__, known)
            yield from _leaves(dict(vars(sys.modules[kind.__module__])), kind.__module__, known)


def _leaves(value: Any, name: str, known: dict[int, Any]) -> Iterator[tuple[str, Any]]:
    """The numbers, texts and bytes of a value by their names, each object once; code is none. `known` keeps the objects
    alive, as another may get the id of one that is gone."""
    if isinstance(value, type | ModuleType | FunctionType | nn.Module) or id(value) in known:
        return
    if isinstance(value, Tensor):
        yield name, (value.shape, value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    elif isinstance(value, np.ndarray):
        yield name, (value.shape, value.tobytes())
    elif isinstance(value, dict | list | tuple | set | frozenset | deque) or hasattr(value, "__dict__"):
        known[id(value)] = value
        items = value.items() if isinstance(value, dict) else ()
        items = enumerate(value) if isinstance(value, list | tuple | deque) else items
        items = ((item, item) for item in value) if isinstance(value, set | frozenset) else items
        for key, item in [*items, *getattr(value, "__dict__", {}).items()]:
            yield from _leaves(item, f"{name}.{key}", known)
    else:
        yield name, repr(value)


def _computes_alike(model: Classifier, other: Classifier, ids: Tensor) -> bool:
    outputs = ([_output(each, mode, ids).nan_to_num() for each in (model, other)] for mode in MODES[::-1])
    return all(torch.equal(*pair) for pair in outputs)


def _output(model: Classifier, is_training: bool, ids: Tensor) -> Tensor:
    torch.manual_seed(0)  # equal dropout
    return model.train(is_training).bert(ids)


def check_gradients(operator: Operator, model: Classifier) -> str:
    """Each gradient is the finite difference along a random direction (gradcheck is slow where a long row fails)."""
    attention, generator = _attention(_moved(model)), torch.Generator().manual_seed(1)
    restore = _restoring(attention)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    for tokens, is_training in product((5, model.config.max_position_embeddings), MODES):
        attention.train(is_training)
        hidden, weights = (drawn(2, tokens, model.config.hidden_size) for _ in range(2))
        inputs = {"the hidden states": hidden.requires_grad_(), **dict(attention.named_parameters())}

        def total(hidden: Tensor = hidden, weights: Tensor = weights) -> Tensor:
            with torch.no_grad():
                restore()
            torch.manual_seed(1)  # in training it draws the same numbers each time
            return (checked_pair(attention, attention(hidden), hidden)[0] * weights).sum()

        def difference(values: Tensor, direction: Tensor, step: float) -> float:
            before, totals = values.data.clone(), []
            for change in (step, -step):
                values.data.copy_(before + change * direction)
                totals.append(total().item())
            values.data.copy_(before)
            return (totals[0] - totals[1]) / (2 * step)

        with _Even() as even:
            total()
        steps, error = FINE if even.coarsest == torch.float64 else COARSE
        gradients = torch.autograd.grad(total(), list(inputs.values()), allow_unused=True)
        for (name, values), gradient in zip(inputs.items(), gradients, strict=True):
            direction = drawn(*values.shape)
            along = 0.0 if gradient is None else (gradient * direction).sum().item()
            for step in steps:
                found = difference(values, direction, step)
                if abs(found - along) <= error * max(1, abs(found)):
                    break
            else:
                raise FailedCheckError(f"{name}: {along:.6g} along a direction, but outputs differ by {found:.6g}")
        if unused := [name for name, gradient in zip(inputs, gradients, strict=True) if gradient is None]:
            raise FailedCheckError(f"no gradient reaches {', '.join(unused)}; use it in the forward pass, or remove it")
    return f"of {len(inputs) - 1} parameters and the hidden states they are finite differences"


@torch.no_grad()
def check_tokens(operator: Operator, model: Classifier) -> str:
    """Rows that are computed together, or padded, have the outputs that each has alone, as the class says."""
    moved, lengths = _moved(model), [7, 12, 12, 2, model.config.max_position_embeddings, 3]
    bert, device, is_said = moved.bert, _device(moved), is_token_wise(_attention(moved))
    encoder = encoder_for(bert)
    rows = torch.randint(100, (sum(lengths),), generator=torch.Generator().manual_seed(2)).to(device).split(lengths)
    packing, last = (Packing.of(np.array(some), device) for some in (lengths, lengths[-3:]))
    restore = _restoring(bert)
    bert.encoder.register_forward_hook(restore)
    for is_training in MODES:
        restore()
        moved.train(is_training)
        with _Even() as even:
            alone = torch.cat([bert.pooler(bert(row[None])[:, 0]) for row in rows])
            padded = alone[-3:]
            if is_said:
                padded = bert.pooler(bert(last.padded(torch.cat(rows[-3:]), 50), last.attended)[:, 0])
            embedded = bert.embeddings(torch.cat(rows)[None], None, packing.position_ids[None])
            together = encoder(bert, embedded, packing)
        if even.differ(together, alone) or even.differ(padded, alone[-3:]):
            remedy = ", and hand `attention_mask` on, or leave out token_wise" if is_said else ""
            raise FailedCheckError(
                "a row has other outputs beside other rows or padding than alone; treat each row by itself, also in "
                f"training{remedy}"
            )
    how = "end to end" if encoder is encode else "one length at a time"
    advice = "" if is_said else "; if padding changes none, token_wise = True is faster and admits decoders"
    return f"each row is as if alone, computed {how}{advice}"


@torch.no_grad()
def check_causal(operator: Operator, model: Classifier) -> str:
    """In a decoder, no token depends on a later one."""
    if not is_token_wise(_attention(model)):
        return Skipped("only a class with token_wise = True can be in a decoder")
    decoder = DecoderModel(model.config)
    initialize(decoder, 1)
    decoder, ids = _moved(decoder.to(_device(model))).bert, _ids(model, rows=1)
    decoder.encoder.register_forward_hook(_restoring(decoder))
    for tokens, is_training in product((12, ids.shape[1]), MODES):
        decoder.train(is_training)
        row, earlier = ids[:, :tokens], tokens // 2
        other = row.clone()
        other[:, earlier:] = (row[:, earlier:] + 1) % 100
        with _Even() as even:
            outputs = [decoder(each)[:, :earlier] for each in (row, other)]
        if even.differ(*outputs):
            raise FailedCheckError(
                "in a decoder a token depends on later ones; obey `attention_mask`, or leave out token_wise"
            )
    return "in a decoder no token depends on later ones"


@torch.no_grad()
def check_dropout(operator: Operator, model: Classifier) -> str:
    """Whether the dropout of attention weights changes outputs in training; in evaluation it may change none."""
    ids, note = _ids(model)[:, :64], "attention weights are dropped in training alone"
    models = [
        _moved(_started(model.config, _device(model), attention_probs_dropout_prob=share)) for share in (0.0, 0.5)
    ]
    for is_training in MODES[::-1]:  # a training pass may change buffers
        outputs = [
            _output(each, is_training, ids) for each in models
        ]  # with equal random numbers of the operator's own
        is_dropping = not torch.allclose(*outputs, rtol=1e-4, atol=1e-4)
        if is_dropping and not is_training:
            raise FailedCheckError(
                "config.attention_probs_dropout_prob drops weights in evaluation; drop them in training alone"
            )
        if is_training and not is_dropping:
            note = Noted(
                "config.attention_probs_dropout_prob changes nothing in training: compare it with others at dropout 0"
            )
    return note


def check_fold(operator: Operator, model: Classifier) -> str:
    """Whether a plain BERT equals it; no condition."""
    try:
        projections_of(_attention(_moved(model)))
    except ConfigError as error:
        return Noted(f"`symbert export` cannot write it: {error}")
    return "a plain BERT has the same logits in evaluation mode"


def check_parameters(operator: Operator, model: Classifier) -> str:
    """The formula of its parameters, where it states one, gives the number that is counted."""
    counted = sum(each.numel() for each in _attention(model).parameters())
    formula = operator.counted_as(OPERATORS).parameters
    expected = operator.count(model.config.hidden_size, model.config.num_attention_heads, OPERATORS)
    if expected not in (None, counted):
        raise FailedCheckError(f"{counted:,} in a layer, but {formula} is {expected:,}; correct `description`")
    return f"{counted:,} in a layer" + (f", as {formula} says" if formula else "; no formula is stated")


def check_code(operator: Operator, model: Classifier) -> str:
    """Whether the operator's code is all that it computes with; no condition."""
    outside = operator.unfollowed
    return Noted(f"{outside[0]} is not followed") if outside else "an edit of all that it computes with trains it anew"


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
    "init": check_init,
    "state": check_state,
    "tokens": check_tokens,
    "causal": check_causal,
    "dropout": check_dropout,
    "gradients": check_gradients,
    "parameters": check_parameters,
    "bf16": check_bf16,
    "fold": check_fold,
    "code": check_code,
}
REFUSED = ("init", "state", "tokens", "causal", "dropout")  # by a training, where they fail
BEFORE_TRAINING = (*REFUSED, "parameters", "fold")
