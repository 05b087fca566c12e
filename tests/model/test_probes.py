"""Probes of relations between tokens: what theory says of symmetric scores, and that training finds it."""

import itertools

import pandas as pd
import pytest
import torch

from model.models import Shifted, define
from symbert import cli
from symbert.model.probes import NOBODY, RELATIONS, TOKENS, _layer_of, probe_of, scores_of, targets_of
from symbert.operators import OPERATORS

FREE = ("original", "pairwise", "original-symmetric", "pairwise-identity")
SYMMETRIC = ("symmetric", "shared", "symmetric-others")


def shares_of(operator):
    return {(row["relation"], row["own_position"]): row["share"] for row in probe_of(operator)}


@pytest.mark.parametrize("seed", range(3))
def test_relations_are_a_cycle_of_all_a_chain_and_partners(seed):
    cycle, chain, partner = (targets_of(relation, seed).tolist() for relation in ("cycle", "chain", "partner"))
    walked = list(itertools.accumulate(range(TOKENS - 1), lambda token, _: cycle[token], initial=cycle[0]))
    assert sorted(walked) == list(range(TOKENS)) and walked[-1] == 0
    (end,) = (token for token, target in enumerate(chain) if target == NOBODY)
    assert [target for token, target in enumerate(chain) if token != end] == [
        target for token, target in enumerate(cycle) if token != end
    ]
    assert all(partner[partner[token]] == token != partner[token] for token in range(TOKENS))


@pytest.mark.parametrize("operator", FREE)
def test_an_operator_with_free_scores_points_along_every_relation(operator):
    assert set(shares_of(operator).values()) == {1.0}


@pytest.mark.parametrize("operator", ["symmetric", "shared"])
def test_a_symmetric_score_points_along_no_cycle(operator):
    shares = shares_of(operator)
    assert shares["cycle", "yes"] == 0 and shares["partner", "yes"] == pytest.approx(0.5, abs=0.1)
    assert shares["chain", "yes"] == shares["chain", "no"] == shares["partner", "no"] == 1
    assert shares["cycle", "no"] == pytest.approx(0.5, abs=0.1)


def test_symmetric_others_points_as_symmetric_does_with_the_own_position_masked():
    shares = shares_of("symmetric-others")
    assert shares["partner", "yes"] == shares["chain", "yes"] == 1
    assert shares["cycle", "yes"] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("own_position", [True, False])
def test_no_symmetric_matrix_has_its_row_maxima_along_a_cycle(own_position):
    """The proof of docs/operators.md, tried on random symmetric scores: the maxima would rise for ever."""
    generator = torch.Generator().manual_seed(0)
    for seed in range(200):
        scores = torch.randn(TOKENS, TOKENS, generator=generator)
        scores += scores.T.clone()
        targets = targets_of("cycle", seed)
        scores[targets, torch.arange(TOKENS)] += 100  # as large as one likes, the other way, too
        scores = (scores + scores.T) / 2
        scores = scores if own_position else scores.fill_diagonal_(-torch.inf)
        assert not torch.equal(scores.argmax(-1), targets)


@pytest.mark.parametrize("operator", SYMMETRIC[:2])
def test_scores_of_shared_are_as_symmetric_as_those_of_symmetric(operator):
    attention = _layer_of(operator)
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter)
    scores = scores_of(attention, torch.randn(1, TOKENS, attention.config.hidden_size), own_position=True)
    torch.testing.assert_close(scores, scores.mT, rtol=1e-4, atol=1e-3 * scores.abs().max().item())


def test_rows_state_chance_and_an_interval(monkeypatch, tmp_path):
    monkeypatch.setattr("symbert.model.probes.STEPS", 2)
    assert cli.main(["probe", "symmetric", "original", "--output", str(tmp_path / "probes.csv")]) == 0
    rows = pd.read_csv(tmp_path / "probes.csv")
    assert len(rows) == 2 * 2 * len(RELATIONS)
    assert (rows["low"] <= rows["share"]).all() and (rows["share"] <= rows["high"]).all()
    assert rows.groupby("own_position")["chance"].first().to_dict() == pytest.approx({"no": 1 / 15, "yes": 1 / 16})


def test_an_operator_of_the_users_own_that_mixes_tokens_is_probed(monkeypatch):
    define(monkeypatch, "own", Shifted)
    assert len(probe_of("own")) == 2 * len(RELATIONS) and "own" in OPERATORS
