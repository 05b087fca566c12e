"""Devices without any GPU, recipes, optimizers and the schedule."""

import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from msgspec.structs import replace

from pretrain.corpora import brief
from symbert.configuration import GlueSettings, PretrainSettings
from symbert.errors import ConfigError
from symbert.model.bert import MaskedModel
from symbert.model.configuration import configuration_of
from symbert.pretrain import compute
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

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
HOLD = "import sys\nfrom pathlib import Path\nfrom symbert.pretrain.compute import claim_gpu\n"
HOLD += "print(claim_gpu(sys.argv[2:], folder=Path(sys.argv[1])), flush=True)\nsys.stdin.read()\n"


@pytest.fixture
def driver(tmp_path):
    """The folder in which the kernel's driver shows a GPU."""
    (tmp_path / "gpus" / "0000:07:00.0").mkdir(parents=True)
    return tmp_path / "gpus"


def test_a_gpu_is_given_by_machine_scheduler_or_configuration_and_the_user_may_choose_none(driver, tmp_path):
    nowhere = tmp_path / "none"
    assert given_gpu({}, nowhere) is None and str(driver) in given_gpu({}, driver)
    for name in ("SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE", "SYMBERT_GPUS"):
        assert f"{name}=2" in given_gpu({name: "2"}, nowhere)
    assert given_gpu({"SLURM_GPUS_ON_NODE": "0", "SYMBERT_GPUS": "0", "SLURM_JOB_GPUS": ""}, nowhere) is None
    for chosen in ("4", "0,-1,1", "GPU-8932f937,GPU-11"):
        assert given_gpu({"CUDA_VISIBLE_DEVICES": chosen}, nowhere) == f"CUDA_VISIBLE_DEVICES is {chosen}"
    for none in ("", "-1", "NoDevFiles"):
        assert given_gpu({"CUDA_VISIBLE_DEVICES": none, "SLURM_JOB_GPUS": "0", "SYMBERT_GPUS": "1"}, driver) is None


def test_a_job_of_slurm_without_a_gpu_has_none_whatever_its_node_shows(driver):
    for given in ({}, {"SYMBERT_GPUS": "0"}, {"SLURM_GPUS_ON_NODE": "0", "SLURM_JOB_GPUS": ""}):
        assert given_gpu({"SLURM_JOB_ID": "4711", **given}, driver) is None
    assert "SLURM_JOB_GPUS=2" in given_gpu({"SLURM_JOB_ID": "4711", "SLURM_JOB_GPUS": "2"}, driver)


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
    assert number == 0
    assert hold("GPU-a", "GPU-b")[1] == 1
    assert hold("GPU-b", "GPU-c")[1] == 1, "the same GPU by its name, whatever its number where others are visible"
    first.kill()
    first.communicate()
    assert hold("GPU-a", "GPU-b")[1] == 0


def test_where_every_gpu_is_taken_one_is_shared_and_its_holder_named(hold):
    holder, _ = hold("GPU-a")
    sharer, number = hold("GPU-a")
    assert number == 0
    said = sharer.communicate("")[1]
    assert said.startswith("warning: GPU 0 is shared, for none is free: ") and said.count("\n") == 1
    assert f"GPU-a: in use by process {holder.pid} on " in said


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(("taken", "free"), [("a", {1, 2}), ("ab", {2, 3}), ("ac", {1, 3}), ("cd", {0, 1})])
def test_two_that_train_together_find_two_free_gpus_in_any_order(tmp_path, hold, capsys, taken, free, first):
    for name in taken:
        hold(name)
    assert {claim_gpu("abcd", number, 2, tmp_path / "locks") for number in (first, 1 - first)} == free
    assert capsys.readouterr().err == ""


def test_a_lock_that_cannot_be_taken_ends_no_training(tmp_path, capsys):
    (tmp_path / "locks").touch()  # no folder
    assert claim_gpu(["GPU-a"], folder=tmp_path / "locks") == 0
    assert capsys.readouterr().err.startswith("warning: GPU 0 is shared")


def test_fp16_needs_a_gpu():
    with pytest.raises(ConfigError, match="'precision' is fp16"):
        resolve_precision("fp16", CPU)


@pytest.fixture
def two_gpus(monkeypatch, tmp_path):
    """A machine on which torch sees two GPUs; gives what is made the current device."""
    current = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda gpu: SimpleNamespace(uuid=f"uuid-{gpu}"))
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    pick_device.cache_clear()
    yield current
    pick_device.cache_clear()


def test_a_process_keeps_the_gpu_that_it_picked_and_makes_it_the_current_one(two_gpus):
    assert pick_device() == pick_device() == torch.device("cuda", 0)
    assert two_gpus == [torch.device("cuda", 0)]


