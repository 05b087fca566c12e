"""The processes that train one model together: one, or as many as `torchrun` started."""

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from symbert.errors import ConfigError, InputOutputError
from symbert.pretrain.compute import pick_device

# Seconds in which Gloo's threads drop their last tensors. For that they need the interpreter's lock, which this process
# holds while it waits for them when the group, or the model that shares gradients through it, is deleted (torch 2.13).
SETTLING = 0.5

PEER_ENDED = re.compile(  # how Gloo, NCCL and torch's store say that another process ended, or never joined
    "(closed|reset) by peer|broken pipe|connection (refused|was likely closed)|remote process exit"
    "|timed out (waiting|connecting)|wait timeout|socket has timed out|timeout caused pair closure|operation timeout",
    re.IGNORECASE,
)

PATIENCE = timedelta(hours=3)  # with which processes wait while the leading one verifies terabytes of shards


@dataclass(frozen=True)
class World:
    """This process's place among them, and its device."""

    rank: int
    size: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes."""
        return self.rank == 0

    def share(self, count: int) -> tuple[int, int]:
        """This process's part of `count` things, from the first to before the last."""
        return count * self.rank // self.size, count * (self.rank + 1) // self.size

    def total(self, *values: float) -> list[float]:
        """The sum of each value over all processes; InputOutputError when one of them has ended."""
        if self.size == 1:
            return list(values)
        return self._added_up(torch.tensor(values, dtype=torch.float64, device=self.device))

    def read_total(self, *scalars: Tensor, told: Sequence[float] = ()) -> list[float]:
        """As `total`, of values on the device, for which this process waits once, and then of those of `told`."""
        known = torch.tensor(told, dtype=torch.float64).to(self.device, non_blocking=True)
        return self._added_up(torch.cat([torch.stack(scalars).double(), known]))

    def _added_up(self, values: Tensor) -> list[float]:
        if self.size > 1:
            with peers_explained(self.rank):
                dist.all_reduce(values)
        return values.tolist()

    def wait(self) -> None:
        """Until every process is here."""
        self.total(0.0)


@contextmanager
def peers_explained(rank: int) -> Iterator[None]:
    """InputOutputError in the place of torch's error, wherever this process waits for one that has ended."""
    try:
        yield
    except RuntimeError as error:
        message = str(error).partition("Exception raised from")[0]  # without the place in torch
        if not PEER_ENDED.search(message):
            raise
        reason = message.splitlines()[0].partition(". ")[0]
        raise InputOutputError(
            f"process {rank}: another process of this run ended ({reason}); see why, and run the same command again"
        ) from None


def alone() -> World:
    """A single process."""
    return World(0, 1, pick_device())


@contextmanager
def join_world() -> Iterator[World]:
    """The processes that `torchrun` started together (NCCL on GPUs, Gloo on CPUs), or this one alone.

    ConfigError, before they join, when some have a GPU and some have not; InputOutputError when one ends meanwhile.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield alone()
        return
    device = pick_device(int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]))
    backend = "nccl" if device.type == "cuda" else "gloo"
    with peers_explained(int(os.environ["RANK"])):
        store, rank, size = next(dist.rendezvous("env://", timeout=PATIENCE))
        _refuse_other_devices(store, rank, size, device)
        dist.init_process_group(
            backend, store=dist.PrefixStore("group", store), rank=rank, world_size=size, timeout=PATIENCE
        )
    try:
        yield World(rank, size, device)
    finally:
        if backend == "gloo":
            time.sleep(SETTLING)
    dist.destroy_process_group()  # not after a failure: it would wait for the others, who wait for this process


def _refuse_other_devices(store: dist.Store, rank: int, size: int, device: torch.device) -> None:
    """ConfigError when the processes do not all compute on one kind of device: they could not exchange gradients."""
    store.set(f"device of {rank}", device.type)
    kinds = [store.get(f"device of {other}").decode() for other in range(size)]
    if len(set(kinds)) > 1:
        devices = ", ".join(f"{other} on {kind}" for other, kind in enumerate(kinds))
        raise ConfigError(
            f"the processes of this run compute on different devices ({devices}); give each a GPU that its torch can "
            "use, or set CUDA_VISIBLE_DEVICES= (empty) for all"
        )
