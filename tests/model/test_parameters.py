import pytest
import torch

from symbert.model.bert import MaskedModel, attention_parameters
from symbert.model.configuration import configuration_of
from symbert.operators import OPERATORS
from symbert.report.collect import counted
from symbert.report.names import OF_PROJECT
from symbert.sizes import SIZES

# `shared` is by its formula: its authors print no count of the whole model.
PUBLISHED = {  # Table 2 of the paper
    "small": {"original": 28_795_194, "symmetric": 27_744_570, "pairwise": 27_875_642, "shared": 26_700_090},
    "base": {"original": 109_514_298, "symmetric": 102_427_194, "pairwise": 103_017_018, "shared": 95_367_738},
}


@pytest.mark.parametrize("size", PUBLISHED)
def test_counts_equal_the_papers_table_2(size):
    assert counted((), list(PUBLISHED[size]), OF_PROJECT)[size]["parameters"] == PUBLISHED[size]


def test_the_report_counts_as_models_have_parameters(monkeypatch):
    """It made a model of each operator and size, and for that imported PyTorch, which it was said not to do."""
    for name in ("normal_", "zeros_", "ones_"):
        monkeypatch.setattr(torch.nn.init, name, lambda tensor, *_, **__: tensor)  # on the meta device slow to draw
    counts, names = counted(SIZES, list(OPERATORS), OF_PROJECT), list(OPERATORS)
    for size, name in [*((size, "pairwise") for size in SIZES), *(("small", name) for name in names)]:
        with torch.device("meta"):
            model = MaskedModel(configuration_of(SIZES[size], OPERATORS[name]))
        assert counts[size]["parameters"][name] == sum(each.numel() for each in model.parameters())
        assert counts[size]["attention_parameters"][name] == attention_parameters(model)["layer"]


def test_shared_saves_66_53_percent_of_the_attention_block_of_base():
    """Kowsher et al., arXiv 2412.00359, abstract; query, key and value together."""
    counts = counted((), ["original", "shared"], OF_PROJECT)["base"]["attention_parameters"]
    assert round(100 * (1 - counts["shared"] / counts["original"]), 4) == 66.5366
