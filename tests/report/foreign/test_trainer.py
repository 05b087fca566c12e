"""Runs of Hugging Face's Trainer: what their folders hold, and which of their files tells the scores."""

import json
import math

import pytest

from symbert.errors import DataError
from symbert.report.foreign.naming import Naming
from symbert.report.foreign.reading import read_foreign
from symbert.tasks import GLUE

PATTERN = Naming("{model}_{task}_s{finetune_seed}")
PAIRWISE = "bert_base_pairwise_20240204-093411"


def scores_in(directory, naming=PATTERN):
    scores = read_foreign(directory, naming).scores
    return {(row.attention, row.column, row.finetune_seed): row.score for row in scores.itertuples()}


def evaluation(step, epoch, **scores):
    """An entry of log_history for an evaluation, as Trainer writes it."""
    timing = {"eval_runtime": 0.8421, "eval_samples_per_second": 328.9, "eval_steps_per_second": 41.6}
    return (
        {"epoch": epoch, "eval_loss": 0.69}
        | {f"eval_{key}": value for key, value in scores.items()}
        | timing
        | {"step": step}
    )


@pytest.fixture
def write_run(directory):
    """Writes what `run_glue --do_train --do_eval` leaves in its output directory, without weights."""

    def make(name, results=None, history=(), global_step=780):
        folder = directory / name
        folder.mkdir(parents=True)
        train = {"epoch": 5.0, "train_loss": 0.61, "train_runtime": 93.1, "train_samples": 2490}
        steps = [{"epoch": 2.5, "grad_norm": 3.1, "learning_rate": 1e-5, "loss": 0.69, "step": 390}]
        state = {
            "best_metric": None,
            "best_model_checkpoint": None,
            "epoch": 5.0,
            "eval_steps": 500,
            "global_step": global_step,
            "is_hyper_param_search": False,
            "is_local_process_zero": True,
            "is_world_process_zero": True,
            "log_history": [*steps, *history, {"epoch": 5.0, "step": global_step, "train_loss": 0.61}],
            "max_steps": global_step,
            "num_train_epochs": 5,
            "stateful_callbacks": {},
            "total_flos": 818882211000320.0,
            "train_batch_size": 16,
            "trial_name": None,
            "trial_params": None,
        }
        files = {"train_results.json": train, "trainer_state.json": state, "config.json": {"model_type": "bert"}}
        if results is not None:
            timing = {"eval_loss": 0.66, "eval_runtime": 0.84, "eval_samples_per_second": 328.9}
            files |= {"eval_results.json": {"epoch": 5.0} | results | timing}
            files |= {"all_results.json": train | files["eval_results.json"]}
        for file, content in files.items():
            (folder / file).write_text(json.dumps(content, indent=4))
        return folder

    return make


def test_folders_by_whatever_names_are_read_by_a_pattern(write_run, directory):
    write_run("my_model_rte_s1", {"eval_accuracy": 0.6, "eval_samples": 277})
    write_run("my_model_RTE_s2", {"eval_accuracy": 0.7})
    mnli = {"eval_accuracy": 0.8, "eval_samples": 9815, "eval_accuracy_mm": 0.81, "eval_samples_mm": 9832}
    write_run("deep/my_model_mnli_s1", mnli | {"epoch_mm": 5.0, "eval_loss_mm": 0.5})
    write_run("my_model_mrpc_s1", {"eval_accuracy": 0.7, "eval_f1": 0.8, "eval_combined_score": 0.75})
    assert scores_in(directory) == pytest.approx(
        {
            ("my_model", "rte", 1): 0.6,
            ("my_model", "rte", 2): 0.7,
            ("my_model", "mnli_matched", 1): 0.8,
            ("my_model", "mnli_mismatched", 1): 0.81,
            ("my_model", "mrpc", 1): 0.75,
        }
    )
    reading = read_foreign(directory, PATTERN)
    assert [line for line in reading.left_out() if line.startswith("files: ")] == [
        "files: all_results.json (4), config.json (4), train_results.json (4), trainer_state.json (4)"
    ]
    assert set(reading.files.values()) == {"runs of Hugging Face's Trainer"}
    with pytest.raises(DataError, match="my_model_mnli_s1: .* is no run's name; .* give --pattern or --mapping"):
        read_foreign(directory, Naming())


def test_folders_by_whatever_names_are_read_by_a_mapping(write_run, directory, tmp_path):
    write_run("2024-01-01/run7", {"eval_accuracy": 0.6})
    write_run("2024-01-01/run8", {"eval_matthews_correlation": 0.3})
    mapping = tmp_path / "names.csv"
    lines = ["folder,model,task,seed_of", "2024-01-01/run7,mine,rte,3", "2024-01-01/run8,mine,cola,4"]
    mapping.write_text("\ufeff" + "\n".join(lines).replace("seed_of", "finetune_seed"))
    assert scores_in(directory, Naming(mapping=mapping)) == {("mine", "rte", 3): 0.6, ("mine", "cola", 4): 0.3}
    mapping.write_text("\n".join([*lines, "2024-01-01/run9,mine,qqp,4"]).replace("seed_of", "finetune_seed"))
    with pytest.raises(DataError, match="names.csv: '2024-01-01/run9' has no scores below"):
        read_foreign(directory, Naming(mapping=mapping))


