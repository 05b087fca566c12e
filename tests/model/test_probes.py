"""Probes of relations between tokens: what theory says of symmetric scores, and that training finds it."""

import itertools

import pandas as pd
import pytest
import torch

from studies import probes
from studies.probes import (
    LOOKUPS,
    NOBODY,
    RELATIONS,
    SYMBOLS,
    TOKENS,
    layer_of,
    learn,
    look_up,
    rows_of,
    targets_of,
)
from symbert.operators import OPERATORS


def shares_of(name):
    operator = OPERATORS[name]
    rows = [learn(operator, relation, own_position) for relation in RELATIONS for own_position in (True, False)]
    return {(row["relation"], row["own_position"]): row["share"] for row in rows}


def test_relations_are_a_cycle_of_all_a_chain_and_partners():
    cycle, chain, partner = (targets_of(relation, 0).tolist() for relation in ("cycle", "chain", "partner"))
    walked = list(itertools.accumulate(range(TOKENS - 1), lambda token, _: cycle[token], initial=cycle[0]))
    assert sorted(walked) == list(range(TOKENS)) and walked[-1] == 0
    (end,) = (token for token, target in enumerate(chain) if target == NOBODY)
    assert [*chain[:end], *chain[end + 1 :]] == [*cycle[:end], *cycle[end + 1 :]]
    assert all(partner[partner[token]] == token != partner[token] for token in range(TOKENS))


def test_an_operator_with_free_scores_points_along_every_relation_and_a_symmetric_one_along_no_cycle():
    for operator in ("original", "pairwise"):
        assert set(shares_of(operator).values()) == {1.0}
    for operator in ("symmetric", "shared"):
        shares = shares_of(operator)
        assert shares["cycle", "yes"] == 0 and shares["partner", "yes"] == pytest.approx(0.5, abs=0.1)
        assert shares["chain", "yes"] == shares["chain", "no"] == shares["partner", "no"] == 1
        assert shares["cycle", "no"] == pytest.approx(0.5, abs=0.1)


@pytest.fixture
def short(monkeypatch):
    """Probes of two steps."""
    monkeypatch.setattr("studies.probes.STEPS", 2)
    monkeypatch.setattr("studies.probes.LOOKUP_STEPS", 2)


def test_rows_state_chance_and_an_interval_also_of_an_operator_named_by_its_class(short, tmp_path):
    words = ["symmetric", "model.models:Shifted", "--output", str(tmp_path / "probes.csv")]
    probes.main(words)
    rows = pd.read_csv(tmp_path / "probes.csv")
    assert len(rows) == 2 * (2 * len(RELATIONS) + len(LOOKUPS)) and set(rows["attention"]) == {"symmetric", "shifted"}
    assert (rows["low"] <= rows["share"]).all() and (rows["share"] <= rows["high"]).all()
    assert rows.groupby("own_position")["chance"].first().to_dict() == pytest.approx({"no": 1 / 15, "yes": 1 / 16})


def test_operators_of_a_configuration_are_known_by_their_names_there(short, tmp_path, capsys):
    file = tmp_path / "config.yaml"
    file.write_text("{operators: {mine: {class: 'model.models:Shifted'}}, sweep: {attention: [mine, original]}}")
    probes.main(["--configfile", str(file)])
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert list(dict.fromkeys(names)) == ["mine", "original"]


def test_answers_of_lookups_stand_in_their_rows():
    generator = torch.Generator().manual_seed(0)
    for lookup in ("recall", "fuzzy"):
        keys, values, answers = (side.tolist() for side in rows_of(lookup, generator))
        for key, value, answer in zip(keys, values, answers, strict=True):
            assert answer == [dict(zip(key[:8], value[:8], strict=True))[asked] for asked in key[8:]]
            assert set(value[8:]) == {SYMBOLS}, "what is asked is not given"
    row, before, answers = (side.tolist() for side in rows_of("induction", generator))
    for symbols, previous, (answer,) in zip(row, before, answers, strict=True):
        assert previous == [SYMBOLS, *symbols[:-1]] and symbols[symbols.index(symbols[-1]) + 1] == answer


def test_original_learns_induction_where_a_symmetric_score_learns_recall_alone():
    (share, steps), (symmetric, never) = (
        look_up(layer_of(OPERATORS[name], 4), "induction", 1) for name in ("original", "symmetric")
    )
    assert share >= 0.9 and steps < 100 and never is None and symmetric < 0.2
    assert look_up(layer_of(OPERATORS["symmetric"], 4), "recall", 1)[1] < 60
