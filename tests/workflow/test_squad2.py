"""SQuAD 2.0 through the whole chain: on the stand-in; tests/glue/test_real_rows.py has the publisher's rows."""

import csv

import pytest

from workflow.checkout import Checkout, check_out


def run(root, folder, *words: str) -> Checkout:
    """A checkout in which the tiny chain made the tables of SQuAD 2.0, of one run with two seeds of fine-tuning."""
    copy = check_out(root, folder)
    sweep = "sweep={suites: [squad2], attention: [original], finetune_seeds: [1, 2], curve: {sizes: []}}"
    tables = [f"results/squad/report/tables/{name}.csv" for name in ("squad2", "squad2_answers")]
    outcome = copy.tiny(*tables, "--config", "experiment=squad", sweep, *words)
    assert outcome.code == 0, outcome.output[-5000:]
    return copy


def shown(copy: Checkout, table: str) -> list[dict[str, str]]:
    with open(copy.directory / f"results/squad/report/tables/{table}.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.campaign
def test_the_stand_in_has_scores_and_both_kinds_of_questions(root, tmp_path):
    copy = run(root, tmp_path / "run", "suites={squad2: {max_length: 64}}")
    model, majority = shown(copy, "squad2")
    assert model["model"] == "tiny-original" and 0 <= float(model["squad2_score (stand-in)"]) <= 100
    (answers,) = shown(copy, "squad2_answers")
    kinds = [float(answers[name]) for name in ("has_answer_f1", "no_answer_f1")]
    assert min(kinds) <= float(answers["f1"]) <= max(kinds)
    assert 20 < float(majority["squad2_score (stand-in)"]) < 80, "about half of the 32 questions have no answer"
