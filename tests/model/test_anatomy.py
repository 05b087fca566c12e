"""The anatomy of attention against closed forms, and of checkpoints of both kinds."""

import json
import math
from fractions import Fraction

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM

from model.models import Rectified, define, started, trained
from symbert.errors import ConfigError, DataError, IntegrityError
from symbert.files import copy_file, write_json
from symbert.model.anatomy import anatomy_of, directionality_of, symmetry_of
from symbert.model.hf import fold, write_model
from symbert.model.loading import load_encoder

ROWS = torch.randint(200, (3, 11), generator=torch.Generator().manual_seed(0))


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("angle", [0.0, 0.3, math.pi / 2])
def test_the_symmetry_of_a_sum_of_both_is_that_of_its_parts(angle):
    """Parts of equal norm, weighted cos and sin, score cos² − sin²."""
    matrix = drawn(30, 30)
    parts = [part / torch.linalg.norm(part) for part in (matrix + matrix.T, matrix - matrix.T)]
    score = symmetry_of(math.cos(angle) * parts[0] + math.sin(angle) * parts[1])
    assert score == pytest.approx(math.cos(2 * angle), abs=1e-12)


def test_the_directionality_is_the_excess_of_columns_over_that_of_rows_by_hand():
    matrix = torch.eye(10, dtype=torch.float64)
    matrix[:, 0] = 3.0
    columns, rows = torch.tensor([30 / math.sqrt(10), *[1.0] * 9]).double(), matrix.norm(dim=1)
    excess = [sum(max(0, each - side.mean() - 2 * side.std()) for each in side) for side in (columns, rows)]
    assert directionality_of(matrix) == pytest.approx(float((excess[0] - excess[1]) / sum(excess)))


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
def test_heads_have_the_scores_of_the_folded_bert(attention):
    model = trained(attention).bert
    heads = anatomy_of(model, ROWS)
    assert [(head["layer"], head["head"]) for head in heads] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    weights = fold(trained(attention)).bert.encoder.layer[0].attention.self
    query, key = (weights.get_parameter(f"{side}.weight").double()[32:] for side in ("query", "key"))
    assert heads[1]["symmetry"] == pytest.approx(symmetry_of(query.T @ key), abs=1e-4)
    assert heads[1]["directionality"] == pytest.approx(directionality_of(query.T @ key), abs=1e-3)
    if attention == "shared":
        assert [head["symmetry"] for head in heads] == pytest.approx([1] * 4, abs=1e-5)


def test_even_attention_has_the_entropy_of_n_tokens_and_one_share_of_n():
    model = started("tiny", "original").bert
    for layer in model.encoder.layer:
        layer.attention.self.query.weight.data.zero_()
        layer.attention.self.key.weight.data[0, 0] = 1.0  # or the scores were 0 / 0
        layer.attention.self.query.weight.data[0, 0] = 1e-12
    heads = anatomy_of(model, ROWS)
    assert len(heads) == 4
    for head in heads:
        assert head["attention_entropy"] == pytest.approx(math.log(11), rel=1e-5)
        assert head["own_share"] == pytest.approx(1 / 11, rel=1e-5) and head["logit_std"] < 1e-6


def test_a_token_of_symmetric_others_has_no_share_of_itself():
    heads = anatomy_of(trained("symmetric-others").bert, ROWS)
    assert len(heads) == 4
    assert all(head["own_share"] == 0 and head["attention_entropy"] <= math.log(10) for head in heads)


def test_an_operator_without_such_a_matrix_has_no_scores_of_it(monkeypatch):
    define(monkeypatch, "own", Rectified)
    heads = anatomy_of(trained("own").bert, ROWS)
    assert {head["symmetry"] for head in heads} == {None} and all(head["logit_std"] > 0 for head in heads)


