"""Devices without any GPU, optimizers and the schedule."""

import re
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from msgspec.structs import replace

from model.models import configured
from pretrain.corpora import brief
from symbert.errors import ConfigError, InputOutputError, MemoryExhaustedError
from symbert.model.bert import MaskedModel
from symbert.pretrain import compute
from symbert.pretrain.compute import (
    build_optimizer,
    explained,
    linear_rate,
    pick_device,
)

CPU, GPU, SETTINGS = torch.device("cpu"), torch.device("cuda", 0), brief()


@pytest.fixture
def picking(monkeypatch, tmp_path):
    """Forgets the device that was picked, and lets go of it, before and after."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pick_device.cache_clear()
    yield
    pick_device.cache_clear()
    compute._claims.close()


@pytest.fixture
def gpus(picking, monkeypatch):
    """A machine with four GPUs, and a function that picks one as another process would."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda gpu: SimpleNamespace(uuid=f"GPU-{gpu}"))

    def pick(**places):
        pick_device.cache_clear()
        for name, value in places.items():
            monkeypatch.setenv(name, str(value))
        return pick_device().index

    return pick


def test_jobs_of_one_machine_share_no_gpu_while_one_is_free(gpus, capsys):
    """As `snakemake --resources gpu=4` starts them; it gives none a number. One too many says that it shares."""
    assert [gpus() for _ in range(4)] == [0, 1, 2, 3] and not capsys.readouterr().err
    assert gpus() == 0 and "--resources gpu=4" in capsys.readouterr().err


def test_processes_of_a_training_have_the_gpus_of_their_local_ranks_or_free_ones(gpus):
    training = {"LOCAL_WORLD_SIZE": 2}
    assert [gpus(LOCAL_RANK=rank, **training) for rank in (0, 1, 1, 0)] == [0, 1, 2, 3]
    with pytest.raises(ConfigError, match="process 4 has no GPU, as 4 are visible"):
        gpus(LOCAL_RANK=4)


