import struct
import sys

import pytest

from symbert.errors import InputOutputError, IntegrityError, MissingInputError
from symbert.pretrain.log import EventLog, MetricsLog


def test_a_resumed_log_is_cut_back_to_its_checkpoint(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, 0)
    log.write(split="validation", step=10, loss=5.0)
    length = log.flush()
    log.write(split="validation", step=20, loss=4.0)
    log.flush()
    assert MetricsLog(path, length).last_validation()["loss"] == 5.0
    assert path.stat().st_size == length


def test_a_log_shorter_than_its_checkpoint_is_refused_rather_than_padded(tmp_path):
    (tmp_path / "metrics.jsonl").write_text("{}\n")
    with pytest.raises(IntegrityError, match="metrics.jsonl: 3 bytes, the checkpoint was at 100.*start the run over"):
        MetricsLog(tmp_path / "metrics.jsonl", 100)


def test_a_loss_that_is_not_a_number_cannot_be_logged(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        MetricsLog(tmp_path / "metrics.jsonl", 0).write(loss=float("nan"))


def test_surplus_bytes_of_a_killed_run_do_not_count_after_a_resume(tmp_path):
    """The position used to stay at the old end, so that the next checkpoint was further than the file is long."""
    (tmp_path / "metrics.jsonl").write_text("x" * 5000)
    assert MetricsLog(tmp_path / "metrics.jsonl", 4000).flush() == 4000


def test_a_full_disk_is_named_and_what_was_flushed_before_stays(tmp_path, monkeypatch):
    log = MetricsLog(tmp_path / "metrics.jsonl", 0)
    log.write(split="validation", step=10, loss=5.0)
    length = log.flush()
    log.write(split="validation", step=20, loss=4.0)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputOutputError, match="metrics.jsonl: No space left.* MB free on /.*; free space there"):
        log.flush()
    monkeypatch.undo()
    assert MetricsLog(tmp_path / "metrics.jsonl", length).last_validation()["loss"] == 5.0


event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")


def crc32c(data: bytes) -> int:
    """By its definition (RFC 3720, appendix B.4): the reflected polynomial 0x1EDC6F41."""
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    remainder = crc32c(data)
    return ((remainder >> 15 | remainder << 17) + 0xA282EAD8) & 0xFFFFFFFF


def events_of(path) -> list:
    data, events = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == masked(data[:8])
        content, data = data[12 : 12 + length], data[12 + length :]
        assert struct.unpack("<I", data[:4])[0] == masked(content)
        events.append(event_pb2.Event.FromString(content))
        data = data[4:]
    return events


def scalars_of(events) -> list[tuple[int, str, float]]:
    return [(event.step, value.tag, value.simple_value) for event in events for value in event.summary.value]


def test_the_checksum_of_the_tests_is_the_standard_one():
    assert crc32c(b"123456789") == 0xE3069283


def test_what_is_flushed_can_be_read_while_the_run_goes_on(tmp_path):
    events = EventLog(tmp_path / "tensorboard", 0)
    events.write("initial", 0, logit_std=[0.5, 0.25])
    events.write("train", 10, loss=4.5, gradient_norm=None)
    events.flush()
    (path,) = (tmp_path / "tensorboard").iterdir()
    version, start, *rest = events_of(path)
    assert version.file_version == "brain.Event:2"
    assert (start.session_log.status, start.step) == (event_pb2.SessionLog.START, 0)
    assert scalars_of(rest) == [
        (0, "initial/logit_std/0", 0.5),
        (0, "initial/logit_std/1", 0.25),
        (10, "train/loss", 4.5),
    ]


def test_a_resumed_run_begins_a_file_that_makes_what_came_after_its_checkpoint_invalid(tmp_path):
    for step in (0, 20):
        events = EventLog(tmp_path, step)
        events.write("train", step + 10, loss=4.0)
        events.flush()
    first, second = sorted(tmp_path.iterdir(), key=lambda path: path.suffix)
    assert scalars_of(events_of(first)) == [(10, "train/loss", 4.0)]
    start = events_of(second)[1]
    assert (start.session_log.status, start.step) == (event_pb2.SessionLog.START, 21)
    assert scalars_of(events_of(second)) == [(30, "train/loss", 4.0)]


def test_a_full_disk_is_an_error_and_not_an_endless_wait(tmp_path, monkeypatch):
    events = EventLog(tmp_path, 0)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputOutputError, match=f"{tmp_path}: No space left on device"):
        events.flush()


def test_a_missing_package_is_named_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX.event_file_writer", None)
    with pytest.raises(MissingInputError, match="pip install tensorboardX"):
        EventLog(tmp_path, 0)
