"""What only a device can say, on a page: `benchmarks/on_gpu.sh 5` and `6`.

`dropout`: which weights each kernel of attention drops; `plans`: how long the first calls of a shape take; `memory`: of
a step, by sequences at a time, beside a formula; `lengths`: speed at rows and vocabularies beside round numbers;
`sharing`: two fine-tunings on one GPU, with and without NVIDIA's MPS; `compiling`: the first step of a job, with an
empty cache and with that of another job; `repeating`: how much runs of equal seeds differ, one of them interrupted.

Sections are independent, and written line by line: what was measured stays when the job is cut off. `--dry` computes
all of it in tiny shapes on the CPU.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import msgspec
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks import harness
from benchmarks.gpu_check import BATCH, PACKAGES, Arm, finetuning_settings, made_up_rows, trainee_on
from benchmarks.pretrain import now, run_of, settings_of, write_corpus
from symbert.files import read_json_lines, write_json
from symbert.glue.train import shuffled
from symbert.model.configuration import DEFAULTS
from symbert.pretrain.compute import World, pick_device
from symbert.pretrain.pace import memory_mb
from symbert.pretrain.train import Trainer
from symbert.provenance import PROJECT, commit_of

Say = Callable[[str], None]
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
HEAD = 64  # features of a head, in all sizes but tiny
DROPOUT = 0.1
KERNELS = {
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "products": SDPBackend.MATH,
}
PATIENCE = 240  # seconds for a process


class Scope(NamedTuple):
    """How much is computed."""

    rows: tuple[int, int, int] = (32, 12, 512)  # rows, heads, tokens whose dropout is looked at
    shapes: tuple[tuple[int, int], ...] = ((16, 128), (16, 96), (16, 64), (16, 48), (15, 48), (64, 512), (64, 511))
    sizes: tuple[str, ...] = ("small", "base")  # whose memory is measured
    sequences: tuple[int, ...] = (8, 16, 32, 64)  # at a time
    lengths: tuple[tuple[int, int], ...] = ((512, 30_522), (511, 30_522), (513, 30_522), (512, 30_528))
    size: str = "small"
    batch: int = 128  # sequences of 512 tokens
    steps: int = 20  # timed
    finetuned: str = "base"
    finetuning_steps: int = 600
    training_steps: int = 1000  # of repeated runs, of 32 sequences
    is_compiled: bool = True


DRY = Scope(
    rows=(2, 2, 128),
    shapes=((2, 8), (2, 7)),
    sizes=("tiny",),
    sequences=(1, 2, 4),
    lengths=((32, 500), (33, 500)),
    size="tiny",
    batch=4,
    steps=2,
    finetuned="tiny",
    finetuning_steps=4,
    training_steps=20,
    is_compiled=False,
)


# --- dropout ----------------------------------------------------------------------------------------------------------


def attention(kernel: SDPBackend | None, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention with dropout by a kernel; None: the one that PyTorch chooses."""
    attend = partial(F.scaled_dot_product_attention, query, key, value, dropout_p=DROPOUT)
    if kernel is None:
        return attend()
    with sdpa_kernel(kernel):
        return attend()


def weights_of(attend: Attend, shape: tuple[int, int, int], device: torch.device, seed: int) -> Tensor:
    """What became of the weights `row head token token`, all of which are 1 before dropout.

    Logits are 0, so each weight is 1 / tokens; values that are a piece of the identity show the weights of as many
    tokens, for which the same seed drops the same.
    """
    rows, heads, tokens = shape
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    zeros, found = torch.zeros(rows, heads, tokens, HEAD, dtype=dtype, device=device), []
    for first in range(0, tokens, HEAD):
        value = zeros.clone()
        value[:, :, first : first + HEAD] = torch.eye(HEAD, dtype=dtype, device=device)
        torch.manual_seed(seed)
        found.append(attend(zeros, zeros, value).float() * tokens)
    return torch.cat(found, dim=-1)


