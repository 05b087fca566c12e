"""Whether the models that are still to be trained fit a GPU."""

from itertools import product

from symbert.checks import check_processes
from symbert.config import Config, merge
from symbert.errors import ConfigError, MemoryExhaustedError
from symbert.gpus import smallest_memory
from symbert.layout import Experiment
from symbert.pretrain.memory import MemoryNeed, memory_need
from symbert.pretrain.state import RunState
from symbert.progress import data_size
from symbert.sizes import SIZES

Needs = dict[str, MemoryNeed]  # by host and size, or the size alone


def memory_needs(experiment: Experiment, runs: list[RunState]) -> Needs:
    """Of the runs to come that are trained on GPUs, the largest of each host and size."""
    needs: Needs = {}
    for run in (state.run for state in runs if not state.is_done and SIZES[state.run.size].needs_gpu):
        name, need = str(run).partition(f"-{run.attention}")[0], memory_need(experiment, run)
        needs[name] = max(needs.get(name, need), need, key=lambda one: one.total)
    return needs


def memory_of_gpu(experiment: Experiment) -> float | None:
    """Bytes of a GPU: as `rates.gpu_memory` says, or the smallest that is visible here; None where neither is known."""
    configured = experiment.config["rates"]["gpu_memory"]
    return 1e9 * configured if configured else smallest_memory()


def memory_lines(needs: Needs, memory: float | None, recipe: str) -> list[str]:
    """What each of them needs, in words, and an empty line."""
    room = f" of {data_size(memory)}" if memory else ""
    lines = []
    for name, need in needs.items():
        held = f"{data_size(need.state)} weights, gradients, moments"
        gathered = f"; {data_size(need.gathered)} gathered" if need.gathered else ""
        kept = f"; {data_size(need.activations)} activations of {need.sequences} sequences"
        most = "at most " if recipe == "fast" else ""
        lines.append(f"{name}: {most}{data_size(need.total)}{room}: {held}{gathered}{kept}")
    return ["memory of a GPU, predicted", *(f"  {line}" for line in lines), ""] if lines else []


def refuse_too_large(needs: Needs, memory: float | None, config: Config) -> None:
    """MemoryExhaustedError for a model that does not fit, with what would make it fit.

    Of compiled models, whose activations are not predicted, weights, gradients and moments alone count.
    """
    for name, need in needs.items() if memory else ():
        needed = need.state if config["recipe"] == "fast" else need.total
        if needed > memory:
            raise MemoryExhaustedError(
                f"config: {name} needs {data_size(needed)} on each GPU with {need.sequences} sequences at a time, and "
                f"one has {data_size(memory)}; {_remedy(need, memory, config)}"
            )


def _remedy(need: MemoryNeed, memory: float, config: Config) -> str:
    """The keys with which a model fits and the configuration is not refused, those first that cost least time."""
    for recipe, way in product(dict.fromkeys((config["recipe"], "faithful")), need.alternatives()):
        if way.total <= memory and _is_allowed(merge(config, {"recipe": recipe, "pretrain": way.keys})):
            changed = {} if recipe == config["recipe"] else {"recipe": recipe}
            changed |= {f"pretrain.{key}": value for key, value in way.keys.items() if value != need.keys[key]}
            return f"set {', '.join(f'{key}: {str(value).lower()}' for key, value in changed.items())}"
    return "take larger GPUs, or leave it out of the sweep"


def _is_allowed(config: Config) -> bool:
    """Whether processes may train so."""
    try:
        check_processes(config)
    except ConfigError:
        return False
    return True
