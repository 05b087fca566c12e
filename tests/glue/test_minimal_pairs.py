"""BLiMP: files as published, stand-ins, and how a checkpoint judges pairs."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM, AutoTokenizer

from foreign import FAMILIES, make_model, model_in, tokenizer_in
from model.models import moved, small_config
from symbert.corpus.wordpiece import encoder
from symbert.errors import ConfigError, DataError, DivergedError, IntegrityError
from symbert.files import sha256_of, write_json
from symbert.glue import stock
from symbert.glue.blimp import PARADIGMS, STAND_IN_PAIRS, published_pairs
from symbert.glue.finetuning import preferences
from symbert.glue.prepare import SENTENCES
from symbert.glue.score import score
from symbert.model.bert import DecoderModel, MaskedModel, initialize
from symbert.model.likelihood import log_likelihoods
from symbert.model.loading import load_model, write_weights
from symbert.sources import DEMO

MASK = 4  # of the vocabulary of the tests


@pytest.fixture
def pairs(laboratory):
    """Prepares all pairs of a directory in the publishers' layout; gives the file."""

    def prepared(allow_partial=True, **changes):
        step = laboratory.pairs(**changes)
        laboratory.prepared(step, "blimp", allow_partial)
        return step

    return prepared


@pytest.fixture
def score_pairs(laboratory):
    """The record of a checkpoint on prepared pairs."""

    def counted(step, path=None):
        return json.loads(laboratory.score(laboratory.score_pairs(step), path or laboratory.checkpoint()).read_text())

    return counted


def test_a_checkpoint_judges_every_pair_of_every_paradigm(pairs, score_pairs, vocabulary, checkpoint):
    step = pairs()
    record = score_pairs(step)
    assert {"size": "tiny", "attention": "pairwise", "pretrain_seed": 1, "step": 300}.items() <= record.items()
    assert record["stand_in"] and record["partial"]
    assert record["checkpoint_sha256"] == sha256_of(checkpoint("pairwise") / "model.safetensors")
    assert record["data_sha256"] == sha256_of(Path(step.file())) and record["versions"]["torch"] == torch.__version__
    assert list(record["paradigms"]) == list(PARADIGMS)
    assert {counts["pairs"] for counts in record["paradigms"].values()} == {STAND_IN_PAIRS}
    published = pq.read_table(DEMO / published_pairs("wh_island").location).to_pylist()
    tokenizer, model = encoder(vocabulary), load_model(checkpoint("pairwise"))
    good, bad = ([tokenizer.encode(pair[side]).ids for pair in published] for side in SENTENCES)
    difference = log_likelihoods(model, good, MASK) - log_likelihoods(model, bad, MASK)
    right = int((difference > 0).sum())
    assert record["paradigms"]["wh_island"] == {"pairs": STAND_IN_PAIRS, "right": right, "ties": 0}


def test_fewer_pairs_than_published_are_refused_unless_allowed_and_few_may_be_wanted(pairs, score_pairs):
    with pytest.raises(DataError, match="blimp: anaphor_gender_agreement has 10 rows, expected 1,000"):
        pairs(allow_partial=False)
    record = score_pairs(pairs(max_evaluation_examples=3))
    assert {counts["pairs"] for counts in record["paradigms"].values()} == {3}


def test_a_pair_with_the_same_pieces_is_a_tie_whatever_rounding_says():
    """Unknown words are one piece: a model that cannot see a difference would be right by chance of a last bit."""
    model = moved(MaskedModel(small_config()))
    same, other = [1, 50, 51, 52, 2], [1, 50, 52, 51, 2]
    better = preferences(model, [same, same, other], [same, other, same], 3)
    assert better[0] == 0 and better[1] == -better[2] != 0


def test_pairs_that_a_short_max_length_makes_equal_are_no_ties(pairs):
    """They were counted as pairs that a model cannot tell."""
    with pytest.raises(ConfigError, match=r"'suites.blimp.max_length' is 8, which cuts .* \(\w+: '.*'\); raise"):
        pairs(max_length=8)


def test_a_file_of_other_pairs_or_without_some_is_named(tmp_path, pairs):
    shutil.copytree(DEMO / "nyu-mll/blimp", tmp_path / "nyu-mll/blimp")
    file = tmp_path / published_pairs("wh_island").location
    for columns, named in (
        ({"sentence_good": ["a"], "UID": ["wh_island"]}, "'sentence_bad'"),
        ({"sentence_good": ["a"], "sentence_bad": [None], "UID": ["wh_island"]}, "'sentence_bad'"),
        ({"sentence_good": ["a"], "sentence_bad": ["b"], "UID": ["passive_1"]}, "passive_1"),
    ):
        pq.write_table(pa.table(columns), file)
        with pytest.raises(DataError, match=f"wh_island.*{named}"):
            pairs(root=tmp_path)


