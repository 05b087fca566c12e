"""Models from elsewhere, fine-tuned as transformers' classes: beside its Trainer, beside our Bert, and damaged."""

import json
import os
import shutil
from dataclasses import replace as replace_field
from itertools import cycle

import numpy as np
import pytest
import torch
from msgspec.structs import replace
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

from foreign import FAMILIES, make_model, model_in, tokenizer_of
from glue.protocol import SETTINGS
from symbert.draws import permute
from symbert.errors import ConfigError, IntegrityError, SymbertError
from symbert.glue import graphs, stock
from symbert.glue import train as module
from symbert.glue.tasks import GLUE, SUITES, Task
from symbert.glue.train import HEADS, Packed, TaskRows, predict, reset_head, train

EXACT = replace(SETTINGS, dropout=0.0, gradient_clip=0.5, adam_epsilon=1e-3, weight_decay=0.1)
EXACT_OF_PIECES = replace(EXACT, weight_decay=0.0)  # then the embeddings of the task's pieces alone are trained
SPANS = SUITES["squad2"].tasks["squad2"]


def loaded(folder, task: Task, dropout=0.0, seed=1):
    """The model of a folder under the head of a task."""
    foreign = model_in(folder)
    model = stock.load(foreign, stock.read_config(foreign), task, dropout)
    reset_head(model, seed)
    return model


