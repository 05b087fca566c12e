"""What comes of the chain in `story.py`, to which everything happened that happens on a cluster. `make test-slurm`."""

import json
import re
import stat
from pathlib import Path

import pytest

from campaigns.slurm import cluster
from campaigns.slurm.copies import log_of
from campaigns.slurm.jobs import ask, jobs_of
from campaigns.slurm.story import Story, tell, trainings_of
from symbert.files import sha256_of

# What tells of time, machine and process, and what is only needed to go on; of the report the tables of scores count.
OF_THE_MACHINE = {"measured", "report", "logs", "lock", "finished"} | {
    f"{name}.json" for name in ("provenance", "shards", "timing", "digests")
}
TABLES = ("table3_glue", "statistics")


@pytest.fixture(scope="session")
def story(root, tmp_path_factory) -> Story:
    """All of it, once."""
    assert (cluster.HOME / "slurmctld.pid").is_file(), "these tests need a Slurm of their own: make test-slurm"
    return tell(root, tmp_path_factory.mktemp("run"))


def fingerprints(directory: Path) -> dict[str, str]:
    """The SHA-256 of all results of a working copy, but for those of the machine."""
    results = directory / "results"
    files = [path for path in results.rglob("*") if path.is_file() and path.suffix not in (".log", ".txt")]
    files = [path for path in files if not {*path.relative_to(results).parts} & OF_THE_MACHINE]
    files += [results / f"x/report/tables/{table}.csv" for table in TABLES]
    return {str(path.relative_to(results)): sha256_of(path) for path in files}


def sessions(run: Path) -> list[dict]:
    """What a training tells of each of its starts."""
    return json.loads((run / "state/provenance.json").read_text())["sessions"]


def test_the_chain_ends_with_the_bytes_of_an_undisturbed_one(story):
    results, undisturbed = fingerprints(story.directory), fingerprints(story.undisturbed)
    assert {name for name in results.keys() | undisturbed if results.get(name) != undisturbed.get(name)} == set()
    for attention in ("original", "pairwise"):
        model = rf"encoder/tiny-{attention}-[0-9a-f]{{8}}/seed-1"
        for file in (
            rf"runs/{model}/step-300/model\.safetensors",
            rf"scores/glue-[0-9a-f]{{8}}/{model}/step-300/.*json",
        ):
            assert any(re.fullmatch(file, name) for name in results), file


def test_a_training_has_what_the_profile_asks_for(story):
    told = story.original
    assert told["Partition"] == "gpu" and told["TresPerJob"] == "gres:gpu:1"
    assert story.environment["CUDA_VISIBLE_DEVICES"] in ("0", "1")
    assert (told["MinMemoryNode"], told["NumCPUs"], told["NumNodes"]) == ("2000M", "1", "1")
    assert (told["TimeLimit"], told["Requeue"]) == ("1-00:00:00", "1")


def test_a_training_that_nears_its_limit_and_is_preempted_later_is_requeued_until_it_is_cancelled(story):
    first, second, *_ = trainings_of("original")
    assert (first["JobId"], first["Restarts"], first["JobState"]) == (story.original["JobId"], "2", "CANCELLED")
    assert (second["Restarts"], second["MinMemoryNode"]) == ("0", "4000M"), "another attempt"
    assert len(sessions(story.run("original"))) == 5


def test_a_requeued_training_waits_for_a_drained_node_while_the_controller_restarts(story):
    assert (story.drained["JobId"], story.drained["JobState"]) == (story.original["JobId"], "PENDING")
    assert story.drained["Restarts"] == "1" and "DRAINED" in story.drained["Reason"]


def test_nothing_is_submitted_while_the_queue_does_not_answer_and_what_ended_meanwhile_is_seen_later(story):
    assert story.questions >= 2
    assert story.in_silence == ["FAILED"]


def test_a_training_that_may_not_be_requeued_fails_and_goes_on_in_attempts_with_more_memory(story):
    attempts = trainings_of("pairwise")
    assert [told["JobState"] for told in attempts[:3]] == ["FAILED", "PREEMPTED", "COMPLETED"]
    assert [told["MinMemoryNode"] for told in attempts[:3]] == ["2000M", "4000M", "6000M"]
    assert {told["Restarts"] for told in attempts} == {"0"} and len(sessions(story.run("pairwise"))) == 3
    assert "tiny-pairwise seed 1: SIGUSR1: saved at step" in log_of(story.directory).read_text()
    assert f"job {attempts[0]['JobId']} is not requeued" in story.not_requeued


def test_a_killed_snakemake_is_started_again_after_a_line_that_says_how(story):
    assert "--unlock" in story.locked


def test_a_job_of_the_new_snakemake_names_that_of_the_killed_one_and_goes_on_once_it_is_cancelled(story):
    _, left, refused, *_, last = trainings_of("original")
    assert [told["JobState"] for told in (left, refused, last)] == ["CANCELLED", "FAILED", "COMPLETED"]
    said = log_of(story.directory).read_text()
    assert re.search(
        rf"symbert pretrain: .*: in use by .*, Slurm job {left['JobId']};.*\n.*/{refused['JobId']}\.log", said
    )


def test_the_token_is_in_the_environment_of_jobs_alone(story):
    """Of which Slurm has a copy for itself; on no command line, in no record of a job, script, log or file."""
    assert story.environment["HF_TOKEN"] == story.token
    assert {path.name for path in story.kept} == {"environment"}
    assert not any(mode & (stat.S_IRWXG | stat.S_IRWXO) for mode in story.kept.values())
    records = story.records + ask("scontrol", "show", "job", "-dd")
    assert "rule_pretrain" in records and story.token not in records
    assert all(any(word in line for line in story.command_lines) for word in (" pretrain ", "slurm_script"))
    assert not [line for line in story.command_lines if story.token in line]
    files = [path for folder in (story.directory, story.undisturbed) for path in folder.rglob("*") if path.is_file()]
    files += cluster.HOME.glob("*.log")
    assert len(files) > 100 and not [path for path in files if story.token.encode() in path.read_bytes()]


def test_two_parts_are_one_job_and_the_report_is_one(story):
    (parts,) = jobs_of("prepare_part")
    assert parts["StdOut"].split("/")[-2].startswith("group_parts")
    assert (parts["NumCPUs"], parts["MinMemoryNode"]) == ("2", "4000M"), "two parts at once"
    (report,) = jobs_of("rule_report")
    assert report["JobState"] == "COMPLETED"