def test_a_record_says_of_which_architecture_it_is(pairs, score_pairs, laboratory):
    """It was believed that a record is of the checkpoint that was given: a decoder's stood there as an encoder's."""
    model = DecoderModel(small_config(attention="pairwise", vocab_size=300))
    initialize(model, 1)
    folder = laboratory.results / "runs/decoder/tiny-pairwise-00000001/seed-1/step-300"
    write_weights(model, folder / "model.safetensors")
    run = {"size": "tiny", "attention": "pairwise", "pretrain_seed": 1, "architecture": "decoder", "step": 300}
    write_json(folder / "config.json", {**model.config.to_dict(), "pretraining": run})
    assert list(score_pairs(pairs(), folder).items())[:5] == list(run.items())


def test_a_checkpoint_without_finite_likelihoods_or_without_its_head_is_refused(pairs, score_pairs, checkpoint):
    """It was believed that a comparison sees numbers: a model of nan was wrong in every pair, without a tie."""
    path = checkpoint("pairwise")
    weights = load_file(path / "model.safetensors")
    weights["cls.predictions.bias"][7] = torch.nan
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(DivergedError, match=r"step-300: the likelihoods of 670 pairs are not finite"):
        score_pairs(pairs(), path)
    save_file({name: each for name, each in weights.items() if "transform" not in name}, path / "model.safetensors")
    with pytest.raises(IntegrityError, match=r"4 weights .* first cls.predictions.transform.LayerNorm.bias"):
        score_pairs(pairs(), path)


def naive_likelihood(model, tokenizer, sentence):
    """The sum over tokens of the log probability of each, while it alone is masked."""
    ids, total = tokenizer(sentence)["input_ids"], 0.0
    for place in range(1, len(ids) - 1):
        masked = torch.tensor([[*ids[:place], tokenizer.mask_token_id, *ids[place + 1 :]]])
        total += model(masked).logits[0, place].double().log_softmax(0)[ids[place]].item()
    return total


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "electra"])
def test_a_model_from_elsewhere_judges_by_its_own_mask_and_head_as_stock_transformers_does(family, tmp_path):
    folder = make_model(tmp_path, family, initializer_range=0.5)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).eval()
    sentences = ["The cat sat.", "A cat sits here", "The cats sat.", "No"]
    foreign = model_in(folder)
    ours = stock.load_masked(foreign, stock.read_config(foreign))
    found = log_likelihoods(ours, tokenizer(sentences)["input_ids"], tokenizer.mask_token_id)
    with torch.no_grad():
        expected = [naive_likelihood(model, tokenizer, sentence) for sentence in sentences]
    assert found.tolist() == pytest.approx(expected, rel=1e-5)
    assert len(set(expected)) == len(sentences)


def test_the_record_of_a_model_from_elsewhere_says_which_it_is(pairs, laboratory, tmp_path):
    folder = make_model(tmp_path / "mine", "roberta")
    step = pairs(tokenizer=tokenizer_in(folder), max_evaluation_examples=2)
    planned = laboratory.planned(model_in(folder))
    output = Path(laboratory.score_pairs(step).folder) / "models/mine/pairs.json"
    score(output, output.parents[2], Path(planned.folder), 1)
    record = json.loads(output.read_text())
    assert {"size": "", "attention": "mine", "origin": str(folder), "model_type": "roberta"}.items() <= record.items()
    assert {counts["pairs"] for counts in record["paradigms"].values()} == {2}
    assert record["checkpoint_sha256"] == sha256_of(folder / "model.safetensors")


def test_a_model_without_a_head_that_predicts_masked_tokens_judges_no_pairs(tmp_path):
    """ELECTRA's discriminator: transformers draws the head of its generator, whose judgements are of chance."""
    foreign = model_in(make_model(tmp_path, "electra"))
    with pytest.raises(ConfigError, match=r"no head that predicts masked tokens.*'blimp'"):
        stock.load_masked(foreign, stock.read_config(foreign))


def test_the_real_files_say_of_each_paradigm_its_phenomenon_as_we_do(mirror):
    for paradigm, phenomenon in PARADIGMS.items():
        table = pq.read_table(mirror / published_pairs(paradigm).location, columns=["UID", "linguistics_term"])
        assert set(table["UID"].to_pylist()) == {paradigm} and table.num_rows == 1000
        (said,) = set(table["linguistics_term"].to_pylist())
        assert phenomenon == {"s-selection": "argument_structure"}.get(said, said)
