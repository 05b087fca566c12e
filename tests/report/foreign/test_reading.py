"""All files below a folder are read or named, those behind links too."""

import json
import os

import pytest

from symbert.errors import DataError, MissingInputError
from symbert.report.foreign.naming import Naming
from symbert.report.foreign.reading import read_foreign
from symbert.report.imported import import_scores

PAIRWISE = "bert_base_pairwise_20240204-093411"


def read(path):
    return json.loads(path.read_text())


@pytest.fixture
def elsewhere(write_result, directory, tmp_path):
    """Two runs of RTE outside the directory of results, which has one of its own."""
    write_result(f"{PAIRWISE}-seed1_rte")
    folders = [write_result(f"{PAIRWISE}-seed{seed}_rte", "../elsewhere") for seed in (2, 3)]
    return folders[0].parent


def seeds_of(directory):
    return sorted(read_foreign(directory, Naming()).scores["finetune_seed"])


def test_linked_results_are_not_skipped_without_a_word(elsewhere, directory, write_losses, tmp_path):
    """A folder of runs, a run, and a file; all of them are of the import, and of its hash."""
    (directory / "runs").symlink_to(elsewhere)
    assert seeds_of(directory) == [1, 2, 3]
    (directory / "runs").unlink()
    (directory / f"{PAIRWISE}-seed2_rte").symlink_to(elsewhere / f"{PAIRWISE}-seed2_rte")
    (directory / f"{PAIRWISE}-seed4_rte").mkdir()
    result = elsewhere / f"{PAIRWISE}-seed3_rte/eval_results.json"
    (directory / f"{PAIRWISE}-seed4_rte/eval_results.json").symlink_to(result)
    assert seeds_of(directory) == [1, 2, 4]
    losses = write_losses(evaluations=800, file="../elsewhere/loss.csv")
    (directory / "losses").symlink_to(losses.parent)
    import_scores(directory, "theirs", output=tmp_path / "out")
    told = read(tmp_path / "out/import.json")
    assert (told["files"], told["loss_files"]) == (5, ["losses/loss.csv"])
    assert told["sweep"]["finetune_seeds"] == [1, 2, 3, 4], "of the linked folder of losses, too"


def test_a_link_to_what_is_read_already_counts_once_and_a_loop_ends(elsewhere, directory):
    (directory / "latest").symlink_to(directory / f"results/{PAIRWISE}-seed1_rte")
    (directory / "results/all").symlink_to(directory)
    (elsewhere / "back").symlink_to(directory)
    (directory / "runs").symlink_to(elsewhere)
    (directory / "again").symlink_to(elsewhere)
    assert seeds_of(directory) == [1, 2, 3]
    assert directory / f"results/{PAIRWISE}-seed1_rte/eval_results.json" in read_foreign(directory, Naming()).files


def test_a_broken_link_among_results_is_named(elsewhere, directory):
    for name, goal in (("runs", "gone/away"), ("loop", "loop")):
        link = directory / name
        link.symlink_to(goal)
        with pytest.raises(MissingInputError) as caught:
            read_foreign(directory, Naming())
        assert str(caught.value) == f"{link}: a link to {goal}, which is not there; mend the link or remove it"
        link.unlink()


def test_a_folder_of_results_that_may_not_be_read_is_not_skipped(elsewhere, directory, monkeypatch):
    """Pathlib's patterns leave it out."""
    locked = directory / "results"

    def scandir(path="."):
        if str(path) == str(locked):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    scan = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(os, "listdir", lambda path: [entry.name for entry in os.scandir(path)])
    with pytest.raises(PermissionError, match="results"):
        read_foreign(directory, Naming())


def test_what_no_reader_knows_is_named(write_result, write_losses, directory):
    write_result(f"{PAIRWISE}-seed1_rte")
    write_losses(end=" - train/loss")
    for number in range(12):
        (directory / f"notes-{number:02}.txt").write_text("")
    (directory / "results_2025.json").write_text("{")
    losses = write_losses(file="losses.csv")
    reading = read_foreign(directory, Naming())
    (line,) = reading.left_out()
    assert line.startswith("files: loss.csv, notes-00.txt, notes-01.txt") and line.endswith(" and 6 more")
    assert reading.losses == [losses], "the csv file of another quantity is none"


def test_a_file_or_folder_without_scores_says_what_is_known(directory, tmp_path):
    with pytest.raises(MissingInputError, match="theirs: file not found"):
        read_foreign(directory, Naming())
    directory.mkdir()
    kinds = "csv and parquet, runs of Hugging Face's Trainer, lm-evaluation-harness"
    with pytest.raises(MissingInputError, match=f"theirs: no scores in it; known are {kinds}"):
        read_foreign(directory, Naming())
    file = tmp_path / "scores.csv"
    file.write_text("model,task,finetune_seed,accuracy\nmine,rte,1,0.5\n")
    with pytest.raises(DataError, match="scores.csv: no columns 'score', expected one"):
        read_foreign(file, Naming())


def test_the_summary_has_models_tasks_seeds_and_holes(directory):
    directory.mkdir()
    cells = [("small-mine", task, seed) for task in ("rte", "cola", "mnli") for seed in (1, 2, 3)]
    cells += [("other", "mnli_mismatched", 1), ("other", "rte", 1)]
    rows = [f"{model},{task},{seed},0.5," for model, task, seed in cells if (task, seed) != ("cola", 2)]
    rows += ["small-mine,rte,1,0.5,300", "small-mine,rte,1,0.5,600"]
    (directory / "scores.csv").write_text("\n".join(["model,task,finetune_seed,score,step", *rows]))
    summary = read_foreign(directory, Naming()).summary()
    assert summary.drop(columns="holes").values.tolist() == [
        ["small-mine", "final", 3, 3, 8],
        ["other", "final", 2, 1, 2],
        ["small-mine", "2 checkpoints", 1, 1, 2],
    ]
    assert summary["holes"].tolist() == ["cola (1 of 3), mnli_mismatched", "cola, mnli_matched", ""]