def dropout(say: Say, device: torch.device, scope: Scope) -> None:
    """A line for each kernel, eager and compiled."""
    rows, heads, tokens = scope.rows
    places = rows * heads * tokens**2
    say(
        f"\n## Dropout of {DROPOUT} by each kernel of attention\n\n{rows} rows, {heads} heads, {tokens} tokens: "
        f"{places:,} weights, whose share would be off by {(DROPOUT * (1 - DROPOUT) / places) ** 0.5:.1e}. Two seeds, "
        f"and two rows, should differ in {2 * DROPOUT * (1 - DROPOUT):.2f} of the places.\n\n"
        "| kernel | dropped | least and most of a row's | kept, × (1 − p) | the same seed again | two seeds differ "
        "| two rows differ |\n"
        "|---|---:|---:|---:|---|---:|---:|"
    )
    ways: dict[str, Attend] = {name: partial(attention, kernel) for name, kernel in KERNELS.items()}
    if scope.is_compiled:
        compiled = torch.compile(attention, dynamic=False)
        ways |= {f"{name}, compiled": partial(compiled, kernel) for name, kernel in KERNELS.items()}
    for name, attend in ways.items():
        with reported(say, name, 6):
            one, again, other = (weights_of(attend, scope.rows, device, seed) for seed in (1, 1, 2))
            gone, of_other = one == 0, other == 0
            of_rows, is_repeated = gone.float().mean((1, 2, 3)), torch.equal(one, again)
            say(
                f"| {name} | {gone.float().mean():.4f} | {of_rows.min():.4f}, {of_rows.max():.4f} | "
                f"{one[~gone].mean() * (1 - DROPOUT):.4f} | {'the same' if is_repeated else '**others**'} | "
                f"{(gone != of_other).float().mean():.3f} | {(gone[0] != gone[1]).float().mean():.3f} |"
            )


# --- plans ------------------------------------------------------------------------------------------------------------


def plans(say: Say, device: torch.device, scope: Scope) -> None:
    """Milliseconds of the first and of the third pass through attention, forward and backward, of each shape."""
    say(
        "\n## First calls of a shape\n\nMilliseconds of attention, forward and backward, twelve heads: the first call "
        f"/ the third.\n\n| rows × tokens | {' | '.join(KERNELS)} |\n|---|{'---:|' * len(KERNELS)}"
    )
    for rows, tokens in scope.shapes:
        cells = []
        for kernel in KERNELS.values():
            try:
                first, _, third = (1e3 * pass_of(kernel, rows, tokens, device) for _ in range(3))
                cells.append(f"{first:.2f} / {third:.2f}")
            except RuntimeError as error:  # no kernel for it here
                cells.append(reason_of(error)[:60])
        say(f"| {rows} × {tokens} | {' | '.join(cells)} |")


def pass_of(kernel: SDPBackend, rows: int, tokens: int, device: torch.device) -> float:
    """Seconds of a pass, forward and backward."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    query, key, value = (
        torch.randn(rows, 12, tokens, HEAD, dtype=dtype, device=device, requires_grad=True) for _ in range(3)
    )
    begun = now()
    attention(kernel, query, key, value).sum().backward()
    return now() - begun


# --- memory and lengths -----------------------------------------------------------------------------------------------


def trainer_of(manifest: Path, device: torch.device, size: str, sequences: int, is_compiled: bool) -> Trainer:
    """A trainer of the paper's settings, all sequences of a step at a time."""
    settings = settings_of(batch_size=sequences, compile=is_compiled, warmup_steps=0)
    return Trainer(run_of(size, "original", settings, manifest), World(0, 1, device))


def memory(say: Say, device: torch.device, scope: Scope) -> None:
    """The most that a step takes, by sequences at a time, and what the first two say of the others."""
    say(
        "\n## Memory of a step\n\nNot compiled; MB (10⁶ bytes), and how far the formula is off: 16 bytes per parameter,"
        " and as much per sequence as the two smallest differ by, which is said in units of tokens × layers × hidden × "
        "4 bytes, too.\n\n| size | "
        + " | ".join(f"{each} sequences" for each in scope.sequences)
        + " | units per sequence |\n|---|"
        + "---:|" * (len(scope.sequences) + 1)
    )
    tokens, pieces = scope.lengths[0]
    with tempfile.TemporaryDirectory() as folder:
        manifest = write_corpus(Path(folder) / "rows", 64, tokens, pieces)
        for size in scope.sizes:
            with reported(say, size, len(scope.sequences) + 1):
                taken = []
                for sequences in scope.sequences:
                    if device.type == "cuda":
                        torch.cuda.empty_cache()
                        torch.cuda.reset_peak_memory_stats(device)
                    trainer = trainer_of(manifest, device, size, sequences, is_compiled=False)
                    for number in range(2):
                        trainer.step(number)
                    taken.append(memory_mb(device))
                    fixed, shape = 16 * trainer.parameters / 1e6, trainer.run.shape
                    del trainer
                each = (taken[1] - taken[0]) / (scope.sequences[1] - scope.sequences[0])
                unit = 4 * tokens * shape.num_hidden_layers * shape.hidden_size / 1e6
                cells = [
                    f"{found:,.0f} ({100 * ((fixed + each * sequences) / found - 1):+.0f} %)"
                    for sequences, found in zip(scope.sequences, taken, strict=True)
                ]
                say(f"| {size} | {' | '.join(cells)} | {each / unit:.1f} |")


