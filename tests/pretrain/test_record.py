import pytest

from symbert.errors import DivergedError, InputOutputError, MemoryExhaustedError, PreemptedError
from symbert.files import read_json
from symbert.pretrain import record
from symbert.pretrain.record import (
    close_session,
    open_session,
    status_written,
    write_running,
)

FACTS = {
    "host": "node1",
    "commit": "0123abcd",
    "device": "cpu",
    "processor": "x, AVX2",
    "threads": 2,
    "processes": 1,
    "micro_batch_size": None,
    "shard_parameters": False,
    "precision": "fp32",
    "recipe": "faithful",
    "versions": {"torch": "2.13.0", "numpy": "2.4.6"},
}


def test_each_session_has_its_facts_and_what_was_measured_last(tmp_path):
    path = tmp_path / "provenance.json"
    open_session(path, FACTS)
    close_session(path, step=10, step_seconds=None)
    close_session(path, step=20, step_seconds=0.5)
    open_session(path, FACTS)
    first, second = read_json(path)["sessions"]
    assert first.items() >= {**FACTS, "step": 20, "step_seconds": 0.5}.items()
    assert second.keys() == {*FACTS, "started"} and first.keys() - second.keys() == {"step", "step_seconds", "until"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"threads": 4}, ["threads: 2 → 4"]),
        ({"processes": 2, "micro_batch_size": 8}, ["micro_batch_size: None → 8", "processes: 1 → 2"]),
        ({"versions": {"torch": "2.14.0", "numpy": "2.4.6"}}, ["versions.torch: 2.13.0 → 2.14.0"]),
        ({"versions": {"torch": "2.13.0"}}, ["versions.numpy: 2.4.6 → absent"]),
        ({"host": "node2"}, []),
    ],
)
def test_each_fact_that_may_change_bits_is_told_in_one_line(tmp_path, capsys, change, told):
    path = tmp_path / "provenance.json"
    open_session(path, FACTS)
    open_session(path, {**FACTS, **change})
    lines = capsys.readouterr().err.splitlines()
    assert [
        line.removeprefix(f"warning: {path}: ").partition(" since the session before; ")[0] for line in lines
    ] == told
    assert all("bits of the result may differ" in line for line in lines)


def fail(path, error: BaseException, leader: bool = True) -> None:
    with pytest.raises(type(error)) as raised, status_written(path, lambda: 7, leader):
        raise error
    assert raised.value is error


def test_a_run_is_said_to_be_going_on_and_then_done_with_its_steps(tmp_path):
    path = tmp_path / "status.json"
    with status_written(path, lambda: 30):
        write_running(path, 10)
        assert read_json(path) == {"state": "running", "step": 10, "exit_code": None, "reason": None, "file": None}
    assert read_json(path) == {"state": "done", "step": 30, "exit_code": 0, "reason": None, "file": None}


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (PreemptedError("tiny-original seed 1: SIGTERM: saved at step 7"), "preempted", 75),
        (DivergedError("loss nan"), "diverged", 65),
        (MemoryExhaustedError("set 'pretrain.micro_batch_size'"), "failed", 65),
        (PermissionError(13, "Permission denied", "/x"), "failed", 65),
        (ZeroDivisionError("division by zero"), "failed", 70),
        (KeyboardInterrupt(), "failed", 70),
    ],
)
def test_every_end_has_the_state_and_the_exit_code_of_its_error(tmp_path, error, state, code):
    fail(tmp_path / "status.json", error)
    told = read_json(tmp_path / "status.json")
    assert (told["state"], told["step"], told["exit_code"]) == (state, 7, code)
    assert told["file"] is None and (str(error) in told["reason"] or "/x" in told["reason"])


def test_another_process_than_the_leader_tells_only_of_failures(tmp_path):
    path = tmp_path / "status.json"
    with status_written(path, lambda: 7, leader=False):
        assert not path.exists()
    fail(path, PreemptedError("SIGTERM"), leader=False)
    assert not path.exists()
    fail(path, DivergedError("loss nan"), leader=False)
    assert read_json(path)["state"] == "diverged"


def test_the_first_failure_stays_when_the_leader_fails_in_consequence(tmp_path):
    path = tmp_path / "status.json"
    with pytest.raises(RuntimeError), status_written(path, lambda: 7):
        fail(path, MemoryExhaustedError("out of memory"), leader=False)
        raise RuntimeError("connection closed by peer")
    assert read_json(path)["exit_code"] == 65


def test_a_failure_of_an_earlier_session_does_not_stay(tmp_path):
    path = tmp_path / "status.json"
    fail(path, DivergedError("loss nan"))
    fail(path, PreemptedError("SIGTERM"))
    assert read_json(path)["state"] == "preempted"


def test_when_the_status_cannot_be_written_the_failure_is_raised_all_the_same(tmp_path, monkeypatch):
    failure = InputOutputError("the disk is full")
    with pytest.raises(InputOutputError) as raised, status_written(tmp_path / "status.json", lambda: 7):
        monkeypatch.setattr(record, "write_json", lambda *_: raise_full())
        raise failure
    assert raised.value is failure


def raise_full():
    raise OSError(28, "No space left on device")
