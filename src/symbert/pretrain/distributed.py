"""The processes that train one model together: one, or as many as `torchrun` started.

All of the arithmetic of distribution is here. Each process computes its share of a batch. Replicated processes have all
weights and add up their gradients (DDP). Sharded processes each keep some rows of every tensor, by its first dimension,
and gather a layer's weights while it is computed (torch.distributed.fsdp; Zhao et al. 2023, arXiv 2304.11277); both
compute the same in other orders of summation. Files have whole tensors.
"""

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from symbert.model.bert import Encoder
from symbert.model.loading import Tensors
from symbert.pretrain.compute import pick_device

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
        return self._added_up(torch.tensor(values, dtype=torch.float64, device=self.device))

    def step_total(self, loss: Tensor, norm: Tensor, flags: Sequence[float]) -> tuple[float, float, list[float]]:
        """The sums of losses and of flags over all processes, and the gradient norm, which is equal in all.

        The one wait of a step, for the device and for the other processes.
        """
        known = torch.tensor(flags, dtype=torch.float64).to(self.device, non_blocking=True)
        loss, norms, *flags = self._added_up(torch.cat([torch.stack([loss, norm]).double(), known]))
        return loss, norms / self.size, flags  # the mean of equal numbers is exact

    def wait(self) -> None:
        """Until every process is here."""
        self.total(0.0)

    def _added_up(self, values: Tensor) -> list[float]:
        if self.size > 1:
            dist.all_reduce(values)
        return values.tolist()


@contextmanager
def join_world() -> Iterator[World]:
    """The processes that `torchrun` started together (NCCL on GPUs, Gloo on CPUs), or this one alone."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield alone()
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


def alone() -> World:
    """A single process."""
    return World(0, 1, pick_device())


def distribute(loss: nn.Module, world: World, shard_parameters: bool, compiled: bool) -> nn.Module:
    """The module of a model and its loss on its device, compiled or not; its processes exchange gradients, of which the
    mean over processes counts."""
    if shard_parameters:
        return _sharded(loss, world)
    loss.to(world.device)
    if compiled:
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
    layers = [layer for module in loss.modules() if isinstance(module, Encoder) for layer in module.layer]
    for module in (*layers, loss):
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
