"""Pairs of sequences: what is to be written of a source, and of what a pair is a function."""

import numpy as np
import pytest
import torch

from symbert.draws import mix
from symbert.hosts import HELD_OUT_PAIRS, LONGEST, PAIR_TOKENS, PAIR_VOCABULARY, SHORTEST, TASKS_OF_PAIRS
from symbert.layout import Run
from symbert.pretrain.objective import IGNORED
from symbert.pretrain.pairs import DELETED, END, FIRST_LETTER, FIRST_TASK, PADDING, START, SUBSTITUTES, pairs_of
from symbert.pretrain.train import Trainer
from symbert.settings import PretrainSettings, read_settings


@pytest.fixture
def build(brief, tmp_path):
    """A trainer of a tiny encoder-decoder."""

    def make(attention: str = "original", seed: int = 1, **changes) -> Trainer:
        settings = read_settings(brief(**{"dropout": 0.0, **changes}), PretrainSettings)
        return Trainer(Run("tiny", attention, seed, "encoder-decoder"), settings, None, tmp_path)

    return make


def written(row: np.ndarray) -> list[int]:
    """The tokens between START and END."""
    assert row[0] == START and (row[list(row).index(END) + 1 :] == PADDING).all()
    return row[1 : list(row).index(END)].tolist()


def test_what_is_written_is_the_answer_of_a_naive_loop():
    sources, targets = pairs_of(mix(7, np.arange(300)))
    seen = set()
    for source, target in zip(sources, targets, strict=True):
        task, *letters = [token for token in source.tolist() if token != PADDING]
        assert SHORTEST <= len(letters) <= LONGEST and all(FIRST_LETTER <= one < PAIR_VOCABULARY for one in letters)
        seen.add(name := TASKS_OF_PAIRS[task - FIRST_TASK])
        expected = {
            "reverse": list(reversed(letters)),
            "delete": [one for one in letters if one - FIRST_LETTER not in range(DELETED)],
            "substitute": [int(SUBSTITUTES[one - FIRST_LETTER]) for one in letters],
        }
        assert written(target) == expected[name]
    assert seen == {*TASKS_OF_PAIRS}


def test_substitutes_are_letters_and_no_two_have_the_same():
    assert sorted(SUBSTITUTES) == list(range(FIRST_LETTER, PAIR_VOCABULARY))
    assert (np.arange(FIRST_LETTER, PAIR_VOCABULARY) != SUBSTITUTES).any()


def test_a_batch_is_a_function_of_seed_and_step_and_not_of_its_operator(build):
    one, again, other = (build(*who).objective.training_batch(3) for who in (("original",), ("shared",), ("shared", 2)))
    assert torch.equal(one.source, again.source) and torch.equal(one.targets, again.targets)
    assert not torch.equal(one.source, other.source)
    assert one.source.shape == one.target.shape == one.targets.shape == (8, PAIR_TOKENS)


def test_held_out_pairs_are_the_same_for_all_runs_and_none_is_trained_on(build):
    objective = build().objective
    held_out = torch.cat([batch.source for batch in objective.validation_batches(100)])
    assert len(held_out) == HELD_OUT_PAIRS
    assert torch.equal(held_out, torch.cat([batch.source for batch in build(seed=2).objective.validation_batches(512)]))
    read = {tuple(row) for step in range(50) for row in objective.training_batch(step).source.tolist()}
    assert not read & {tuple(row) for row in held_out.tolist()}


def test_a_target_is_what_follows_and_padding_counts_nothing(build):
    batch = build().objective.training_batch(0)
    for read, following in zip(batch.target.tolist(), batch.targets.tolist(), strict=True):
        end = following.index(END)
        assert read[0] == START and read[1 : end + 1] == following[:end]
        assert following[end + 1 :] == [IGNORED] * (PAIR_TOKENS - end - 1)
    assert batch.count == (batch.targets != IGNORED).sum()


def test_exact_match_is_the_share_that_greedy_decoding_writes(build):
    """Teacher-forced tokens that are all the most probable ones are those that a greedy decoder writes."""
    trainer = build(steps=20, warmup_steps=5, batch_size=32, learning_rate=5e-3)
    for step in range(20):
        trainer.step(step)
    (batch,) = trainer.objective.validation_batches(HELD_OUT_PAIRS)
    written = trainer.model.eval().generate(batch.source, batch.source_mask, START, END, PAIR_TOKENS)
    truth = batch.targets.where(batch.targets != IGNORED, PADDING)
    expected = (written == truth).all(-1).double().mean().item()
    assert trainer.evaluate()["exact_match"] == pytest.approx(expected)
    right = trainer.objective.right(torch.nn.functional.one_hot(truth, PAIR_VOCABULARY).float(), batch.targets)
    assert right == HELD_OUT_PAIRS, "of logits that know the answer"
