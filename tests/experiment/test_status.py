import os
import platform
from pathlib import Path

import pytest

from symbert.cli import main
from symbert.experiment import plan
from symbert.experiment.status import announcement_of, begin, state_of, status_of
from symbert.files import single_writer, write_json
from symbert.paths import Run

ORIGINAL, SHARED = Run("tiny", "original", 1), Run("tiny", "shared", 1)


def ended(experiment, run: Run, **state) -> None:
    write_json(Path(experiment.runs[run], "state/status.json"), state)


def test_each_run_says_its_path_and_how_it_stands(experiment):
    symmetric, pairwise = (Run("tiny", name, 1) for name in ("symmetric", "pairwise"))
    write_json(Path(experiment.runs[ORIGINAL], "done.json"), {})
    ended(experiment, symmetric, state="preempted", step=1200, reason="SIGTERM: saved at step 1200")
    ended(experiment, pairwise, state="running", step=77)
    states = {run.attention: state_of(experiment, run) for run in experiment.encoders}
    assert states == {
        "original": "done",
        "symmetric": "step 1,200 of 2,400, preempted: SIGTERM: saved at step 1200",
        "pairwise": "step 77 of 2,400, stopped",
        "shared": "missing",
    }
    lines = status_of(experiment)
    assert "1 of 4 pre-trainings done" in lines[0]
    assert f"{ORIGINAL}: {experiment.runs[ORIGINAL]}: done" in lines


def test_a_run_is_running_while_the_process_of_its_lease_is(experiment):
    ended(experiment, ORIGINAL, state="running", step=5)
    with single_writer(Path(experiment.runs[ORIGINAL])):
        assert state_of(experiment, ORIGINAL).endswith(f"running by process {os.getpid()} on {platform.node()}")
    assert state_of(experiment, ORIGINAL).endswith("stopped")


def test_the_scores_of_each_checkpoint_exist_or_do_not(experiment):
    files = {(score.run, score.step, score.scoring.name): file for file, score in experiment.scores.items()}
    glue, noisy = (scoring.name for scoring in experiment.scorings)
    write_json(Path(files[ORIGINAL, 2400, glue]), [])
    write_json(Path(experiment.checkpoint(ORIGINAL, 2400), "model.safetensors"), 0)
    rows = [line.split() for line in status_of(experiment)]
    assert ["checkpoint", "step", "extracted", glue, "noise:", noisy] in rows
    assert ["tiny-original", "seed", "1", "2,400", "yes", "yes", "no"] in rows
    assert ["tiny-original", "seed", "1", "300", "no", "no", "."] in rows


@pytest.mark.usefixtures("project")
def test_an_experiment_is_known_by_its_name_alone(capsys, changed):
    """Of a run of other operators that was finished it said "0 of 4", because it left no recipe behind."""
    bounded = changed({"experiment": "bounded", "sweep": {"attention": ["original"], "pretrain_seeds": [1, 2]}})
    bounded.write()
    for run in bounded.runs:
        write_json(Path(bounded.runs[run], "done.json"), {})
    assert main(["status", "bounded"]) == 0
    assert "2 of 2 pre-trainings done" in capsys.readouterr().out
    assert main(["status", "bundled"]) == 65
    assert "did you mean 'bounded'" in capsys.readouterr().err
    assert main(["status", "bounded", "--scale", "demo"]) == 64


def test_where_nothing_was_started_no_name_is_offered(folder, capsys):
    """It said "choose from " and nothing."""
    assert main(["status", "bounded"]) == 65
    assert "choose" not in capsys.readouterr().err


# The start of Snakemake.


def said(experiment) -> dict[str, list[str]]:
    """What a start says, by the first word of each line."""
    lines = [line.split(maxsplit=1) for line in announcement_of(experiment)]
    return {word: [rest for first, rest in lines if first == word] for word, _ in lines}


def test_a_start_says_the_experiment_and_the_disk(experiment, monkeypatch):
    monkeypatch.setattr(plan, "free_space", lambda path: (10**6, Path("/disk")))
    words = said(experiment)
    assert words["symbert:"][0].startswith("demo-embedded: scale demo")
    assert words["disk"][0].endswith("to come at most, 1 MB free on /disk: too small") and "changed" not in words


def test_another_sweep_under_the_same_name_is_shown_before_it_starts(experiment, changed):
    experiment.write()
    assert "changed" not in said(changed({}))
    after = changed({"sweep": {"attention": ["original"]}, "pretrain": {"steps": 1200}})
    assert said(after)["changed"] == [
        "pretrain.steps: 2400 → 1200",
        'sweep.attention: ["original", "symmetric", "pairwise", "shared"] → ["original"]',
    ]
    assert "changed" not in said(changed({"experiment": "other"}))


def test_a_folder_that_cannot_be_written_to_ends_a_start_with_one_line(experiment, capsys):
    Path("results").write_text("a file")
    with pytest.raises(SystemExit) as stop:
        begin(experiment)
    assert stop.value.code == 65
    assert capsys.readouterr().err.splitlines()[-1].startswith("symbert: results/")