def test_a_process_of_several_has_the_gpu_of_its_number_and_needs_one(two_gpus):
    assert pick_device(1, 2) == torch.device("cuda", 1)
    with pytest.raises(ConfigError, match="3 processes train together, but GPUs visible here: 2; start fewer"):
        pick_device(1, 3)


@pytest.fixture
def unusable(monkeypatch, tmp_path):
    """A machine whose driver shows two GPUs of which torch can use none; gives its environment."""
    for name in ("a", "b"):
        (tmp_path / "gpus" / name).mkdir(parents=True)
    monkeypatch.setattr("symbert.pretrain.compute.DRIVER", tmp_path / "gpus")
    monkeypatch.setenv("PATH", str(tmp_path))  # no nvidia-smi
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    pick_device.cache_clear()
    yield monkeypatch
    pick_device.cache_clear()


def test_a_gpu_that_torch_cannot_use_is_not_passed_over_for_the_cpu(unusable):
    unusable.setattr(torch.version, "cuda", None)
    with pytest.raises(ConfigError, match=r"has GPUs .*built without CUDA.*set CUDA_VISIBLE_DEVICES=") as told:
        pick_device()
    assert told.value.exit_code == 64 and torch.__version__ in str(told.value)


def test_whoever_chooses_no_gpu_computes_on_the_cpu(unusable):
    unusable.setenv("CUDA_VISIBLE_DEVICES", "")
    unusable.setenv("SLURM_JOB_GPUS", "0")
    assert pick_device() == CPU


@pytest.fixture
def capability(monkeypatch):
    """Lets a GPU have a compute capability."""
    return lambda *numbers: monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: numbers)


def test_the_faithful_recipe_keeps_the_papers_dropout():
    assert (
        attention_dropout(RECIPES["faithful"], 0.1, CPU) == 0.1
        and recorded_dropout(RECIPES["faithful"], 0.1, CPU) == {}
    )


@pytest.mark.parametrize(("dropout", "expected"), [(0.0, 0.0), (0.1, 0.125), (0.05, 0.0625), (0.5, 0.5)])
def test_the_fast_recipe_takes_the_nearest_sixteenth_on_hopper(capability, dropout, expected):
    capability(9, 0)
    assert attention_dropout(RECIPES["fast"], dropout, GPU) == expected
    assert recorded_dropout(RECIPES["fast"], dropout, GPU) == {"attention_dropout": expected}


@pytest.mark.parametrize("numbers", [(8, 0), (10, 0)])
def test_the_dropout_is_not_rounded_where_no_kernel_wants_it(capability, numbers):
    capability(*numbers)
    for device in (CPU, GPU):
        assert attention_dropout(RECIPES["fast"], 0.1, device) == 0.1
        assert recorded_dropout(RECIPES["fast"], 0.1, device) == {"attention_dropout": 0.1}


def test_amd_has_no_hopper(capability, monkeypatch):
    capability(9, 4)
    monkeypatch.setattr(torch.version, "hip", "6.4")
    assert attention_dropout(RECIPES["fast"], 0.1, GPU) == 0.1


@pytest.mark.parametrize(("numbers", "first"), [((9, 0), ["CUDNN_ATTENTION"]), ((8, 0), []), ((10, 0), [])])
def test_cudnns_attention_is_preferred_on_hopper_only(capability, monkeypatch, numbers, first):
    capability(*numbers)
    preferred = []
    monkeypatch.setattr(
        compute, "sdpa_kernel", lambda kernels, set_priority: preferred.append(kernels[0].name) or nullcontext()
    )
    with attention_kernels(RECIPES["fast"], GPU):
        assert preferred == first


@pytest.mark.parametrize("said", ["RuntimeError: Failed to find C compiler. Please specify", "C++ compile error"])
def test_want_of_a_compiler_is_known_by_what_torch_says(said):
    with pytest.raises(ConfigError, match="no compiler works .*recipe: faithful"), compiler_explained():
        raise RuntimeError(f"backend='inductor' raised:\n{said}\n")
    with pytest.raises(RuntimeError, match="shapes"), compiler_explained():
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


@pytest.fixture
def settings() -> PretrainSettings:
    return brief(adam_epsilon=1e-12)


PEAK, WARMUP, END = 1e-4, 10_000, 200_000  # the paper's


def test_the_schedule_is_hugging_faces():
    from transformers import get_linear_schedule_with_warmup

    theirs = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    schedule = get_linear_schedule_with_warmup(theirs, WARMUP, END)
    for step in (0, 1, 9_999, 10_000, 10_001, 150_000, 199_999):
        expected = PEAK * schedule.lr_lambdas[0](step)
        assert linear_rate(step, PEAK, WARMUP, END) == pytest.approx(expected, rel=1e-12)


