import pytest

import pretrain.corpora as corpora


@pytest.fixture
def manifest(tmp_path):
    """A packed corpus of 50 training and 8 validation rows."""
    return corpora.write_corpus(tmp_path / "shards")


@pytest.fixture
def brief(write_section):
    """Settings of a run of 30 steps, with changes."""

    def write(**changes):
        values = {"steps": 30, "batch_size": 8, "warmup_steps": 5, "evaluate_every": 10, "save_every": 10}
        return write_section("pretrain", **{**values, "dropout": 0.1, **changes})

    return write
