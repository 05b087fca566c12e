import pytest

from symbert.files import read_json
from symbert.model.parameters import count_parameters, counts_of

PUBLISHED = {  # Table 2 of the paper
    "small": {"original": 28_795_194, "symmetric": 27_744_570, "pairwise": 27_875_642},
    "base": {"original": 109_514_298, "symmetric": 102_427_194, "pairwise": 103_017_018},
}


@pytest.mark.parametrize("size", PUBLISHED)
def test_counts_equal_the_papers_table_2(size):
    assert counts_of(size, list(PUBLISHED[size]))["parameters"] == PUBLISHED[size]


@pytest.mark.parametrize(("size", "h", "heads"), [("tiny", 64, 2), ("small", 512, 8), ("base", 768, 12)])
def test_attention_counts_equal_their_formulas(size, h, heads):
    counts = counts_of(size, ["original", "symmetric", "pairwise"])["attention_parameters"]
    assert counts["original"] == 3 * (h * h + h)
    assert counts["symmetric"] == 2 * (h * h + h)
    assert counts["pairwise"] == 2 * (h * h + h) + h * h // heads


def test_the_command_writes_every_size_and_operator(tmp_path):
    count_parameters(["tiny", "small"], ["original", "pairwise"], tmp_path / "parameters.json")
    written = read_json(tmp_path / "parameters.json")
    assert list(written) == ["tiny", "small"]
    assert written["small"]["parameters"] == {k: PUBLISHED["small"][k] for k in ("original", "pairwise")}
    assert written["small"]["shape"]["vocab_size"] == 30522
