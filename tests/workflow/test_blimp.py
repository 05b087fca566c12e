"""BLiMP through the whole chain: beside GLUE, alone, and in an experiment that extends one that has it."""

import csv
import json

import pytest

from workflow.checkout import check_out

MODELS = [("original", "10"), ("original", "20"), ("pairwise", "10"), ("pairwise", "20")]


@pytest.mark.campaign
def test_checkpoints_judge_pairs_beside_glue_alone_and_for_an_experiment_that_extends_theirs(root, tmp_path):
    copy = check_out(root, tmp_path / "run")
    alone = copy.tiny("--config", "experiment=alone", "sweep={suites: [blimp]}")
    assert alone.code == 0, alone.output[-5000:]
    jobs = alone.jobs
    assert (jobs["measure_blimp"], jobs["download_blimp"], jobs["extract_checkpoint"]) == (4, 1, 4)
    assert not {"finetune", "prepare_task", "tabulate_table3_glue"} & set(jobs), "nothing is fine-tuned"
    results = copy.directory / "results/alone"
    with open(results / "report/tables/blimp.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["attention"], row["step"]) for row in rows] == MODELS
    assert all(30 < float(row["accuracy (stand-in)"]) < 90 for row in rows), rows
    assert "BLiMP: accuracy by phenomenon" in (results / "report/report.html").read_text()
    assert copy.tiny("--dry-run", "--config", "experiment=alone", "sweep={suites: [blimp]}").jobs == {}

    both = copy.tiny("--config", "experiment=both", "extends=alone", "sweep={suites: [glue, blimp], tasks: [rte]}")
    assert both.code == 0, both.output[-5000:]
    assert both.jobs["finetune"] == 4 and "measure_blimp" not in both.jobs, "they are read where they are"
    assert both.jobs["tabulate_blimp"] == both.jobs["draw_blimp"] == both.jobs["tabulate_table3_glue"] == 1
    tables = [copy.directory / f"results/{name}/report/tables/blimp.csv" for name in ("alone", "both")]
    assert tables[0].read_bytes() == tables[1].read_bytes()
    record = json.loads((results / "blimp/tiny-pairwise/seed-1/step-10.json").read_text())
    assert record["attention"] == "pairwise" and record["step"] == 10 and record["stand_in"]
    fewer = ("experiment=both", "extends=alone", "sweep={suites: [glue, blimp], tasks: [rte]}")
    changed = copy.tiny("--dry-run", "--config", *fewer, "suites={blimp: {max_evaluation_examples: 3}}").jobs
    assert changed["measure_blimp"] == 4 and "finetune" not in changed

    wider = ("experiment=wider", "extends=alone", "sweep={suites: [blimp], attention: [original, pairwise, symmetric]}")
    judged = copy.tiny("--config", *wider)
    assert judged.code == 0, judged.output[-5000:]
    assert judged.jobs["measure_blimp"] == 2, "of the operator that is new"
    assert "download_blimp" not in judged.jobs, "on the pairs that the others judged"
    report = (copy.directory / "results/wider/report/tables/blimp.csv").read_text()
    assert len(report.splitlines()) == 1 + len(MODELS) + 2
