import shutil

import pytest

from symbert import cli
from symbert.experiment import disk
from symbert.experiment.plan import plan_experiment
from symbert.experiment.plan_text import hours_in_words, lines_of
from symbert.pretrain.job import Run

ORIGINAL = Run("tiny", "original", 1)


@pytest.fixture
def project(root, folder):
    """A project folder without results."""
    shutil.copy(root / "config.yaml", folder)
    shutil.copytree(root / "workflow", folder / "workflow")
    return folder


def rows_of(lines: list[str]) -> dict[str, list[str]]:
    """The table's rows by stage."""
    return {line.split()[0]: line.split() for line in lines if line.split()[:1] and "|" in line}


def test_the_papers_plan_says_jobs_hours_disk_and_download_of_each_stage(paper):
    rows = rows_of(lines_of(paper, plan_experiment(paper)))
    assert list(rows) == ["stage", "corpus", "pretrain", "glue", "report", "all"]
    jobs = [int(rows[stage][1].replace(",", "")) for stage in ("corpus", "pretrain", "glue", "report", "all")]
    assert jobs[:3] == [939, 13, 134] and sum(jobs[:4]) == jobs[4]
    assert rows["pretrain"][2] == rows["pretrain"][3] and 50 < float(rows["pretrain"][2]) < 90
    assert rows["corpus"][-2:] == ["187", "GB"] and rows["corpus"][2] == "-", "no GPU"


@pytest.mark.parametrize("scale", ["experiment", "paper", "single_gpu"])
def test_a_plan_fits_120_columns(request, scale):
    experiment = request.getfixturevalue(scale)
    lines = lines_of(experiment, plan_experiment(experiment))
    mounts = [line for line in lines if " to come at one time (" in line]
    assert max(len(line) for line in lines if line not in mounts) <= 120 and mounts


def test_the_documents_plan_of_one_gpu_is_its_plan(single_gpu, root):
    """Pasted from the command's output; the report's jobs count in all."""
    printed = (root / "docs/scales.md").read_text(encoding="utf-8").splitlines()
    stages = [line for line in lines_of(single_gpu, plan_experiment(single_gpu)) if "|" in line][1:]
    stages = [line for line in stages if not line.startswith("report ")]
    assert [line.split() for line in printed if line.startswith(("corpus ", "pretrain ", "glue ", "all "))] == [
        line.split() for line in stages
    ]


def test_a_plan_says_what_is_there_of_each_run(experiment, traces):
    assert "4 pre-trainings, none of them begun" in lines_of(experiment, plan_experiment(experiment))
    traces.run(ORIGINAL)
    traces.run(Run("tiny", "shared", 1), "failed", 600, "x.json: no room")
    lines = lines_of(experiment, plan_experiment(experiment))
    assert "tiny-original seed 1: done" in lines and "tiny-pairwise seed 1: missing" in lines
    assert "tiny-shared seed 1: failed, step 600 of 2,400 (x.json: no room)" in lines


@pytest.mark.parametrize(
    ("choice", "words"), [("refuse", "exit code 78"), ("supersede", "set aside, and trained anew")]
)
def test_a_run_of_other_settings_is_shown_with_the_difference_and_what_will_become_of_it(
    changed, traces, choice, words
):
    traces.run(ORIGINAL, learning_rate=5e-4)
    lines = lines_of(chosen := changed({"on_settings_change": choice}), plan_experiment(chosen))
    told = lines.index(
        "tiny-original seed 1: its folder holds a run with other settings (learning_rate: 0.0005 → 0.001)"
    )
    assert f"on_settings_change: {choice}" in lines[told + 1] and words in lines[told + 1]


def test_a_plan_says_what_its_numbers_rest_on(experiment, monkeypatch):
    lines = "\n".join(lines_of(experiment, plan_experiment(experiment)))
    assert "3e+10 of a core" in lines and "2,520 optimizer steps per seed and checkpoint" in lines
    assert "measured" not in lines


@pytest.mark.parametrize(
    ("hours", "words"), [(0, "-"), (0.001, "<0.01"), (0.054, "0.054"), (6.04, "6"), (1234.5, "1,234")]
)
def test_hours_have_the_digits_of_an_estimate(hours, words):
    assert hours_in_words(hours) == words


def test_the_command_prints_the_plan_of_the_chosen_experiment(project, capsys):
    options = ["--config", "source=hub", "experiment=mine", "sweep={attention: [shared]}"]
    assert cli.main(["plan", "--scale", "laptop", *options]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Experiment mine: scale laptop") and "1 pre-trainings, none of them begun" in said


@pytest.mark.parametrize("options", [[], ["corpus={source: hub}"], ["glue={source: hub}"]])
def test_the_papers_scale_is_not_planned_on_stand_ins(project, capsys, options):
    assert cli.main(["plan", "--scale", "paper", *(["--config", *options] if options else [])]) == 78
    said = capsys.readouterr()
    assert "add source=hub" in said.err and said.err.count("\n") == 1 and not said.out


@pytest.mark.parametrize("command", ["plan", "status", "prune"])
def test_of_imported_scores_there_is_no_plan(project, capsys, command):
    assert cli.main([command, "--config", "imported=theirs"]) == 64
    assert "of imported scores nothing is run" in capsys.readouterr().err


def test_the_command_ends_with_74_after_its_plan_where_the_storage_is_too_small(project, capsys, monkeypatch):
    monkeypatch.setattr(disk, "free_space", lambda path: (10**6, project))
    assert cli.main(["plan"]) == 74
    said = capsys.readouterr()
    assert "\nall " in said.out and said.err.count("\n") == 1
    assert said.err.startswith("symbert plan: config: ") and f"still to be written on {project}" in said.err
    assert not (project / "results").exists()
