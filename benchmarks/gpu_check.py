"""Whether a GPU trains as the CPU does, and how fast: `make gpu-check`, for the first minutes on a GPU.

Every operator, recipe, precision and size takes some steps of pre-training without dropout, whose losses are compared
with those of the CPU in fp32; then some with the paper's dropout, for speed.
The page is written line by line: what was measured stays when the job is cut off.
"""

import argparse
import gc
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import torch

from benchmarks.gpu_steps import (
    PRODUCTS,
    STEPS,
    TOKENS,
    VOCABULARY,
    Arm,
    Difference,
    Steps,
    compare,
    compared_steps,
    measure_peak,
    measure_speed,
)
from benchmarks.host import machine, versions
from benchmarks.packed import write_corpus
from benchmarks.protocol import OPERATORS as MEASURED
from symbert.errors import ConfigError, MemoryExhaustedError
from symbert.operators import OPERATORS
from symbert.pretrain.compute import RECIPES, pick_device
from symbert.provenance import PROJECT, commit_of
from symbert.sizes import SIZES

ROWS = 1024
COMPARED = ("tiny", "small", "base")  # sizes that any GPU holds, and a CPU takes few steps of in minutes
PRECISIONS = ("bf16", "fp32", "fp16")  # the one that `auto` takes first
PACKAGES = ("torch", "transformers", "numpy", "pyarrow", "safetensors", "triton")
HEAD = """
Largest difference from the CPU in fp32 of {steps} steps, as a share: of their losses, of their gradients' norms.

| size | operator | recipe | precision | loss | gradient norm | | tokens/s | MFU | peak MB | attention kernel |
|---|---|---|---|---:|---:|---|---:|---:|---:|---|"""
NOT_MEASURED = "| – | – | – | – |"
UNFUSED = f"**{PRODUCTS}**"
REPORT = """
Something differs or failed. Please report it as an issue of the project, with
* this page, as it is;
* what `python -m torch.utils.collect_env` prints, in the same environment;
* the errors above, if any (stderr has each traceback).
What it points to: all rows, fp32 and faithful among them: the driver or the build of torch (`nvidia-smi`, other jobs on
the GPU); `fast` alone: the compiler (run again with TORCHINDUCTOR_FORCE_DISABLE_CACHES=1) or the attention kernel of
that row; one precision: its kernels; one operator: this project. **products**: nothing is wrong but the speed, for no
fused kernel took attention (`TORCH_LOGS=aot_graphs` says what it was given). Until then train with what is the same."""

Say = Callable[[str], None]


def main() -> int:
    """Check the GPU of this process; 1 when something differs or fails, 64 where there is no GPU."""
    options = _options()
    try:
        device = gpu()
    except ConfigError as error:
        print(f"gpu-check: {error}", file=sys.stderr)
        return error.exit_code
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with open(options.output, "w") as page, tempfile.TemporaryDirectory() as folder:

        def say(line: str) -> None:
            print(line, flush=True)
            print(line, file=page, flush=True)

        say("\n".join(["# Figures of a GPU", "", *(f"* {line}" for line in conditions(device))]))
        manifest = write_corpus(Path(folder) / "rows", ROWS, TOKENS, VOCABULARY)
        chosen = arms(device, options.sizes, options.operators, options.recipes, options.precisions)
        differing = check_pretraining(chosen, manifest, device, say, options.speed)
        say(f"\n{differing} rows differ, failed or have **products**." if differing else "\nNothing differs.")
        if differing:
            say(REPORT)
    return 1 if differing else 0


def gpu() -> torch.device:
    """The GPU of this process; ConfigError where there is none."""
    device = pick_device()
    if device.type != "cuda":
        raise ConfigError(
            f"no GPU is visible to torch {torch.__version__}; start it where there is one, for example "
            "srun --gres=gpu:1 --cpus-per-task=8 make gpu-check"
        )
    return device


