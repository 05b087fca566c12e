"""Experiments that extend another one: what they make, what they read, and that they write nothing there."""

import json
from pathlib import Path

import pytest

from workflow.checkout import Checkout
from workflow.test_reruns import computed, contents, planned

BASE = "extends=demo-embedded"
SCORE = "results/{}/glue/tiny-original/seed-1/step-20/mrpc.json"
RUN = {"pretrain_model": 1, "extract_checkpoint": 2, "finetune": 2, "measure_robustness": 1}


@pytest.mark.parametrize(
    ("change", "jobs"),
    [
        ("sweep={attention: [original]}", {}),
        ("sweep={finetune_seeds: [1, 2, 3]}", {"finetune": 2, "measure_robustness": 2}),
        ("sweep={attention: [original, symmetric]}", RUN),
        ("pretrain={learning_rate: 0.002}", {rule: 2 * count for rule, count in RUN.items()}),
    ],
)
def test_an_experiment_makes_what_the_one_that_it_extends_lacks(finished, change, jobs):
    """The rest is read there: of equal settings, rows and operators, in any combination."""
    assert computed(planned(finished, "experiment=other", BASE, change)) == {"count_parameters": 1, **jobs}


def test_another_corpus_or_an_edited_operator_shares_nothing_that_follows_from_it(copy):
    jobs = planned(copy, "experiment=other", BASE, "corpus={filter: {max_harmful_perplexity: 50000.0}}")
    assert (jobs["filter_part"], jobs["pretrain_model"], jobs["finetune"]) == (4, 2, 4)
    assert "download_task" not in jobs, "GLUE's rows as published do not follow from it"
    code = copy.directory / "src/symbert/model/attention.py"
    text = code.read_text(encoding="utf-8").replace(
        "self.split_heads(project(hidden))", "self.split_heads(2 * project(hidden))"
    )
    code.write_text(text, encoding="utf-8")
    jobs = planned(copy, "experiment=other", BASE)
    assert jobs["pretrain_model"] == 1 and "pack_shards" not in jobs, "that of `original` alone"


def test_one_more_seed_is_computed_alone_and_the_extended_experiment_stays_as_it_is(copy):
    change = ("--config", "experiment=other", BASE, "sweep={finetune_seeds: [1, 2, 3], attention: [original]}")
    base = copy.directory / "results/demo-embedded"
    before, target = contents(base), SCORE.format("other")
    outcome = copy.tiny(target, *change)
    assert outcome.code == 0, outcome.output
    assert outcome.jobs == {"write_settings": 1, "finetune": 1}
    kept = (copy.directory / target).parent / "state"
    assert {path.name.split("-")[1] for path in kept.glob("*/seed-*.json")} == {"3"}
    records, shared = (
        json.loads((copy.directory / path).read_text()) for path in (target, SCORE.format("demo-embedded"))
    )
    assert records[:2] == shared and [record["finetune_seed"] for record in records] == [1, 2, 3]
    assert contents(base) == before
    assert planned(copy, *change[1:], targets=(target,)) == {}


def test_a_report_of_shared_runs_reads_them_where_they_are(copy):
    options = ("experiment=other", BASE, "sweep={attention: [original]}")
    base = copy.directory / "results/demo-embedded"
    before, table = contents(base), "report/tables/table3_glue.csv"
    outcome = copy.tiny(f"results/other/{table}", "--config", *options)
    assert outcome.code == 0, outcome.output
    assert "there already  1 of 1 pre-trainings" in outcome.output
    rows = (copy.directory / "results/other" / table).read_text().splitlines()
    assert [row for row in rows if "original" in row] == [
        row for row in (base / table).read_text().splitlines() if "original" in row
    ]
    assert not list(Path(copy.directory, "results/other").rglob("*.safetensors")) and contents(base) == before


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        (["extends=demo-embeded", "experiment=other"], 65, "did you mean 'demo-embedded'"),
        ([BASE], 64, "'extends' is demo-embedded, this experiment itself; name a new 'experiment'"),
    ],
)
def test_a_wrong_name_stops_before_any_job(finished: Checkout, settings, code, words):
    outcome = finished.tiny("--dry-run", "--config", *settings)
    assert outcome.code == code and words in outcome.output, outcome.output
