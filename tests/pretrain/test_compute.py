"""Devices without any GPU, recipes, optimizers and the schedule."""

import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from msgspec.structs import replace

from pretrain.corpora import brief
from symbert.errors import ConfigError
from symbert.model.bert import MaskedModel
from symbert.model.configuration import configuration_of
from symbert.pretrain.compute import (
    RECIPES,
    Updater,
    attention_dropout,
    attention_kernels,
    build_optimizer,
    claim_gpu,
    compiler_explained,
    given_gpu,
    linear_rate,
    pick_device,
    recorded_dropout,
    resolve_precision,
)

CPU, GPU, SETTINGS = torch.device("cpu"), torch.device("cuda", 0), brief()
HOLD = "import sys\nfrom pathlib import Path\nfrom symbert.pretrain.compute import claim_gpu\n"
HOLD += "print(claim_gpu(sys.argv[2:], folder=Path(sys.argv[1])), flush=True)\nsys.stdin.read()\n"


def test_a_gpu_is_given_by_machine_scheduler_or_configuration_and_the_user_may_choose_none(tmp_path):
    """A job of Slurm without a GPU has none, whatever its node shows."""
    nowhere, driver, job = tmp_path / "none", tmp_path / "gpus", {"SLURM_JOB_ID": "4711"}
    (driver / "0000:07:00.0").mkdir(parents=True)
    assert given_gpu({}, nowhere) is None and str(driver) in given_gpu({}, driver)
    for name in ("SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE", "SYMBERT_GPUS"):
        assert f"{name}=2" in given_gpu({name: "2"}, nowhere) and f"{name}=2" in given_gpu({**job, name: "2"}, driver)
    for chosen in ("4", "0,-1,1", "GPU-8932f937,GPU-11"):
        assert given_gpu({"CUDA_VISIBLE_DEVICES": chosen}, nowhere) == f"CUDA_VISIBLE_DEVICES is {chosen}"
    for none in ("", "-1", "NoDevFiles"):
        assert given_gpu({"CUDA_VISIBLE_DEVICES": none, "SLURM_JOB_GPUS": "0", "SYMBERT_GPUS": "1"}, driver) is None
    for none in ({}, {"SYMBERT_GPUS": "0"}, {"SLURM_GPUS_ON_NODE": "0", "SLURM_JOB_GPUS": ""}):
        assert given_gpu(none, nowhere) is given_gpu({**job, **none}, driver) is None


@pytest.fixture
def hold(tmp_path):
    """Starts a process that claims one of the GPUs and keeps it; gives it and the number that it got."""
    processes = []

    def start(*identities: str) -> tuple[subprocess.Popen, int]:
        command = [sys.executable, "-c", HOLD, str(tmp_path / "locks"), *identities]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        processes.append(subprocess.Popen(command, text=True, **pipes))
        return processes[-1], int(processes[-1].stdout.readline())

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_no_two_processes_have_one_gpu_and_a_killed_one_gives_its_own_back(hold):
    first, number = hold("GPU-a", "GPU-b")
    assert (number, hold("GPU-a", "GPU-b")[1]) == (0, 1)
    assert hold("GPU-b", "GPU-c")[1] == 1, "the same GPU by its name, whatever its number where others are visible"
    first.kill()
    first.communicate()
    assert hold("GPU-a", "GPU-b")[1] == 0


def test_where_every_gpu_is_taken_one_is_shared_and_its_holder_named(hold, tmp_path, capsys):
    holder, _ = hold("GPU-a")
    assert claim_gpu(["GPU-a"], folder=tmp_path / "locks") == 0
    said = capsys.readouterr().err
    assert said.startswith("warning: GPU 0 is shared, for none is free: ") and said.count("\n") == 1
    assert f"GPU-a: in use by process {holder.pid} on " in said
    (tmp_path / "file").touch()  # no folder for locks ends no training
    assert claim_gpu(["GPU-a"], folder=tmp_path / "file") == 0


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(("taken", "free"), [("a", {1, 2}), ("ac", {1, 3})])
def test_two_that_train_together_find_two_free_gpus_in_any_order(tmp_path, hold, capsys, taken, free, first):
    for name in taken:
        hold(name)
    assert {claim_gpu("abcd", number, 2, tmp_path / "locks") for number in (first, 1 - first)} == free
    assert capsys.readouterr().err == ""


@pytest.fixture
def picking():
    """Forgets the device that was picked, before and after."""
    pick_device.cache_clear()
    yield
    pick_device.cache_clear()


def test_a_process_keeps_its_gpu_as_the_current_one_and_of_several_has_that_of_its_number(
    picking, monkeypatch, tmp_path
):
    current = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda gpu: SimpleNamespace(uuid=f"uuid-{gpu}"))
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    assert pick_device() == pick_device() == GPU and current == [GPU]
    assert pick_device(1, 2) == torch.device("cuda", 1)
    with pytest.raises(ConfigError, match="3 processes train together, but GPUs visible here: 2; start fewer"):
        pick_device(1, 3)


