"""Weights, gradients and the optimizer's state in parts, one for each of the processes that train a model.

A part has some rows of every tensor, by its first dimension: of 5 rows two processes have 3 and 2. What lies outside
the layers (embeddings, head), and each layer while it is computed, is gathered from all processes and then dropped;
gradients are added up into their parts at once (torch.distributed.fsdp; Zhao et al. 2023, arXiv 2304.11277). What is
computed is what processes compute that each have all weights, in other orders of summation. Files have whole tensors.
"""

from torch import Tensor, nn

from symbert.errors import ConfigError
from symbert.model.bert import Layers
from symbert.model.loading import Tensors
from symbert.pretrain.world import World


def shard(loss: nn.Module, world: World) -> nn.Module:
    """The module of a model and its loss on the processes' devices, each with its part; before there is an optimizer.

    ConfigError for a parameter without a dimension.
    """
    from torch.distributed.device_mesh import init_device_mesh  # these two take a second
    from torch.distributed.fsdp import fully_shard

    if scalars := [name for name, parameter in loss.named_parameters() if parameter.ndim == 0]:
        raise ConfigError(
            f"config: 'pretrain.shard_parameters' is true, but {scalars[0]} is a number without a dimension, which has "
            "no parts; make it a vector of one number, or set shard_parameters: false"
        )
    mesh = init_device_mesh(world.device.type, (world.size,))
    layers = [layer for module in loss.modules() if isinstance(module, Layers) for layer in module]
    for module in (*layers, loss):
        sharded = fully_shard(module, mesh=mesh)
        if world.device.type == "cpu":
            sharded.set_force_sum_reduction_for_comms(True)  # Gloo computes no means
    return loss


def gather(tensors: Tensors, keeps: bool) -> Tensors:
    """Tensors as a file has them: those in parts whole, in host memory.

    All processes that have a part call it; one that does not keep them gets none.
    """
    gathered = {}
    for name, tensor in tensors.items():
        whole = tensor.full_tensor().cpu() if _is_part(tensor) else tensor
        if keeps:
            gathered[name] = whole
    return gathered


def part_of(tensor: Tensor, other: Tensor) -> Tensor:
    """Of a whole tensor the part that this process has of another one; all of it where that is whole, or it a number.

    ConfigError for tensors of two shapes: an optimizer keeps others than those that its parameters have.
    """
    if not _is_part(other) or tensor.ndim == 0:
        return tensor
    if tensor.shape != other.shape:
        raise ConfigError(
            f"config: 'pretrain.shard_parameters' is true, but 'pretrain.optimizer' keeps {tuple(tensor.shape)} "
            f"numbers of a weight of {tuple(other.shape)}, which have no parts alike; set shard_parameters: false"
        )
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor, other.device_mesh, other.placements, src_data_rank=None)


def _is_part(tensor: Tensor) -> bool:
    return hasattr(tensor, "full_tensor")  # a DTensor, whose class takes a second to import
