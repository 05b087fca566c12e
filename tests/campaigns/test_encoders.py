"""Models of all families in one experiment beside an operator, with its page; `symbert evaluate`, interrupted and
resumed; and what is refused, as a user sees it. About four minutes on two cores, of which most starts processes."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from statistics import fmean, stdev

import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy import stats

import foreign
from experiment.test_models import REFUSED
from foreign import make_model
from symbert.files import write_json
from workflow.checkout import HANG, Checkout, check_out, heed_signals

pytestmark = pytest.mark.campaign

SEEDS = (1, 2, 3)
OWN = "tiny-original"
FAMILIES = [family for family in foreign.FAMILIES if family != "deberta"]  # of which v2 and v3 are tested
COLUMNS = ("rte", "stsb", "squad2")  # classes of a pair, grades, spans
RATES = {"roberta": [1e-4, 1e-3]}  # tuned
SHARDED, PICKLED = "electra", "mpnet"
EXPERIMENT = {
    "experiment": "families",
    "corpus": {"pack": {"sequence_length": 32, "validation_sequences": 16, "max_documents": 400}},
    "pretrain": {
        **{"steps": 20, "schedule_steps": None, "batch_size": 8, "warmup_steps": 5},
        **{"evaluate_every": 5, "save_every": 5},
    },
    "glue": {
        **{"max_examples": 64, "max_evaluation_examples": 40, "max_length": 32, "epochs": 1},
        "robustness": {"noise": [0.2]},
    },
    "models": {family: {"path": f"models/{family}", "learning_rate": RATES.get(family)} for family in FAMILIES},
    "sweep": {
        **{"attention": ["original"], "pretrain_seeds": [1], "finetuned_pretrain_seeds": None, "curve": {"sizes": []}},
        "untrained": False,
        **{"tuning_seeds": [7], "finetune_seeds": [*SEEDS], "suites": ["glue", "squad2"], "tasks": [*COLUMNS]},
    },
}
NAMED = ("code of its own", "no tokenizer", "no weights", "too few embeddings", "long rows")  # in issue and page


@pytest.fixture(scope="module")
def checkout(root, tmp_path_factory) -> Checkout:
    """A copy of the project with a model of each family."""
    copy = check_out(root, tmp_path_factory.mktemp("encoders") / "copy")
    for family in FAMILIES:
        make_model(copy.directory / "models" / family, family)
    pickled, sharded = (copy.directory / "models" / family for family in (PICKLED, SHARDED))
    torch.save(load_file(pickled / "model.safetensors"), pickled / "pytorch_model.bin")
    weights = load_file(sharded / "model.safetensors")
    places = {name: f"model-{number % 2}.safetensors" for number, name in enumerate(weights)}
    for place in set(places.values()):
        save_file({name: weights[name] for name in weights if places[name] == place}, sharded / place)
    write_json(sharded / "model.safetensors.index.json", {"weight_map": places})
    for folder in (pickled, sharded):
        (folder / "model.safetensors").unlink()
    return copy


@pytest.fixture(scope="module")
def report(checkout) -> Path:
    """The folder of the report of the experiment of all families."""
    (checkout.directory / "families.json").write_text(json.dumps(EXPERIMENT))
    begin = time.monotonic()
    with checkout.running("--configfile", "families.json") as (process, output):
        assert process.wait(HANG) == 0, output.read_text()[-5000:]
    print(f"all families: {time.monotonic() - begin:.0f} s")
    return checkout.directory / "results/families/report"


def rows_of(file: Path) -> list[dict[str, str]]:
    with open(file, encoding="utf-8", newline="") as lines:
        return [*csv.DictReader(lines)]


def test_every_family_is_scored_on_every_task_with_every_seed(report):
    cells = {
        (row["attention"], row["size"], row["task"], int(row["finetune_seed"])): float(row["value"])
        for row in rows_of(report / "data/scores.csv")
        if row["metric"] == ""
    }
    models = [*((family, "") for family in FAMILIES), ("original", "tiny")]
    assert cells.keys() == {(*model, column, seed) for model, column, seed in product(models, COLUMNS, SEEDS)}
    assert all((-1 if column == "stsb" else 0) <= value <= 1 for (_, _, column, _), value in cells.items())
    assert len({cells[family, "", "stsb", seed] for family, seed in product(FAMILIES, SEEDS)}) > 20, "not one for all"


def test_the_tables_of_the_page_have_every_family_and_numbers_that_can_be(report):
    tables = {file.stem: rows_of(file) for file in sorted((report / "tables").glob("*.csv"))}
    heads = {row["model"]: row["head"] for row in tables["models"]}
    assert [*heads] == FAMILIES and all("SequenceClassification, " in head for head in heads.values())
    for suite in ("table3_glue", "squad2"):
        assert [row["model"] for row in tables[suite]] == [OWN, *FAMILIES, "majority baseline"], suite
    for suite in ("paired", "squad2_paired"):
        rows = tables[suite]
        assert list(dict.fromkeys(row["model"] for row in rows)) == [*FAMILIES[1:], OWN], suite
        for row in rows:
            number = {key: float(value) for key, value in row.items() if re.fullmatch(r"-?[\d.e-]+", value)}
            assert row["reference"] == "bert" and number["low"] <= number["difference"] <= number["high"]
            if row["p"]:
                assert 0 < number["smallest_p"] <= number["p"] <= number["holm_p"] <= 1
                assert number.get("detectable", 1) > 0
    assert {row["model"] for row in tables["robustness"]} >= {*FAMILIES, OWN}
    provenance = (report / "tables/provenance.csv").read_text()
    assert all(f"models/{family}" in provenance for family in FAMILIES)
    for name, rows in tables.items():
        assert rows and all((report / f"tables/{name}.{end}").stat().st_size for end in ("md", "tex")), name
        cells = {value.lower() for row in rows for value in row.values()}
        assert cells.isdisjoint(("nan", "inf", "none")), name
    page = (report / "report.html").read_text()
    assert all(page.count(family) > 3 for family in FAMILIES) and "nan" not in re.findall(
        r">\s*(\w+)\s*<", page.lower()
    )


def test_a_rate_is_chosen_on_other_seeds_than_are_reported_where_several_are_asked_for(checkout, report):
    results = checkout.directory / "results"
    for family in FAMILIES:
        files = results.glob(f"scores/*/models/{family}-????????/*.json")
        records = [record for file in files for record in json.loads(file.read_text())]
        assert {(record["task"], record["finetune_seed"]) for record in records} == {*product(COLUMNS, SEEDS)}
        for record in records:
            tuned = {float(rate): scores for rate, scores in record.get("tuned", {}).items()}
            assert [*tuned] == RATES.get(family, []) and all(len(scores) == 1 for scores in tuned.values())
            assert not tuned or tuned[record["learning_rate"]] == max(tuned.values())


def test_of_a_finished_experiment_nothing_is_to_be_done(checkout, report):
    assert checkout.snakemake("--configfile", "families.json", "--dry-run").jobs == {}


def test_what_is_refused_is_one_line_with_its_exit_code_and_nothing_is_begun(checkout):
    commands = []
    for case in NAMED:
        change, changes, _ = REFUSED[case]
        folder = checkout.directory / case.replace(" ", "-")
        shutil.copytree(checkout.directory / "models/bert", folder)
        change(folder)
        told = {"scale": "demo", "experiment": folder.name, "sweep": {"attention": [], "suites": ["glue"]}, **changes}
        told["models"] = {"mine": {"path": folder.name}}
        (checkout.directory / f"{folder.name}.json").write_text(json.dumps(told))
        commands.append(["--dry-run", "--configfile", f"{folder.name}.json"])
    for case, outcome in zip(NAMED, checkout.commands(*commands), strict=True):
        lines = [line for line in outcome.output.splitlines() if line.startswith("symbert: ")]
        said = REFUSED[case][2].replace("mine .mine.", "mine .*").replace("mine: ", "[a-z-]+: ")
        assert outcome.code in (64, 65) and "Traceback" not in outcome.output, outcome.output
        assert len(lines) == 1 and re.search(said, lines[0]), (case, lines)
        assert not (checkout.directory / "results" / case.replace(" ", "-")).exists()


@pytest.mark.parametrize(("family", "number"), [("bert", signal.SIGTERM), ("roberta", signal.SIGINT)])
def test_an_evaluation_that_is_interrupted_goes_on_and_prints_what_the_records_have(checkout, family, number, tmp_path):
    """Its process group is, as by Ctrl-C in a terminal or by a cluster; alone, it waits for the job that runs."""
    words = [str(checkout.directory / "models" / family), "--tasks", "stsb", "mnli", "--seeds", "3", "--cores", "2"]
    command = [sys.executable, "-m", "symbert", "evaluate", *words, "--source", "embedded"]
    start = {"cwd": tmp_path, "env": checkout.environment, "preexec_fn": heed_signals, "start_new_session": True}

    def kept() -> dict[Path, int]:
        return {file: file.stat().st_mtime_ns for file in tmp_path.glob("results/scores/*/models/**/seed-*.json")}

    with subprocess.Popen(command, **start, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None and len(kept()) < 2:
            time.sleep(0.01)
        os.killpg(process.pid, number)
        assert process.wait(HANG) == 1 and process.stdout.read() == ""
    before = kept()
    assert 2 <= len(before) < 6 and not any(tmp_path.glob(".snakemake/locks/*"))
    again = subprocess.run(
        command, cwd=tmp_path, env=checkout.environment, stdout=subprocess.PIPE, text=True, check=True
    )
    assert len(kept()) == 6 and before.items() <= kept().items(), "what is done stays"
    (file,) = tmp_path.glob("results/scores/*/models/*/2x3-*.json")
    records = json.loads(file.read_text())
    lines = again.stdout.splitlines()
    for line, column in zip(lines[3:6], ("stsb", "mnli_matched", "mnli_mismatched"), strict=True):
        of_column = [record for record in records if column in record["metrics"]]
        values = [100 * record["metrics"][column] for record in of_column]
        mean, half = fmean(values), stats.t.ppf(0.975, 2) * stats.sem(values)
        expected = [mean, stdev(values), mean - half, mean + half, 100 * of_column[0]["majority"][column]]
        assert line.split()[:6] == [column, *(f"{value:.2f}" for value in expected)]
    page = tmp_path / lines[-1].removeprefix("page: ")
    assert page.is_file() and os.path.commonpath([page, tmp_path]) == str(tmp_path)