def test_a_plain_bert_is_read_as_original(tmp_path):
    model = trained("pairwise")
    write_model(fold(model), tmp_path)
    stock, ours = anatomy_of(load_encoder(tmp_path), ROWS), anatomy_of(model.bert, ROWS)
    for one, other in zip(stock, ours, strict=True):
        assert one == pytest.approx(other, rel=1e-3, abs=1e-4)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A stock BERT, saved by Hugging Face: its folder and its weights by the names that an encoder has here."""
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    model = BertForMaskedLM(BertConfig(vocab_size=300, max_position_embeddings=24, **shape))
    folder = tmp_path_factory.mktemp("plain")
    model.save_pretrained(folder)
    return folder, {name: values for name, values in model.bert.state_dict().items() if "pooler" not in name}


WORDS = "bert.embeddings.word_embeddings.weight"
OTHERS_FORMS = {  # how others' files differ: names of weights, weights, and keys that config.json lacks
    "stock": ({}, {}, ()),
    "first BERTs": ({"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}, {}, ()),
    "DDP": ({"bert.": "module.bert.", "cls.": "module.cls."}, {}, ()),
    "compiled": ({"bert.": "_orig_mod.bert.", "cls.": "_orig_mod.cls."}, {}, ()),
    "DDP of compiled layers": ({"bert.encoder.layer.1.": "module.bert.encoder.layer.1._orig_mod."}, {}, ()),
    "without a head": ({"bert.": ""}, {}, ()),
    "a trainer's": ({"bert.": "model.bert."}, {}, ()),
    "padded to 8": ({}, {WORDS: 4}, ()),
    "2019": ({}, {}, ("model_type",)),
    "2018": ({}, {}, ("model_type", "architectures", "transformers_version")),
}


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("form", OTHERS_FORMS)
def test_any_bert_is_read_in_the_form_that_others_gave_it(plain, tmp_path, form, file):
    """It was refused, with the advice to delete its weights and have Snakemake make them."""
    folder, expected = plain
    names, padded, without = OTHERS_FORMS[form]
    config = {k: v for k, v in json.loads((folder / "config.json").read_text()).items() if k not in without}
    write_json(tmp_path / "config.json", config)
    weights = load_file(folder / "model.safetensors")
    for name, rows in padded.items():
        weights[name] = torch.cat([weights[name], torch.ones(rows, weights[name].shape[1])])
    for before, theirs in names.items():
        weights = {name.replace(before, theirs): values for name, values in weights.items()}
    (save_file if file.endswith("safetensors") else torch.save)(weights, tmp_path / file)
    read = load_encoder(tmp_path).state_dict()
    assert read.keys() == {name for name in expected if "position_ids" not in name}
    assert all(torch.equal(values, expected[name]) for name, values in read.items())


@pytest.mark.parametrize(
    ("changes", "content", "said"),
    [
        (
            {"architectures": ["RobertaModel"], "model_type": None},
            None,
            "'model_type' is missing",
        ),  # its places begin at 2
        ({"hidden_act": "relu"}, None, "'hidden_act' is relu, expected gelu"),
        ({"vocab_size": 301}, None, "1 weights are missing.*embeddings.word_embeddings.weight"),
        ({}, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "git lfs pull"),
        ({}, b"half of a file", "damaged"),
    ],
)
def test_what_is_wrong_with_anothers_checkpoint_is_said_and_nothing_is_to_be_deleted(
    plain, tmp_path, changes, content, said
):
    config = {**json.loads((plain[0] / "config.json").read_text()), **changes}
    write_json(tmp_path / "config.json", {key: value for key, value in config.items() if value is not None})
    for file in ("model.safetensors", "pytorch_model.bin"):
        weights = load_file(plain[0] / "model.safetensors")
        (tmp_path / file).write_bytes(content) if content else torch.save(weights, tmp_path / file)
        if not content and file == "model.safetensors":
            save_file(weights, tmp_path / file)
        with pytest.raises((ConfigError, IntegrityError), match=said) as refusal:
            load_encoder(tmp_path)
        assert not any(word in str(refusal.value) for word in ("delete", "snakemake"))
        (tmp_path / file).unlink()


def test_weights_that_lie_elsewhere_in_anothers_checkpoint_are_said(plain, tmp_path):
    """Whole files were called damaged, or their weights missing, with the advice to get them again."""
    copy_file(plain[0] / "config.json", tmp_path / "config.json")
    weights = load_file(plain[0] / "model.safetensors")
    for content, said in (
        ({"state_dict": weights, "epoch": 3}, "holds state_dict, epoch, expected weights by name"),
        ({**weights, "loss": Fraction(1, 2)}, "holds fractions.Fraction, expected"),
    ):
        torch.save(content, tmp_path / "pytorch_model.bin")
        with pytest.raises(IntegrityError, match=f"pytorch_model.bin: {said}"):
            load_encoder(tmp_path)
    (tmp_path / "pytorch_model.bin").unlink()
    write_json(tmp_path / "model.safetensors.index.json", {"weight_map": {}})
    with pytest.raises(DataError, match="index.json: lists no file"):
        load_encoder(tmp_path)


def test_weights_that_are_not_those_of_the_configuration_are_refused(tmp_path):
    write_model(trained("original"), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(IntegrityError, match=r"model\.safetensors: \d+ weights"):
        load_encoder(tmp_path)
