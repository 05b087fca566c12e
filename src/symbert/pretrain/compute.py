"""How pre-training and fine-tuning compute: device, precision, optimizer, processes that train one model."""

import inspect
import math
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

import symbert
from symbert.errors import ConfigError, InputOutputError, MemoryExhaustedError
from symbert.files import single_writer
from symbert.model.loading import Tensors

Made = TypeVar("Made")
AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}

_claims = ExitStack()  # of GPUs; released when the process ends, however it ends

# Errors of torch that are no bug of ours: the words by which they are known, the class, and the message.
EXPLAINED = (
    (
        "out of memory|can't allocate memory",
        MemoryExhaustedError,
        "out of memory; in pre-training lower 'pretrain.micro_batch_size' or divide the parameters among processes "
        "('pretrain.shard_parameters'; the batch stays the same); the last checkpoint is kept",
    ),
    (
        r"No working C\+\+ compiler|C\+\+ compile error|Failed to find C compiler",
        ConfigError,
        "'compile' is true, but no compiler works on this machine; install a C and C++ compiler (g++), or set "
        "'compile: false'",
    ),
    (
        r"vmap: |Batching rule not implemented",
        ConfigError,
        "an operator that cannot be computed for several runs at once; set 'pretrain.together' to 1",
    ),
    (  # how Gloo, NCCL and torch's store say that another process ended, or never joined
        "(closed|reset) by peer|broken pipe|connection (refused|was likely closed)|remote process exit"
        "|timed out (waiting|connecting)|wait timeout|socket has timed out|timeout caused pair closure"
        "|operation timeout",
        InputOutputError,
        "another process of this run ended; see why, and run the same command again",
    ),
)


# --- device and precision ---------------------------------------------------------------------------------------------


@cache
def pick_device() -> torch.device:
    """The GPU of this process until it ends, or the CPU.

    ConfigError where a GPU is given that torch cannot use, because a training of days would become one of months: by
    CUDA_VISIBLE_DEVICES, as Slurm or the user sets it, which may choose none, or else by SYMBERT_GPUS, the number that
    a rule asked for; and where processes that train together on this machine are more than its GPUs.
    """
    if not torch.cuda.is_available():
        asked, chosen = os.environ.get("SYMBERT_GPUS", "0"), os.environ.get("CUDA_VISIBLE_DEVICES")
        is_given = asked != "0" if chosen is None else re.match(r"\s*(\d|GPU-|MIG-)", chosen)
        if is_given:
            raise ConfigError(
                f"this job has GPUs (SYMBERT_GPUS={asked}, CUDA_VISIBLE_DEVICES={chosen}), but torch "
                f"{torch.__version__} cannot use one; install a torch and a driver that fit, or set "
                "CUDA_VISIBLE_DEVICES= (empty) to compute on the CPU (docs/pretraining.md)"
            )
        return torch.device("cpu")
    number, visible = int(os.environ.get("LOCAL_RANK", 0)), torch.cuda.device_count()
    if number >= visible:
        raise ConfigError(f"'pretrain.processes': process {number} has no GPU, as {visible} are visible; start fewer")
    device = torch.device("cuda", _free_gpu(number, int(os.environ.get("LOCAL_WORLD_SIZE", 1)), visible))
    torch.cuda.set_device(device)
    return device


def _free_gpu(number: int, processes: int, visible: int) -> int:
    """The first GPU that no other job of the user has locked: that of the process's number, or one beyond those of its
    training. Snakemake counts the GPUs of a machine (`--resources gpu=4`), but gives none to a job."""
    folder = Path(tempfile.gettempdir(), f"symbert-gpus-{os.getuid()}")
    for gpu in (number, *range(processes, visible)):
        with suppress(InputOutputError, OSError):  # a lock never ends a training
            _claims.enter_context(single_writer(folder / str(torch.cuda.get_device_properties(gpu).uuid)))
            return gpu
    print(
        f"warning: every GPU here ({visible}) is in use by another job of yours; this one shares number {number}: tell "
        f"Snakemake how many there are, --resources gpu={visible}",
        file=sys.stderr,
    )
    return number


@contextmanager
def explained(task: Any) -> Iterator[None]:
    """The error and the message of EXPLAINED, after the name of the task, in the place of torch's."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        said = str(error).partition("Exception raised from")[0]  # without the place in torch
        said = "out of memory" if isinstance(error, MemoryError) else said
        for words, kind, message in EXPLAINED:
            if re.search(words, said, re.IGNORECASE):
                raise kind(f"{task}: {message}") from error
        raise


def resolve_precision(precision: str, device: torch.device) -> str:
    """The precision that `auto` means on a device: bf16 where a GPU computes in it, else fp32.

    ConfigError for fp16 on a CPU, which has no loss scaling there.
    """
    if precision == "auto":
        return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    if precision == "fp16" and device.type != "cuda":
        raise ConfigError("config: 'precision' is fp16, which needs a GPU; write auto, fp32 or bf16")
    return precision


def autocast(precision: str, device: torch.device, cache_enabled: bool = True) -> AbstractContextManager:
    """Context in which matrix products run in a resolved precision while weights stay in fp32; the cache keeps a
    rounded weight for its next use."""
    if precision not in AUTOCAST:
        return nullcontext()
    return torch.autocast(device.type, AUTOCAST[precision], cache_enabled=cache_enabled)


def share_compiled_code() -> None:
    """Keep what torch.compile makes in the user's cache folder, where the next job finds it: the folder of temporary
    files, torch's own choice, is often of one job alone. TORCHINDUCTOR_CACHE_DIR chooses another."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(caches / "symbert" / "inductor"))


