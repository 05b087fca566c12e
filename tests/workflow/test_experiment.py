"""Plan, status and prune of what a run of Snakemake left."""

import pytest

from symbert import cli

OPTIONS = ("--configfile", "tiny.yaml")


@pytest.fixture
def symbert(monkeypatch, capsys):
    """Runs a command in a checkout: what it prints."""

    def run(checkout, *arguments: str) -> str:
        monkeypatch.chdir(checkout.directory)
        assert cli.main([*arguments]) == 0
        return capsys.readouterr().out

    return run


def test_of_a_finished_experiment_nothing_is_to_come_and_all_is_there(finished, symbert):
    plan = symbert(finished, "plan", *OPTIONS)
    (row,) = [line.split() for line in plan.splitlines() if line.startswith("all ")]
    assert row[1] == "0" and row[4:] == ["-", "-", "0", "B", "0", "B"], plan
    lines = symbert(finished, "status", "demo-embedded").splitlines()
    assert lines[0] == "Experiment demo-embedded: 2 of 2 pre-trainings done; results/demo-embedded/report/report.html"
    assert sum(line.endswith(": done") for line in lines) == 2
    rows = [line.split()[4:] for line in lines if line.startswith("tiny-") and not line.endswith("done")]
    assert sorted(rows) == [["yes", "yes", "."]] * 2 + [["yes", "yes", "yes"]] * 2, lines
    assert symbert(finished, "prune") == "nothing to remove\n"


def test_after_pruning_there_is_nothing_to_do_and_a_run_may_be_trained_again(copy, symbert):
    for lock in copy.directory.glob("results/runs/*/*/*/lock"):
        lock.unlink()  # the number of its process may be another one's by now
    said = symbert(copy, "prune", "--yes", "--surplus-weights")
    assert said.count("state/weights/step-") == 2 * 2 and "freed" in said, "steps 5 and 15"
    (weights,) = copy.directory.glob("results/runs/encoder/tiny-original-*/seed-1/step-20/model.safetensors")
    before = weights.read_bytes()
    weights.unlink()
    nothing, again = copy.tinies(["--dry-run"], [str(weights.relative_to(copy.directory))])
    assert nothing.jobs == {} and again.code == 0 and weights.read_bytes() == before, again.output
