"""Training that begins from a checkpoint: as transformers and torch would go on, and what does not fit is named."""

import shutil
from pathlib import Path

import pytest
import torch
from msgspec import to_builtins
from msgspec.structs import replace
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertForSequenceClassification,
    BertModel,
    BertTokenizerFast,
    get_linear_schedule_with_warmup,
)

from pretrain.corpora import options, own, planned
from symbert.cli import main
from symbert.errors import ConfigError, IntegrityError, MissingInputError
from symbert.files import read_json, write_json
from symbert.model.loading import load_encoder
from symbert.pretrain.train import Trainer

TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256}


@pytest.fixture
def save(manifest, tmp_path):
    """Saves a stock model of the size tiny with random weights, other than ours draw, and the corpus's vocabulary."""

    def make(kind=BertForMaskedLM, name="checkpoint", changes=None, **how) -> Path:
        torch.manual_seed(7)
        model = kind(BertConfig(**{"vocab_size": 60, **TINY, **(changes or {})}))
        for parameter in model.parameters():  # biases too
            parameter.data += 0.02 * torch.randn_like(parameter)
        model.save_pretrained(tmp_path / name, **how)
        shutil.copy(manifest.parent / "vocab.txt", tmp_path / name)
        return tmp_path / name

    return make


def begun(manifest, brief, checkpoint, attention="original", **model) -> Trainer:
    return Trainer(
        planned(manifest, brief(dropout=0.0, steps=6, warmup_steps=2), attention, init_from=checkpoint, **model)
    )


