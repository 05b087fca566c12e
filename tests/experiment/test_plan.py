"""What a plan reckons and prints; `tests/workflow/test_experiment.py` compares its jobs with Snakemake's."""

import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from symbert import cli
from symbert.cost import Hours
from symbert.errors import ConfigError
from symbert.experiment import disk, plan
from symbert.experiment.plan import ExperimentPlan, count_jobs, lines_of, plan_experiment
from symbert.paths import Run
from symbert.project import read_experiment
from traces import Traces, write

ORIGINAL = Run("tiny", "original", 1)
JOBS = Counter(settings=16, corpus=21, pretrain=16, glue=42, report=22)
FLOORS = {"small": 1.9, "base": 9.0}  # hours of 200,000 steps on one H200, estimated for the fastest known kernels


def planned(experiment, jobs: Counter = JOBS, to_come: Counter = JOBS) -> ExperimentPlan:
    return plan_experiment(experiment, jobs, to_come)


def spent(experiment, *jobs: Counter) -> dict[str, tuple[Hours, Hours]]:
    """By stage: in all, and to come; without the start of jobs where none are given."""
    stages = planned(experiment, *(jobs or (Counter(), Counter()))).stages
    return {stage.name: (stage.cost.whole, stage.cost.to_come) for stage in stages}


def test_the_papers_pretraining_takes_more_than_the_floors_and_at_most_thrice_that(paper):
    floor = sum(3 * hours for hours in FLOORS.values())  # three operators of each size
    assert floor < spent(paper)["pretrain"][0].gpu < 3 * floor


def test_the_papers_fine_tuning_takes_more_than_its_floors_and_less_than_a_naive_loop(paper):
    """Of five seeds and eight tasks: base 34 minutes at least, 8 hours launch by launch; small 8 minutes at least."""
    sweeps = 3 + 3 * 17 / 5  # of the base models: five seeds at the last step, one at 17 others
    assert sweeps * 34 / 60 + 3 * 8 / 60 < spent(paper)["glue"][0].gpu < (sweeps + 3) * 8


def test_a_stage_takes_its_work_and_the_start_of_its_jobs_of_which_some_are_to_come(experiment):
    hour = experiment.config["rates"]["job_seconds"] / 3600
    hours = spent(experiment, JOBS, Counter(report=2))
    assert hours["report"] == (Hours(0.0, 22 * hour), Hours(0.0, 2 * hour))
    work, _ = spent(experiment)["corpus"]
    assert hours["corpus"] == (work + Hours(0.0, 21 * hour), work)


def test_the_size_tiny_takes_no_gpu_and_beside_a_gpu_one_core_is_busy(experiment, paper):
    assert all(whole.gpu == 0 for whole, _ in spent(experiment).values())
    assert spent(paper)["pretrain"][0].core == spent(paper)["pretrain"][0].gpu > 0


def test_what_is_done_is_not_to_come(experiment, traces):
    whole, to_come = spent(experiment)["pretrain"]
    assert whole == to_come
    traces.run(ORIGINAL)
    traces.run(Run("tiny", "shared", 1), "preempted", 1200)
    left = spent(experiment)["pretrain"][1].core
    assert left == pytest.approx(whole.core * 2.5 / 4), "two runs and a half of four"
    for run in experiment.runs():
        traces.run(run)
    assert spent(experiment)["pretrain"] == (whole, Hours())


def test_scores_that_are_there_are_not_to_come(experiment, traces):
    whole, before = spent(experiment)["glue"]
    traces.run(ORIGINAL)
    traces.scores(ORIGINAL, 2400, "rte", [1])
    one = (before.core - spent(experiment)["glue"][1].core) * 3600
    traces.kept(ORIGINAL, 2400, "rte", 2)
    assert (before.core - spent(experiment)["glue"][1].core) * 3600 == pytest.approx(2 * one) and one > 1
    assert spent(experiment)["glue"][0] == whole


def test_judging_pairs_is_planned_until_it_is_done_and_costs_less_than_fine_tuning(changed, folder):
    none, both = changed({}), changed({"sweep": {"suites": ["glue", "blimp"]}})
    more = spent(both)["glue"][0].core - spent(none)["glue"][0].core
    assert 0 < more < spent(none)["glue"][0].core / 20
    traces = Traces(both)
    traces.run(ORIGINAL)
    before = spent(both)["glue"][1].core
    for step in both.judging_steps(ORIGINAL):
        traces.judged(ORIGINAL, step)
    assert before - spent(both)["glue"][1].core == pytest.approx(more / 4), "of one of four runs"


