from pathlib import Path

import pytest

from symbert.experiment import announcement
from symbert.experiment.announcement import announcement_of, begin
from symbert.files import write_json
from symbert.paths import Run


def said(experiment) -> dict[str, list[str]]:
    """What a start says, by the first word of each line."""
    lines = [line.split(maxsplit=1) for line in announcement_of(experiment)]
    return {word: [rest for first, rest in lines if first == word] for word, _ in lines}


def test_a_start_says_the_experiment_what_is_trained_what_is_there_and_the_disk(experiment):
    words = said(experiment)
    assert words["symbert:"][0].startswith("demo-embedded (scale demo, corpus embedded, GLUE embedded")
    assert words["trains"] == ["tiny-original seed 1; tiny-symmetric seed 1; tiny-pairwise seed 1; tiny-shared seed 1"]
    assert words["there"][0].startswith("0 of ") and " free on " in words["disk"][0] and "changed" not in words


def test_what_is_done_is_not_trained(experiment):
    for run in experiment.runs()[1:]:
        write_json(Path(experiment.run_folder(run), "done.json"), {})
    assert said(experiment)["trains"] == ["tiny-original seed 1"]
    write_json(Path(experiment.run_folder(Run("tiny", "original", 1)), "done.json"), {})
    assert said(experiment)["trains"] == ["nothing"]


def test_another_sweep_under_the_same_name_is_shown_before_it_starts(experiment, changed):
    experiment.write()
    assert "changed" not in said(changed({}))
    after = changed({"sweep": {"attention": ["original"]}, "pretrain": {"steps": 1200}})
    assert said(after)["changed"] == [
        "pretrain.steps: 2400 → 1200",
        'sweep.attention: ["original", "symmetric", "pairwise", "shared"] → ["original"]',
    ]
    assert "changed" not in said(changed({"experiment": "other"}))


def test_a_disk_that_is_too_small_is_a_warning(experiment, monkeypatch):
    monkeypatch.setattr(announcement, "room_for", lambda outputs: {Path("/disk"): (2e9, 10**9)})
    assert said(experiment)["disk"] == ["2 GB to come at most, 1 GB free on /disk  warning: too small"]


def test_a_folder_that_cannot_be_written_to_ends_a_start_with_one_line(experiment, capsys):
    Path("results").write_text("a file")
    with pytest.raises(SystemExit) as stop:
        begin(experiment)
    assert stop.value.code == 65
    assert capsys.readouterr().err.splitlines()[-1].startswith("symbert: results/")
