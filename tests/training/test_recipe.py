from contextlib import nullcontext

import pytest
import torch

from symbert.errors import ConfigError
from symbert.training import recipe
from symbert.training.recipe import RECIPES, attention_dropout, attention_kernels, compiler_explained, recorded_dropout

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


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
        recipe, "sdpa_kernel", lambda kernels, set_priority: preferred.append(kernels[0].name) or nullcontext()
    )
    with attention_kernels(RECIPES["fast"], GPU):
        assert preferred == first


@pytest.mark.parametrize("said", ["RuntimeError: Failed to find C compiler. Please specify", "C++ compile error"])
def test_want_of_a_compiler_is_known_by_what_torch_says(said):
    with pytest.raises(ConfigError, match="no compiler works .*recipe: faithful"), compiler_explained():
        raise RuntimeError(f"backend='inductor' raised:\n{said}\n")
    with pytest.raises(RuntimeError, match="shapes"), compiler_explained():
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
