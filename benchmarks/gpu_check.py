"""Whether a GPU trains as the CPU does, and how fast: `make gpu-check`, for the first minutes on a GPU.

Every operator, mode, precision and size takes some steps of pre-training without dropout, whose losses are compared
with the CPU's in fp32; then some with the paper's dropout, for speed; and the same of fine-tuning, on rows of random
pieces. The page is written line by line: what was measured stays when the job is cut off.
"""

import argparse
import gc
import math
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import torch
from torch.nn.utils import parameters_to_vector

from benchmarks import harness
from benchmarks.pretrain import OPERATORS as MEASURED
from benchmarks.pretrain import TOKENS, VOCABULARY, now, run_of, settings_of, write_corpus
from symbert.configuration import GlueSettings, protocol_of
from symbert.errors import ConfigError, MemoryExhaustedError
from symbert.experiment.project import read_config
from symbert.glue.graphs import trainee_of
from symbert.glue.tasks import GLUE
from symbert.glue.train import DROPOUTS, TaskRows, Trainee, shuffled
from symbert.model.bert import Classifier, initialize
from symbert.model.configuration import configuration_of
from symbert.operators import OPERATORS
from symbert.pretrain.compute import World, pick_device
from symbert.pretrain.graphs import CudaGraphs, recorder_on
from symbert.pretrain.pace import MFU, Pace, known_peak
from symbert.pretrain.train import StepResult, Trainer
from symbert.provenance import PROJECT, commit_of
from symbert.sizes import SIZES

COMPARED = ("tiny", "small", "base")  # sizes that any GPU holds, and a CPU takes few steps of in minutes
PRECISIONS = ("bf16", "fp32", "fp16")  # first the one that `auto` takes first
PACKAGES = ("torch", "transformers", "numpy", "pyarrow", "safetensors", "triton")
ROWS = 1024
STEPS, SEQUENCES = 4, 4  # compared: as much as a few CPU cores compute in seconds
LEARNING_RATE = 3e-4  # without warm-up, so that each step moves every weight and the next loss depends on it
UNTIMED, TIMED = 3, 10  # steps
STAGES = ("pretraining", "finetuning")
FINETUNING_STEPS = 400  # timed: the second half of them
MODES = ("eager", "compiled")  # how PyTorch computes a model
TIMED_SEQUENCES = {"tiny": 128, "small": 128, "base": 64}
PRODUCTS = "products"  # of matrices, in the place of a kernel of attention
# Parts of the names of PyTorch's operations, and of the kernels that compiled code starts without them.
KERNELS = {
    "cuDNN": ("scaled_dot_product_cudnn", "native_sdpa"),
    "flash": ("scaled_dot_product_flash", "flash_fwd"),
    "efficient": ("scaled_dot_product_efficient", "fmha_cutlass"),
}
# By how much a loss, and the norm of a gradient, may differ from the CPU's in fp32, as a share of it. A rounding is
# 6e-8 (fp32), 5e-4 (fp16), 4e-3 (bf16); many cancel in a mean loss, fewer in a gradient, and AdamW's first steps follow
# a gradient's signs. The CPU's own sum of squares in fp32 is off by 1e-3 (torch 2.13, small and base).
TOLERANCES = {"fp32": (2e-5, 3e-3), "fp16": (3e-4, 5e-3), "bf16": (1e-3, 2e-2)}
HEAD = f"""
Largest difference from the CPU in fp32 of {STEPS} steps, as a share: of their losses, of their gradients' norms.
{MFU}.

| size | operator | mode | precision | loss | gradient norm | | tokens/s | MFU | peak MB | attention kernel |
|---|---|---|---|---:|---:|---|---:|---:|---:|---|"""
# By how much the loss of a fine-tuning's step, and the weights after the last one as a share of what they moved, may
# differ: AdamW moves each weight by about the rate, to a side that the rounding of a tiny gradient may turn.
FINETUNED_TOLERANCES = {"fp32": (1e-4, 0.1), "fp16": (3e-3, 0.5), "bf16": (2e-2, 0.7)}
FINETUNED_ROWS, BATCH, MEAN_TOKENS, MOST_TOKENS = 4096, 16, 44, 128  # as GLUE's
FINETUNED_HEAD = f"""
Fine-tuning: {STEPS} batches of {BATCH} rows of {MEAN_TOKENS} tokens in the mean, at most {MOST_TOKENS}. Largest
difference of a loss from the CPU's in fp32, as a share; distance of the weights afterwards, as a share of what the
CPU's moved.

| size | operator | mode | precision | loss | weights | | first ms | ms a step | way |
|---|---|---|---|---:|---:|---|---:|---:|---|"""