def test_a_corpus_is_to_come_by_its_parts(experiment, traces):
    whole, before = spent(experiment)["corpus"]
    assert whole == before
    write(Path(experiment.results) / "corpus/tokens/en_meta_part_2.json", {})
    assert spent(experiment)["corpus"][1].core == pytest.approx(whole.core * 3 / 4)
    settings = write(Path(experiment.results) / "settings/filter.json", {"match": "another"})
    assert spent(experiment)["corpus"] == (whole, before), "all are filtered anew"
    settings.unlink()
    traces.corpus()
    assert spent(experiment)["corpus"][1] == Hours()


def test_only_the_hub_is_downloaded_from_and_only_once(paper, experiment):
    download = {stage.name: stage.download for stage in planned(paper).stages}
    assert download["corpus"] == pytest.approx(187e9, rel=0.01) and download["glue"] == pytest.approx(160e6, rel=0.01)
    assert {stage.download for stage in planned(experiment).stages} == {0}
    Traces(paper).corpus()
    assert planned(paper).stages[1].download == 0


def test_one_gpu_of_24_gb_finishes_its_scale_in_a_day_by_the_configured_rates(single_gpu):
    """At 6e13 FLOP/s, 36 % of an RTX 4090's 165e12: about 14 hours; at half that rate still a day."""
    hours = sum((whole for whole, _ in spent(single_gpu).values()), Hours())
    assert 10 < hours.gpu < 18 and hours.core < 20
    assert single_gpu.config["rates"]["gpu_flops"] < 0.4 * 165e12
    single_gpu.config["rates"]["gpu_flops"] /= 2
    assert sum((whole for whole, _ in spent(single_gpu).values()), Hours()).gpu < 24


@pytest.mark.usefixtures("nothing_of_ones_own")
def test_the_plateau_of_bert_small_costs_70_gpu_hours_and_fine_tunes_nothing(root, project, monkeypatch):
    """`studies/plateau-small.yaml`; docs/studies.md states the hours, at the rate that the scale single-gpu assumes."""
    monkeypatch.chdir(project)
    experiment = read_experiment(None, [root / "studies/plateau-small.yaml"], None)
    assert len(experiment.runs()) == 7 * 5 and experiment.checkpoints() == []
    (whole, _), hours = spent(experiment)["pretrain"], spent(experiment)
    assert 65 < whole.gpu < 75 and hours["glue"][0] == Hours()
    assert "70 GPU-hours" in (root / "docs/studies.md").read_text(encoding="utf-8")
    assert sum(stage.download for stage in planned(experiment).stages if stage.name == "glue") == 0
    pairs = experiment.settings["report"]["contrasts"]
    assert {*chain.from_iterable(pairs)} == {run.attention for run in experiment.runs()}


def rows_of(lines: list[str]) -> dict[str, list[str]]:
    """The table's rows by stage."""
    return {line.split()[0]: line.split() for line in lines if line.split()[:1] and "|" in line}


def test_the_papers_plan_says_jobs_hours_disk_and_download_of_each_stage(paper):
    jobs = Counter(settings=16, corpus=934, pretrain=63, glue=74, report=22)
    rows = rows_of(lines_of(paper, planned(paper, jobs, jobs - Counter(corpus=900))))
    assert list(rows) == ["stage", "settings", "corpus", "pretrain", "glue", "report", "all"]
    assert {stage: int(rows[stage][1]) for stage in jobs} == jobs and rows["all"][1] == "1,109"
    assert rows["corpus"][rows["corpus"].index("|") + 1] == "34"
    assert rows["pretrain"][2] == rows["pretrain"][3] and 50 < float(rows["pretrain"][2]) < 90
    assert rows["corpus"][-2:] == ["187", "GB"] and rows["corpus"][2] == "-", "no GPU"


def test_a_plan_says_how_many_runs_are_done(experiment, traces):
    assert "0 of 4 pre-trainings done" in lines_of(experiment, planned(experiment))
    traces.run(ORIGINAL)
    traces.run(Run("tiny", "shared", 1), "failed", 600, "x.json: no room")
    assert "1 of 4 pre-trainings done" in lines_of(experiment, planned(experiment))


