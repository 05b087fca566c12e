import json
import os
import platform
from pathlib import Path

import pytest

from symbert.cli import main
from symbert.experiment.status import state_of, status_of
from symbert.files import single_writer, write_json
from symbert.paths import Run

ORIGINAL, SHARED = Run("tiny", "original", 1), Run("tiny", "shared", 1)
NOBODY = 2**22 + 1  # no process has it


def lease(experiment, run: Run, host: str, process: int) -> Path:
    file = Path(experiment.run_folder(run), "lock")
    write_json(file, {"host": host, "process": process, "slurm_job": None})
    return file


def ended(experiment, run: Run, **status) -> None:
    write_json(Path(experiment.run_folder(run), "state/status.json"), status)


def test_a_fresh_experiment_has_nothing_and_is_not_touched(experiment, folder):
    lines = status_of(experiment)
    assert lines[0].startswith("Experiment demo-embedded: 0 of 4 pre-trainings done")
    assert sum(line.endswith("missing") for line in lines) == 1 + 4
    assert not Path(experiment.folder).exists()


def test_each_run_says_its_path_and_how_it_stands(experiment):
    symmetric, pairwise = (Run("tiny", name, 1) for name in ("symmetric", "pairwise"))
    write_json(Path(experiment.run_folder(ORIGINAL), "done.json"), {})
    ended(experiment, symmetric, state="preempted", step=1200, reason="SIGTERM: saved at step 1200")
    ended(experiment, pairwise, state="running", step=77)
    states = {run.attention: state_of(experiment, run) for run in experiment.runs()}
    assert states == {
        "original": "done",
        "symmetric": "step 1,200 of 2,400, preempted: SIGTERM: saved at step 1200",
        "pairwise": "step 77 of 2,400, stopped",
        "shared": "missing",
    }
    lines = status_of(experiment)
    assert "1 of 4 pre-trainings done" in lines[0]
    assert f"{ORIGINAL}: {experiment.run_folder(ORIGINAL)}: done" in lines


def test_a_run_is_running_while_the_process_of_its_lease_is(experiment):
    ended(experiment, ORIGINAL, state="running", step=5)
    with single_writer(Path(experiment.run_folder(ORIGINAL))):
        assert state_of(experiment, ORIGINAL).endswith(f"running by process {os.getpid()} on {platform.node()}")
    lease(experiment, ORIGINAL, platform.node(), NOBODY)
    assert state_of(experiment, ORIGINAL).endswith("stopped")


def test_a_process_of_another_machine_is_at_work_while_it_writes(experiment):
    ended(experiment, ORIGINAL, state="running", step=5)
    file = lease(experiment, ORIGINAL, "elsewhere", 1)
    assert state_of(experiment, ORIGINAL).endswith("running by process 1 on elsewhere")
    for path in (file, file.parent / "state/status.json", file.parent / "state"):
        os.utime(path, (1, 1))
    assert state_of(experiment, ORIGINAL).endswith("stopped")


def test_the_scores_of_each_checkpoint_exist_or_do_not(experiment):
    files = {(run, step, scoring.name): file for file, (run, step, scoring) in experiment.asked_scores()}
    glue, noisy = experiment.scorings
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
    for run in bounded.pretrainings():
        write_json(Path(bounded.run_folder(run), "done.json"), {})
    assert main(["status", "bounded"]) == 0
    assert "2 of 2 pre-trainings done" in capsys.readouterr().out
    assert main(["status", "bundled"]) == 65
    assert "did you mean 'bounded'" in capsys.readouterr().err
    assert main(["status", "bounded", "--scale", "demo"]) == 64


def test_what_an_experiment_writes_of_itself_names_every_path_of_its_report(experiment):
    experiment.write()
    record = json.loads(Path(experiment.folder, "experiment.json").read_text())
    assert {*record["inputs"]["runs"]} == {experiment.run_folder(run) for run in experiment.runs()}
    assert record["key"] == experiment.key and record["configuration"] == experiment.config
    for run in experiment.runs():
        planned = json.loads(Path(experiment.run_folder(run), "run.json").read_text())
        assert (planned["attention"], planned["pretrain_seed"]) == (run.attention, run.pretrain_seed)
