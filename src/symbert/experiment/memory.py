"""Whether the models that are still to be trained fit a GPU."""

from symbert.errors import MemoryExhaustedError
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


def refuse_too_large(needs: Needs, memory: float | None, recipe: str) -> None:
    """MemoryExhaustedError for a model that does not fit, with what would make it fit.

    Of compiled models, whose activations are not predicted, weights, gradients and moments alone count.
    """
    for name, need in needs.items() if memory else ():
        needed = need.state if recipe == "fast" else need.total
        if needed > memory:
            raise MemoryExhaustedError(
                f"config: {name} needs {data_size(needed)} on each GPU with {need.sequences} sequences at a time, and "
                f"one has {data_size(memory)}; {_remedy(need, memory)}"
            )


def _remedy(need: MemoryNeed, memory: float) -> str:
    """The keys with which a model fits, those first that cost least time."""
    fitting = next((one for one in need.alternatives() if one.total <= memory), None)
    if fitting is None:
        return "take larger GPUs, or leave it out of the sweep"
    changed = {key: value for key, value in fitting.keys.items() if value != need.keys[key]}
    return f"set {', '.join(f'pretrain.{key}: {str(value).lower()}' for key, value in changed.items())}"
