"""The vision encoder beside Hugging Face's."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import ViTConfig, ViTForImageClassification

from model.hosts import moved, small_config
from model.models import FOLDING
from symbert.errors import ConfigError
from symbert.model.configuration import configuration_of
from symbert.model.fold import fold
from symbert.model.logits import describe_attention
from symbert.model.network import initialize
from symbert.model.vision import VisionModel
from symbert.operators import OPERATORS
from symbert.sizes import SIZES

PICTURE = {"image_size": 8, "patch_size": 2, "num_channels": 3, "num_labels": 10}
PIXELS = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
PARTS = {"self.query": "q_proj", "self.key": "k_proj", "self.value": "v_proj"}  # ours, and Hugging Face's


def model(attention: str = "original") -> VisionModel:
    return VisionModel(small_config(attention, **PICTURE))


def stock_name(name: str) -> str:
    for ours, theirs in PARTS.items():
        name = name.replace(f".attention.{ours}.", f".attention.{theirs}.")
    return name


def stock(ours: VisionModel) -> ViTForImageClassification:
    """Hugging Face's model of the same shape with the same weights."""
    plain = {key: value for key, value in vars(ours.config).items() if key in ViTConfig().to_dict()}
    labels = {name: plain.pop(name, None) for name in ("id2label", "label2id", "model_type")}
    assert labels["model_type"] == "symbert"
    theirs = ViTForImageClassification(ViTConfig(**plain, num_labels=10)).to(next(ours.parameters()).dtype).eval()
    theirs.load_state_dict({stock_name(name): values for name, values in ours.state_dict().items()})
    return theirs


@pytest.mark.parametrize(("precision", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_original_equals_stock_hugging_face(precision, tolerance):
    ours = moved(model()).to(precision)
    theirs = stock(ours)
    assert [stock_name(name) for name in ours.state_dict()] == list(theirs.state_dict())
    expected = theirs(PIXELS.to(precision)).logits
    torch.testing.assert_close(ours.logits(PIXELS.to(precision)), expected, rtol=0, atol=tolerance)
    assert expected.shape == (4, 10) and expected.std() > 0.1


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_looks_at_every_patch(name):
    ours = moved(model(name))
    expected = ours.logits(PIXELS)
    for row, column in ((0, 0), (3, 5), (7, 7)):
        other = PIXELS.clone()
        other[:, :, row, column] += 1
        assert ((ours.logits(other) - expected).abs().amax(-1) > 1e-6).all()


def test_the_start_is_hugging_faces_and_follows_from_the_seed():
    ours, again = model("pairwise"), model("pairwise")
    for parameter in ours.parameters():
        parameter.data.fill_(torch.nan)
    for each in (ours, again):
        initialize(each, 3)
    assert all(torch.equal(one, other) for one, other in zip(ours.parameters(), again.parameters(), strict=True))
    deviation = ours.config.initializer_range
    for name in ("vit.embeddings.position_embeddings", "vit.embeddings.patch_embeddings.projection.weight"):
        assert ours.get_parameter(name).std().item() == pytest.approx(deviation, rel=0.1)
    assert (ours.vit.embeddings.patch_embeddings.projection.bias == 0).all()
    assert (ours.vit.embeddings.cls_token != 0).all()


@pytest.mark.parametrize("name", OPERATORS)
def test_the_formula_of_flops_is_what_pytorch_counts(name):
    config = small_config(name, **PICTURE)
    config._attn_implementation = "eager"
    ours = VisionModel(config)
    with FlopCounterMode(display=False) as counter:
        ours.logits(PIXELS.float()).sum().backward()
    assert ours.step_flops(4) == counter.get_total_flops()


@pytest.mark.parametrize("size", ["tiny", "base"])
def test_parameters_by_formula_are_those_that_are_counted(size):
    config = configuration_of(size, "original")
    vars(config).update(PICTURE)
    with torch.device("meta"):
        counted = sum(parameter.numel() for parameter in VisionModel(config).parameters())
    assert SIZES[size].vision_parameters(**PICTURE) == counted


def test_patches_that_do_not_fit_the_picture_are_refused():
    with pytest.raises(ConfigError, match=r"'patch_size' is 3, which does not divide 'image_size' \(8\)"):
        VisionModel(small_config(**{**PICTURE, "patch_size": 3}))


def test_its_attention_is_described_layer_by_layer():
    described = describe_attention(moved(model("shared")), PIXELS)
    assert len(described["logit_std"]) == len(described["attention_entropy"]) == 2
    assert 0 < min(described["attention_entropy"]) < max(described["attention_entropy"]) < torch.tensor(17.0).log()


def test_the_model_compiles_to_one_graph():
    ours = moved(model("symmetric-others"))
    compiled = torch.compile(ours.logits, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(PIXELS), ours.logits(PIXELS), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", FOLDING)
def test_a_folded_model_is_stock_and_has_equal_logits(name):
    ours = moved(model(name))
    folded = fold(ours)
    assert type(folded) is ViTForImageClassification
    torch.testing.assert_close(folded(PIXELS).logits, ours.logits(PIXELS), rtol=0, atol=1e-12)