def lengths(say: Say, device: torch.device, scope: Scope) -> None:
    """Tokens per second at each number of tokens and pieces."""
    say(
        f"\n## Lengths and vocabularies\n\n{scope.size}, {scope.batch} sequences at a time, thousand tokens/s over "
        f"{scope.steps} steps.\n\n| tokens | pieces | not compiled | compiled |\n|---:|---:|---:|---:|"
    )
    for tokens, pieces in scope.lengths:
        with reported(say, f"{tokens} | {pieces:,}", 2), tempfile.TemporaryDirectory() as folder:
            manifest, cells = write_corpus(Path(folder) / "rows", 256, tokens, pieces), []
            for is_compiled in {False, scope.is_compiled}:
                torch.compiler.reset()
                with mock.patch.dict(DEFAULTS, max_position_embeddings=576):
                    trainer = trainer_of(manifest, device, scope.size, scope.batch, is_compiled)
                    for number in range(3):
                        trainer.step(number)
                    begun = now()
                    steps = sum(1 for _ in trainer.steps(range(3, 3 + scope.steps)))
                cells.append(f"{steps * scope.batch * tokens / (now() - begun) / 1e3:,.0f}")
            say(f"| {tokens} | {pieces:,} | {' | '.join(cells)}{'' if scope.is_compiled else ' | –'} |")


# --- processes --------------------------------------------------------------------------------------------------------


def child(*words: str, **environment: str) -> subprocess.Popen:
    """This module in another process, which does one thing and says numbers."""
    command = [sys.executable, "-m", "benchmarks.gpu_devices", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})


def said_by(process: subprocess.Popen) -> float:
    """The number that a process ends with."""
    output = process.communicate(timeout=PATIENCE)[0]
    if process.returncode:
        raise RuntimeError(f"a process ended with {process.returncode}")
    return float(output.split()[-1])


def sharing(say: Say, device: torch.device, scope: Scope) -> None:
    """Steps per second of a fine-tuning alone, of two at once, and of two under MPS."""
    say(
        f"\n## Two fine-tunings on one GPU\n\n{scope.finetuned}, batches of {BATCH}, not compiled, as graphs on a GPU; "
        "steps/s of each, and of all.\n\n| | each | all |\n|---|---|---:|"
    )
    dry = ["--dry"] if scope is DRY else []

    def at_once(name: str, processes: int, **environment: str) -> None:
        with reported(say, name, 2), tempfile.TemporaryDirectory() as folder:
            go, begun = Path(folder, "go"), []
            for number in range(processes):
                begun.append(child("finetune", str(go), f"{folder}/ready-{number}", *dry, **environment))
            deadline = time.monotonic() + PATIENCE
            while len(list(Path(folder).glob("ready-*"))) < processes and time.monotonic() < deadline:
                if any(process.poll() for process in begun):
                    break
                time.sleep(0.05)
            go.touch()
            rates = [said_by(process) for process in begun]
            say(f"| {name} | {', '.join(f'{rate:.1f}' for rate in rates)} | {sum(rates):.1f} |")

    at_once("alone", 1)
    at_once("two at once", 2)
    if not shutil.which("nvidia-cuda-mps-control"):
        say("| two under MPS | no nvidia-cuda-mps-control on this machine | – |")
        return
    with tempfile.TemporaryDirectory() as folder:
        mps = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        control = partial(subprocess.run, env={**os.environ, **mps}, check=True, text=True)
        with reported(say, "two under MPS", 2):
            control(["nvidia-cuda-mps-control", "-d"])
            try:
                at_once("two under MPS", 2, **mps)
            finally:
                control(["nvidia-cuda-mps-control"], input="quit\n")


