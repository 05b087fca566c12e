"""The campaign's own parts, and a short campaign; the whole one is `make chaos`."""

import errno
import os
import random
import subprocess
import sys

import pytest

from campaigns.chaos import disk
from campaigns.chaos.campaign import Campaign
from campaigns.chaos.faults import draw_trial
from campaigns.chaos.stages import SITE, TARGETS, Call, Notes, artefacts, difference

FEW = 4  # faults of each stage in the short campaign
LOG = "results/logs/job.log"
PUBLISH = """\
import os
for name in ("one", "two"):
    with open(f"results/.{name}", "w") as file:
        file.write(name)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"results/.{name}", f"results/{name}")
"""
pytestmark = pytest.mark.campaign


def run_job(folder, *fault):
    """A process that is taken for a job with this log, and what was noted of it."""
    notes = Notes(folder / "notes")
    (folder / LOG).parent.mkdir(parents=True, exist_ok=True)
    notes.plan([(0, LOG, *fault)])
    (folder / "symbert.py").write_text(PUBLISH)
    chaos = {"CHAOS_ROOT": str(folder), "CHAOS_FOLDER": str(notes.folder), "PYTHONPATH": f"{SITE}:{folder}"}
    with open(folder / LOG, "w") as log:
        command = [sys.executable, "-m", "symbert"]
        ended = subprocess.run(command, cwd=folder, env={**os.environ, **chaos}, stderr=log)
    ended.stderr = (folder / LOG).read_text()
    return ended, notes


def test_a_fault_strikes_at_the_call_that_was_planned_and_only_once(tmp_path):
    ended, notes = run_job(tmp_path, "rename", 2, "kill", 0)
    assert ended.returncode == -9
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [".two", "logs", "one"]
    assert notes.struck() == {0: f"{LOG}\trename\tresults/.two\tresults/two"}
    assert run_job(tmp_path, "rename", 2, "kill", 0)[0].returncode == 0


@pytest.mark.parametrize("call", ["open", "fsync", "rename"])
def test_an_error_is_that_of_the_system_at_its_call(tmp_path, call):
    ended, _ = run_job(tmp_path, call, 1, "fail", errno.EIO)
    assert "OSError: [Errno 5] Input/output error" in ended.stderr
    assert not (tmp_path / "results/one").exists()


def test_a_full_disk_stays_full(tmp_path):
    (tmp_path / "symbert.py").touch()
    ended, notes = run_job(tmp_path, "open", 2, "stay", errno.ENOSPC)
    assert "No space left on device: 'results/.two'" in ended.stderr
    assert [call.name for call in notes.trace()] == ["start", "open", "fsync", "rename", "open"]


def test_what_was_not_synchronised_is_cut(tmp_path):
    (tmp_path / "results").mkdir()
    for name in ("kept", "lost", "other"):
        (tmp_path / f"results/{name}").write_text(name)
    calls = [
        *(Call(LOG, "open", "results/.kept"), Call(LOG, "fsync", "results/.kept")),
        *(Call(LOG, "rename", "results/.kept", "results/kept"), Call(LOG, "open", "results/.lost")),
        Call(LOG, "rename", "results/.lost", "results/lost"),
    ]
    assert disk.unsynced(calls, tmp_path) == [tmp_path / "results/lost"]


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
    ("line", "words", "is_kept"),
    [
        ("symbert pack: results/a.json: not JSON (x); delete results/a.json and run again", [], False),
        ("symbert score: results/a.json: sha256 expected 1…, found 2…; delete it and run again", [], False),
        ("symbert pretrain: results/b: no intact checkpoint; delete results and start over", [], False),
        ("symbert pretrain: b.npy: gone; run snakemake -R pack", ["--forcerun", "pack"], True),
    ],
)
def test_a_remedy_that_a_line_names_is_applied(tmp_path, line, words, is_kept):
    (tmp_path / "results").mkdir()
    (tmp_path / "results/a.json").touch()
    assert disk.follow(["symbert: 8%, 1 of 22 jobs", line], tmp_path) == (line, words)
    assert (tmp_path / "results/a.json").exists() == is_kept


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    return Campaign(tmp_path_factory.mktemp("chaos"), seed=7, stages=list(TARGETS))


def test_a_few_faults_of_each_stage_lose_nothing(campaign):
    for number, stage in enumerate(TARGETS):
        draw = random.Random(number)
        faults = [fault for fault in draw_trial(stage, campaign.reference.calls(stage), draw) if fault.call]
        result = campaign.run(stage, draw.sample(faults, FEW), str(number), stage)
        assert (result.lost, result.unexplained) == ("", {}), stage
        assert result.struck, stage
