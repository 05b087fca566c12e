import json
import math
import struct

import pytest

from documented import custom_files
from pretrain.corpora import options
from symbert.cli import main
from symbert.errors import IntegrityError
from symbert.pretrain.checkpoint import MetricsLog
from symbert.pretrain.run import Validated


def test_a_resumed_log_is_cut_back_to_its_checkpoint(tmp_path):
    """The position used to stay at the old end, so that the next checkpoint was further than the file is long."""
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, 0)
    log.write(Validated(step=10, loss=5.0))
    length = log.flush()
    log.write(Validated(step=20, loss=4.0))
    log.flush()
    again = MetricsLog(path, length)
    assert again.last_validation()["loss"] == 5.0 and again.flush() == path.stat().st_size == length
    again.write(Validated(step=20, loss=3.0))
    assert again.flush() > length and again.last_validation()["loss"] == 3.0


def test_neither_lines_that_are_others_than_the_run_wrote_nor_a_loss_that_is_no_number_are_published(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, 0)
    with pytest.raises(ValueError, match="not JSON compliant"):
        log.write(Validated(step=10, loss=math.nan))
    log.write(Validated(step=10, loss=2.5))
    log.flush()
    path.write_bytes(path.read_bytes().replace(b"2.5", b"1.5"))
    with pytest.raises(IntegrityError, match=r"metrics\.jsonl"):
        log.last_validation()


def test_the_documented_tracker_gives_tensorboard_all_numbers_of_a_run(tmp_path, root, manifest, monkeypatch, brief):
    from tensorboardX.proto.event_pb2 import Event

    (tmp_path / "my_tracker.py").write_text(custom_files(root, "docs/pretraining.md")["my_tracker.py"])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYMBERT_TRACKER", "my_tracker:tensorboard")
    run, at_exit = tmp_path / "run", []
    monkeypatch.setattr("atexit.register", at_exit.append)
    assert main(options(manifest, brief(steps=10), run)) == 0
    at_exit.pop()()
    (path,) = (tmp_path / f"events/{tmp_path.name}-run").iterdir()
    data, scalars = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])  # and its checksum, the event, and that of the event
        event, data = Event.FromString(data[12 : 12 + length]), data[16 + length :]
        scalars += [(event.step, value.tag, pytest.approx(value.simple_value)) for value in event.summary.value]
    assert scalars == [
        (line["step"], f"{line['split']}/{name}/{place}", number)
        for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
        for name, value in line.items()
        if name not in ("split", "step")
        for place, number in enumerate(value if isinstance(value, list) else [value])
    ]


@pytest.mark.parametrize(
    ("tracker", "code", "said"),
    [
        ("unreachable:tracker", 0, "SYMBERT_TRACKER: ZeroDivisionError"),
        ("nowhere:f", 64, "SYMBERT_TRACKER is nowhere:f"),
    ],
)
def test_a_tracker_that_fails_leaves_the_training_alone_and_one_that_is_not_there_is_named(
    tmp_path, manifest, monkeypatch, brief, capsys, tracker, code, said
):
    """An unreachable server ended the run with 70, without a checkpoint."""
    (tmp_path / "unreachable.py").write_text("def tracker(folder):\n    return lambda *values: 1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SYMBERT_TRACKER", tracker)
    assert main(options(manifest, brief(steps=10), tmp_path / "run")) == code
    assert capsys.readouterr().err.count(said) == 1
