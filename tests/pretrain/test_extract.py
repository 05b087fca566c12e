"""Checkpoints of runs: in this project's form, and those of other architectures also in stock Hugging Face's."""

import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, BertLMHeadModel

from left_overs import assert_nothing_is_left
from model.models import widened
from pretrain.corpora import options, planned, write_corpus
from symbert import cli
from symbert.architectures import ARCHITECTURES, OTHERS
from symbert.errors import ConfigError, IntegrityError, MissingInputError
from symbert.files import read_json, write_json
from symbert.glue.export import export
from symbert.model.loading import extracted_sha256, load_encoder, load_model
from symbert.paths import CHECKSUM
from symbert.pretrain.checkpoint import CheckpointStore
from symbert.pretrain.extract import extract
from symbert.pretrain.train import Trainer

WEIGHTS, BIAS = "model.safetensors", "cls.predictions.bias"


@pytest.fixture
def run(finished, manifest, brief, tmp_path):
    """A copy of a finished run of 30 steps."""
    run = shutil.copytree(finished, tmp_path / "run")
    options(manifest, brief(), run)
    return run


@pytest.fixture
def extracted(run):
    """Step 20 of it, extracted."""
    extract(run, 20)
    return run / "step-20"


def test_an_extracted_checkpoint_has_the_weights_of_its_step_its_tokenizer_and_its_facts(extracted, run):
    kept, loaded = load_file(run / "state/weights/step-00000020.safetensors"), load_file(extracted / WEIGHTS)
    assert kept.keys() == loaded.keys() and all(torch.equal(kept[key], loaded[key]) for key in kept)
    assert not torch.equal(kept[BIAS], load_file(run / "state/weights/step-00000030.safetensors")[BIAS])
    assert extracted_sha256(extracted) == (extracted / CHECKSUM).read_text().strip()
    assert torch.equal(load_model(extracted).state_dict()[BIAS], loaded[BIAS])
    ids = AutoTokenizer.from_pretrained(extracted)("w1 W2 unknown", return_tensors="pt").input_ids
    assert ids.tolist() == [[2, 6, 7, 1, 3]]
    done, config = read_json(run / "done.json"), read_json(extracted / "config.json")
    assert config["attention"] == "pairwise" and "auto_map" not in config
    facts = {"step": 20, "corpus_source": "embedded", "sequence_length": 16}
    assert config["pretraining"] == {**done, **facts, "validation_loss": loss_at(20, run)}
    assert loss_at(20, run) != done["validation_loss"], "that of the last step stood beside every step"
    card = (extracted / "README.md").read_text()
    for fact in ("# tiny-pairwise", "* step: 20\n", "a stand-in corpus", done["settings_hash"], done["corpus_hash"]):
        assert fact in card


def loss_at(step, run):
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return next(line["loss"] for line in lines if line["split"] == "validation" and line["step"] == step)


def test_texts_are_cut_where_positions_were_never_trained(extracted, run):
    """Every tokenizer cut at 512, wherever the rows of its run ended: sentence-transformers and pipelines read it."""
    tokenizer = AutoTokenizer.from_pretrained(extracted)
    assert tokenizer.model_max_length == read_json(run / "step-20/config.json")["pretraining"]["sequence_length"] == 16
    assert len(tokenizer("w1 " * 40, truncation=True).input_ids) == 16


def test_the_tokenizer_alone_joins_the_pieces_of_a_word(extracted, run):
    """It was believed that readers of tokenizer.json know how; transformers 5 does, 4.57 and tokenizers do not."""
    tokenizer = Tokenizer.from_file(str(extracted / "tokenizer.json"))
    ids = tokenizer.encode("W1 w2").ids
    assert ids == AutoTokenizer.from_pretrained(extracted)("W1 w2").input_ids
    assert tokenizer.decode(ids) == "w1 w2" and json.loads(tokenizer.to_str())["decoder"]["type"] == "WordPiece"


def test_a_step_between_evaluations_has_no_loss(run):
    log = run / "metrics.jsonl"
    log.write_text("".join(line for line in log.read_text().splitlines(True) if '"validation"' not in line))
    extract(run, 20)
    assert "validation_loss" not in read_json(run / "step-20/config.json")["pretraining"]


