"""What might make a step of pre-training faster on a GPU, each option beside today's step: `on_gpu.sh 3` and `4`.

Nothing here is in the product; what wins may go there. An option that changes the arithmetic takes some steps without
dropout, too, not compiled, whose losses are compared with the CPU's in fp32, as in gpu-check. The page is written line
by line: what was measured stays when the job is cut off, so the options come in the order of what they promise.
"""

import argparse
import gc
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._inductor import config as inductor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import AuxRequest, flex_attention

from benchmarks import gpu_check, harness
from benchmarks.gpu_check import Arm, difference_of
from benchmarks.pretrain import TOKENS, VOCABULARY, now, run_of, settings_of, write_corpus
from symbert.model.bert import Embeddings, Residual
from symbert.model.from_transformers import ALL_ATTENTION_FUNCTIONS
from symbert.pretrain.compute import World, pick_device
from symbert.pretrain.pace import MFU, Pace, known_peak
from symbert.pretrain.train import Trainer
from symbert.provenance import PROJECT, commit_of

SEQUENCES = {"base": 64, "small": 128, "tiny": 2}  # at a time
BATCH = 4  # micro-batches of a step, where it has more than one: the paper's 256 sequences of base
UNTIMED, TIMED = 4, 20  # steps
TODAY = "today"
HEAD = """
| size | option | ms a step | tokens/s | MFU | of today's | peak MB | first step, s | loss | gradient norm |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"""


class Option(NamedTuple):
    """A way to compute a step, beside today's."""

    within: Callable[[], AbstractContextManager] = nullcontext  # the context in which a trainer is built and steps
    changes: dict[str, Any] = {}  # noqa: RUF012 (of the settings)
    adjust: Callable[[Trainer], Any] = lambda trainer: None
    sequences: float = 1  # at a time, as a share of today's
    batch: int = 1  # micro-batches of a step
    is_compared: bool = False  # with the CPU, because its arithmetic is another


# --- options ----------------------------------------------------------------------------------------------------------


def read_at_once(trainer: Trainer) -> None:
    """As before steps were started ahead: each waits for the numbers of the one before."""
    trainer.ahead, trainer.batch_of = 0, trainer.task.training_batch
    trainer.optimizer.found_inf = None


def without_graphs(trainer: Trainer) -> None:
    """Kernels are started one by one."""
    trainer.micro_steps = None


