"""Checkpoints of this project by transformers' Auto classes: the same numbers, or a refusal."""

import json
import sys

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification, pipeline

import symbert.model.auto  # noqa: F401 (what is tested)
from model.models import IDS, MASK, NOT_FOLDING, defined, dense, trained
from model.test_export import changed, write_checkpoint
from symbert.errors import ConfigError
from symbert.model.attention import OriginalAttention
from symbert.model.hf import write_model
from symbert.model.loading import load_model
from symbert.operators import OPERATORS


class Constants(OriginalAttention):
    """Q(x + c) K(y + d)ᵀ: with constants that no file has, in a buffer, in a module of its own, and in no buffer."""

    token_wise = True

    def __init__(self, config):
        super().__init__(config)
        self.register_buffer("drawn", torch.randn(config.hidden_size), persistent=False)
        self.inner = nn.Module()
        self.inner.register_buffer("places", torch.arange(config.hidden_size) / 100, persistent=False)
        self.factor = nn.Parameter(torch.ones(1))
        self.slopes = torch.tensor([0.5, 2.0])

    def query_key_value(self, hidden):
        shifted = hidden + self.drawn + self.inner.places
        query, key, value = super().query_key_value(self.factor * shifted)
        return query * self.slopes[:, None, None], key, value


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared", *NOT_FOLDING, "of-the-user"])
def test_auto_classes_compute_as_the_checkpoint_whatever_its_operator_and_kernel(tmp_path, attention):
    """Those that no stock BERT equals, too, and one of the user's own."""
    model = trained(attention if attention in OPERATORS else defined("own", **{"class": f"{__name__}:Constants"}))
    write_model(model, tmp_path)
    expected = dense(model, IDS, MASK)
    for kernel in ("sdpa", "eager"):
        loaded, told = AutoModelForMaskedLM.from_pretrained(
            tmp_path, attn_implementation=kernel, output_loading_info=True
        )
        assert not any(told.values()), "nothing is missing, left over or of another shape"
        torch.testing.assert_close(loaded(IDS, MASK).logits, expected, rtol=0, atol=1e-5)
    assert sum(each.numel() for each in loaded.parameters()) == sum(each.numel() for each in model.parameters())


def test_a_checkpoint_is_fine_tuned_saved_and_read_by_this_project_again(tmp_path):
    model = write_checkpoint(tmp_path / "checkpoint", "pairwise")
    encoder = AutoModel.from_pretrained(tmp_path / "checkpoint", add_pooling_layer=False)
    hidden = model.bert.encoder(model.bert.embeddings(IDS))
    torch.testing.assert_close(encoder(IDS).last_hidden_state, hidden, rtol=0, atol=1e-5)
    tuned = AutoModelForSequenceClassification.from_pretrained(tmp_path / "checkpoint", num_labels=3)
    tuned(IDS, labels=torch.tensor([0, 2])).loss.backward()
    assert all(each.grad is not None and each.grad.any() for each in tuned.bert.encoder.layer[0].attention.parameters())
    torch.optim.SGD(tuned.parameters(), lr=0.1).step()
    tuned.save_pretrained(tmp_path / "tuned")
    ours = load_model(tmp_path / "tuned")
    torch.testing.assert_close(dense(ours, IDS), tuned.eval()(IDS).logits, rtol=0, atol=1e-5)


def test_a_pipeline_fills_a_mask_with_a_checkpoint_as_it_is(tmp_path):
    model = write_checkpoint(tmp_path / "checkpoint", "pairwise")
    best = pipeline("fill-mask", str(tmp_path / "checkpoint"), device="cpu")("w1 [MASK] w2")[0]
    logits = dense(model, torch.tensor([[2, 6, 4, 7, 3]]))[0, 2]
    assert best["token"] == int(logits.argmax()) and best["score"] == pytest.approx(float(logits.softmax(-1).max()))


def test_what_is_no_encoder_was_edited_or_lies_in_the_checkpoint_is_refused(tmp_path, monkeypatch):
    """A checkpoint from elsewhere names its operator: none of its code runs."""
    checkpoint = tmp_path / "checkpoint"
    monkeypatch.syspath_prepend(str(checkpoint))
    write_checkpoint(checkpoint, "pairwise")
    given = (checkpoint / "config.json").read_text()
    (checkpoint / "theirs.py").write_text(
        "from symbert.model.attention import OriginalAttention\nclass Theirs(OriginalAttention):\n    pass\n"
    )
    operator = {"name": "pairwise", "path": OPERATORS["pairwise"].path}
    for change, named in (
        (changed(is_decoder=True), "symbert export"),
        (changed(operator={**operator, "versions": {"PairwiseAttention": 7}}), "version 7"),
        (changed(operator={**operator, "path": "theirs:Theirs"}), "lies in the checkpoint"),
        (changed(attention="pairwize", operator=None), "pairwize"),
    ):
        (checkpoint / "config.json").write_text(given)
        change(checkpoint)
        with pytest.raises(ConfigError, match=named):
            AutoModelForMaskedLM.from_pretrained(checkpoint)
    assert "theirs" not in sys.modules


def test_an_operator_is_never_drawn_at_random(tmp_path):
    """transformers draws what a file lacks, with a line in the log."""
    model = write_checkpoint(tmp_path / "checkpoint", "pairwise")
    config = AutoConfig.from_pretrained(tmp_path / "checkpoint")
    with pytest.raises(ConfigError, match="without weights"):
        AutoModelForMaskedLM.from_config(config)
    less = trained("symmetric")
    less.config = model.config
    write_model(less, tmp_path / "less")
    assert json.loads((tmp_path / "less/config.json").read_text())["attention"] == "pairwise"
    with pytest.raises(ConfigError, match="without weights"):
        AutoModelForMaskedLM.from_pretrained(tmp_path / "less")