def test_training_goes_on_as_transformers_and_torch_do_from_the_same_folder(manifest, brief, save):
    checkpoint = save(BertForPreTraining)
    trainer = begun(manifest, brief, checkpoint)
    trainer.model.double()
    stock = BertForMaskedLM.from_pretrained(
        checkpoint, dtype=torch.float64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    decayed = [p for p in stock.parameters() if p.ndim > 1]
    groups = [{"params": decayed}, {"params": [p for p in stock.parameters() if p.ndim <= 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, eps=1e-12, weight_decay=0.01)
    schedule = get_linear_schedule_with_warmup(optimizer, 2, 6)
    for step in range(4):
        batch = trainer.task.training_batch(step)
        loss = stock(batch["input_ids"], labels=batch["targets"]).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(stock.parameters(), 1.0)
        rate = optimizer.param_groups[0]["lr"]
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        stepped = trainer.step(step)
        assert stepped.loss == pytest.approx(loss.item(), abs=2e-6)
        assert stepped.gradient_norm == pytest.approx(norm.item(), rel=1e-5)
        assert stepped.learning_rate == pytest.approx(rate)
    for name, parameter in stock.named_parameters():
        assert (trainer.model.get_parameter(name) - parameter).abs().max() < 1e-4, name  # three steps of up to 1e-3


def rewritten(checkpoint: Path, change) -> None:
    """Its weights with other names, as torch.save wrote them."""
    weights = load_file(checkpoint / "model.safetensors")
    torch.save(
        {name: values for pair in weights.items() for name, values in change(*pair)}, checkpoint / "pytorch_model.bin"
    )
    (checkpoint / "model.safetensors").unlink()


def old(name, values):
    """As the first BERTs were named, with the numbers of places."""
    name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    yield name, values
    if name.endswith("word_embeddings.weight"):
        yield "bert.embeddings.position_ids", torch.arange(512)[None]
        yield "cls.predictions.decoder.weight", values


def bare(name, values):
    """Without the prefix, and with more rows than there are pieces."""
    is_of_pieces = "word_embeddings" in name or name == "cls.predictions.bias"
    yield name.removeprefix("bert."), torch.cat([values, values[:4]]) if is_of_pieces else values


def test_a_folder_is_read_in_each_of_the_forms_that_checkpoints_have(manifest, brief, save):
    one = begun(manifest, brief, save()).model.state_dict()
    sharded = save(name="sharded", max_shard_size="50KB")
    assert len(list(sharded.glob("*.safetensors"))) > 2
    pickled, short, wide = (save(name=name) for name in ("pickled", "short", "wide"))
    rewritten(pickled, old)
    rewritten(short, bare)
    write_json(
        wide / "config.json", {**read_json(wide / "config.json"), "vocab_size": 64, "tie_word_embeddings": False}
    )
    BertTokenizerFast(str(wide / "vocab.txt")).save_pretrained(wide)
    (wide / "vocab.txt").unlink()
    for checkpoint in (sharded, pickled, short, wide):
        other = begun(manifest, brief, checkpoint).model.state_dict()
        assert other.keys() == one.keys() and all(torch.equal(other[name], one[name]) for name in one), checkpoint


def test_a_file_with_two_models_is_refused_not_mixed(manifest, brief, save):
    """As a trainer saves a student beside its averaged teacher: whose weights came last were taken."""

    def both(name, values):
        yield name, values
        yield f"module.{name}", values + 1

    checkpoint = save()
    rewritten(checkpoint, both)
    with pytest.raises(IntegrityError, match="are the same weight of a BERT"):
        begun(manifest, brief, checkpoint)
    with pytest.raises(IntegrityError, match=r"pytorch_model\.bin: .* and module\."):
        load_encoder(checkpoint)


def test_an_operator_of_the_users_own_begins_from_a_checkpoint_that_has_its_parameters(manifest, brief, save, tmp_path):
    """Query, key and value of stock BERT, and afterwards those of a run here."""
    checkpoint = save()
    rectified, placed = (own(word, **{"class": f"model.right_operators:{word}"}) for word in ("Rectified", "Placed"))
    theirs, mine = begun(manifest, brief, checkpoint), begun(manifest, brief, checkpoint, rectified)
    assert all(torch.equal(*pair) for pair in zip(theirs.model.parameters(), mine.model.parameters(), strict=True))
    assert theirs.step(0).loss != mine.step(0).loss
    with pytest.raises(ConfigError, match=r"attention\.self\.places\.weight and 1 more: missing"):
        begun(manifest, brief, checkpoint, placed)
    run = tmp_path / "run"
    assert main(options(manifest, brief(steps=10), run, "pairwise")) == 0
    assert main(["extract", str(run), "10"]) == 0
    trainer = begun(manifest, brief, run / "step-10", "pairwise", seed=3)
    kept = load_file(run / "step-10/model.safetensors")
    assert all(torch.equal(trainer.model.state_dict()[name], values) for name, values in kept.items())


WRONG = {  # what is saved or changed, and the words of the refusal
    "a head": ({"kind": BertModel}, r"cls\.predictions\.bias and 4 more: missing; .* head for masked tokens"),
    "a classifier": ({"kind": BertForSequenceClassification}, r"cls\.predictions\.bias and 4 more: missing"),
    "layers": ({"changes": {"num_hidden_layers": 3}}, "'num_hidden_layers' is 3, the size 'tiny' has 2"),
    "width": ({"changes": {"hidden_size": 32}}, "'hidden_size' is 32, the size 'tiny' has 64"),
    "heads": ({"changes": {"num_attention_heads": 4}}, "'num_attention_heads' is 4, the size 'tiny' has 2"),
    "feed-forward": ({"changes": {"intermediate_size": 128}}, "'intermediate_size' is 128, .* 256"),
    "places": ({"changes": {"max_position_embeddings": 128}}, "'max_position_embeddings' is 128, .* 512"),
    "rounding": ({"changes": {"layer_norm_eps": 1e-5}}, "'layer_norm_eps' is 1e-05"),
    "activation": ({"changes": {"hidden_act": "relu"}}, "'hidden_act' is relu"),
    "fewer rows": ({"changes": {"vocab_size": 59}}, r"cls.predictions.bias has the shape 59, expected 60"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_checkpoint_of_another_model_is_refused_by_name(manifest, brief, save, what):
    given, said = WRONG[what]
    checkpoint = save(**given)
    with pytest.raises(ConfigError, match=said) as refusal:
        begun(manifest, brief, checkpoint)
    assert str(checkpoint) in str(refusal.value) and "\n" not in str(refusal.value)


def test_parameters_that_are_left_over_or_missing_are_named(manifest, brief, save):
    checkpoint = save()
    for attention, said in (
        ("symmetric", r"attention\.self\.key\.\w+ and \d+ more: left over: no parameter of .* 'symmetric'"),
        ("pairwise", r"attention\.self\.pairwise\w*.*: missing; .* parameters of the operator"),
    ):
        with pytest.raises(ConfigError, match=said):
            begun(manifest, brief, checkpoint, attention)
    weights = load_file(checkpoint / "model.safetensors")
    for change, said in (
        ({"cls.predictions.decoder.weight": torch.zeros(60, 64)}, r"decoder\.weight is not embeddings\.word_emb"),
        ({"classifier.weight": torch.zeros(2, 64)}, "classifier.weight: left over"),
    ):
        save_file(weights | change, checkpoint / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(ConfigError, match=said):
            begun(manifest, brief, checkpoint)


def test_another_vocabulary_is_refused_by_its_first_piece_that_differs(manifest, brief, save):
    checkpoint = save()
    file = checkpoint / "vocab.txt"
    text = file.read_text()
    for other, said in (
        (text.replace("w3\nw4\n", "w4\nw3\n"), "piece 8 is 'w4', the corpus has 'w3'"),
        (text + "w55\n", "piece 60 is 'w55', the corpus has None"),
    ):
        file.write_text(other)
        with pytest.raises(ConfigError, match=said):
            begun(manifest, brief, checkpoint)
    file.unlink()
    with pytest.raises(MissingInputError, match="neither vocab.txt nor tokenizer.json"):
        begun(manifest, brief, checkpoint)
    write_json(checkpoint / "tokenizer.json", {"model": {"type": "BPE", "vocab": {}}})
    with pytest.raises(ConfigError, match="of the kind BPE"):
        begun(manifest, brief, checkpoint)


def test_shards_that_are_missing_or_lie_elsewhere_are_named(save):
    from symbert.pretrain.start import weights_sha256

    checkpoint = save(max_shard_size="50KB")
    index = checkpoint / "model.safetensors.index.json"
    digest = weights_sha256(checkpoint)
    first = sorted(checkpoint.glob("*.safetensors"))[0]
    content = first.read_bytes()
    first.write_bytes(content[:-1] + b"1")
    assert weights_sha256(checkpoint) != digest
    first.unlink()
    with pytest.raises(MissingInputError, match=f"{first.name}: file not found, which {index.name}"):
        weights_sha256(checkpoint)
    write_json(index, {"weight_map": {"x": "../model.safetensors"}})
    with pytest.raises(Exception, match="lists ../model.safetensors, expected files beside it"):
        weights_sha256(checkpoint)


def test_the_same_weights_elsewhere_are_the_same_run_and_none_leave_the_key_as_it_was(manifest, brief, save, tmp_path):
    checkpoint = save()
    run, drawn = (planned(manifest, brief(), "original", init_from=place) for place in (checkpoint, None))
    moved = shutil.copytree(checkpoint, tmp_path / "moved")
    (moved / "README.md").write_text("A model.")
    assert planned(manifest, brief(), "original", init_from=moved).key == run.key != drawn.key
    assert "init_from" not in to_builtins(drawn)
    other = load_file(checkpoint / "model.safetensors")
    save_file({name: values + 1 for name, values in other.items()}, moved / "model.safetensors")
    assert planned(manifest, brief(), "original", init_from=moved).key not in (run.key, drawn.key)


def test_a_run_from_a_checkpoint_resumes_is_extracted_and_says_where_it_began(manifest, brief, save, tmp_path, capsys):
    checkpoint, whole = save(), tmp_path / "whole"
    assert main(options(manifest, brief(), whole, "original", init_from=checkpoint)) == 0
    digest = read_json(whole / "run.json")["init_from"]["sha256"]
    assert read_json(whole / "done.json")["settings"]["begun_from"] == digest
    for step in (0, 30):
        assert main(["extract", str(whole), str(step)]) == 0
        assert f"begun_from: {digest}" in (whole / f"step-{step}/README.md").read_text()
    assert "Not pre-trained" not in (whole / "step-0/README.md").read_text()
    stock, first = (load_file(folder / "model.safetensors") for folder in (checkpoint, whole / "step-0"))
    assert all(torch.equal(stock[name], values) for name, values in first.items())
    moved = shutil.move(checkpoint, tmp_path / "moved")
    run = planned(manifest, brief(), "original", init_from=moved)
    write_json(whole / "run.json", to_builtins(run))
    (whole / "done.json").unlink()
    assert main(["pretrain", str(whole), "--threads", "1"]) == 0  # of the same identity
    write_json(whole / "run.json", to_builtins(replace(run, init_from=replace(run.init_from, sha256="0" * 64))))
    capsys.readouterr()
    assert main(["pretrain", str(whole), "--threads", "1"]) == 64
    assert "begun_from" in capsys.readouterr().err


def test_weights_that_changed_since_a_run_was_planned_are_refused(manifest, brief, save):
    checkpoint = save()
    run = planned(manifest, brief(), "original", init_from=checkpoint)
    save(BertForPreTraining)
    with pytest.raises(IntegrityError, match="other weights than when the run was planned"):
        Trainer(run)
