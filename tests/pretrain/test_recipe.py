import pytest
import torch

from symbert.pretrain.recipe import RECIPES, attention_dropout, attention_kernels


def test_the_faithful_recipe_keeps_the_papers_dropout():
    assert attention_dropout(RECIPES["faithful"], 0.1) == 0.1


@pytest.mark.parametrize(("dropout", "expected"), [(0.0, 0.0), (0.1, 0.125), (0.05, 0.0625), (0.5, 0.5)])
def test_the_fast_recipe_takes_the_nearest_sixteenth(dropout, expected):
    assert attention_dropout(RECIPES["fast"], dropout) == expected


def test_kernels_are_left_alone_on_a_cpu():
    before = torch.backends.cuda.math_sdp_enabled(), torch.backends.cuda.flash_sdp_enabled()
    with attention_kernels(RECIPES["fast"], torch.device("cpu")):
        assert (torch.backends.cuda.math_sdp_enabled(), torch.backends.cuda.flash_sdp_enabled()) == before


def test_recipes_are_those_of_the_schema(root):
    import yaml

    schema = yaml.safe_load((root / "workflow/schemas/config.schema.yaml").read_text())
    assert set(schema["properties"]["recipe"]["enum"]) == set(RECIPES)