def test_a_gpu_that_torch_cannot_use_is_not_passed_over_for_the_cpu_unless_that_is_chosen(picking, monkeypatch):
    """It is given by the rule or the scheduler, and the user may choose none."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    given = [("2", None), *(("0", chosen) for chosen in ("4", "0,-1,1", "GPU-8932f937,GPU-11"))]
    none = [("0", None), *(("1", chosen) for chosen in ("", "-1", "NoDevFiles"))]
    for asked, chosen in given + none:
        monkeypatch.setenv("SYMBERT_GPUS", asked)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if chosen is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
        pick_device.cache_clear()
        if (asked, chosen) in none:
            assert pick_device() == CPU
        else:
            with pytest.raises(ConfigError, match=r"has GPUs .*torch .* cannot use one.*set CUDA_VISIBLE_DEVICES="):
                pick_device()


EXPLAINED = {
    MemoryExhaustedError: (
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ),
    ConfigError: (
        RuntimeError("backend='inductor' raised:\nRuntimeError: Failed to find C compiler. Please specify"),
        RuntimeError("backend='inductor' raised:\nC++ compile error"),
    ),
    InputOutputError: (
        RuntimeError("[/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:24131\nmore lines"),
        dist.DistBackendError("NCCL error in: ProcessGroupNCCL.cpp:3690, remote process exited or a network error"),
        dist.DistBackendError("NCCL error in: a.cpp:77, system error\nLast error:\nrecv: Connection reset by peer"),
        RuntimeError("[/gloo/transport/tcp/buffer.cc:1] Timed out waiting 1800000ms for recv operation"),
        RuntimeError("wait timeout after 6000ms, keys: /device of 1"),
    ),
}


FAULTS = (
    dist.DistBackendError("NCCL error in: NCCLUtils.cpp:93, invalid usage\nLast error:\nDuplicate GPU detected"),
    dist.DistBackendError("NCCL error in: a.cpp:1, unhandled cuda error\nException raised from wait by peer"),
    RuntimeError("CUDA error: the launch timed out and was terminated"),
    RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
)


def test_errors_of_torch_that_are_no_bugs_are_known_by_their_words_and_no_others():
    """Every message with "NCCL" in it sent people to look for a process that had not ended."""
    for kind, errors in EXPLAINED.items():
        for error in errors:
            with pytest.raises(kind, match="^tiny-pairwise seed 1: "), explained("tiny-pairwise seed 1"):
                raise error
    for fault in FAULTS:
        with pytest.raises(type(fault), match=re.escape(str(fault))), explained("tiny"):
            raise fault


@pytest.mark.parametrize(("warmup", "end"), [(10_000, 200_000), (0, 200_000), (100, 100)])
def test_the_schedule_is_hugging_faces(warmup, end):
    from transformers import get_linear_schedule_with_warmup

    theirs = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1e-4)
    schedule = get_linear_schedule_with_warmup(theirs, warmup, end)
    for step in (0, 1, 99, 9_999, 10_000, 10_001, 150_000, 199_999, 200_001):
        expected = 1e-4 * schedule.lr_lambdas[0](step)
        assert linear_rate(step, 1e-4, warmup, end) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("warmup", "decay", "end"), [(10, 30, 100), (0, 0, 100), (10, 90, 100), (0, 100, 100)])
def test_a_schedule_with_a_stable_part_is_hugging_faces(warmup, decay, end):
    from transformers import get_wsd_schedule

    theirs = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1e-4)
    kinds = {"warmup_type": "linear", "decay_type": "linear"}
    schedule = get_wsd_schedule(theirs, warmup, decay, num_training_steps=end, **kinds)
    for step in range(end):
        expected = 1e-4 * schedule.lr_lambdas[0](step)
        assert linear_rate(step, 1e-4, warmup, end, decay) == pytest.approx(expected, rel=1e-12)
    assert {linear_rate(step, 1e-4, warmup, end, decay) for step in range(warmup, end - decay)} <= {1e-4}


def test_biases_and_layer_norms_are_not_decayed_and_the_factors_are_with_the_settings_of_the_stage():
    """Fine-tuning has none for the betas: it takes PyTorch's."""
    model = MaskedModel(configured("tiny", "pairwise", vocabulary_size=50))
    ours = build_optimizer(model, replace(SETTINGS, adam_beta1=0.8, adam_beta2=0.95))
    theirs = build_optimizer(model, SimpleNamespace(weight_decay=0.01, adam_epsilon=1e-7))
    for optimizer, betas, epsilon in ((ours, (0.8, 0.95), 1e-12), (theirs, (0.9, 0.999), 1e-7)):
        assert (optimizer.defaults["betas"], optimizer.defaults["eps"]) == (betas, epsilon)
        decayed = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
        for name, parameter in model.named_parameters():
            free = name.endswith("bias") or "LayerNorm" in name
            assert decayed[id(parameter)] == (0.0 if free else 0.01), name


def test_adamw_is_pytorchs_to_the_bit_and_goes_on_from_its_state():
    def trained(optimizer_of) -> list[torch.Tensor]:
        torch.manual_seed(0)
        module = torch.nn.Linear(5, 3)
        optimizer = optimizer_of(module)
        for step in range(4):
            if step == 2:
                state = optimizer.state_dict()
                optimizer = optimizer_of(module)
                optimizer.load_state_dict(state)
            module(torch.randn(7, 5)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        return [*module.parameters()]

    def pytorchs(module: torch.nn.Module) -> torch.optim.Optimizer:
        groups = [{"params": module.weight, "weight_decay": 0.01}, {"params": module.bias, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.999), eps=1e-12, fused=True)

    def ours(module: torch.nn.Module) -> torch.optim.Optimizer:
        optimizer = build_optimizer(module, SETTINGS)
        for group in optimizer.param_groups:
            group["lr"] = 0.01
        return optimizer

    assert all(map(torch.equal, trained(pytorchs), trained(ours)))
