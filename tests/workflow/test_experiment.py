"""Plan, status and prune beside Snakemake itself: on what it would run, and on what a run left."""

import contextlib
import io
from collections import Counter

import pytest

from symbert import cli
from symbert.experiment.plan import STAGES, by_stage, count_jobs
from workflow.checkout import check_out, dry_run

OPTIONS = ("--configfile", "tiny.yaml")
MIXED = (  # a size more, models that were not pre-trained, sets that only MNLI answers, one's own files, annotated here
    "sweep={untrained: true, sizes: [tiny, small], curve: {sizes: []}, tasks: [rte, mnli, wnli]}",
    "glue={robustness: {noise: [], sets: [hans], files: .}}",
)
SOME_SEEDS = ("sweep={pretrain_seeds: [1, 2, 3], finetuned_pretrain_seeds: [2]}",)
ENORMOUS = "pretrain={steps: 1000000000000, save_every: 1}"


@pytest.fixture
def symbert(finished, monkeypatch, capsys):
    """A command in the finished run, or in the given copy of it: what it prints."""

    def run(*arguments: str, copy=finished) -> str:
        monkeypatch.chdir(copy.directory)
        assert cli.main([*arguments, *OPTIONS]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture(scope="module")
def plan(finished) -> str:
    """What the plan of the finished run says."""
    with contextlib.chdir(finished.directory), contextlib.redirect_stdout(io.StringIO()) as said:
        assert cli.main(["plan", *OPTIONS]) == 0
    return said.getvalue()


@pytest.mark.parametrize("options", [(), ("scale=paper", "source=hub"), MIXED, SOME_SEEDS])
def test_a_plan_has_the_jobs_that_snakemake_would_run(checkout, tmp_path, monkeypatch, options):
    if options == MIXED:
        for number in range(3):
            (tmp_path / f"{number}.jsonl").touch()
        options = (*options, f'corpus={{source: files, files: "{tmp_path}/*", parts_per_batch: 1}}', "source=hub")
    outcome = dry_run(checkout, *(("--config", *options) if options else ()))
    assert outcome.code == 0, outcome.output
    monkeypatch.chdir(checkout.directory)
    jobs, to_come = count_jobs(None, None, list(options))
    assert jobs == to_come and list(STAGES) == [stage for stage in STAGES if jobs[stage]]
    assert jobs == by_stage((Counter(outcome.jobs) - Counter(all=1)).elements(), checkout.directory)


def test_of_a_finished_experiment_nothing_is_to_come(plan):
    (row,) = [line.split("|")[1].split() for line in plan.splitlines() if line.startswith("all ")]
    assert row[:3] == ["0", "-", "-"] and row[-2:] == ["0", "B"], plan
    assert "2 of 2 pre-trainings done" in plan


def test_the_disk_that_a_run_was_planned_to_take_is_about_what_it_took(finished, plan):
    """What a state folder holds is less than the plan, which has one more checkpoint to resume from, and most of it."""
    results = finished.directory / "results/demo-embedded/pretrain"
    held = sum(path.stat().st_size for path in results.glob("*/seed-1/state/*/**/*") if path.is_file())
    (row,) = [line.split() for line in plan.splitlines() if line.startswith("pretrain ")]
    assert row[5] == "MB" and 0.7 < held / (float(row[4]) * 1e6) < 1


def test_every_score_of_a_finished_experiment_is_there(symbert):
    lines = symbert("status").splitlines()
    assert lines[0] == "Experiment demo-embedded: corpus packed; 2 of 2 pre-trainings done"
    assert [line.split()[3:] for line in lines[3:5]] == [["20", "20", "done"]] * 2
    rows = {tuple(line.split()[:4:3]): line.split()[4:] for line in lines if "/" in line and line.startswith("tiny")}
    assert rows["tiny-original", "10"] == ["yes", *["1/1"] * 8]
    assert rows["tiny-pairwise", "20"] == ["yes", *["2/2"] * 8, "16/16"]


def test_after_pruning_there_is_nothing_to_do(copy, symbert):
    """Not even when a training's outputs are gone: they are published anew, at the step that is there."""
    run = copy.directory / "results/demo-embedded/pretrain/tiny-original/seed-1"
    said = symbert("prune", "--yes", "--surplus-weights", copy=copy)
    assert said.count("/resume/step-") == 2 * 2 and "freed" in said
    assert [path.name for path in (run / "state/resume").iterdir()] == ["step-00000020"]
    assert sorted(path.name for path in (run / "state/weights").glob("*.json")) == [
        "step-00000010.json",
        "step-00000020.json",
    ]
    assert copy.tiny("--dry-run").jobs == {}
    (run / "done.json").unlink()
    outcome = copy.tiny("pretrain")
    assert outcome.code == 0 and (run / "done.json").is_file(), outcome.output
    log = copy.directory / "results/demo-embedded/logs/pretrain_model/tiny-original-seed-1.log"
    assert "/20 steps" not in log.read_text()
    assert symbert("prune", copy=copy).startswith("Experiment demo-embedded: nothing to remove")


def test_a_start_ends_with_65_before_any_job_where_there_is_no_room(root, tmp_path):
    copy = check_out(root, tmp_path / "run")
    outcome = copy.tiny("pretrain", "--config", ENORMOUS, "sweep={curve: {sizes: []}}")
    assert outcome.code == 65, outcome.output
    told = [line for line in outcome.output.splitlines() if line.startswith("symbert: ")]
    assert "symbert: experiment demo-embedded" in told[0] and "storage.checkpoints" in told[1], told
    assert not (copy.directory / "results").exists()
    assert "Traceback" not in outcome.output
    locks = list((copy.directory / ".snakemake/locks").glob("*"))
    assert not locks, "another start would be refused"
    assert copy.tiny("--dry-run", "pretrain", "--config", ENORMOUS, "sweep={curve: {sizes: []}}").code == 0