def finetune(go: Path, ready: Path, device: torch.device, scope: Scope) -> None:
    """Say the steps per second of a fine-tuning, once `go` is there."""
    arm = Arm(scope.finetuned, "original", "eager", "bf16" if device.type == "cuda" else "fp32")
    settings = finetuning_settings(arm, DROPOUT)
    trainee, _ = trainee_on(arm, device, settings)
    rows = made_up_rows(device)
    steps = trainee.steps(rows, settings)
    batches = (index for epoch in count() for index in shuffled(rows, BATCH, 1, epoch))
    for index in islice(batches, scope.finetuning_steps // 4):  # each length has its graph then, or nearly
        steps.step(index, 2e-5)
    now()
    ready.touch()
    deadline = time.monotonic() + PATIENCE
    while not go.exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    begun = now()
    for index in islice(batches, scope.finetuning_steps):
        steps.step(index, 2e-5)
    print(scope.finetuning_steps / (now() - begun))


def compiling(say: Say, device: torch.device, scope: Scope) -> None:
    """Seconds of the first step of a pre-training in a new process."""
    say(
        f"\n## The first step of a job\n\n{scope.size}, {scope.batch} sequences, "
        f"{'' if scope.is_compiled else 'not '}compiled: seconds from the trainer's start to the end of its first step."
        "\n\n| | seconds |\n|---|---:|"
    )
    dry = ["--dry"] if scope is DRY else []
    with tempfile.TemporaryDirectory() as folder:
        for name, cache, processes in (
            ("a new cache", "one", 1),
            ("the cache of the job before", "one", 1),
            ("two jobs at once, a new cache", "two", 2),
            ("two jobs at once, that cache", "two", 2),
        ):
            with reported(say, name, 1):
                place = {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/{cache}", "TRITON_CACHE_DIR": f"{folder}/{cache}-triton"}
                begun = [child("first-step", *dry, **place) for _ in range(processes)]
                seconds = [f"{said_by(process):.1f}" for process in begun]
                say(f"| {name} | {', '.join(seconds)} |")


def first_step(device: torch.device, scope: Scope) -> None:
    """Say the seconds of the first step of a pre-training."""
    tokens, pieces = scope.lengths[0]
    with tempfile.TemporaryDirectory() as folder:
        manifest = write_corpus(Path(folder) / "rows", 256, tokens, pieces)
        begun = now()
        trainer_of(manifest, device, scope.size, scope.batch, scope.is_compiled).step(0)
        print(now() - begun)


# --- repeated and resumed runs ----------------------------------------------------------------------------------------


def repeating(say: Say, device: torch.device, scope: Scope) -> None:
    """How a run differs from one of the same seed, from one that was interrupted, and from one of another seed."""
    steps, sequences = scope.training_steps, min(scope.batch, 32)
    say(
        f"\n## Runs of equal seeds\n\n{scope.size}, {steps} steps of {sequences} sequences, "
        f"{'' if scope.is_compiled else 'not '}compiled, warm-up over a tenth of them; beside the first run. Each "
        "tenth loss is logged.\n\n| run | first other loss, at step | largest difference of a loss | of the last "
        "validation loss | other weights | their distance | as a share of what training moved |\n"
        "|---|---:|---:|---:|---:|---:|---:|"
    )
    tokens, pieces = scope.lengths[0]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        manifest = write_corpus(folder / "rows", 8192 if scope is not DRY else 64, tokens, pieces)
        settings = settings_of(
            steps=steps,
            schedule_steps=None,
            batch_size=sequences,
            compile=scope.is_compiled,
            learning_rate=5e-4,
            warmup_steps=steps // 10,
            evaluate_every=steps // 2,
            save_every=steps // 4,
        )
        run = run_of(scope.size, "original", settings, manifest)
        start = trainer_of(manifest, torch.device("cpu"), scope.size, sequences, False).model.state_dict()
        trained(run, folder / "first")
        for name, other, stop_at in (
            ("the same seed again", run, None),
            ("interrupted in the middle", run, steps // 2),
            ("another seed", msgspec.structs.replace(run, pretrain_seed=2), None),
        ):
            with reported(say, name, 6):
                trained(other, folder / name.replace(" ", "-"), stop_at)
                say(f"| {name} | {' | '.join(differences(folder / 'first', folder / name.replace(' ', '-'), start))} |")


def trained(run: object, folder: Path, stop_at: int | None = None) -> None:
    """Train a run in a process of its own; interrupted once weights of step `stop_at` are there, and resumed."""
    write_json(folder / "run.json", msgspec.to_builtins(run))
    command = [
        sys.executable,
        "-m",
        "symbert",
        "pretrain",
        str(folder),
        "--threads",
        os.environ.get("OMP_NUM_THREADS", "8"),
    ]
    process = subprocess.Popen(command)
    if stop_at:
        kept = folder / f"state/weights/step-{stop_at:08d}.json"
        while not kept.exists() and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGTERM)
        if (code := process.wait(PATIENCE)) not in (0, 75):  # 0: it was done before the signal came
            raise RuntimeError(f"asked to stop, the training ended with {code}")
        process = subprocess.Popen(command)
    if code := process.wait(PATIENCE):
        raise RuntimeError(f"a training ended with {code}")


def differences(one: Path, other: Path, start: dict[str, Tensor]) -> list[str]:
    """The cells of two runs."""
    losses = [
        {line["step"]: line["loss"] for line in read_json_lines(run / "metrics.jsonl", "") if line["split"] == "train"}
        for run in (one, other)
    ]
    validated = [json.loads((run / "done.json").read_text())["validation_loss"] for run in (one, other)]
    apart = {step: abs(loss - losses[1][step]) for step, loss in losses[0].items()}
    first = next((f"{step:,}" for step, difference in apart.items() if difference), "none")
    (weights, others) = (load_file(sorted((run / "state/weights").glob("*.safetensors"))[-1]) for run in (one, other))
    differing = sum((weights[name] != others[name]).sum().item() for name in weights)
    distance, moved = (
        sum((weights[name] - each[name]).double().square().sum().item() for name in weights) ** 0.5
        for each in (others, start)
    )
    total = sum(tensor.numel() for tensor in weights.values())
    return [
        first,
        f"{max(apart.values()):.1e}",
        f"{abs(validated[0] - validated[1]):.1e}",
        f"{100 * differing / total:.0f} %",
        f"{distance:.2e}",
        f"{distance / moved:.1e}",
    ]


# --- the page ---------------------------------------------------------------------------------------------------------


class reported:
    """Context of a line; an error becomes a line that says why there are no numbers."""

    def __init__(self, say: Say, name: str, cells: int) -> None:
        self.say, self.name, self.cells = say, name, cells

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, place: object) -> bool:
        if not isinstance(error, Exception):
            return False
        traceback.print_exception(error)
        self.say(f"| {self.name} | **failed**: {reason_of(error)} |{' – |' * (self.cells - 1)}")
        return True


def reason_of(error: BaseException) -> str:
    """An error in a cell."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}".replace("|", "/")


SECTIONS = {section.__name__: section for section in (dropout, plans, memory, lengths, sharing, compiling, repeating)}


def main() -> None:
    """Write the page, or do what a child is asked for."""
    options = _options()
    scope, device = DRY if options.dry else Scope(), torch.device("cpu") if options.dry else pick_device()
    if options.words[:1] == ["finetune"]:
        return finetune(Path(options.words[1]), Path(options.words[2]), device, scope)
    if options.words[:1] == ["first-step"]:
        return first_step(device, scope)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # `timeout`: NVIDIA's MPS is ended, too
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with open(options.output, "w") as page:

        def say(line: str) -> None:
            print(line, flush=True)
            print(line, file=page, flush=True)

        name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU: a rehearsal"
        say(
            f"# What a device does\n\n* {name}; CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}\n"
            f"* {harness.machine()}\n* {harness.versions(*PACKAGES)}\n"
            f"* commit {commit_of(PROJECT)}; {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}"
        )
        for section in options.words or SECTIONS:
            SECTIONS[section](say, device, scope)
    return None


def _options(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpu-devices", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--output", type=Path, default=Path("results/gpu-devices.md"))
    parser.add_argument("--dry", action="store_true", help="tiny, on the CPU, not compiled: whether it runs")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
