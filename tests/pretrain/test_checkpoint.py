import math
import os
import shutil
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from safetensors import SafetensorError

from pretrain.corpora import killed
from symbert.errors import IntegrityError
from symbert.files import verify_sha256
from symbert.model import loading as weights
from symbert.pretrain import checkpoint
from symbert.pretrain.checkpoint import CheckpointStore, Position
from symbert.pretrain.run import KEEP, kept_weights


class Tiny(torch.nn.Linear):
    """A model of eight numbers."""

    _tied_weights_keys = ()

    def __init__(self) -> None:
        super().__init__(3, 2)

    def tie_weights(self) -> None:
        pass


def tiny(value: float):
    """A tiny model and its optimizer, all of whose numbers are `value`."""
    model = Tiny()
    optimizer = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():
        parameter.data.fill_(value)
        moments = {key: torch.full_like(parameter, value) for key in ("exp_avg", "exp_avg_sq")}
        optimizer.state[parameter] = {"step": torch.tensor(value), **moments}
    return model, optimizer


def save(store, pair, step):
    store.log.write_bytes(b"0123456789" * step)
    store.save(*pair, Position(step, 10 * step, {}))


def equal(one, other) -> bool:
    weights = zip(one[0].state_dict().values(), other[0].state_dict().values(), strict=True)
    states = zip(one[0].parameters(), other[0].parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in weights) and all(
        torch.equal(one[1].state[p][key], other[1].state[q][key])
        for p, q in states
        for key in ("step", "exp_avg", "exp_avg_sq")
    )


def test_an_unreadable_checkpoint_or_one_of_another_log_is_skipped_by_name(tmp_path, monkeypatch, capsys):
    store, older = CheckpointStore(tmp_path), tiny(10.0)
    save(store, older, 10)
    save(store, tiny(20.0), 20)
    intact = store.log.read_bytes()
    for damaged in (intact[:-1], intact[:-1] + b"!"):
        store.log.write_bytes(damaged)
        loaded = tiny(0.0)
        assert store.load_newest(*loaded).step == 10 and equal(loaded, older)
        assert f"warning: {store.log}: its first 200 bytes are others than at step-00000020" in capsys.readouterr().err
    store.log.write_bytes(intact)

    def read(path, *expected):
        if "step-00000020" in str(path):
            raise OSError(5, "Input/output error", str(path))
        return verify_sha256(path, *expected)

    monkeypatch.setattr(checkpoint, "verify_sha256", read)
    assert store.load_newest(*tiny(0.0)).step == 10
    assert "Input/output error" in capsys.readouterr().err


def test_a_run_that_kept_weights_of_two_steps_does_not_start_over_without_a_checkpoint(tmp_path):
    """A kill alone leaves the weights of one step at most before the first checkpoint is there."""
    store = CheckpointStore(tmp_path)
    store.resume.mkdir()
    store.keep_weights(tiny(1.0)[0], 10)
    assert store.load_newest(*tiny(0.0)) is None
    store.keep_weights(tiny(1.0)[0], 20)
    with pytest.raises(IntegrityError, match="no intact checkpoint"):
        store.load_newest(*tiny(0.0))


def test_checkpoints_that_lost_their_records_start_no_run_over_in_silence(tmp_path, capsys):
    """Without its .json a checkpoint was none, and the run began at step 0."""
    store, pair = CheckpointStore(tmp_path), tiny(1.0)
    for step in (10, 20):
        save(store, pair, step)
    for record in store.resume.glob("*.json"):
        record.unlink()
    with pytest.raises(IntegrityError, match=r"no intact checkpoint .*step-00000020\.json: file not found"):
        store.load_newest(*tiny(0.0))
    (store.resume / "step-00000020.safetensors").unlink()  # one alone is of a kill in the first save
    assert store.load_newest(*tiny(0.0)) is None
    assert "step-00000010.json: file not found" in capsys.readouterr().err