class Arm(NamedTuple):
    """What is trained, and how it is computed: a row of the table."""

    size: str
    attention: str
    mode: str
    precision: str


def main() -> int:
    """Check the GPU of this process; 1 if something differs or fails, 64 where there is no GPU."""
    options = _options()
    device = pick_device()
    if device.type != "cuda":
        print(
            f"gpu-check: no GPU is visible to torch {torch.__version__}; start it where there is one, for example "
            "srun --gres=gpu:1 --cpus-per-task=8 make gpu-check",
            file=sys.stderr,
        )
        return ConfigError.exit_code
    precisions = ["fp32", *(["bf16"] if torch.cuda.is_bf16_supported(including_emulation=False) else []), "fp16"]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with open(options.output, "w") as page, tempfile.TemporaryDirectory() as folder:

        def say(line: str) -> None:
            print(line, flush=True)
            print(line, file=page, flush=True)

        properties = torch.cuda.get_device_properties(device)
        say(
            "# Figures of a GPU\n\n"
            f"* {properties.name}, {properties.total_memory / 1e9:.0f} GB, compute capability {properties.major}."
            f"{properties.minor}; CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}\n"
            f"* {harness.machine()}\n* {harness.versions(*PACKAGES)}\n"
            f"* commit {commit_of(PROJECT)}; {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}"
        )
        manifest = write_corpus(Path(folder) / "rows", ROWS, TOKENS, VOCABULARY)
        arms = [  # the quick ones first: a compiled model takes most of a minute for each
            Arm(size, operator, mode, precision)
            for mode in options.modes
            for size in options.sizes
            for precision in options.precisions
            for operator in options.operators
            if precision in precisions
        ]
        differing = check(arms, manifest, device, say) if "pretraining" in options.stages else 0
        if "finetuning" in options.stages:
            differing += check_finetuning(arms, device, say)
        say(
            f"\n{differing} rows differ, failed, or have **products**: no fused kernel took attention, slow but not "
            "wrong. Please report it with this page, the errors and `python -m torch.utils.collect_env`."
            if differing
            else "\nNothing differs."
        )
    return 1 if differing else 0


def check(arms: Sequence[Arm], manifest: Path, device: torch.device, say: Callable[[str], None]) -> int:
    """Say a row for each; returns how many differ from the CPU or fail."""
    expected: dict[Arm, list[StepResult]] = {}
    differing = 0
    say(HEAD)
    for arm in arms:
        torch.compiler.reset()  # what an earlier one left: compiled graphs, and memory
        gc.collect()
        label, trusted = " | ".join(arm), arm._replace(mode="eager", precision="fp32")
        try:
            if trusted not in expected:
                expected[trusted] = compared_steps(trusted, manifest, torch.device("cpu"))
            loss, norm, steps = difference_of(compared_steps(arm, manifest, device), expected[trusted])
            same = loss <= TOLERANCES[arm.precision][0] and norm <= TOLERANCES[arm.precision][1]
            verdict = "same" if same else "**differs**"
            if steps < STEPS:
                verdict += f" in {steps} steps: then fp16's scale was too large"
            cells, fused = speed_of(arm, manifest, device)
            differing += not (same and fused)
            say(f"| {label} | {loss:.1e} | {norm:.1e} | {verdict} | {cells} |")
        except Exception as error:  # whatever it is: the other rows say how far it goes
            traceback.print_exc()
            differing += 1
            reason = " ".join(str(error).split())[:200].replace("|", "/")
            say(f"| {label} | – | – | **failed**: {type(error).__name__}: {reason} | – | – | – | – |")
    return differing


def compared_steps(arm: Arm, manifest: Path, device: torch.device) -> list[StepResult]:
    """The first steps of a training without dropout, on a device."""
    trainer = trainer_of(arm, manifest, device, SEQUENCES, learning_rate=LEARNING_RATE, dropout=0.0)
    return [trainer.step(number) for number in range(STEPS)]


