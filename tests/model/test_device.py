import pytest
import torch

from symbert.errors import ConfigError
from symbert.model.device import autocast, pick_device, resolve_precision

CPU = torch.device("cpu")


def test_auto_is_fp32_on_a_cpu():
    assert resolve_precision("auto", CPU) == "fp32"


def test_fp16_needs_a_gpu():
    with pytest.raises(ConfigError, match="'precision' is fp16"):
        resolve_precision("fp16", CPU)


def test_autocast_computes_products_in_the_named_precision():
    matrix = torch.ones(4, 4)
    for precision, dtype in [("fp32", torch.float32), ("bf16", torch.bfloat16)]:
        with autocast(precision, CPU):
            assert (matrix @ matrix).dtype == dtype


def test_the_device_is_the_one_that_torch_sees():
    assert pick_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
