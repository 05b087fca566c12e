"""SQuAD 2.0 through the whole chain: on the stand-in, and on the publisher's rows that the mirror has."""

import csv
import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from workflow.checkout import Checkout, check_out

SPLIT = "rajpurkar/squad_v2/squad_v2/{}-00000-of-00001.parquet"
SCORES = "results/squad/squad2/tiny-original/seed-1/step-20/squad2.json"


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


@pytest.mark.campaign
def test_real_rows_are_trained_on_and_scored(root, mirror, tmp_path):
    """The mirror has 1,000 rows, all of the evaluation split: those of two contexts in three stand in for training."""
    file = mirror / SPLIT.format("validation")
    if not file.is_file():
        pytest.skip("no SQuAD 2.0 in ../shared/mirror")
    rows, folder = pq.read_table(file), (tmp_path / "mirror" / SPLIT.format("train")).parent
    folder.mkdir(parents=True)
    contexts = pc.unique(rows["context"])
    scored = pc.is_in(rows["context"], contexts.take(pa.array(range(0, len(contexts), 3))))
    pq.write_table(rows.filter(pc.invert(scored)), folder / "train-00000-of-00001.parquet")
    pq.write_table(rows.filter(scored), folder / "validation-00000-of-00001.parquet")
    glue = "glue={source: mirror, max_examples: 300, max_evaluation_examples: 200}"
    copy = run(root, tmp_path / "run", glue, f"mirror={tmp_path / 'mirror'}", "suites={squad2: {max_length: 384}}")
    for record in json.loads((copy.directory / SCORES).read_text()):
        assert record["rows"] == {"train": 300, "validation": 200} and record["partial"] and not record["stand_in"]
        assert record["official_rows"] == {"train": 130_319, "validation": 11_873}
        assert 0.3 < record["majority"]["squad2"] < 0.7 and 0 <= record["metrics"]["squad2"] <= 1
        assert record["details"]["squad2"].keys() >= {"has_answer_f1", "no_answer_f1"}
    text = (copy.directory / "results/squad/report/tables/squad2_answers.csv").read_text()
    assert "tiny-original" in text