def difference_of(found: list[StepResult], expected: list[StepResult]) -> tuple[float, float, int]:
    """The largest differences of losses and norms, as shares, and of how many steps. Not a number: infinite.

    In fp16 a step whose gradient is infinite is left out, by design: the steps after it are of other weights.
    """
    skipped = next((number for number, step in enumerate(found) if math.isinf(step.gradient_norm)), None)
    last = len(found) if skipped is None else skipped + 1
    losses = [_share(ours.loss, cpu.loss) for ours, cpu in zip(found[:last], expected, strict=False)]
    pairs = zip(found[:skipped], expected, strict=False)
    norms = [_share(ours.gradient_norm, cpu.gradient_norm) for ours, cpu in pairs]
    return max(losses), max(norms, default=0.0), last


def _share(ours: float, cpu: float) -> float:
    difference = abs(ours - cpu) / abs(cpu)
    return difference if math.isfinite(difference) else math.inf


def speed_of(arm: Arm, manifest: Path, device: torch.device) -> tuple[str, bool]:
    """The cells of speed, memory and kernel, and whether a GPU took a fused kernel: it has one for all our shapes."""
    try:
        pace, kernel = measure_speed(arm, manifest, device)
    except MemoryExhaustedError:
        return "out of memory | – | – | –", True
    fused = kernel != PRODUCTS or device.type != "cuda"
    share = f"{100 * pace['mfu']:.0f} %" if pace["mfu"] else "–"
    shown = kernel if fused else f"**{kernel}**"
    return f"{pace['tokens_per_second']:,.0f} | {share} | {pace['memory_mb']:,.0f} | {shown}", fused


def measure_speed(arm: Arm, manifest: Path, device: torch.device) -> tuple[dict[str, float], str]:
    """Pace of some steps with the paper's dropout, once others have warmed the device up, and kernels of attention."""
    sequences = TIMED_SEQUENCES[arm.size]
    trainer = trainer_of(arm, manifest, device, sequences)
    peak = known_peak(torch.cuda.get_device_name(), arm.precision) if device.type == "cuda" else None
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    pace = Pace(sequences * TOKENS, trainer.task.flops(trainer.model), peak, device)
    for number, _ in enumerate(trainer.steps(range(UNTIMED + TIMED))):
        if number >= UNTIMED:
            pace.step()
    measured = pace.summary()
    with torch.profiler.profile(activities=torch.profiler.supported_activities(), acc_events=True) as profile:
        trainer.step(UNTIMED + TIMED)
    names = [event.key for event in profile.key_averages()]
    kernels = [kernel for kernel, parts in KERNELS.items() if any(part in name for name in names for part in parts)]
    return measured, ", ".join(kernels) or PRODUCTS


# --- fine-tuning ------------------------------------------------------------------------------------------------------


def check_finetuning(arms: Sequence[Arm], device: torch.device, say: Callable[[str], None]) -> int:
    """Say a row for each; returns how many differ from the CPU or fail."""
    expected: dict[Arm, Finetuned] = {}
    differing = 0
    say(FINETUNED_HEAD)
    for arm in arms:
        torch.compiler.reset()
        gc.collect()
        label, trusted = " | ".join(arm), arm._replace(mode="eager", precision="fp32")
        try:
            if trusted not in expected:
                expected[trusted] = finetuned(trusted, torch.device("cpu"))
            found = finetuned(arm, device)
            pairs = zip(found.losses, expected[trusted].losses, strict=True)
            loss, weights = max(_share(ours, cpu) for ours, cpu in pairs), distance(found, expected[trusted])
            allowed = FINETUNED_TOLERANCES[arm.precision]
            same = loss <= allowed[0] and weights <= allowed[1]
            differing += not same
            first, step, way = finetuning_speed(arm, device)
            verdict = "same" if same else "**differs**"
            say(f"| {label} | {loss:.1e} | {weights:.1e} | {verdict} | {1e3 * first:,.0f} | {1e3 * step:.2f} | {way} |")
        except Exception as error:  # whatever it is: the other rows say how far it goes
            traceback.print_exc()
            differing += 1
            reason = " ".join(str(error).split())[:200].replace("|", "/")
            say(f"| {label} | – | – | **failed**: {type(error).__name__}: {reason} | – | – | – |")
    return differing


class Finetuned(NamedTuple):
    """The losses of steps, and weights before and after them."""

    losses: list[float]
    before: torch.Tensor
    after: torch.Tensor