def test_a_finished_run_keeps_its_weights_and_starts_over_though_it_was_killed_at_the_end(tmp_path, monkeypatch):
    """Its checkpoints to resume from go as one: no part of them is left for a run that goes on."""
    store = CheckpointStore(tmp_path)
    for step in (10, 20):
        store.keep_weights(tiny(1.0)[0], step)
        save(store, tiny(1.0), step)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.shutil, "rmtree", lambda path, **_: path.exists() and killed())
        with pytest.raises(KeyboardInterrupt):
            store.remove_resumable()
    assert store.load_newest(*tiny(0.0)) is None and kept_weights(tmp_path, 10).is_file()
    save(store, tiny(1.0), 10)
    store.remove_resumable()
    assert not store.resume.exists() and not list(tmp_path.glob(".resume*"))
    store.remove_kept()
    assert not store.weights.exists()


def test_a_constant_of_an_operator_may_be_infinite(tmp_path):
    """A mask of -inf that an operator registered as a buffer was called divergence."""
    model, store = tiny(1.0)[0], CheckpointStore(tmp_path)
    model.register_buffer("mask", torch.full((2,), -math.inf))
    store.keep_weights(model, 10)
    assert (tmp_path / "weights/step-00000010.safetensors").is_file()


def test_all_files_have_the_mode_of_new_files(tmp_path):
    store, (model, optimizer) = CheckpointStore(tmp_path), tiny(1.0)
    store.keep_weights(model, 10)
    save(store, (model, optimizer), 10)
    (tmp_path / "new").touch()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 6 and {path.stat().st_mode for path in files} == {(tmp_path / "new").stat().st_mode}


def test_kept_weights_are_verified(tmp_path):
    store = CheckpointStore(tmp_path)
    for step in (200, 300):
        store.keep_weights(tiny(1.0)[0], step)
    assert kept_weights(tmp_path, 200).name == "step-00000200.safetensors"
    path = tmp_path / "weights" / "step-00000300.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(IntegrityError, match="step-00000300.safetensors"):
        kept_weights(tmp_path, 300)


def test_a_checkpoint_of_another_model_is_not_loaded(tmp_path):
    store, (model, optimizer) = CheckpointStore(tmp_path), tiny(1.0)
    save(store, (model, optimizer), 10)
    model.register_parameter("pairwise_factors", torch.nn.Parameter(torch.ones(1)))
    with pytest.raises(
        IntegrityError, match=r"no intact checkpoint.*step-00000010.safetensors: not of .* pairwise_factors"
    ):
        store.load_newest(model, optimizer)


def test_what_killed_processes_left_is_removed_when_the_next_step_is_saved(tmp_path):
    store = CheckpointStore(tmp_path)
    store.keep_weights(tiny(1.0)[0], 10)
    kept = sorted(os.listdir(store.weights))
    store.resume.mkdir()
    for name in (".step-00000007.safetensors.1.tmp", ".tmpA1b2C3"):
        (store.weights / name).touch()
        (store.resume / name).touch()
    (store.resume / "step-00000007.safetensors").touch()
    save(store, tiny(10.0), 10)
    assert sorted(os.listdir(store.resume)) == sorted(os.listdir(store.weights)) == kept


def test_a_full_disk_is_named_and_the_checkpoint_before_stays(tmp_path, monkeypatch):
    store, before = CheckpointStore(tmp_path), tiny(10.0)
    save(store, before, 10)

    def full(tensors, path, metadata):
        Path(path).write_bytes(b"half")
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(weights, "save_file", full)
    with pytest.raises(OSError, match=r"No space left on device: .*resume.*step-00000020\.safetensors"):
        save(store, tiny(20.0), 20)
    with pytest.raises(OSError, match=r"No space left on device: .*weights.*step-00000020\.safetensors"):
        store.keep_weights(tiny(20.0)[0], 20)
    loaded = tiny(0.0)
    assert store.load_newest(*loaded).step == 10 and equal(loaded, before)
    assert {path.stem for path in store.resume.iterdir()} == {"step-00000010"} and os.listdir(store.weights) == []