def test_no_warm_up_starts_at_the_peak():
    assert linear_rate(0, PEAK, 0, END) == PEAK


def test_after_its_end_the_rate_is_zero_and_warm_up_alone_has_no_end():
    assert linear_rate(END + 1, PEAK, WARMUP, END) == 0 and linear_rate(99, PEAK, 100, 100) == PEAK * 0.99


def test_biases_and_layer_norms_are_not_decayed_and_the_factors_are(settings):
    model = MaskedModel(configuration_of("tiny", "pairwise", vocabulary_size=50))
    groups = build_optimizer(model, settings).param_groups
    decayed = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    for name, parameter in model.named_parameters():
        free = name.endswith("bias") or "LayerNorm" in name
        assert decayed[id(parameter)] == (0.0 if free else 0.01), name


def test_a_step_follows_adamws_formula(settings):
    """Loshchilov and Hutter 2019, algorithm 2, in float64 for one matrix and one vector."""
    module = torch.nn.Linear(3, 2).double()
    optimizer = build_optimizer(module, settings)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    for group in optimizer.param_groups:
        group["lr"] = 0.01
    gradients = [torch.randn(2, 3, dtype=torch.float64), torch.randn(2, dtype=torch.float64)]
    for parameter, gradient in zip(module.parameters(), gradients, strict=True):
        parameter.grad = gradient.clone()
    optimizer.step()
    for (name, after), gradient in zip(module.named_parameters(), gradients, strict=True):
        decay = 0.01 if name == "weight" else 0.0
        direction = gradient / (gradient.abs() + settings.adam_epsilon)  # bias-corrected moments at the first step
        expected = before[name] * (1 - 0.01 * decay) - 0.01 * direction
        torch.testing.assert_close(after.detach(), expected, rtol=1e-9, atol=1e-12)


def test_adamw_is_pytorchs_to_the_bit_and_goes_on_from_its_state(settings):
    def trained(optimizer_of) -> tuple[list[torch.Tensor], torch.optim.Optimizer]:
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
            assert module.weight.grad is None
        return [*module.parameters()], optimizer

    def pytorchs(module: torch.nn.Module) -> torch.optim.Optimizer:
        groups = build_optimizer(module, settings).param_groups
        return torch.optim.AdamW([{**group, "lr": 0.01} for group in groups], fused=True)

    def ours(module: torch.nn.Module) -> torch.optim.Optimizer:
        optimizer = build_optimizer(module, settings)
        for group in optimizer.param_groups:
            group["lr"] = 0.01
        return optimizer

    (expected, _), (found, optimizer) = trained(pytorchs), trained(ours)
    assert all(map(torch.equal, expected, found)) and not any(p.grad_fn for p in found)
    assert [state["step"].item() for state in optimizer.state.values()] == [4, 4]


def test_adamw_has_the_settings_of_its_stage(settings):
    """Fine-tuning has none for the betas: it takes PyTorch's."""
    module = torch.nn.Linear(3, 2)
    ours = build_optimizer(module, replace(settings, adam_beta1=0.8, adam_beta2=0.95))
    assert (ours.defaults["betas"], ours.defaults["eps"]) == ((0.8, 0.95), 1e-12)
    fine_tuning = GlueSettings(
        epochs=1,
        batch_size=8,
        learning_rate=1e-3,
        warmup_ratio=0.1,
        weight_decay=0.0,
        adam_epsilon=1e-7,
        gradient_clip=1.0,
        dropout=0.0,
        precision="auto",
        recipe="faithful",
    )
    theirs = build_optimizer(module, fine_tuning)
    assert (theirs.defaults["betas"], theirs.defaults["eps"]) == ((0.9, 0.999), 1e-7)


def test_an_optimizer_that_is_not_there_is_named_with_the_key(settings):
    for path, said in (("nowhere:f", "No module named 'nowhere'"), ("json:f", "has no attribute 'f'")):
        with pytest.raises(ConfigError, match=f"'pretrain.optimizer' is {path}: .*{said}.*; write adamw, or correct"):
            build_optimizer(torch.nn.Linear(3, 2), settings, path)


def test_an_updater_adds_gradients_up_clips_them_and_clears_them():
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.data.fill_(0.0)
    updater = Updater(model, torch.optim.SGD(model.parameters(), lr=9.0), 1.0, "fp32", torch.device("cpu"))
    for _ in range(2):
        updater.backward(model(torch.tensor([[3.0, 4.0]])).sum())
    assert updater.clip().item() == pytest.approx(10.0)
    updater.update(learning_rate=0.5)
    assert model.weight.detach()[0].tolist() == pytest.approx([-0.3, -0.4]) and model.weight.grad is None
