"""What a run keeps on the disk: its sessions, how it stands, how much it writes."""

from contextlib import nullcontext

import pytest

from symbert.errors import DivergedError, MemoryExhaustedError, PreemptedError
from symbert.files import read_json
from symbert.pretrain.run import Records, SessionFacts, storage_of

FACTS = {
    **{"host": "node1", "commit": "0123abcd", "device": "cpu", "processor": "x, AVX2", "threads": 2, "processes": 1},
    **{"micro_batch_size": 8, "shard_parameters": False, "precision": "fp32", "compile": False},
    **{"versions": {"torch": "2.13.0", "numpy": "2.4.6"}, "started": "2026-01-31T12:00:00Z"},
}


def records(state, leads: bool = True, step: int = 7) -> Records:
    (state / "resume/step-00000001").mkdir(parents=True, exist_ok=True)  # a training that goes on
    made = Records(state, leads)
    made.step = step
    return made


def test_each_session_has_its_facts_and_tells_those_that_may_change_bits_in_one_line(tmp_path, capsys):
    changes = ({"host": "node2"}, []), ({"threads": 4}, ["threads: 2 → 4"])
    changes += (({"versions": {"numpy": "2"}}, ["threads: 4 → 2", "'torch': '2.13.0'"]),)
    told = records(tmp_path)
    told.open(SessionFacts(**FACTS))
    told.step = 10
    told.update(step_seconds=0.5)
    for change, words in changes:
        records(tmp_path).open(SessionFacts(**{**FACTS, **change}))
        error = capsys.readouterr().err
        assert error.count("\n") == bool(words) and all(fact in error for fact in words)
    first, *_, last = read_json(tmp_path / "provenance.json")["sessions"]
    assert first.items() >= {**FACTS, "step": 10, "step_seconds": 0.5}.items()
    assert (last["step"], last["until"]) == (0, None)


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (None, "done", 0),
        (PreemptedError("SIGTERM: saved at step 7"), "preempted", 75),
        (DivergedError("loss nan"), "diverged", 65),
        (PermissionError(13, "Permission denied", "/x"), "failed", 65),
        (ZeroDivisionError("division by zero"), "failed", 70),
    ],
)
def test_a_run_is_said_to_be_going_on_and_every_end_has_the_state_and_the_exit_code_of_its_error(
    tmp_path, error, state, code
):
    """Of several processes those that do not lead tell only of failures."""
    for leads in (False, True):
        told = records(tmp_path, leads)
        told.open(SessionFacts(**FACTS))
        with pytest.raises(type(error)) if error else nullcontext(), told.status_written():
            if leads:
                told.update()
            running = {"state": "running", "step": 7, "exit_code": None, "reason": None, "file": None}
            assert not leads or read_json(tmp_path / "status.json") == running
            if error:
                raise error
        assert (tmp_path / "status.json").exists() == (leads or state in ("failed", "diverged"))
    status = read_json(tmp_path / "status.json")
    assert (status["state"], status["step"], status["exit_code"], status["file"]) == (state, 7, code, None)
    assert error is None or str(error) in status["reason"] or "/x" in status["reason"]


def test_the_first_failure_stays_when_the_leader_fails_in_consequence_until_another_session(tmp_path):
    path = tmp_path / "status.json"
    with pytest.raises(RuntimeError), records(tmp_path).status_written():
        with pytest.raises(MemoryExhaustedError), records(tmp_path, leads=False).status_written():
            raise MemoryExhaustedError("out of memory")
        raise RuntimeError("connection closed by peer")
    assert read_json(path)["exit_code"] == 65
    with pytest.raises(PreemptedError), records(tmp_path).status_written():
        raise PreemptedError("SIGTERM")
    assert read_json(path)["state"] == "preempted"


def test_storage_has_each_kept_step_the_last_one_too_and_four_checkpoints_of_weights_and_two_moments(brief):
    parameters = 109_514_298  # the paper's base
    assert storage_of(parameters, brief(steps=200_000, save_every=1000)) == 4 * parameters * (200 + 4 * 3)
    for steps, kept in ((30, 3), (35, 4), (5, 1)):
        assert storage_of(1000, brief(steps=steps, save_every=10)) == 4000 * (kept + 12)


def test_a_damaged_status_stops_no_run(tmp_path):
    (tmp_path / "status.json").write_text("{")
    with records(tmp_path).status_written():
        pass
    assert read_json(tmp_path / "status.json")["state"] == "done"