class Store(RuleBasedStateMachine):
    """Saves, kills half-way, damages and loads; beside it a record of which steps are there and intact."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.store = CheckpointStore(self.folder)
        self.intact: dict[int, bool] = {}
        self.step = 0  # of the run as it stands

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def expect_surplus_removed(self, step: int) -> None:
        older = sorted((other for other in self.intact if other < step), reverse=True)[:KEEP]
        self.intact = {other: self.intact[other] for other in older}

    @rule(steps=st.integers(1, 3))
    def save(self, steps: int) -> None:
        self.step += steps
        self.expect_surplus_removed(self.step)
        self.intact[self.step] = True
        self.expect_surplus_removed(self.step + 1)
        save(self.store, tiny(self.step), self.step)
        assert {int(path.stem[5:]) for path in self.store.resume.iterdir()} == self.intact.keys()

    @rule(steps=st.integers(1, 3), renamed=st.integers(0, 2))
    def kill_while_saving(self, steps: int, renamed: int) -> None:
        """The process ends after so many of the two renames."""
        step = self.step + steps
        if (child := os.fork()) == 0:
            try:
                _exit_after(renamed)
                save(self.store, tiny(step), step)
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        self.expect_surplus_removed(step)
        if renamed == 2:
            self.intact[step] = True
        assert len({path.stem for path in self.store.resume.glob("step-*")}) <= KEEP + 1
        self.load()

    @precondition(lambda self: any(self.intact.values()))
    @rule(
        chosen=st.integers(0, KEEP),
        suffix=st.sampled_from([".safetensors", ".json"]),
        kind=st.sampled_from(["flip", "truncate", "remove"]),
        place=st.floats(0, 1, exclude_max=True),
        bit=st.integers(0, 7),
    )
    def damage(self, chosen: int, suffix: str, kind: str, place: float, bit: int) -> None:
        steps = [step for step, intact in self.intact.items() if intact]
        step = steps[chosen % len(steps)]
        self.intact[step] = False
        path = self.store.resume / f"step-{step:08d}{suffix}"
        content = bytearray(path.read_bytes())
        place = int(place * (len(content) - 1))  # without its last newline, a JSON file says the same
        content[place] ^= 1 << bit
        path.write_bytes(content if kind == "flip" else content[:place])
        if kind == "remove":
            path.unlink()
            if suffix == ".json":  # without it there is no checkpoint
                del self.intact[step]

    @rule()
    def load(self) -> None:
        """A new process goes on from the newest intact step, or refuses to start over."""
        loaded, newest = tiny(-1.0), max((step for step, intact in self.intact.items() if intact), default=None)
        if self.intact and newest is None:
            with pytest.raises(IntegrityError, match="no intact checkpoint"):
                self.store.load_newest(*loaded)
            shutil.rmtree(self.store.resume)  # as the message says
            self.intact, self.step = {}, 0
            return
        position = self.store.load_newest(*loaded)
        self.step = newest or 0
        assert position == (newest and Position(newest, 10 * newest, {}))
        assert equal(loaded, tiny(newest or -1.0))


def _exit_after(renames: int) -> None:
    """End this process, as a signal would, at the next rename after so many, or behind the second."""
    replace, done = os.replace, 0

    def counted(origin, destination):
        nonlocal done
        if done == renames:
            os._exit(9)
        replace(origin, destination)
        done += 1
        if done == 2:
            os._exit(9)

    os.replace = counted


def test_whatever_happens_a_run_goes_on_from_the_newest_intact_step(capfd):
    few = settings(max_examples=25, stateful_step_count=12, derandomize=True)
    run_state_machine_as_test(Store, settings=few)
