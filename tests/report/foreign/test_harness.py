"""Results of lm-evaluation-harness, in the layout of version 0.4."""

import json

import pytest

from symbert.errors import DataError
from symbert.report.foreign.naming import Naming
from symbert.report.foreign.reading import read_foreign

TASKS = {
    "mrpc": {"acc": 0.7, "f1": 0.8},
    "cola": {"mcc": 0.1},
    "mnli": {"acc": 0.35},
    "mnli_mismatch": {"acc": 0.36},
    "sst2": {"acc": 0.55},
    "hellaswag": {"acc": 0.3, "acc_norm": 0.32},
}


@pytest.fixture
def write_results(directory):
    """Writes results_<date>.json as `lm_eval --output_path` does, for tasks with metrics, and its samples beside it."""

    def make(model="EleutherAI/pythia-70m", tasks=TASKS, date="2025-03-01T10-20-30.123456", **changes):
        results = {}
        for task, metrics in tasks.items():
            results[task] = {"alias": task}
            for metric, value in metrics.items():
                results[task] |= {f"{metric},none": value, f"{metric}_stderr,none": 0.01}
        content = {
            "results": results,
            "group_subtasks": {task: [] for task in tasks},
            "configs": {task: {"task": task, "num_fewshot": 0} for task in tasks},
            "versions": dict.fromkeys(tasks, 1.0),
            "n-shot": dict.fromkeys(tasks, 0),
            "higher_is_better": {task: dict.fromkeys(metrics, True) for task, metrics in tasks.items()},
            "n-samples": {task: {"original": 408, "effective": 100} for task in tasks},
            "config": {
                "model": "hf",
                "model_args": f"pretrained={model},dtype=float32",
                "limit": None,
                "torch_seed": 1234,
            },
            "git_hash": "0123abc",
            "date": 1740824430.1,
            "model_source": "hf",
            "model_name": model,
            "model_name_sanitized": model.replace("/", "__"),
            "total_evaluation_time_seconds": "61.2",
        } | changes
        file = directory / model.replace("/", "__") / f"results_{date}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({key: value for key, value in content.items() if value is not None}, indent=2))
        file.with_name(f"samples_mrpc_{date}.jsonl").write_text("{}\n")
        return file

    return make


def scores_in(directory, naming=None):
    scores = read_foreign(directory, naming or Naming()).scores
    return {(row.attention, row.finetune_seed, row.column): row.score for row in scores.itertuples()}


def test_tasks_of_glue_are_read_and_the_others_are_named(write_results, directory):
    file = write_results()
    reading = read_foreign(directory, Naming())
    scores = reading.scores.set_index("column")
    expected = {"mrpc": 0.75, "cola": 0.1, "mnli_matched": 0.35, "mnli_mismatched": 0.36, "sst2": 0.55}
    assert scores["score"].to_dict() == pytest.approx(expected)
    assert set(scores["attention"]) == {"pythia-70m"} and set(scores["rows"]) == {100}
    assert reading.left_out() == [
        "files: samples_mrpc_2025-03-01T10-20-30.123456.jsonl",
        f"{file}: task hellaswag",
    ]
    assert reading.files == {file: "lm-evaluation-harness"}


def test_a_seed_may_stand_in_the_models_name(write_results, directory):
    for seed in (1, 2):
        write_results(f"out/base-mine-s{seed}", {"rte": {"acc": seed / 10}})
    naming = Naming("{size}-{operator}-s{finetune_seed}")
    assert scores_in(directory, naming) == {("mine", 1, "rte"): 0.1, ("mine", 2, "rte"): 0.2}


def test_a_file_of_an_older_version_has_the_models_name_in_its_arguments(write_results, directory):
    write_results("some/model", {"rte": {"acc": 0.5}}, model_name=None)
    assert scores_in(directory) == {("model", 1, "rte"): 0.5}
    write_results(
        "some/model", {"rte": {"acc": 0.5}}, model_name=None, config={"model_args": {"pretrained": "x/model"}}
    )
    assert scores_in(directory) == {("model", 1, "rte"): 0.5}


def test_a_mapping_may_name_the_models_folder(write_results, directory, tmp_path):
    write_results("some/model", {"rte": {"acc": 0.5}})
    mapping = tmp_path / "names.csv"
    mapping.write_text("folder,operator,finetune_seed\nsome__model,mine,7\n")
    assert scores_in(directory, Naming(mapping=mapping)) == {("mine", 7, "rte"): 0.5}


@pytest.mark.parametrize("value", ["N/A", True, 59.5, float("nan")])
def test_what_is_no_score_is_named(write_results, directory, value):
    file = write_results(tasks={"rte": {"acc": value}})
    with pytest.raises(DataError) as caught:
        read_foreign(directory, Naming())
    assert str(caught.value).startswith(f"{file}: accuracy of 'rte' is {value}, expected a number from -1 to 1")


def test_two_evaluations_of_one_model_are_named_both(write_results, directory):
    first = write_results(tasks={"rte": {"acc": 0.5}})
    second = write_results(tasks={"rte": {"acc": 0.5}}, date="2025-03-02T10-20-30.123456")
    with pytest.raises(DataError) as caught:
        read_foreign(directory, Naming())
    assert str(first) in str(caught.value) and str(second) in str(caught.value)
