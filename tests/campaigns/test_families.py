"""Ten families of encoders beside an operator of ours in one experiment: fine-tuned, compared, on one page."""

import csv
import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from foreign import FAMILIES, make_model
from symbert.files import write_json
from workflow.checkout import check_out

pytestmark = pytest.mark.campaign
TASKS = {"glue": ["mrpc", "stsb"], "squad2": ["squad2"]}  # classes, grades, spans
TUNED, SHARDED, PICKLED = "roberta", "electra", "mpnet"


@pytest.fixture(scope="module")
def made(root, tmp_path_factory):
    """The experiment in a checkout, and its first and second run."""
    copy = check_out(root, tmp_path_factory.mktemp("families") / "a copy of symbért")
    models = {}
    for family in FAMILIES:
        folder = make_model(copy.directory / "models of mine" / family, family)
        models[family] = {"path": f"models of mine/{family}"} | (
            {"learning_rate": [1e-3, 3e-3]} if family == TUNED else {}
        )
        if family in (SHARDED, PICKLED):
            weights = load_file(folder / "model.safetensors")
            (folder / "model.safetensors").unlink()
        if family == SHARDED:
            places = {name: f"model-{number % 2}.safetensors" for number, name in enumerate(weights)}
            for place in set(places.values()):
                save_file({name: weights[name] for name in weights if places[name] == place}, folder / place)
            write_json(folder / "model.safetensors.index.json", {"weight_map": places})
        if family == PICKLED:
            torch.save(weights, folder / "pytorch_model.bin")
    sweep = {
        "attention": ["original"],
        "suites": [*TASKS],
        "tasks": [task for of_suite in TASKS.values() for task in of_suite],
        "tuning_seeds": [7],
    }
    settings = {
        "experiment": "families",
        "models": models,
        "sweep": sweep,
        "glue": {"robustness": {"noise": []}, "keep_finetuned": False},
        "suites": {"squad2": {"epochs": 1, "max_length": 32}},
    }
    words = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    first, second = copy.tinies(["--config", *words], ["--config", *words])
    assert first.code == second.code == 0, first.output[-5000:]
    return copy.directory / "results", first, second


def rows_of(results, table):
    """The rows of a table of the report."""
    with open(results / f"families/report/tables/{table}.csv", newline="") as file:
        lines = [line for line in file if not line.startswith("#")]
    return list(csv.DictReader(lines))


def test_every_family_is_scored_beside_ours_and_then_nothing_is_to_be_done(made):
    _, first, second = made
    assert first.jobs["score_model"] == len(FAMILIES) * len(TASKS) and first.jobs["pretrain"] == 1
    assert second.jobs == {}


def test_every_task_and_seed_of_a_family_has_its_record(made):
    results, _, _ = made
    for family in FAMILIES:
        files = [*results.glob(f"scores/*/models/{family}-????????/*.json")]
        records = [record for file in files for record in json.loads(file.read_text())]
        cells = {(record["task"], record["finetune_seed"]) for record in records}
        assert cells == {(task, seed) for of_suite in TASKS.values() for task in of_suite for seed in (1, 2)}, family
        assert {record["model_type"] for record in records} == {family.replace("deberta-v3", "deberta-v2")}
        assert {"tuned" in record for record in records} == {family == TUNED}


@pytest.mark.parametrize("table", ["table3_glue", "squad2"])
def test_every_family_is_in_the_tables_of_the_page(made, table):
    results, _, _ = made
    named = {row["model"].split(",")[0] for row in rows_of(results, table)}
    assert {*FAMILIES, "tiny-original"} <= named