def rows_of(task: Task, vocabulary: int, count=40, longest=24, device="cpu") -> TaskRows:
    """Rows of random pieces, of many lengths; the labels are easy to learn."""
    generator = np.random.default_rng(1)
    lengths = generator.integers(4, longest + 1, count)
    first = np.cumsum(lengths) - lengths
    ids = torch.from_numpy(generator.integers(10, vocabulary, lengths.sum()).astype(np.int32))
    types = torch.from_numpy(np.concatenate([np.arange(n) >= n // 2 for n in lengths]).astype(np.int8))
    labels = torch.from_numpy(generator.integers(0, task.num_labels, count))
    if task.head == "spans":
        labels = torch.from_numpy(np.stack([lengths // 2, lengths - 1], axis=1))
    return TaskRows(ids, types, first, lengths, labels, task)


@pytest.fixture
def losses(monkeypatch):
    """Of each step of a training."""
    seen = []
    for name, head in HEADS.items():
        kept = lambda *given, head=head: seen.append(head.loss(*given)) or seen[-1]  # noqa: E731
        monkeypatch.setitem(module.HEADS, name, head._replace(loss=kept))
    return seen


class Ordered(Trainer):
    """transformers' Trainer, on examples in our order; keeps the loss of each step."""

    def __init__(self, *given, orders, **options) -> None:
        super().__init__(*given, **options)
        self.orders, self.losses = orders, []

    def _get_train_sampler(self, dataset=None):
        orders = cycle(self.orders)
        return type("Order", (), {"__iter__": lambda _: iter(next(orders)), "__len__": lambda _: len(self.orders[0])})()

    def compute_loss(self, *given, **options):
        loss = super().compute_loss(*given, **options)
        self.losses.append(loss.item())
        return loss


DECAYED = ("bert", "deberta", "deberta-v2", "mpnet", "xlm-roberta")  # the others train embeddings of their rows alone


@pytest.mark.parametrize("family", FAMILIES)
def test_the_padded_path_is_that_of_transformers_trainer_step_by_step(family, tmp_path, losses):
    """Losses and weights, in float64; their model is loaded by their Auto class, with our new layers in it."""
    settings = EXACT if family in DECAYED else replace(EXACT, weight_decay=0.0)
    folder, task = make_model(tmp_path / family, family), GLUE["mnli"]
    tokenizer = tokenizer_of(family)
    ours, rows = loaded(folder, task).double(), rows_of(task, len(tokenizer))
    has_types = "token_type_ids" in tokenizer.model_input_names
    rows = rows if has_types else replace_field(rows, token_type_ids=torch.zeros_like(rows.token_type_ids))
    off = dict.fromkeys(stock.dropouts_of(ours.config), 0.0)
    theirs = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3, **off).double()
    names = {layer: name for name, layer in ours.named_modules()}
    for layer in ours.new_layers:
        theirs.get_submodule(names[layer]).load_state_dict(layer.state_dict())
    trainee = stock.Padded(ours)
    columns = {"input_ids": rows.input_ids} | ({"token_type_ids": rows.token_type_ids} if has_types else {})
    parts = {name: values.long().split(rows.lengths.tolist()) for name, values in columns.items()}
    dataset = [
        {"label": rows.labels[row].item(), **{name: values[row].tolist() for name, values in parts.items()}}
        for row in range(len(rows))
    ]
    arguments = TrainingArguments(
        output_dir=str(tmp_path / "trainer"),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup_ratio,
        weight_decay=settings.weight_decay,
        adam_epsilon=settings.adam_epsilon,
        max_grad_norm=settings.gradient_clip,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Ordered(
        theirs,
        arguments,
        train_dataset=dataset,
        data_collator=DataCollatorWithPadding(tokenizer, pad_to_multiple_of=graphs.STRIDE),
        orders=[permute(np.arange(len(rows)), len(rows), 3, epoch).tolist() for epoch in range(settings.epochs)],
    )
    trainer.train()
    train(trainee, rows, settings, 3, lambda step: None)
    assert len(trainer.losses) == 6
    rounding = 1e-6 if "deberta" in family else 1e-9  # whose class computes the loss in float32
    assert [loss.item() for loss in losses] == pytest.approx(trainer.losses, abs=rounding)
    for name, values in theirs.state_dict().items():
        if name != "mpnet.encoder.relative_attention_bias.weight":  # which Trainer takes for a bias, and does not decay
            torch.testing.assert_close(ours.state_dict()[name], values, rtol=0, atol=rounding, msg=name)


def test_our_bert_and_the_stock_one_fine_tune_alike(tmp_path, losses):
    """In float32, with a pooler that was trained before, as at the hub: the loss of each step, and predictions."""
    folder = make_model(tmp_path, "bert")
    pooler = {"bert.pooler.dense.weight": torch.eye(32), "bert.pooler.dense.bias": torch.zeros(32)}
    save_file(load_file(folder / "model.safetensors") | pooler, folder / "model.safetensors")
    for task in (GLUE["mnli"], SPANS):
        rows, theirs = rows_of(task, 300), loaded(folder, task)
        assert stock.is_our_bert(theirs.config)
        ours = stock.as_ours(theirs, HEADS[task.head].model)
        assert task is SPANS or torch.equal(ours.bert.pooler.dense.weight, torch.eye(32))
        reset_head(ours, 1)
        trainees = Packed(ours), stock.Padded(theirs)
        for trainee in trainees:
            train(trainee, rows, EXACT_OF_PIECES, 3, lambda step: None)
        by_path = torch.stack([loss.detach() for loss in losses]).view(2, 6)
        torch.testing.assert_close(*by_path, rtol=0, atol=1e-5)
        assert len({*by_path[0].tolist()}) == 6
        if task is not SPANS:
            packed, padded = (predict(trainee, rows) for trainee in trainees)
            assert packed.tolist() == padded.tolist() and len({*packed}) > 1
        losses.clear()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_is_predicted_alike_alone_and_beside_longer_ones_and_dropout_is_everywhere(family, tmp_path):
    folder, tokenizer = make_model(tmp_path, family), tokenizer_of(family)
    task = replace_field(GLUE["stsb"], rows=())
    model = loaded(folder, task, dropout=0.3).double()
    assert {module.p for module in model.modules() if isinstance(module, nn.Dropout)} == {0.3}
    rows = rows_of(task, len(tokenizer), longest=40)
    rows = replace_field(rows, token_type_ids=torch.zeros_like(rows.token_type_ids), labels=rows.labels.double())
    trainee = stock.Padded(model)
    alone = []
    with torch.no_grad():
        for row in range(len(rows)):
            tokens = slice(rows.first[row], rows.first[row] + rows.lengths[row])
            alone.append(model.eval()(rows.input_ids[tokens].long()[None]).logits.item())
    predicted = predict(trainee, rows)
    assert predicted.tolist() == pytest.approx(alone, abs=1e-7) and len({*predicted.round(6)}) > 30
    lengths = {trainee.batch(rows, index).attended.shape[1] for index in module.by_length(rows, 4)}
    assert lengths <= {16, 32, rows.longest}


ODD = {  # a family, how its models are made, and what another config.json has
    "no padding": ("distilbert", {}, {"pad_token_id": None}),
    "no padding of a BERT": ("bert", {}, {"pad_token_id": None}),
    "outputs by place": ("electra", {}, {"return_dict": False, "output_hidden_states": True}),
    "one type, of a tokenizer that has two": ("roberta", {}, {}),
    "one type of a BERT": ("bert", {"type_vocab_size": 1}, {}),
    "the name of an operator": ("bert", {}, {"attention": "symmetric"}),
}


@pytest.mark.parametrize("case", ODD)
def test_what_config_json_has_beside_the_encoder_changes_no_number(case, tmp_path):
    family, made, odd = ODD[case]
    folder, task, after = make_model(tmp_path / family, family, **made), GLUE["mnli"], []
    rows = rows_of(task, len(tokenizer_of(family)))
    of_one_type = replace_field(rows, token_type_ids=torch.zeros_like(rows.token_type_ids))
    for changes in ({}, odd):
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changes))
        model = loaded(folder, task)
        is_ours = stock.is_our_bert(model.config)
        trainee = Packed(stock.as_ours(model, HEADS[task.head].model)) if is_ours else stock.Padded(model)
        train(
            trainee,
            rows if case.startswith("one type") and after else of_one_type,
            EXACT_OF_PIECES,
            3,
            lambda step: None,
        )
        after.append(trainee.model.state_dict())
    for name, values in after[0].items():
        torch.testing.assert_close(after[1][name], values, rtol=0, atol=1e-6, msg=name)


def test_a_switch_is_no_dropout():
    """ESM's `token_dropout` says whether embeddings are scaled by the share of masks."""
    config = AutoConfig.for_model("esm", token_dropout=False)
    assert sorted(stock.dropouts_of(config)) == ["attention_probs_dropout_prob", "hidden_dropout_prob"]


def test_where_a_row_has_no_token_no_span_begins_or_ends(tmp_path):
    """The logits are those of the class, and −∞ beyond a row, over which the loss does not spread."""
    folder = make_model(tmp_path, "roberta")
    model, rows = loaded(folder, SPANS).double().eval(), rows_of(SPANS, 600)
    rows = replace_field(rows, token_type_ids=torch.zeros_like(rows.token_type_ids))
    trainee, index = stock.Padded(model), np.arange(8)
    batch = trainee.batch(rows, index)
    found = trainee.logits(batch)
    assert found.isneginf().all(dim=2).equal(~batch.attended) and found[batch.attended].isfinite().all()
    expected = []
    for row in index:
        tokens = slice(rows.first[row], rows.first[row] + rows.lengths[row])
        start, end = rows.labels[row].view(2, 1)
        outputs = model(rows.input_ids[tokens].long()[None], start_positions=start, end_positions=end)
        expected.append(outputs.loss.item())
        alone = torch.stack([outputs.start_logits, outputs.end_logits], dim=-1)[0]
        torch.testing.assert_close(found[row, : rows.lengths[row]], alone, rtol=0, atol=1e-9)
    assert HEADS["spans"].loss(found, batch.labels).item() == pytest.approx(np.mean(expected), abs=1e-9)


def test_of_the_embeddings_of_a_stock_model_those_of_the_task_alone_move(tmp_path):
    """As where all are trained, which a weight decay of almost nothing asks for; a text spells the padding."""
    folder, task = make_model(tmp_path, "roberta"), GLUE["mnli"]
    rows = rows_of(task, 600)
    rows = replace_field(
        rows,
        input_ids=rows.input_ids.index_fill(0, torch.tensor([5]), 1),
        token_type_ids=torch.zeros_like(rows.token_type_ids),
    )
    after = []
    for decay in (0.0, 1e-30):
        model = loaded(folder, task).double()
        before = model.get_input_embeddings().weight.detach().clone()
        train(stock.Padded(model), rows, replace(EXACT, weight_decay=decay), 1, lambda step: None)
        after.append(model.state_dict())
    for name, values in after[1].items():
        torch.testing.assert_close(after[0][name], values, rtol=0, atol=1e-9, msg=name)
    moved = (before != after[0]["roberta.embeddings.word_embeddings.weight"]).any(dim=1).nonzero()[:, 0].tolist()
    assert moved == sorted({*rows.input_ids.tolist()} - {1}) and len(moved) < len(before)


# --- loading ----------------------------------------------------------------------------------------------------------

LAST = "encoder.layer.1.output.dense.weight"
INNER = {"position_ids": torch.arange(128)[None]}


@pytest.fixture
def bert(tmp_path):
    """A BERT in a folder of its own, with changes of its weights and its config.json."""
    start = make_model(tmp_path / "bert", "bert")

    def make(change=None, **config):
        folder = tmp_path / f"{len([*tmp_path.iterdir()])}"
        shutil.copytree(start, folder)
        weights = load_file(start / "model.safetensors")
        save_file(change(weights) if change else weights, folder / "model.safetensors")
        values = json.loads((start / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(values | config))
        return folder

    return make


def renamed(change):
    return lambda weights: {change(name): values for name, values in weights.items()}


def of_the_encoder(weights):
    """As BertModel saves them, beside what it saved in earlier years."""
    inner = {name.removeprefix("bert."): values for name, values in weights.items() if name.startswith("bert.")}
    return inner | {"embeddings.position_ids": torch.arange(128)[None]}


NAMES = {
    "gamma": renamed(lambda name: name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")),
    "module": renamed(lambda name: f"module.{name}"),
    "compiled": renamed(lambda name: f"_orig_mod.module.{name}"),
    "encoder": of_the_encoder,
    "half": lambda weights: {name: values.half() for name, values in weights.items()},
    "positions": lambda weights: weights | {f"bert.embeddings.{name}": values for name, values in INNER.items()},
}


@pytest.mark.parametrize("form", [*NAMES, "pickled", "shards"])
def test_old_names_wrappers_and_several_files_are_the_same_encoder(form, bert):
    folder = bert(NAMES.get(form))
    weights = load_file(folder / "model.safetensors")
    if form == "pickled":
        torch.save(weights, folder / "pytorch_model.bin")
    elif form == "shards":
        names = sorted(weights)
        for number, part in enumerate((names[:9], names[9:]), start=1):
            save_file({name: weights[name] for name in part}, folder / f"model-0000{number}-of-00002.safetensors")
    if form in ("pickled", "shards"):
        (folder / "model.safetensors").unlink()
    expected = AutoModelForSequenceClassification.from_pretrained(bert(), num_labels=3).state_dict()
    found = loaded(folder, GLUE["mnli"])
    assert {values.dtype for values in found.parameters()} == {torch.float32}
    assert sorted(names for names, layer in found.named_modules() if layer in found.new_layers) == [
        "bert.pooler.dense",
        "classifier",
    ]
    for name, values in found.state_dict().items():
        if not name.startswith(module.NEW_LAYERS):
            near = {"rtol": 0, "atol": 1e-3 if form == "half" else 0}
            torch.testing.assert_close(values, expected[name], **near, msg=name)


def test_a_head_that_was_trained_before_is_drawn_again_and_follows_from_the_seed(bert):
    head = {"classifier.weight": torch.ones(3, 32), "classifier.bias": torch.ones(3)}
    folder = bert(lambda weights: weights | head)
    first, again, other = (loaded(folder, GLUE["mnli"], seed=seed).classifier.weight for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert first.std().item() == pytest.approx(0.02, rel=0.3)


WRONG = {
    "missing": (lambda weights: {n: v for n, v in weights.items() if not n.endswith(LAST)}, {}, rf"first bert\.{LAST}"),
    "another shape": (lambda weights: weights | {f"bert.{LAST}": torch.ones(3, 3)}, {}, rf"first bert\.{LAST}"),
    "left over": (None, {"num_hidden_layers": 1}, r"first bert\.encoder\.layer\.1\."),
    "left over of the encoder": (of_the_encoder, {"num_hidden_layers": 1}, r"first encoder\.layer\.1\."),
    "relative positions": (
        lambda weights: weights | {"bert.encoder.layer.0.attention.self.distance_embedding.weight": torch.ones(3, 3)},
        {"position_embedding_type": "relative_key"},
        "distance_embedding",
    ),
    "integers": (
        lambda weights: {name: (values * 99).to(torch.int8) for name, values in weights.items()},
        {},
        r"model\.safetensors: .*weight is quantized \(int8\)",
    ),
    "eight bits": (
        lambda weights: weights | {f"bert.{LAST}": weights[f"bert.{LAST}"].to(torch.float8_e4m3fn)},
        {},
        rf"bert\.{LAST} is quantized \(float8_e4m3fn\)",
    ),
    "no configuration": (None, {"hidden_size": "wide"}, r"config\.json: no configuration of bert"),
    "no model": (None, {"num_attention_heads": 5}, r"config\.json: no BertForSequenceClassification can be made"),
    "quantized": (
        None,
        {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}},
        "bitsandbytes",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_encoder_than_config_json_tells_of_is_refused_by_name(name, bert):
    change, config, said = WRONG[name]
    with pytest.raises(SymbertError, match=said) as refused:
        loaded(bert(change, **config), GLUE["mnli"])
    assert "\n" not in str(refused.value)


class Planted:
    """Makes a folder where it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("ran",)


def test_damaged_files_are_one_line_and_no_code_of_a_model_runs(bert, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = bert(auto_map={"AutoModel": "theirs.Model"}, _attn_implementation="theirs/kernel")
    assert loaded(folder, GLUE["mnli"]).config._attn_implementation == "sdpa"
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(IntegrityError, match=r"^\S+model\.safetensors: damaged \([^\n]+$"):
        loaded(folder, GLUE["mnli"])
    weights.unlink()
    torch.save({"weights": Planted()}, folder / "pytorch_model.bin")
    with pytest.raises(IntegrityError, match=r"^\S+pytorch_model\.bin: holds \w+\.mkdir, expected"):
        loaded(folder, GLUE["mnli"])
    assert not [*tmp_path.rglob("ran")]


def test_a_family_without_a_class_for_a_task_is_refused(tmp_path):
    config = AutoConfig.for_model("eurobert")
    with pytest.raises(ConfigError, match="eurobert for QuestionAnswering, which squad2 needs"):
        stock.class_of(config, SPANS)
