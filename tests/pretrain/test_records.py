"""What a run keeps on the disk: its sessions, how it stands, how much it writes."""

import pytest

from symbert.errors import DivergedError, InputOutputError, MemoryExhaustedError, PreemptedError
from symbert.files import read_json
from symbert.model.parameters import counts_of
from symbert.operators import OPERATORS, Operator
from symbert.paths import Run
from symbert.pretrain import run
from symbert.pretrain.run import Records, StorageNeed, parameters_of, refuse_full, storage_of
from symbert.sizes import SIZES, VOCABULARY_SIZE

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


def records(state, leads: bool = True, step: int = 7) -> Records:
    (state / "resume/step-00000001").mkdir(parents=True, exist_ok=True)  # a training that goes on
    made = Records(state, leads)
    made.step = step
    return made


def test_each_session_has_its_facts_and_what_was_measured_last(tmp_path):
    told = records(tmp_path)
    told.open(FACTS)
    for told.step, seconds in ((10, None), (20, 0.5)):
        told.update(step_seconds=seconds)
    told.open(FACTS)
    first, second = told.sessions
    assert first.items() >= {**FACTS, "step": 20, "step_seconds": 0.5}.items()
    assert second.keys() == {*FACTS, "started"} and first.keys() - second.keys() == {"step", "step_seconds", "until"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"threads": 4}, ["threads: 2 → 4"]),
        ({"processes": 2, "micro_batch_size": 8}, ["micro_batch_size: None → 8", "processes: 1 → 2"]),
        ({"versions": {"numpy": "2.4.6"}}, ["versions.torch: 2.13.0 → absent"]),
        ({"host": "node2"}, []),
    ],
)
def test_facts_that_may_change_bits_are_told_in_one_line(tmp_path, capsys, change, told):
    records(tmp_path).open(FACTS)
    records(tmp_path).open({**FACTS, **change})
    error = capsys.readouterr().err
    assert error.count("\n") == bool(told) and all(words in error for words in told)


def fail(state, error: BaseException, leads: bool = True) -> None:
    with pytest.raises(type(error)) as raised, records(state, leads).status_written():
        raise error
    assert raised.value is error


def test_a_run_is_said_to_be_going_on_and_then_done_with_its_steps(tmp_path):
    told = records(tmp_path, step=10)
    told.open(FACTS)
    with told.status_written():
        told.update()
        running = {"state": "running", "step": 10, "exit_code": None, "reason": None, "file": None}
        assert read_json(tmp_path / "status.json") == running
        told.step = 30
    assert read_json(tmp_path / "status.json") == {**running, "state": "done", "step": 30, "exit_code": 0}


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
    fail(tmp_path, error)
    told = read_json(tmp_path / "status.json")
    assert (told["state"], told["step"], told["exit_code"]) == (state, 7, code)
    assert told["file"] is None and (str(error) in told["reason"] or "/x" in told["reason"])


def test_another_process_than_the_leader_tells_only_of_failures(tmp_path):
    path = tmp_path / "status.json"
    with records(tmp_path, leads=False).status_written():
        pass
    fail(tmp_path, PreemptedError("SIGTERM"), leads=False)
    assert not path.exists()
    fail(tmp_path, DivergedError("loss nan"), leads=False)
    assert read_json(path)["state"] == "diverged"


def test_the_first_failure_stays_when_the_leader_fails_in_consequence_until_another_session(tmp_path):
    path = tmp_path / "status.json"
    with pytest.raises(RuntimeError), records(tmp_path).status_written():
        fail(tmp_path, MemoryExhaustedError("out of memory"), leads=False)
        raise RuntimeError("connection closed by peer")
    assert read_json(path)["exit_code"] == 65
    fail(tmp_path, PreemptedError("SIGTERM"))
    assert read_json(path)["state"] == "preempted"


def test_when_the_status_cannot_be_written_the_failure_is_raised_all_the_same(tmp_path, monkeypatch):
    failure = InputOutputError("the disk is full")
    with pytest.raises(InputOutputError) as raised, records(tmp_path).status_written():
        monkeypatch.setattr(run, "write_json", lambda *_: raise_full())
        raise failure
    assert raised.value is failure


def raise_full():
    raise OSError(28, "No space left on device")


BASE = 109_514_298  # parameters with the original operator (paper, Table 2), as below


@pytest.mark.parametrize("size", SIZES)
def test_parameters_by_formula_are_those_of_the_model_itself_whatever_its_operator_and_vocabulary(size):
    counted = counts_of(size, list(OPERATORS))["parameters"]
    assert {name: parameters_of(Run(size, name, 1), VOCABULARY_SIZE) for name in OPERATORS} == counted
    fewer = (VOCABULARY_SIZE - 300) * (SIZES[size].hidden_size + 1)  # embeddings, tied with the head, and its biases
    assert parameters_of(Run(size, "pairwise", 1), 300) == counted["pairwise"] - fewer


def test_an_operator_without_a_formula_counts_as_the_original(monkeypatch):
    monkeypatch.setitem(OPERATORS, "miscounted", Operator("miscounted", "model.wrong_operators:Unmasked"))
    assert parameters_of(Run("base", "miscounted", 1), VOCABULARY_SIZE) == BASE


def test_storage_of_the_papers_base_run(brief):
    """200 kept steps of 4 bytes per parameter; 3 + 1 checkpoints of weights and two moments."""
    found = storage_of(BASE, brief(steps=200_000, save_every=1000))
    assert found == StorageNeed(weights=438_057_192, kept=200)
    assert found.weights_bytes == 87_611_438_400
    assert found.resume_bytes == 4 * 3 * 438_057_192 == 5_256_686_304


@pytest.mark.parametrize(("steps", "save_every", "kept"), [(30, 10, 3), (35, 10, 4), (5, 10, 1)])
def test_the_last_step_is_kept_too(brief, steps, save_every, kept):
    assert storage_of(1000, brief(steps=steps, save_every=save_every)).kept == kept


def leave_free(monkeypatch, free: int, mount) -> None:
    monkeypatch.setattr(run, "free_space", lambda path: (free, mount))


def test_a_run_that_does_not_fit_is_refused_with_need_space_mount_and_remedy(tmp_path, monkeypatch):
    state = tmp_path / "state"
    leave_free(monkeypatch, 15 * 10**6, tmp_path)
    refuse_full(StorageNeed(10**6, 3), state)  # 3 MB + 12 MB: just enough
    leave_free(monkeypatch, 15 * 10**6 - 1, tmp_path)
    with pytest.raises(InputOutputError, match=f"{state}: needs 15 MB, 15 MB free on {tmp_path}"):
        refuse_full(StorageNeed(10**6, 3), state)


def test_what_an_interrupted_run_has_written_is_not_needed_again(tmp_path, monkeypatch):
    for file, size in {
        "weights/step-00000010.safetensors": 1000,
        "resume/step-00000010/model.safetensors": 3000,
    }.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True)
        path.write_bytes(bytes(size))
    leave_free(monkeypatch, 2000 + 9000, tmp_path)
    refuse_full(StorageNeed(1000, 3), tmp_path)
    leave_free(monkeypatch, 2000 + 9000 - 1, tmp_path)
    with pytest.raises(InputOutputError, match="needs 11 kB"):
        refuse_full(StorageNeed(1000, 3), tmp_path)
