from contextlib import nullcontext

import pytest
import torch
from safetensors.torch import load_file, save_file

from symbert.errors import ConfigError, IntegrityError, MissingInputError
from symbert.files import read_json, write_json
from symbert.glue.classifier import load_classifier, reset_head
from symbert.operators import operator_code


@pytest.mark.parametrize("attention", ["original", "symmetric", "pairwise"])
def test_the_encoder_is_that_of_the_checkpoint(checkpoint, attention):
    stored = load_file(checkpoint(attention) / "model.safetensors")
    loaded = load_classifier(checkpoint(attention), 3, dropout=0.1).state_dict()
    encoder = [name for name in stored if name.startswith("bert.")]
    assert len(encoder) > 15
    for name in encoder:
        assert torch.equal(stored[name], loaded[name])


def test_dropout_holds_everywhere(checkpoint):
    model = load_classifier(checkpoint(), 2, dropout=0.3)
    assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} == {0.3}
    assert model.config.attention_probs_dropout_prob == 0.3


def test_a_missing_weight_of_the_encoder_is_refused_not_drawn_at_random(checkpoint):
    file = checkpoint() / "model.safetensors"
    tensors = load_file(file)
    del tensors["bert.encoder.layer.0.attention.self.pairwise_factors"]
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(IntegrityError, match=r"1 encoder weights .* first bert.encoder.layer.0.*pairwise_factors"):
        load_classifier(file.parent, 2, dropout=0.1)


def test_a_weight_of_another_shape_is_refused(checkpoint):
    file = checkpoint() / "model.safetensors"
    tensors = load_file(file)
    tensors["bert.embeddings.LayerNorm.weight"] = torch.ones(7)
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(IntegrityError, match="LayerNorm"):
        load_classifier(file.parent, 2, dropout=0.1)


def test_a_checkpoint_of_an_operator_that_was_edited_since_is_refused(checkpoint):
    file = checkpoint() / "config.json"
    config = read_json(file)
    for code, refused in ((operator_code("pairwise"), False), ("0" * 16, True)):
        write_json(file, {**config, "pretraining": {"settings": {"operator_code": code}}})
        with (
            pytest.raises(ConfigError, match=r"config.json: .*operator_code: 0+ →.*train") if refused else nullcontext()
        ):
            load_classifier(file.parent, 2, dropout=0.1)


def test_an_absent_checkpoint_is_named(tmp_path):
    with pytest.raises(MissingInputError, match="config.json: file not found"):
        load_classifier(tmp_path, 2, dropout=0.1)


def test_the_new_layers_follow_from_the_seed_alone(checkpoint):
    def head(seed, noise):
        torch.manual_seed(noise)
        model = load_classifier(checkpoint(), 2, dropout=0.1)
        reset_head(model, seed)
        return torch.cat([model.bert.pooler.dense.weight.flatten(), model.classifier.weight.flatten()])

    assert torch.equal(head(1, 10), head(1, 20))
    assert not torch.equal(head(1, 10), head(2, 10))
    assert head(1, 10).std().item() == pytest.approx(0.02, rel=0.2)
