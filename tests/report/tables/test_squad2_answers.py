"""The table of questions with and without an answer: means of the details of records."""

from csv_rows import read_shown
from report.written import write_exhibit

NAMES = ("exact", "f1", "has_answer_exact", "has_answer_f1", "no_answer_f1")


def test_each_kind_of_question_has_its_mean_over_seeds(record, write_scores, report_settings, outputs):
    records = []
    for position, attention in enumerate(["original", "pairwise"]):
        for seed in (1, 2):
            details = {name: 0.1 * (at + 1) + 0.01 * seed + 0.2 * position for at, name in enumerate(NAMES)}
            made = record("tiny", attention, 1800, "rte", seed, details={"squad2": details}, settings_hash="ab12")
            scored = {"metrics": {"squad2": details["f1"]}, "majority": {"squad2": 0.5}}
            records.append(made | scored | {"task": "squad2", "data_sha256": "squad2"})
    settings = report_settings(tasks=["rte", "squad2"], glue_source="mirror", suites={"squad2": "ab12"})
    options = {"scores": write_scores(records), "finetune_seeds": [1, 2], "settings": settings}
    write_exhibit("table-squad2_answers", outputs, **options)
    original, pairwise = read_shown(outputs[0])
    assert [original[name] for name in NAMES] == ["11.50", "21.50", "31.50", "41.50", "51.50"]
    assert pairwise["has_answer_f1"] == "61.50" and original["fine_tunings"] == "2"
    write_exhibit("table-squad2", outputs, **options)
    original, _, majority = read_shown(outputs[0])
    assert (original["squad2_score"], majority["squad2_score"]) == ("21.50", "50.00")