def finetuned(arm: Arm, device: torch.device) -> Finetuned:
    """The first steps of a fine-tuning without dropout, at one rate, on a device."""
    settings = finetuning_settings(arm, dropout=0.0)
    trainee, _ = trainee_on(arm, device, settings)
    rows, before = made_up_rows(device), parameters_to_vector(trainee.model.parameters()).cpu()
    steps, losses = trainee.steps(rows, settings), []
    for index in islice(shuffled(rows, BATCH, 1, 0), STEPS):
        steps.step(index, LEARNING_RATE)
        losses.append(steps.mean_loss())
    return Finetuned(losses, before, parameters_to_vector(trainee.model.parameters()).cpu())


def distance(found: Finetuned, expected: Finetuned) -> float:
    """Between the weights afterwards, as a share of what the expected ones moved; not a number: infinite."""
    share = ((found.after - expected.after).norm() / (expected.after - expected.before).norm()).item()
    return share if math.isfinite(share) else math.inf


def finetuning_speed(arm: Arm, device: torch.device) -> tuple[float, float, str]:
    """Seconds until the first step is done, and of a step in the second half of some, with dropout; and how it was
    computed."""
    begun = now()
    settings = finetuning_settings(arm, dropout=0.1)
    trainee, recorder = trainee_on(arm, device, settings)
    rows, marks, steps = made_up_rows(device), {}, FINETUNING_STEPS
    trained = trainee.steps(rows, settings)
    batches = (index for epoch in count() for index in shuffled(rows, BATCH, 1, epoch))
    for number, index in enumerate(islice(batches, steps), start=1):
        trained.step(index, 2e-5)
        if number in (1, steps // 2, steps):
            marks[number] = now()
    way = "end to end" if recorder is None else f"no graph: {recorder.refusal}" if recorder.refusal else "graph"
    return marks[1] - begun, (marks[steps] - marks[steps // 2]) / (steps - steps // 2), way


def finetuning_settings(arm: Arm, dropout: float) -> GlueSettings:
    """The paper's, but for these."""
    paper = read_config(Path(__file__).parents[1], {"scale": "paper", "source": "hub"})
    changes = {"batch_size": BATCH, "precision": arm.precision, "compile": arm.mode == "compiled", "dropout": dropout}
    return msgspec.structs.replace(protocol_of(paper, "glue", GlueSettings), **changes)


def trainee_on(arm: Arm, device: torch.device, settings: GlueSettings) -> tuple[Trainee, CudaGraphs | None]:
    """A classifier as initialised, as a job fine-tunes it on a device, and what records its steps."""
    config = configuration_of(SIZES[arm.size], OPERATORS[arm.attention])
    for key in DROPOUTS:
        setattr(config, key, settings.dropout)
    model, recorder = Classifier(config, 2), recorder_on(device)
    initialize(model, seed=1)
    return trainee_of(model.to(device).train(), arm.precision, settings.compile, recorder), recorder


def made_up_rows(device: torch.device) -> TaskRows:
    """Rows of random pieces, the same on every device, of two classes."""
    draws = np.random.default_rng(1)
    lengths = draws.gamma(4, MEAN_TOKENS / 4, FINETUNED_ROWS).astype(np.int64).clip(6, MOST_TOKENS)
    ids = draws.integers(1000, VOCABULARY, lengths.sum()).astype(np.int32)
    types, labels = np.zeros(len(ids), np.int8), draws.integers(0, 2, FINETUNED_ROWS)
    tensors = (torch.from_numpy(values).to(device) for values in (ids, types, labels))
    tokens, kinds, classes = tensors
    return TaskRows(tokens, kinds, np.cumsum(lengths) - lengths, lengths, classes, GLUE["mrpc"])


def trainer_of(arm: Arm, manifest: Path, device: torch.device, sequences: int, **changes: float) -> Trainer:
    """A trainer of the paper's settings but for these changes, all sequences at a time."""
    settings = settings_of(
        batch_size=sequences, compile=arm.mode == "compiled", precision=arm.precision, warmup_steps=0
    )
    settings = msgspec.structs.replace(settings, **changes)
    return Trainer(run_of(arm.size, arm.attention, settings, manifest), World(rank=0, size=1, device=device))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpu-check", description=__doc__)
    for name, choices, default in (
        ("sizes", SIZES, COMPARED),
        ("operators", OPERATORS, MEASURED),
        ("modes", MODES, MODES),
        ("precisions", PRECISIONS, PRECISIONS),
        ("stages", STAGES, STAGES),
    ):
        parser.add_argument(f"--{name}", nargs="+", choices=list(choices), default=list(default))
    parser.add_argument("--output", type=Path, default=Path("results/gpu-check.md"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