def test_step_0_is_the_model_that_the_run_starts_from_to_the_bit_though_it_was_not_kept(run, manifest, brief):
    extract(run, 0)
    expected = Trainer(planned(manifest, brief())).model.state_dict()
    loaded = load_model(run / "step-0").state_dict()
    assert loaded.keys() == expected.keys() and all(torch.equal(loaded[name], expected[name]) for name in expected)
    assert not (run / "state/weights/step-00000000.safetensors").exists()


def test_a_step_that_cannot_be_written_whole_is_not_written(run, monkeypatch):
    monkeypatch.chdir(run)
    assert_nothing_is_left(["extract", str(run), "20"], run)


def test_a_step_that_was_not_kept_names_the_nearest_and_writes_nothing(extracted, run):
    with pytest.raises(MissingInputError, match="step 15 was not kept; the nearest kept steps: 10, 20"):
        extract(run, 15)
    assert not (run / "step-15").exists()


def test_a_step_whose_weights_were_removed_says_how_it_is_trained_again(run):
    """It said that the step "was not kept", and the nearest ones."""
    (run / "state/weights/step-00000010.safetensors").unlink()
    with pytest.raises(MissingInputError, match=r"no weights of step 10 are left; delete .*run/done\.json"):
        extract(run, 10)


@pytest.mark.parametrize("step", [0, 20])
def test_a_vocabulary_that_the_run_did_not_learn_is_refused(run, manifest, step):
    """It was believed that the file beside the rows stays what they were made with: 301 pieces went with 300."""
    vocabulary = manifest.parent / "vocab.txt"
    words = vocabulary.read_text().splitlines()
    for pieces in ([*words, "w55"], [*words[:-2], words[-1], words[-2]]):
        vocabulary.write_text("\n".join(pieces) + "\n")
        with pytest.raises(IntegrityError, match=r"vocab\.txt: sha256 expected .*; restore the vocabulary"):
            extract(run, step)
    assert not (run / f"step-{step}").exists()


def test_a_run_of_other_rows_than_its_corpus_has_today_is_refused(run, tmp_path):
    """Its folder does not say which corpus its rows were packed from."""
    write_corpus(tmp_path / "shards", rows=60)
    with pytest.raises(IntegrityError, match=r"manifest.json: hash \w{16}, but .*done.json is of \w{16}; restore the"):
        extract(run, 20)
    (tmp_path / "shards/manifest.json").unlink()
    extract(run, 20)


STOCK = {"decoder": (AutoModelForCausalLM, BertLMHeadModel)}


@pytest.fixture
def extracted_of(manifest, brief, tmp_path):
    """Extracts step 20, or step 0, of a run whose weights are far from their start; gives its trainer and folder."""

    def make(architecture, attention="pairwise", step=20):
        folder = tmp_path / "run"
        run, packed = planned(manifest, brief(), attention, architecture=architecture), read_json(manifest)
        options(manifest, brief(), folder, attention, architecture=architecture)
        trainer = Trainer(run)
        if step:
            widened(trainer.model, 0.1)
            CheckpointStore(folder / "state").keep_weights(trainer.model, step)
        write_json(folder / "state/config.json", trainer.model.config.to_dict())
        facts = {"steps": 30, "parameters": trainer.parameters, "settings_hash": "5e771", "validation_loss": 2.5}
        facts |= {"attention_parameters": {}, "settings": {}, "metrics_sha256": "0"}
        facts |= {"corpus_hash": packed["hash"], "vocabulary_sha256": packed["vocabulary_sha256"]}
        write_json(
            folder / "done.json", {**run.identity, **facts, f"validation_{ARCHITECTURES[architecture].measure}": 0.875}
        )
        measure = {"perplexity": 0.875} if architecture == "decoder" else {}
        (folder / "metrics.jsonl").write_text(json.dumps({"split": "validation", "step": step, "loss": 2.5, **measure}))
        extract(folder, step)
        return trainer, folder / f"step-{step}"

    return make


def inputs_of(trainer):
    """What the model reads of four held-out sequences."""
    batch = trainer.task.validation_batch(np.arange(4))
    return {name: tensor for name, tensor in trainer.task.inputs(batch, False).items() if name != "targets"}


@torch.no_grad()
def logits_of(trainer, model):
    return trainer.task.logits(model.eval(), **inputs_of(trainer))