def test_without_results_the_last_evaluation_of_the_trainers_state_is_the_score(write_run, directory):
    history = [evaluation(156, 1.0, accuracy=0.9), evaluation(780, 5.0, accuracy=0.65)]
    write_run("mine_rte_s1", history=history)
    history = [evaluation(156, 1.0, matthews_correlation=0.9), evaluation(624, 4.0, matthews_correlation=0.2)]
    state = write_run("mine_cola_s1", history=history) / "trainer_state.json"
    write_run("mine_mnli_s1", history=[evaluation(780, 5.0, accuracy=0.7)])
    scores = {("mine", "rte", 1): 0.65, ("mine", "cola", 1): 0.2, ("mine", "mnli_matched", 1): 0.7}
    assert scores_in(directory) == scores, "of MNLI the matched split alone is evaluated while training"
    assert f"{state}: steps 624 to 780, which were not evaluated" in read_foreign(directory, PATTERN).notes


def test_a_state_without_an_evaluation_or_with_two_at_one_step_is_named(write_run, directory):
    folder = write_run("mine_rte_s1")
    with pytest.raises(DataError, match="trainer_state.json: no evaluation in it"):
        read_foreign(directory, PATTERN)
    (folder / "trainer_state.json").unlink()
    write_run("mine_mnli_s2", history=[evaluation(780, 5.0, accuracy=0.7), evaluation(780, 5.0, accuracy=0.8)])
    with pytest.raises(DataError, match="several evaluations at step 780, of unknown splits; import eval_results.json"):
        read_foreign(directory, PATTERN)


def test_of_a_run_that_was_never_saved_whole_the_last_checkpoint_is_read(write_run, directory):
    """checkpoint-1000 comes before checkpoint-500 in the order of names."""
    for step, accuracy in ((500, 0.5), (1000, 0.6)):
        history = [evaluation(step, 1.0, accuracy=accuracy)]
        write_run(f"mine_rte_s1/checkpoint-{step}", history=history, global_step=step)
    assert scores_in(directory) == {("mine", "rte", 1): 0.6}
    write_run("mine_rte_s2", {"eval_accuracy": 0.7})
    write_run("mine_rte_s2/checkpoint-780", history=[evaluation(780, 5.0, accuracy=0.9)])
    assert scores_in(directory) == {("mine", "rte", 1): 0.6, ("mine", "rte", 2): 0.7}
    assert "trainer_state.json (3)" in read_foreign(directory, PATTERN).left_out()[0], "named, not skipped"


def test_a_byte_order_mark_is_no_reason_to_stop(write_run, directory):
    file = write_run("mine_rte_s1", {"eval_accuracy": 0.7}) / "eval_results.json"
    file.write_text("\ufeff" + file.read_text())
    assert scores_in(directory) == {("mine", "rte", 1): 0.7}


def test_a_run_of_mnlis_mismatched_rows_alone_is_of_that_column(write_run, directory):
    write_run("mine_mnli-mm_s1", {"eval_accuracy": 0.7})
    assert scores_in(directory) == {("mine", "mnli_mismatched", 1): 0.7}


@pytest.mark.parametrize(
    ("task", "changes", "problem"),
    [
        ("mrpc", {"eval_f1": None}, "no 'eval_f1' of mrpc; let run_glue write it again"),
        ("rte", {"eval_accuracy": None}, "no 'eval_accuracy' of rte"),
        ("stsb", {"eval_pearson": math.nan}, "'eval_pearson' is nan, expected a number from -1 to 1"),
        ("rte", {"eval_accuracy": 59.4}, "'eval_accuracy' is 59.4"),
        ("cola", {"eval_matthews_correlation": "0.4"}, "'eval_matthews_correlation' is 0.4, expected a number"),
        ("rte", {"eval_samples": 0}, "'eval_samples' is 0, expected a number of rows"),
        ("rte", {"eval_accuracy": True}, "'eval_accuracy' is True, expected a number from -1 to 1"),
        ("rte", {"eval_samples": True}, "'eval_samples' is True, expected a number of rows"),
    ],
)
def test_a_result_that_is_missing_or_no_score_is_named(write_result, directory, task, changes, problem):
    folder = write_result(f"{PAIRWISE}-seed1_{task}", **changes)
    with pytest.raises(DataError) as caught:
        read_foreign(directory, Naming())
    assert str(caught.value).startswith(f"{folder}: ") and problem in str(caught.value)


def test_a_name_without_a_task_is_refused(write_result, directory):
    write_result(PAIRWISE)
    with pytest.raises(DataError, match="the name has no task; give --pattern with {task}, or --mapping"):
        read_foreign(directory, Naming())


def test_two_folders_of_one_cell_are_named(write_result, directory):
    """A final run and a run of the checkpoint at its step are two cells: the paper's experiments 2 and 3 have both."""
    write_result(f"{PAIRWISE}-seed1_rte_20240207-000000", "first")
    write_result(f"{PAIRWISE}-ckpt200000_rte_20240207-000000", "first")
    assert len(read_foreign(directory, Naming()).scores) == 2
    second = write_result(f"{PAIRWISE}_rte_20240208-000000", "second")
    with pytest.raises(DataError, match="the same model, task and seed as") as caught:
        read_foreign(directory, Naming())
    assert str(second) in str(caught.value) and "first" in str(caught.value)


def test_scores_are_means_of_the_tasks_metrics(write_result, directory):
    for task in GLUE:
        write_result(f"{PAIRWISE}-seed2_{task}_20240207-000000")
    scores = read_foreign(directory, Naming()).scores.set_index("column")
    assert scores["score"].to_dict() == pytest.approx(
        dict.fromkeys(["mnli_matched", "rte", "qnli", "sst2", "wnli"], 0.75)
        | {"mrpc": 0.8, "qqp": 0.8, "stsb": 0.6, "cola": 0.25, "mnli_mismatched": 0.8}
    )
    assert scores.loc["stsb", "details"] == {"pearson": 0.5, "spearman": 0.7}
    assert scores.loc[["mnli_matched", "mnli_mismatched"], "rows"].tolist() == [9_815, 9_832]