def conditions(device: torch.device) -> list[str]:
    """On what is measured, and when."""
    peaks = {precision: f"{peak_of(device, precision) / 1e12:,.1f} TFLOP/s" for precision in precisions_of(device)}
    properties = torch.cuda.get_device_properties(device)
    return [
        f"{properties.name}, {properties.total_memory / 1e9:.0f} GB, compute capability {properties.major}."
        f"{properties.minor}; CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}",
        f"dense products of 8,192 × 8,192: {', '.join(f'{peak} in {name}' for name, peak in peaks.items())}",
        machine(),
        versions(PACKAGES),
        f"commit {commit_of(PROJECT)}; {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}",
    ]


def precisions_of(device: torch.device) -> list[str]:
    """What a device computes in, all that a training there may ask for."""
    if device.type != "cuda":
        return ["fp32", "bf16"]
    return ["fp32", *(["bf16"] if torch.cuda.is_bf16_supported(including_emulation=False) else []), "fp16"]


def arms(
    device: torch.device,
    sizes: Sequence[str] = COMPARED,
    operators: Sequence[str] = MEASURED,
    recipes: Sequence[str] = tuple(RECIPES),
    precisions: Sequence[str] = PRECISIONS,
) -> list[Arm]:
    """What is checked, the quick ones first: a compiled recipe takes most of a minute for each."""
    allowed = precisions_of(device)
    return [
        Arm(size, operator, recipe, precision)
        for recipe in recipes
        for size in sizes
        for precision in precisions
        for operator in operators
        if precision in allowed
    ]


def check_pretraining(chosen: Sequence[Arm], manifest: Path, device: torch.device, say: Say, speed: bool = True) -> int:
    """Say a row for each; returns how many differ from the CPU or fail."""
    expected: dict[Arm, Steps] = {}
    differing = 0
    say(HEAD.format(steps=STEPS))
    for arm in chosen:
        torch.compiler.reset()  # what an earlier one left: compiled graphs, and memory
        gc.collect()
        try:
            if arm.reference not in expected:
                expected[arm.reference] = compared_steps(arm.reference, manifest, torch.device("cpu"))
            difference = compare(compared_steps(arm, manifest, device), expected[arm.reference])
            measured = measure(arm, manifest, device) if speed else NOT_MEASURED
            differing += not difference.is_allowed(arm.precision) or UNFUSED in measured
            say(row(arm, difference, measured))
        except Exception as error:  # whatever it is: the other rows say how far it goes
            traceback.print_exc()
            differing += 1
            reason = " ".join(str(error).split())[:200].replace("|", "/")
            say(f"| {arm} | – | – | **failed**: {type(error).__name__}: {reason} {NOT_MEASURED}")
    return differing


def row(arm: Arm, difference: Difference, measured: str) -> str:
    """A line of the table."""
    verdict = "same" if difference.is_allowed(arm.precision) else "**differs**"
    if difference.steps < STEPS:
        verdict += f" in {difference.steps} steps: then fp16's scale was too large"
    return f"| {arm} | {difference.loss:.1e} | {difference.norm:.1e} | {verdict} {measured}"


def measure(arm: Arm, manifest: Path, device: torch.device) -> str:
    """The last cells of a line: how fast, in how much memory, by which kernel.

    A GPU has a fused kernel for each of our shapes: UNFUSED is a fault there, a CPU has none with dropout.
    """
    try:
        speed = measure_speed(arm, manifest, device, peak_of(device, arm.precision))
    except MemoryExhaustedError:
        return "| out of memory | – | – | – |"
    kernel = UNFUSED if speed.kernel == PRODUCTS and device.type == "cuda" else speed.kernel
    return f"| {speed.tokens:,.0f} | {100 * speed.mfu:.0f} % | {speed.memory:,.0f} | {kernel} |"


@cache
def peak_of(device: torch.device, precision: str) -> float:
    """FLOP/s of a dense product."""
    return measure_peak(device, precision)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpu-check", description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=COMPARED)
    parser.add_argument("--operators", nargs="+", choices=list(OPERATORS), default=list(MEASURED))
    parser.add_argument("--recipes", nargs="+", choices=list(RECIPES), default=list(RECIPES))
    parser.add_argument("--precisions", nargs="+", choices=list(PRECISIONS), default=list(PRECISIONS))
    parser.add_argument("--speed", action=argparse.BooleanOptionalAction, default=True, help="tokens/s, memory, times")
    parser.add_argument("--output", type=Path, default=Path("results/gpu-check.md"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