@pytest.mark.parametrize("architecture", OTHERS)
def test_a_checkpoint_is_the_model_that_was_trained_and_without_an_equal_bert_is_not_exported(
    extracted_of, tmp_path, architecture
):
    trainer, folder = extracted_of(architecture, "symmetric-others")
    model = load_model(folder)
    assert type(model) is type(trainer.model) and not model.training
    assert torch.equal(logits_of(trainer, model), logits_of(trainer, trainer.model))
    with pytest.raises(ConfigError, match="attention 'symmetric-others' has no equal BERT.* as its model card says"):
        export(folder, tmp_path / "stock")
    assert not (tmp_path / "stock").exists()


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
@pytest.mark.parametrize("architecture", OTHERS)
def test_an_exported_checkpoint_loads_with_stock_hugging_face_and_has_equal_logits(
    extracted_of, tmp_path, architecture, attention
):
    trainer, folder = extracted_of(architecture, attention)
    export(folder, tmp_path / "stock")
    auto, kind = STOCK[architecture]
    stock, report = auto.from_pretrained(tmp_path / "stock", output_loading_info=True)
    assert type(stock) is kind and not any(report[key] for key in ("missing_keys", "unexpected_keys"))
    with torch.no_grad():
        found = stock.eval()(**inputs_of(trainer)).logits
    expected = logits_of(trainer, trainer.model)
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-5 * float(expected.abs().max()))
    assert expected.std() > 0.1
    config = read_json(tmp_path / "stock/config.json")
    assert config["architectures"] == [kind.__name__] and config["pretraining"]["attention"] == attention


@pytest.mark.parametrize("form", ["ours", "stock"])
@pytest.mark.parametrize("architecture", OTHERS)
def test_the_example_of_the_model_card_runs_in_the_directory(extracted_of, tmp_path, monkeypatch, architecture, form):
    trainer, folder = extracted_of(architecture)
    export(folder, tmp_path / "stock")
    monkeypatch.chdir(folder if form == "ours" else tmp_path / "stock")
    names = {}
    exec(Path("README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0], names)
    expected = type(trainer.model) if form == "ours" else STOCK[architecture][1]
    assert type(names["model"]) is expected and "tokenizer" in names


def test_a_decoder_has_a_tokenizer_and_is_refused_where_its_corpus_names_no_vocabulary(extracted_of, tmp_path):
    _, folder = extracted_of("decoder")
    assert AutoTokenizer.from_pretrained(folder)("w1 w2").input_ids == [2, 6, 7, 3]
    (tmp_path / "shards/settings.json").unlink()
    with pytest.raises(MissingInputError, match=r"shards/settings\.json: file not found"):
        extract(tmp_path / "run", 20)


def test_a_flipped_bit_is_another_model_for_every_command(extracted):
    """`symbert export` and `symbert anatomy` took it for the model that was trained."""
    content = bytearray((extracted / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (extracted / WEIGHTS).write_bytes(content)
    for load in (load_model, load_encoder):
        with pytest.raises(IntegrityError, match=r"model\.safetensors: sha256 expected .*: symbert extract") as refusal:
            load(extracted)
    _, *command = shlex.split(str(refusal.value).rpartition("again: ")[2])
    assert cli.main(command) == 0
    load_model(extracted)


def test_who_made_a_checkpoint_is_known_where_its_run_lies_above_it_alone(extracted, tmp_path):
    """Any file of weights was to be deleted, for Snakemake to make it."""
    copy = shutil.copytree(extracted, tmp_path / "copied")
    missing = extracted.with_name("step-KEY"), tmp_path / "results/runs/encoder/tiny-pairwise-KEY/seed-1/step-20"
    for folder in (copy, *missing):
        (folder / WEIGHTS).unlink(missing_ok=True)
        for load in (load_model, load_encoder):
            with pytest.raises(MissingInputError, match=f"{folder}") as refusal:
                load(folder)
            assert not any(word in str(refusal.value) for word in ("delete", "snakemake", "extract"))


def test_weights_that_the_configuration_does_not_describe_are_refused(extracted_of):
    _, folder = extracted_of("decoder")
    bias, file = BIAS, folder / WEIGHTS
    weights = load_file(file)
    (folder / CHECKSUM).unlink()
    without = {name: tensor for name, tensor in weights.items() if name != bias}
    for damaged, name in (
        (without, bias),
        ({**weights, "more": torch.zeros(2)}, "more"),
        ({**weights, bias: torch.zeros(61)}, bias),
    ):
        save_file(damaged, file)
        with pytest.raises(IntegrityError, match=f"1 weights are missing, unknown or of another shape.* first {name}"):
            load_model(folder)
