from types import SimpleNamespace

import pytest
import torch

from symbert.errors import ConfigError
from symbert.training.device import pick_device, resolve_precision

CPU = torch.device("cpu")


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
    monkeypatch.setattr("symbert.pretrain.gpus.DRIVER", tmp_path / "gpus")
    monkeypatch.setenv("PATH", str(tmp_path))  # no nvidia-smi
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    pick_device.cache_clear()
    yield monkeypatch
    pick_device.cache_clear()


def test_a_gpu_that_torch_cannot_use_is_not_passed_over_for_the_cpu(unusable):
    unusable.setattr(torch.version, "cuda", None)
    with pytest.raises(
        ConfigError, match=r"shows 2 GPUs .*built without CUDA.*set CUDA_VISIBLE_DEVICES= \(empty\)"
    ) as told:
        pick_device()
    assert told.value.exit_code == 64 and torch.__version__ in str(told.value)


def test_what_cuda_says_of_a_driver_that_is_too_old_is_told(unusable):
    def fail():
        raise RuntimeError("The NVIDIA driver on your system is too old (found version 11040).\nUpdate it.")

    unusable.setattr(torch.version, "cuda", "13.0")
    unusable.setattr(torch.cuda, "init", fail)
    with pytest.raises(ConfigError, match=r"cannot use one: The NVIDIA driver on your system is too old .*11040\).;"):
        pick_device()


def test_whoever_chooses_no_gpu_computes_on_the_cpu(unusable):
    unusable.setenv("CUDA_VISIBLE_DEVICES", "")
    unusable.setenv("SLURM_JOB_GPUS", "0")
    assert pick_device() == CPU