def describe_machine(device: torch.device) -> dict[str, Any]:
    """Host, device, processor and versions, as this process sees them."""
    processors = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.*)", processors.read_text() if processors.is_file() else "", re.MULTILINE)
    processor = names[0] if names else platform.processor() or platform.machine()
    return {
        "host": platform.node(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "processor": f"{processor}, {torch.backends.cpu.get_cpu_capability()}",
        "versions": {
            "symbert": symbert.__version__,
            **{name: version(name) for name in ("torch", "transformers", "numpy")},
        },
    }


# --- a device that computes beside this process -----------------------------------------------------------------------


def computes_beside(device: torch.device) -> bool:
    """Whether a device computes while this process goes on: then nothing should wait for it."""
    return device.type == "cuda"


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the CPU on a device; a GPU copies it while the process goes on."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


class Reading:
    """Numbers on their way from a device, behind what it was given before and ahead of what it is given afterwards."""

    def __init__(self, values: Tensor) -> None:
        self.values, self.arrived = values, None
        if values.is_cuda:
            self.values = torch.empty_like(values, device="cpu", pin_memory=True).copy_(values, non_blocking=True)
            self.arrived = torch.cuda.Event()
            self.arrived.record()

    def numbers(self) -> list[float]:
        """The numbers, as soon as they are there."""
        if self.arrived:
            self.arrived.synchronize()
        return self.values.tolist()


class Ahead(Generic[Made]):
    """What `make` makes of a number; meanwhile a thread makes that of the next number."""

    def __init__(self, make: Callable[[int], Made]) -> None:
        self.make, self.thread = make, ThreadPoolExecutor(1, "ahead")
        self.next: dict[int, Future[Made]] = {}

    def __call__(self, number: int) -> Made:
        made = self.next.get(number) or self.thread.submit(self.make, number)
        self.next = {number + 1: self.thread.submit(self.make, number + 1)}
        return made.result()


# --- optimizer --------------------------------------------------------------------------------------------------------


class AdamW(torch.optim.AdamW):
    """PyTorch's, without its compiler, whose import takes 1.8 s of 4.7: these methods beneath their decorators."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))
    add_param_group = inspect.unwrap(torch.optim.AdamW.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.AdamW.zero_grad)


def build_optimizer(model: nn.Module, settings: Any, capturable: bool = False) -> AdamW:
    """AdamW (Loshchilov and Hutter, ICLR 2019) without weight decay for parameters with at most one dimension.

    Fine-tuning has no settings for the betas: PyTorch's values hold. One that is `capturable` may be part of a CUDA
    graph, its rate a tensor.
    """
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    betas = getattr(settings, "adam_beta1", 0.9), getattr(settings, "adam_beta2", 0.999)
    return AdamW(groups, lr=0.0, betas=betas, eps=settings.adam_epsilon, fused=True, capturable=capturable)


def linear_rate(step: int, peak: float, warmup_steps: int, end: int, decay_steps: int | None = None) -> float:
    """The learning rate of `step` (from 0): linear from 0 to `peak` over `warmup_steps`, then linear to 0 at `end`; of
    the `decay_steps` before that alone, where given (Hu et al. 2024, arXiv 2404.06395: warm-up, stable, decay)."""
    if step < warmup_steps:
        return peak * step / warmup_steps
    if decay_steps is not None and step < end - decay_steps:
        return peak
    return peak * max(end - step, 0) / max(end - warmup_steps if decay_steps is None else decay_steps, 1)


class Updater:
    """Turns losses into steps of an optimizer: `backward` as often as needed, then `clip`, then `update`."""

    def __init__(
        self, model: nn.Module, optimizer: Optimizer, gradient_clip: float, precision: str, device: torch.device
    ) -> None:
        self.model, self.optimizer, self.gradient_clip = model, optimizer, gradient_clip
        self.scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a loss, scaled in fp16, to the gradients."""
        self.scaler.scale(loss).backward()

    def clip(self) -> Tensor:
        """Unscale the gradients and clip their norm; returns the norm before."""
        self.scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.gradient_clip)
        return norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # of sharded gradients the norm of all

    def update(self, learning_rate: float | Tensor) -> None:
        """Move the weights and clear the gradients; in fp16 a gradient that is not finite only lowers the scale."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)


# --- processes --------------------------------------------------------------------------------------------------------

# One process trains a model, or as many as `torchrun` started; each computes its share of a batch. Replicated processes
# have all weights and add up their gradients (DDP). Sharded processes each keep some rows of every tensor, by its first
# dimension, and gather a layer's weights while it is computed (torch.distributed.fsdp; Zhao et al. 2023, arXiv
# 2304.11277); both compute the same in other orders of summation. Files have whole tensors.

# Seconds in which Gloo's threads drop their last tensors. For that they need the interpreter's lock, which this process
# holds while it waits for them when the group, or the model that shares gradients through it, is deleted (torch 2.13).
SETTLING = 0.5
PATIENCE = timedelta(hours=3)  # with which processes wait while the leading one verifies terabytes of shards


@dataclass(frozen=True)
class World:
    """This process's place among all, and its device."""

    rank: int
    size: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes."""
        return self.rank == 0

    def share(self, count: int) -> range:
        """This process's part of `count` things."""
        return range(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def batches(self, count: int, batch_size: int) -> list[range]:
        """This process's part of `count` things, at most `batch_size` at a time, in as many batches as every process
        has: the last ones may be empty."""
        share, largest = self.share(count), math.ceil(count / self.size)
        return [share[first : first + batch_size] for first in range(0, largest, batch_size)]

    def total(self, *values: float) -> list[float]:
        """The sum of each value over all processes."""
        return self._added_up(torch.tensor(values, dtype=torch.float64, device=self.device)).tolist()

    def step_total(self, loss: Tensor, norm: Tensor, flags: Sequence[float]) -> Tensor:
        """On the device: the sum of the losses of all processes, the gradient norm, which is equal in all, and the sums
        of flags."""
        known = sent(torch.tensor(flags, dtype=torch.float64), self.device)
        values = self._added_up(torch.cat([torch.stack([loss, norm]).double(), known]))
        values[1] /= self.size  # the mean of equal numbers is exact
        return values

    def wait(self) -> None:
        """Until every process is here."""
        self.total(0.0)

    def _added_up(self, values: Tensor) -> Tensor:
        if self.size > 1:
            dist.all_reduce(values)
        return values


@contextmanager
def join_world() -> Iterator[World]:
    """The processes that `torchrun` started together (NCCL on GPUs, Gloo on CPUs), or this one alone."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield World(0, 1, pick_device())
        return
    device = pick_device()
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield World(dist.get_rank(), dist.get_world_size(), device)
    finally:
        if backend == "gloo":
            time.sleep(SETTLING)
    dist.destroy_process_group()  # not after a failure: it would wait for the others, who wait for this process


def distribute(loss: nn.Module, world: World, shard_parameters: bool, compiled: bool) -> nn.Module:
    """The module of a model and its loss on its device, compiled or not; its processes exchange gradients, of which the
    mean over processes counts."""
    if shard_parameters:
        return _sharded(loss, world)
    loss.to(world.device)
    if compiled:
        if world.device.type == "cuda":
            share_compiled_code()
        loss = torch.compile(loss, fullgraph=True, dynamic=False)
    if world.size == 1:
        return loss
    # Without the search DDP regroups gradients after a session's first step, and adds them in another order: on resume
    # other bits. Buffers are constants, which need no broadcast.
    return DistributedDataParallel(loss, find_unused_parameters=True, broadcast_buffers=False)


def exchange(loss: nn.Module, is_due: bool) -> AbstractContextManager:
    """Context of a backward pass after which replicated processes add up their gradients, if that `is_due`."""
    return loss.no_sync() if isinstance(loss, DistributedDataParallel) and not is_due else nullcontext()


def _sharded(loss: nn.Module, world: World) -> nn.Module:
    """The module with this process's part of each parameter."""
    from torch.distributed.device_mesh import init_device_mesh  # these two take a second
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(world.device.type, (world.size,))
    for module in (*loss.model.bert.encoder.layer, loss):
        sharded = fully_shard(module, mesh=mesh)
        if world.device.type == "cpu":
            sharded.set_force_sum_reduction_for_comms(True)  # Gloo computes no means
    return loss


def gather(tensors: Tensors, keeps: bool) -> Tensors:
    """Tensors as a file has them: sharded ones whole, in host memory.

    All processes that have a part call it; one that does not keep them gets none.
    """
    gathered = {}
    for name, tensor in tensors.items():
        whole = tensor.full_tensor().cpu() if _is_part(tensor) else tensor
        if keeps:
            gathered[name] = whole
    return gathered


def part_of(tensor: Tensor, other: Tensor) -> Tensor:
    """The part of a whole tensor that this process has of another one; all of it where that is whole, or a number."""
    if not _is_part(other) or tensor.ndim == 0:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor, other.device_mesh, other.placements, src_data_rank=None)


def _is_part(tensor: Tensor) -> bool:
    return hasattr(tensor, "full_tensor")  # a DTensor, whose class takes a second to import