@pytest.mark.parametrize(
    ("choice", "words"), [("refuse", "exit code 64"), ("supersede", "set aside, and trained anew")]
)
def test_a_run_of_other_settings_is_shown_with_the_difference_and_what_will_become_of_it(
    changed, traces, choice, words
):
    traces.run(ORIGINAL, learning_rate=5e-4)
    lines = lines_of(chosen := changed({"on_settings_change": choice}), planned(chosen))
    told = lines.index(
        "tiny-original seed 1: its folder holds a run with other settings (learning_rate: 0.0005 → 0.001)"
    )
    assert f"on_settings_change: {choice}" in lines[told + 1] and words in lines[told + 1]


@pytest.fixture
def counted(monkeypatch):
    """Spares a test the graph of Snakemake."""
    monkeypatch.setattr(plan, "count_jobs", lambda *options: (JOBS, JOBS))


def test_jobs_are_those_of_the_graph_that_snakemake_prints_and_a_dashed_one_is_done(root, monkeypatch):
    graph = """digraph snakemake_dag {
    graph[bgcolor=white, margin=0];
\t0[label = "all", color = "0.00 0.6 0.85", style="rounded"];
\t1[label = "filter_part\\npart: a", color = "0.1 0.6 0.85", style="rounded"];
\t2[label = "filter_part\\npart: b", color = "0.1 0.6 0.85", style="rounded,dashed"];
\t2 -> 1
}
"""
    asked = []

    def snakemake(command, **options):
        asked.append(command[3:])
        return subprocess.CompletedProcess(command, 0, graph, "Building DAG of jobs...")

    monkeypatch.setattr(plan.subprocess, "run", snakemake)
    assert count_jobs("demo", [Path("a.yaml")], ["source=hub"]) == ({"corpus": 2}, {"corpus": 1})
    count_jobs("demo", None, ["scale=paper"])
    workflow = ["--snakefile", str(root / "Snakefile")]
    assert asked == [
        [*workflow, "--dag", "--configfile", "a.yaml", "--config", "source=hub", "scale=demo"],
        [*workflow, "--dag", "--config", "scale=demo"],
    ]


def test_what_a_workflow_refuses_at_its_start_is_said_as_it_stands_and_is_no_bug(folder):
    with pytest.raises(ConfigError, match=r"^config: .*did you mean 'source'"):
        count_jobs(None, None, ["sorce=hub"])


@pytest.mark.usefixtures("counted")
def test_the_command_prints_the_plan_of_the_chosen_experiment(project, capsys):
    options = ["--config", "source=hub", "experiment=mine", "sweep={attention: [shared]}"]
    assert cli.main(["plan", "--scale", "laptop", *options]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Experiment mine: scale laptop") and "0 of 1 pre-trainings done" in said


@pytest.mark.parametrize("options", [[], ["corpus={source: hub}"], ["glue={source: hub}"]])
def test_the_papers_scale_is_not_planned_on_stand_ins(project, capsys, options):
    assert cli.main(["plan", "--scale", "paper", *(["--config", *options] if options else [])]) == 64
    said = capsys.readouterr()
    assert "add source=hub" in said.err and said.err.count("\n") == 1 and not said.out


@pytest.mark.parametrize("command", ["plan", "status", "prune"])
def test_of_imported_scores_there_is_no_plan(project, capsys, command):
    assert cli.main([command, "--config", "imported=theirs"]) == 64
    assert "of imported scores nothing is run" in capsys.readouterr().err


@pytest.mark.usefixtures("counted")
def test_the_command_ends_with_74_after_its_plan_where_the_storage_is_too_small(project, capsys, monkeypatch):
    monkeypatch.setattr(disk, "free_space", lambda path: (10**6, project))
    assert cli.main(["plan"]) == 65
    said = capsys.readouterr()
    assert "\nall " in said.out and said.err.count("\n") == 1
    assert said.err.startswith("symbert plan: config: ") and f"still to be written on {project}" in said.err
    assert not (project / "results").exists()


def test_what_is_planned_is_known_without_torch():
    """Importing it takes seconds, and every start of Snakemake would."""
    modules = "announcement, plan, status, prune"
    program = f"import sys; from symbert.experiment import {modules}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