def keep_attention(trainer: Trainer) -> None:
    """No dropout of attention weights: another training, and the most that a better kernel could give."""
    trainer.model.config.attention_probs_dropout_prob = 0.0


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Something else in the place of an attribute."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def narrow_stream() -> Iterator[None]:
    """The residual stream in bf16: LayerNorm computes in fp32, and its result is rounded."""

    def rounded(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda *given, **named: forward(*given, **named).to(torch.bfloat16)

    with (
        replaced(Residual, "forward", rounded(Residual.forward)),
        replaced(Embeddings, "forward", rounded(Embeddings.forward)),
    ):
        yield


@contextmanager
def flexible() -> Iterator[None]:
    """FlexAttention, which has no dropout (pytorch issue 141784), with one made of what it has.

    Weights after the softmax are dropped by a hash of their place and a seed. A first pass has the logarithm of the sum
    of all weights, and a second one the mix of the kept weights and the logarithm of their sum: by both the mix is
    rescaled to the first's sum. So the logits are computed twice.
    """
    with replaced(ALL_ATTENTION_FUNCTIONS, "get_interface", lambda *names: attend_flexibly):
        yield


def attend_flexibly(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """As transformers' functions of attention: mixed values `batch token heads head`."""
    if dropout == 0.0:
        return flex_attention(query, key, value, scale=scaling).transpose(1, 2), None
    heads, tokens = query.shape[1:3]
    seed = torch.randint(2**31 - 1, (1,), device=query.device, dtype=torch.int32)
    limit = int(dropout * 2**31)

    def kept(score: Tensor, row: Tensor, head: Tensor, to: Tensor, of: Tensor) -> Tensor:
        word = ((row * heads + head) * tokens + to) * tokens + of
        word = (word ^ seed[0]) * 0x2C1B3C6D  # an integer hash, as those of draws.py, in 32 bits
        word = (word ^ ((word >> 15) & 0x1FFFF)) * 0x297A2D39
        word = (word ^ ((word >> 15) & 0x1FFFF)) & 0x7FFFFFFF
        return torch.where(word >= limit, score, -float("inf"))

    _, whole = flex_attention(query, key, value, scale=scaling, return_aux=AuxRequest(lse=True))
    mixed, partial_ = flex_attention(query, key, value, score_mod=kept, scale=scaling, return_aux=AuxRequest(lse=True))
    share = (partial_.lse - whole.lse).exp() / (1 - dropout)
    return (mixed * share[..., None]).to(mixed.dtype).transpose(1, 2), None


OPTIONS: dict[str, Option] = {
    TODAY: Option(is_compared=True),
    "numbers read at once, no graphs": Option(adjust=lambda trainer: (read_at_once(trainer), without_graphs(trainer))),
    "no graphs": Option(adjust=without_graphs),
    "a batch of four micro-batches": Option(batch=BATCH),
    "residual stream in bf16": Option(within=narrow_stream, is_compared=True),
    "attention by flash": Option(within=partial(sdpa_kernel, SDPBackend.FLASH_ATTENTION), is_compared=True),
    "attention by the efficient kernel": Option(
        within=partial(sdpa_kernel, SDPBackend.EFFICIENT_ATTENTION), is_compared=True
    ),
    "attention by cuDNN": Option(within=partial(sdpa_kernel, SDPBackend.CUDNN_ATTENTION), is_compared=True),
    "FlexAttention, dropout by a hash": Option(within=flexible, is_compared=True),
    "no dropout of attention weights": Option(adjust=keep_attention),
    "no dropout": Option(changes={"dropout": 0.0}),
    "twice as many sequences at a time": Option(sequences=2),
    "half as many sequences at a time": Option(sequences=0.5),
    "coordinate-descent tuning": Option(within=partial(inductor.patch, coordinate_descent_tuning=True)),
}

# --- measuring --------------------------------------------------------------------------------------------------------


def main() -> None:
    """Measure, and write the page."""
    options = _options()
    device = torch.device("cpu") if options.dry else pick_device()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with open(options.output, "w") as page, tempfile.TemporaryDirectory() as folder:

        def say(line: str) -> None:
            print(line, flush=True)
            print(line, file=page, flush=True)

        say(
            "# Options of a step of pre-training\n\n"
            f"* {torch.cuda.get_device_name(device) if device.type == 'cuda' else 'CPU: a rehearsal'}\n"
            f"* {harness.machine()}\n* {harness.versions(*gpu_check.PACKAGES)}\n"
            f"* commit {commit_of(PROJECT)}; {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}\n"
            f"* bf16, {'not ' * options.dry}compiled, dropout 0.1, rows of {TOKENS} tokens; {TIMED} steps timed after "
            f"{UNTIMED}\n* {MFU}\n* loss, gradient norm: largest difference from the CPU in fp32, of "
            f"{gpu_check.STEPS} steps without dropout, not compiled, as a share"
        )
        manifest = write_corpus(Path(folder) / "rows", gpu_check.ROWS, TOKENS, VOCABULARY)
        say(HEAD)
        for size in options.sizes:
            expected = [*compared(Option(), size, manifest, torch.device("cpu"), "fp32")]
            today = None
            for name in options.options:
                torch.compiler.reset()
                gc.collect()
                try:
                    row, seconds = measured(OPTIONS[name], size, manifest, device, not options.dry, today)
                    today = seconds if name == TODAY else today
                    if OPTIONS[name].is_compared:
                        found = compared(OPTIONS[name], size, manifest, device, "bf16")
                        row += " | {:.1e} | {:.1e}".format(*difference_of(found, expected)[:2])
                    else:
                        row += " | – | –"
                    say(f"| {size} | {name} | {row} |")
                except Exception as error:  # whatever it is: the others say how far they go
                    traceback.print_exc()
                    reason = " ".join(str(error).split())[:200].replace("|", "/")
                    say(f"| {size} | {name} | **failed**: {type(error).__name__}: {reason} |{' – |' * 7}")


def measured(
    option: Option, size: str, manifest: Path, device: torch.device, is_compiled: bool, today: float | None
) -> tuple[str, float]:
    """The cells of speed and memory, and seconds per sequence."""
    at_a_time = max(1, int(SEQUENCES[size] * option.sequences))
    batch, begun = at_a_time * option.batch, now()
    settings = settings_of(batch_size=batch, compile=is_compiled, precision="bf16", warmup_steps=0, **option.changes)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    with option.within():
        trainer = Trainer(run_of(size, "original", settings, manifest), World(0, 1, device), at_a_time)
        option.adjust(trainer)
        peak = known_peak(torch.cuda.get_device_name(), "bf16") if device.type == "cuda" else None
        pace = Pace(batch * trainer.task.tokens, trainer.task.flops(trainer.model), peak, device)
        trainer.step(0)
        first = now() - begun
        for number, _ in enumerate(trainer.steps(range(1, 1 + UNTIMED + TIMED))):
            if number >= UNTIMED:
                pace.step()
    summary = pace.summary()
    seconds = summary["step_seconds"] / batch
    share = f"{100 * summary['mfu']:.1f} %" if summary["mfu"] else "–"
    of_today = f"{today / seconds:.2f} ×" if today else "–"
    way = "" if trainer.micro_steps is None or not trainer.micro_steps.recorder.refusal else ", no graph"
    return (
        f"{1e3 * summary['step_seconds']:.1f}{way} | {summary['tokens_per_second']:,.0f} | {share} | {of_today} | "
        f"{summary['memory_mb']:,.0f} | {first:.0f}"
    ), seconds


def compared(option: Option, size: str, manifest: Path, device: torch.device, precision: str) -> list[Any]:
    """The first steps of a training without dropout."""
    with option.within():
        return gpu_check.compared_steps(Arm(size, "original", "eager", precision), manifest, device)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpu-options", description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=list(SEQUENCES), default=["base", "small"])
    parser.add_argument("--options", nargs="+", choices=list(OPTIONS), default=list(OPTIONS))
    parser.add_argument("--output", type=Path, default=Path("results/gpu-options.md"))
    parser.add_argument("--dry", action="store_true", help="on the CPU, not compiled: whether it runs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
