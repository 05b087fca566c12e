import pytest

from symbert.errors import DivergedError, InputOutputError, IntegrityError, MemoryExhaustedError, PreemptedError
from symbert.files import read_json
from symbert.pretrain import status
from symbert.pretrain.status import reported, write_running


def fail(path, error: BaseException, leader: bool = True) -> None:
    with pytest.raises(type(error)) as raised, reported(path, lambda: 7, leader):
        raise error
    assert raised.value is error


def test_a_run_is_said_to_be_going_on_and_then_done_with_its_steps(tmp_path):
    path = tmp_path / "status.json"
    with reported(path, lambda: 30):
        write_running(path, 10)
        assert read_json(path) == {"state": "running", "step": 10, "exit_code": None, "reason": None, "file": None}
    assert read_json(path) == {"state": "done", "step": 30, "exit_code": 0, "reason": None, "file": None}


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (PreemptedError("tiny-original seed 1: SIGTERM: saved at step 7"), "preempted", 75),
        (DivergedError("loss nan"), "diverged", 79),
        (MemoryExhaustedError("set 'pretrain.micro_batch_size'"), "failed", 71),
        (PermissionError(13, "Permission denied", "/x"), "failed", 73),
        (ZeroDivisionError("division by zero"), "failed", 70),
        (KeyboardInterrupt(), "failed", 70),
    ],
)
def test_every_end_has_the_state_and_the_exit_code_of_its_error(tmp_path, error, state, code):
    fail(tmp_path / "status.json", error)
    told = read_json(tmp_path / "status.json")
    assert (told["state"], told["step"], told["exit_code"]) == (state, 7, code)
    assert told["file"] is None and (str(error) in told["reason"] or "/x" in told["reason"])


def test_the_file_that_an_error_begins_with_is_named_when_it_exists(tmp_path):
    shard = tmp_path / "train-0.npy"
    fail(tmp_path / "status.json", IntegrityError(f"{shard}: sha256 differs: run pack_shards again"))
    assert read_json(tmp_path / "status.json")["file"] is None
    shard.touch()
    fail(tmp_path / "other.json", IntegrityError(f"{shard}: sha256 differs: run pack_shards again"))
    assert read_json(tmp_path / "other.json")["file"] == str(shard)


def test_another_process_than_the_leader_tells_only_of_failures(tmp_path):
    path = tmp_path / "status.json"
    with reported(path, lambda: 7, leader=False):
        assert not path.exists()
    fail(path, PreemptedError("SIGTERM"), leader=False)
    assert not path.exists()
    fail(path, DivergedError("loss nan"), leader=False)
    assert read_json(path)["state"] == "diverged"


def test_the_first_failure_stays_when_the_leader_fails_in_consequence(tmp_path):
    path = tmp_path / "status.json"
    with pytest.raises(RuntimeError), reported(path, lambda: 7):
        fail(path, MemoryExhaustedError("out of memory"), leader=False)
        raise RuntimeError("connection closed by peer")
    assert read_json(path)["exit_code"] == 71


def test_a_failure_of_an_earlier_session_does_not_stay(tmp_path):
    path = tmp_path / "status.json"
    fail(path, DivergedError("loss nan"))
    fail(path, PreemptedError("SIGTERM"))
    assert read_json(path)["state"] == "preempted"


def test_when_the_status_cannot_be_written_the_failure_is_raised_all_the_same(tmp_path, monkeypatch):
    failure = InputOutputError("the disk is full")
    with pytest.raises(InputOutputError) as raised, reported(tmp_path / "status.json", lambda: 7):
        monkeypatch.setattr(status, "write_json", lambda *_: raise_full())
        raise failure
    assert raised.value is failure


def raise_full():
    raise OSError(28, "No space left on device")
