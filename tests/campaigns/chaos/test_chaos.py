"""The campaign's own parts, and a short campaign; the whole one is `make chaos`."""

import errno
import os
import random
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from campaigns.chaos import disk
from campaigns.chaos.campaign import Campaign
from campaigns.chaos.faults import FULL, STOPPED, Fault, Undisturbed, draw_trial
from campaigns.chaos.preload import Notes, compile_library, compiler
from campaigns.chaos.stages import TARGETS, Folder, Start, artefacts, difference
from campaigns.chaos.trial import Trial

FEW = 4  # faults of each stage in the short campaign
needs_compiler = pytest.mark.skipif(
    compiler() is None, reason="no C compiler, without which no fault strikes at a call"
)
LOG = "results/logs/job.log"
pytestmark = pytest.mark.campaign


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compile_library(tmp_path_factory.mktemp("library"))


def run_job(code, folder, library, fault=(), clock=None):
    """A process that is taken for a job with this log, and what was noted of it."""
    notes = Notes(folder / "notes", library)
    notes.folder.mkdir(exist_ok=True)
    (folder / "results").mkdir(exist_ok=True)
    notes.plan([(0, LOG, *fault)] if fault else [])
    (folder / "symbert.py").write_text(code)
    command = [sys.executable, "-m", "symbert", "--log", LOG]
    environment = {**os.environ, "PYTHONPATH": str(folder), **notes.environment(folder, clock)}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return ended, notes


PUBLISH = """\
import os
for name in ("one", "two"):
    with open(f"results/.{name}", "w") as file:
        file.write(name)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"results/.{name}", f"results/{name}")
"""


@needs_compiler
def test_a_fault_strikes_at_the_call_that_was_planned_and_only_once(tmp_path, library):
    ended, notes = run_job(PUBLISH, tmp_path, library, ("rename", 2, "kill", 0))
    assert ended.returncode == -9
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [".two", "one"]
    assert notes.struck() == {0: f"{LOG}\trename\tresults/.two\tresults/two"}
    assert run_job(PUBLISH, tmp_path, library, ("rename", 2, "kill", 0))[0].returncode == 0


@needs_compiler
@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
def test_an_error_is_that_of_the_system_at_its_call(tmp_path, library, call):
    ended, _ = run_job(PUBLISH, tmp_path, library, (call, 1, "fail", errno.EIO))
    assert "OSError: [Errno 5] Input/output error" in ended.stderr
    assert not (tmp_path / "results/one").exists()


@needs_compiler
def test_the_clock_jumps_and_the_monotonic_one_does_not(tmp_path, library):
    code = "import time; before = time.monotonic(); print(time.time()); print(time.monotonic() - before)"
    now, passed = map(float, run_job(code, tmp_path, library, clock=(0, 86400))[0].stdout.split())
    assert now > tmp_path.stat().st_mtime + 80000 and passed < 60


def test_a_file_that_lacks_or_has_other_bytes_or_is_too_many_is_named(tmp_path):
    for name in ("done.json", "scores.json", "page.html"):
        (tmp_path / name).write_text(name)
    wanted = artefacts(tmp_path)
    assert difference(wanted, artefacts(tmp_path)) == ""
    (tmp_path / "done.json").write_text("dane.json")
    (tmp_path / "scores.json").unlink()
    (tmp_path / ".page.html.7.tmp").touch()
    said = ".page.html.7.tmp (surplus), done.json (other bytes), scores.json (absent)"
    assert difference(wanted, artefacts(tmp_path)) == f"3 files differ: {said}"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("symbert pack: results/a.json: not JSON (x); delete results/a.json and run again", []),
        ("symbert score: results/a.json: sha256 expected 1…, found 2…; delete it and run again", []),
        ("symbert pretrain: b.npy: gone; run snakemake -R pack (of parallel text: x)", ["--forcerun", "pack"]),
    ],
)
def test_what_a_line_says_is_to_be_done_is_done(tmp_path, line, words):
    (tmp_path / "results").mkdir()
    (tmp_path / "results/a.json").touch()
    assert disk.follow(["symbert: 8%, 1 of 22 jobs", line], tmp_path) == (line, words)
    assert (tmp_path / "results/a.json").exists() == bool(words)


def test_a_folder_that_a_line_says_to_delete_is_deleted(tmp_path):
    """No remedy was read where a run's only checkpoint was damaged, and its state is to be deleted."""
    (tmp_path / "results/state").mkdir(parents=True)
    line = "symbert pretrain: results/state/resume: no intact checkpoint; delete results/state and start over"
    assert disk.follow([line], tmp_path) == (line, [])
    assert not (tmp_path / "results/state").exists()


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_stopped_job_may_be_killed_before_it_can_go_on(tmp_path, is_killed):
    """It was believed to be there still: another fault had killed its whole group in the same moment."""
    notes, reference = (
        Notes(tmp_path, tmp_path / "strike.so"),
        SimpleNamespace(undisturbed=lambda stage: Undisturbed((), {})),
    )
    trial = Trial(Folder(tmp_path, tmp_path), reference, notes, "glue", "7")
    trial.faults = [Fault(0, STOPPED.name, process=LOG)]
    notes.mark(0, LOG)
    process = subprocess.Popen(["sleep", "0.2"], start_new_session=True)
    trial.stopped = Start(process, tmp_path / "output", {LOG: process.pid})
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    if is_killed:
        trial.stopped.kill_all()
    trial._go_on()
    assert process.wait() == (-signal.SIGKILL if is_killed else 0) and trial.result.lost == ""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    return Campaign(tmp_path_factory.mktemp("chaos"), seed=7, stages=list(TARGETS))


@needs_compiler
def test_a_few_faults_of_each_stage_lose_nothing(campaign):
    for number, stage in enumerate(TARGETS):
        draw = random.Random(number)
        faults = draw_trial(stage, campaign.reference.undisturbed(stage), draw)
        faults = [fault for fault in faults if campaign.has_mounts or fault.kind != FULL]
        result = campaign.run(stage, draw.sample(faults, FEW), str(number), stage)
        assert (result.lost, result.unexplained) == ("", {}), stage
        assert result.struck, stage