def test_a_gpu_that_torch_cannot_use_is_not_passed_over_for_the_cpu_unless_that_is_chosen(
    picking, monkeypatch, tmp_path
):
    (tmp_path / "gpus/a").mkdir(parents=True)
    monkeypatch.setattr("symbert.pretrain.compute.DRIVER", tmp_path / "gpus")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with pytest.raises(ConfigError, match=r"has GPUs .*built without CUDA.*set CUDA_VISIBLE_DEVICES="):
        pick_device()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert pick_device() == CPU
    with pytest.raises(ConfigError, match="'precision' is fp16"):
        resolve_precision("fp16", CPU)


@pytest.mark.parametrize(
    ("capability", "hip", "hopper"), [((9, 0), None, True), ((8, 0), None, False), ((9, 4), "6.4", False)]
)
def test_the_fast_recipe_has_cudnns_attention_and_dropout_in_sixteenths_on_hopper_only(
    monkeypatch, capability, hip, hopper
):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.version, "hip", hip)
    fast, preferred = RECIPES["fast"], []
    for dropout, sixteenths in ((0.0, 0.0), (0.1, 0.125), (0.05, 0.0625), (0.5, 0.5)):
        expected = sixteenths if hopper else dropout
        assert attention_dropout(fast, dropout, GPU) == expected
        assert recorded_dropout(fast, dropout, GPU) == {"attention_dropout": expected}
    assert attention_dropout(fast, 0.1, CPU) == attention_dropout(RECIPES["faithful"], 0.1, GPU) == 0.1
    assert recorded_dropout(RECIPES["faithful"], 0.1, GPU) == {}
    prefer = "symbert.pretrain.compute.sdpa_kernel"
    monkeypatch.setattr(prefer, lambda kernels, **_: preferred.append(kernels[0].name) or nullcontext())
    with attention_kernels(fast, GPU):
        assert preferred == ["CUDNN_ATTENTION"] * hopper


def test_want_of_a_compiler_is_known_by_what_torch_says():
    for said in ("RuntimeError: Failed to find C compiler. Please specify", "C++ compile error"):
        with pytest.raises(ConfigError, match="no compiler works .*recipe: faithful"), compiler_explained():
            raise RuntimeError(f"backend='inductor' raised:\n{said}\n")
    with pytest.raises(RuntimeError, match="shapes"), compiler_explained():
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


@pytest.mark.parametrize(("warmup", "end"), [(10_000, 200_000), (0, 200_000), (100, 100)])
def test_the_schedule_is_hugging_faces(warmup, end):
    from transformers import get_linear_schedule_with_warmup

    theirs = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1e-4)
    schedule = get_linear_schedule_with_warmup(theirs, warmup, end)
    for step in (0, 1, 99, 9_999, 10_000, 10_001, 150_000, 199_999, 200_001):
        expected = 1e-4 * schedule.lr_lambdas[0](step)
        assert linear_rate(step, 1e-4, warmup, end) == pytest.approx(expected, rel=1e-12)


def test_biases_and_layer_norms_are_not_decayed_and_the_factors_are():
    model = MaskedModel(configuration_of("tiny", "pairwise", vocabulary_size=50))
    groups = build_optimizer(model, SETTINGS).param_groups
    decayed = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
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


def test_adamw_has_the_settings_of_its_stage():
    """Fine-tuning has none for the betas: it takes PyTorch's."""
    module, of_finetuning = torch.nn.Linear(3, 2), SimpleNamespace(weight_decay=0.0, adam_epsilon=1e-7)
    ours = build_optimizer(module, replace(SETTINGS, adam_beta1=0.8, adam_beta2=0.95))
    assert (ours.defaults["betas"], ours.defaults["eps"]) == ((0.8, 0.95), 1e-12)
    theirs = build_optimizer(module, of_finetuning)
    assert (theirs.defaults["betas"], theirs.defaults["eps"]) == ((0.9, 0.999), 1e-7)


def test_an_optimizer_that_is_not_there_is_named_with_the_key():
    for path, said in (("nowhere:f", "No module named 'nowhere'"), ("json:f", "has no attribute 'f'")):
        with pytest.raises(ConfigError, match=f"'pretrain.optimizer' is {path}: .*{said}.*; write adamw, or correct"):
            build_optimizer(torch.nn.Linear(3, 2), SETTINGS, path)


def test_an_updater_adds_gradients_up_clips_them_and_clears_them():
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.data.fill_(0.0)
    updater = Updater(model, torch.optim.SGD(model.parameters(), lr=9.0), 1.0, "fp32", torch.device("cpu"))
    for _ in range(2):
        updater.backward(model(torch.tensor([[3.0, 4.0]])).sum())
    assert updater.clip().item() == pytest.approx(10.0)
    updater.update(learning_rate=0.5)
    assert model.weight.detach()[0].tolist() == pytest.approx([-0.3, -0.4]) and model.weight.grad is None
