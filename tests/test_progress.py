from types import SimpleNamespace

from symbert.progress import Progress


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
