import fcntl
import os
import select
import struct
import sys
import termios
from contextlib import contextmanager, redirect_stderr
from types import SimpleNamespace

import pytest

from symbert.progress import CLEAR, Progress, aligned, bar, data_size, duration, end_line


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (89, "89 s"), (720, "12 min"), (12240, "3.4 h")])
def test_durations_are_for_people(seconds, text):
    assert duration(seconds) == text


def test_progress_says_rate_and_remaining_time_and_always_the_end(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 10.0, 20.0])
    monkeypatch.setattr("symbert.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
    progress = Progress("filter", 300, "documents")
    progress.update(50)
    progress.update(100, "loss 5.1")
    progress.update(300)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "filter: 100/300 documents, 10.0/s, 20 s left, loss 5.1",
        "filter: 300/300 documents, 15.0/s, 0 s left",
    ]


def test_a_resumed_step_counts_only_what_it_did(capsys, monkeypatch):
    clock = iter([0.0, 10.0])
    monkeypatch.setattr("symbert.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
    Progress("pretrain", 300, "steps", start=200).update(300)
    assert "10.0/s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (999, "999 B"), (77_849_004, "77.8 MB"), (999.9e6, "1 GB"), (2e9, "2 GB"), (1.5e15, "1,500 TB")],
)
def test_amounts_of_data_are_short(count, words):
    assert data_size(count) == words


@pytest.mark.parametrize(("part", "filled"), [(0, 0), (0.049, 0), (0.05, 1), (0.5, 10), (1, 20), (1.2, 20)])
def test_a_bar_is_filled_as_far_as_the_work_is(part, filled):
    assert bar(part) == "[" + "#" * filled + "." * (20 - filled) + "]"


@contextmanager
def terminal():
    """stderr is a terminal of 60 columns; gives a function that reads what was written there."""
    reader, writer = os.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    with open(writer, "w") as stderr, redirect_stderr(stderr):
        yield lambda: b"".join(iter(lambda: _read(reader), b"")).decode()
    os.close(reader)


def _read(reader: int) -> bytes:
    """What comes within a third of a second: a terminal may hand over what was written in pieces."""
    return os.read(reader, 10_000) if select.select([reader], [], [], 0.3)[0] else b""


def test_on_a_terminal_one_line_is_redrawn_within_its_width_and_ends_with_the_work(monkeypatch):
    clock = iter([0.0, 0.1, 1.0, 2.0])
    monkeypatch.setattr("symbert.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
    with terminal() as written:
        progress = Progress("pretrain", 30, "steps")
        progress.update(1)  # too early to be drawn
        progress.update(15, "loss 5.1")
        progress.update(30)  # the note stays
        half, whole = written().removeprefix(CLEAR).split(CLEAR)
    assert half == "pretrain: [##########..........] 15/30 steps, 15.0/s, 1 s left, loss 5.1"[:59]
    assert whole == "pretrain: [####################] 30/30 steps, 15.0/s, 0 s left, loss 5.1"[:59] + "\r\n"


def test_a_message_after_an_unfinished_bar_begins_a_line_of_its_own():
    with terminal() as written:
        end_line()  # nothing was drawn: nothing to end
        Progress("pretrain", 30, "steps", interval=0).update(3)
        end_line()
        end_line()
        print("stopped", file=sys.stderr, flush=True)
        lines = written().split("\r\n")
    assert len(lines) == 3 and lines[0].startswith(f"{CLEAR}pretrain: [##..") and lines[1:] == ["stopped", ""]


def test_work_of_unknown_length_has_no_bar_on_a_terminal_either():
    with terminal() as written:
        Progress("filter", None, "documents", interval=0).update(7)
        assert written().startswith("filter: 7 documents, ")


def test_a_plain_table_has_its_first_column_to_the_left_and_the_others_to_the_right():
    assert aligned([("run", "step"), ("tiny-original", "20")]) == ["run            step", "tiny-original    20"]
