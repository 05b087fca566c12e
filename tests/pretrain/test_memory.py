"""The predicted memory of a step, beside what an H100 measured and what torch keeps."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.distributed.fake_pg import FakeStore

from symbert.model.configuration import configuration_of
from symbert.model.network import MaskedModel
from symbert.pretrain.memory import MemoryNeed, memory_need
from symbert.pretrain.objective import Loss
from symbert.pretrain.sharding import shard
from symbert.pretrain.world import World
from symbert.sizes import SIZES, VOCABULARY_SIZE

MASKED = 0.15


def need(size: str, sequences: int = 1, tokens: int = 512, **changes) -> MemoryNeed:
    """Of an encoder in 16 bits, on one GPU, all sequences at a time."""
    shape = SIZES[size]
    outside, logits = replace(shape, num_hidden_layers=0).parameters(), MASKED * tokens * VOCABULARY_SIZE
    usual = MemoryNeed(
        shape, shape.parameters(), outside, tokens, logits, 2, sequences, sequences, 1, True, False, False
    )
    return replace(usual, **changes)


def test_what_an_h100_measured_is_predicted_to_five_per_cent(root):
    """Every uncompiled row of the check of a GPU, of its 128 sequences (base: 64); operators count as `original`."""
    page = (root / "docs/evidence/gpu-check.md").read_text("utf-8")
    rows = re.findall(r"^\| (\w+) \| \w+ \| faithful \| (\w+) \|.*\| ([\d,]+) \| \w+ \|$", page, re.M)
    ratios = []
    for size, precision, measured in rows:
        predicted = need(size, 64 if size == "base" else 128, in_16_bits=precision != "fp32").total
        ratios.append(predicted / 1e6 / float(measured.replace(",", "")))
    assert len(ratios) == 6 and all(0.95 < ratio < 1.0 for ratio in ratios), ratios


def kept_by(layers: torch.nn.Module, hidden: torch.Tensor) -> int:
    """Bytes that a forward pass keeps for its gradients, parameters not counted, each once."""
    own = {parameter.untyped_storage().data_ptr() for parameter in layers.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(values: torch.Tensor) -> torch.Tensor:
        storage = values.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage
        return values

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda values: values):
        layers(hidden)
    return sum(storage.nbytes() for storage in kept.values())


@pytest.mark.parametrize("recomputes", [False, True])
def test_layers_in_32_bits_keep_what_is_predicted_but_for_masks_of_dropout(recomputes):
    """Without dropout, whose masks (2 h) have 32 bits on a CPU; statistics of norms and attention are not counted."""
    model, tokens = MaskedModel(configuration_of("small", "original", dropout=0.0)), 2 * 64
    if recomputes:
        model.recompute_activations()
    kept = kept_by(model.bert.encoder.layer, torch.zeros(2, 64, 512, requires_grad=True))
    usual, less = (need("small", 2, 64, in_16_bits=False, logits=0, recomputes=each) for each in (False, True))
    embeddings = 5 * 512 * tokens
    layer = (usual.activations - embeddings) / 4
    predicted = less.activations - embeddings - layer if recomputes else 4 * (layer - 2 * 512 * tokens)
    assert kept == pytest.approx(predicted, rel=0.01)


def test_an_xlarge_in_eight_parts_has_the_predicted_state_after_a_step():
    """Its tensors are fake: they have shapes and no memory; a part has at most one row more of each than an eighth."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    try:
        mode = FakeTensorMode()
        with mode:
            model = MaskedModel(configuration_of("xlarge", "original", dropout=0.0))
        objective = SimpleNamespace(logits=lambda model, ids, positions: model.masked_logits(ids, positions))
        loss = shard(Loss(objective, model.train()), World(0, 8, torch.device("cpu")))
        optimizer = torch.optim.AdamW(model.parameters())
        with mode:
            ids, positions = torch.zeros(1, 8, dtype=torch.long), torch.zeros(2, dtype=torch.long)
            loss(torch.zeros(2, dtype=torch.long), ids=ids, positions=positions).backward()
            optimizer.step()
        parts = [tensor.to_local() for p in model.parameters() for tensor in (p, p.grad)]
        parts += [one.to_local() for state in optimizer.state.values() for one in state.values() if one.numel() > 1]
    finally:
        dist.destroy_process_group()
    predicted = need("xlarge", processes=8, shards=True).state
    assert SIZES["xlarge"].parameters() == pytest.approx(1.28e9, rel=0.01)
    assert sum(part.nbytes for part in parts) == pytest.approx(predicted, rel=0.001)
    assert predicted == need("xlarge").state / 8


def test_it_follows_from_the_configuration(paper):
    run = paper.pretrainings()[-1]
    usual = memory_need(paper, run)
    assert (run.size, usual.share, usual.sequences, usual.in_16_bits) == ("base", 256, 256, True)
    assert usual.total == pytest.approx(need("base", 256, parameters=usual.parameters).total)
    paper.config["pretrain"] |= {"processes": 4, "micro_batch_size": 16, "shard_parameters": True}
    paper.config["pretrain"] |= {"recompute_activations": True}
    ways = {"processes": 4, "shard_parameters": True, "recompute_activations": True, "micro_batch_size": 16}
    spread = memory_need(paper, run)
    assert spread.keys == ways and spread.share == 64 and spread.state == usual.state / 4
    assert spread.total < usual.total / 8


@pytest.mark.parametrize("size", ["small", "xlarge"])
def test_whatever_needs_less_is_predicted_to_need_less(size):
    usual = need(size, 64)
    assert replace(usual, sequences=32).total < usual.total
    assert need(size, 64, recomputes=True).total < usual.total
    assert need(size, 64, processes=4, shards=True).total < usual.total
    assert need(size, 64, processes=4).total == usual.total, "whole in each process"
    assert need(size, 64, in_16_bits=False).total > usual.total
    assert (
        min(one.total for one in usual.alternatives()) >= need(size, processes=64, shards=True, recomputes=True).state
    )


def test_alternatives_are_the_same_batch_and_the_first_that_fits_costs_least_time():
    ways = [one.keys for one in need("large", 8).alternatives()]
    assert [way["micro_batch_size"] for way in ways[:8]] == [8, 4, 2, 1] * 2
    assert [way["recompute_activations"] for way in ways[:8]] == [False] * 4 + [True] * 4
    assert [way["processes"] for way in ways] == sorted(way["processes"] for way in ways)
    assert {way["processes"] for way in ways} == {1, 2, 4, 8}
    assert all(one.share * one.processes == 8 for one in need("large", 8).alternatives())
