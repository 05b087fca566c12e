"""The tiny chain on a real Slurm: what happens to its jobs, and what comes of them. `make test-slurm` runs it.

One run of Snakemake with the cluster's profile, in which one training comes near its time limit and is requeued, and
another one may not be requeued, so that its job fails; then a job of higher priority takes the GPUs of both. Beside it
a training by several processes, which is cancelled.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from pretrain.corpora import options
from slurm import cluster
from slurm.jobs import PATIENCE, Training, ask, job, jobs_of, wait_until
from slurm.published import write_mirror
from symbert.files import sha256_of
from workflow.checkout import check_out

CONFIG = {
    "experiment": "x",
    "source": "mirror",
    "corpus": {
        "parts": 2,
        "parts_per_batch": 2,
        "pack": {"sequence_length": 32, "validation_sequences": 16, "max_documents": 400},
    },
    "pretrain": {"steps": 300, "batch_size": 8, "warmup_steps": 5, "evaluate_every": 100, "save_every": 20},
    "glue": {
        "max_examples": 32,
        "max_evaluation_examples": 32,
        "max_length": 32,
        "epochs": 1,
        "robustness": {"noise": []},
    },
    "sweep": {
        "attention": ["original", "pairwise"],
        "pretrain_seeds": [1],
        "finetuned_pretrain_seeds": None,
        "probes": [],
        "finetune_seeds": [1],
        "tasks": ["rte"],
        "curve": {"finetune_seeds": [1], "steps": {"tiny": [300]}},
    },
}
TABLES = [f"results/x/report/tables/{name}.csv" for name in ("table3_glue", "scores")]
# The GPUs are only device files: our commands are told to compute on the CPU, after Slurm has said which GPU they have.
ON_CPU = """
import os, sys
if "symbert" in sys.orig_argv:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
"""
HASTE = ["--slurm-init-seconds-before-status-checks", "3", "--latency-wait", "10"]  # for a cluster of one idle node


@dataclass
class Story:
    """What Slurm said of the trainings of the chain, as it went on."""

    directory: Path
    limited: dict[str, str] = field(default_factory=dict)  # job of the training that came near its limit, before that
    environment: dict[str, str] = field(default_factory=dict)  # of that training
    joint: Training | None = None  # that of several processes

    def run(self, attention: str) -> Path:
        """The folder of a training."""
        return self.directory / f"results/x/pretrain/tiny-{attention}/seed-1"


@contextmanager
def snakemake(directory: Path, *arguments: str) -> Iterator[subprocess.Popen]:
    """The workflow on the cluster, which ends with what is done meanwhile; its log is printed when that fails."""
    command = [sys.executable, "-m", "snakemake", "--profile", "profiles/slurm", "--configfile", "own.yaml", *HASTE]
    environment = {**os.environ, "PYTHONPATH": str(directory / "site"), "HF_HUB_OFFLINE": "1"}
    log = cluster.HOME / f"{directory.name}.log"  # printed, too, when all takes too long
    with open(log, "a") as output:
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=directory,
            env=environment,
            stdout=output,
            stderr=output,
            preexec_fn=heed_interrupt,
        )
    try:
        yield process
    except BaseException:
        print(log.read_text()[-6000:])
        raise
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def heed_interrupt() -> None:
    """Undo what a shell that started the tests in the background passes on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def adapt(directory: Path, **resources) -> None:
    """Name the partitions, and change what is asked for pre-training, as a user does."""
    path = directory / "profiles/slurm/config.yaml"
    profile = yaml.safe_load(path.read_text())
    profile["set-resources"] = {"pretrain_model": resources}
    path.write_text(yaml.safe_dump(profile))
    (path.parent / "site.yaml").write_text("partition: {cpu: main, gpu: gpu}\n")


@pytest.fixture(scope="session")
def story(root, tmp_path_factory) -> Story:
    """The chain, with what happens to it on its way."""
    assert (cluster.HOME / "slurmctld.pid").is_file(), "these tests need a Slurm of their own: make test-slurm"
    mirror = write_mirror(tmp_path_factory.mktemp("mirror"))
    directory = check_out(root, tmp_path_factory.mktemp("run") / "a copy of symbért").directory
    (directory / "own.yaml").write_text(json.dumps({**CONFIG, "mirror": str(mirror)}))
    (directory / "site").mkdir()
    (directory / "site/sitecustomize.py").write_text(ON_CPU)
    adapt(directory, gpu=1)
    story = Story(directory)
    limited, bound = Training(story.run("original")), Training(story.run("pairwise"))
    with snakemake(directory, *TABLES) as process:
        hold([limited, bound], process)
        story.limited, story.environment = job(limited.job), limited.environment()
        another = copy_of(directory)
        warn_in_vain(bound)
        attempt, session = bound.next_session(), limited.next_session()
        hold([attempt], process)
        come_near_limit(limited)
        hold([session], process)
        preempt(session, attempt)
        story.joint = train_jointly(another)  # while the rest of the chain goes on
        assert process.wait(PATIENCE) == 0
    return story


def hold(trainings: list[Training], process: subprocess.Popen) -> None:
    """Stop each of them as soon as it has saved a step."""

    def are_held() -> bool:
        assert process.poll() is None, "Snakemake ended before"
        held = [training.hold() for training in trainings]  # each of them, whether or not another one is
        return all(held)

    wait_until(are_held, lambda: f"not held: {[training.folder for training in trainings if not training.process]}")


def come_near_limit(training: Training) -> None:
    """Cut its job's time, so that Slurm sends its warning (and lets it go on); then give it another session without."""
    minutes = int(job(training.job)["RunTime"].split(":")[1])
    ask("scontrol", "update", f"JobId={training.job}", f"TimeLimit={minutes + 2}")
    wait_until(lambda: job(training.job)["Restarts"] == "1", lambda: f"not requeued: {job(training.job)}")
    ask("scontrol", "update", f"JobId={training.job}", "TimeLimit=60")


def warn_in_vain(training: Training) -> None:
    """The same warning for a job that Slurm is not to requeue."""
    ask("scontrol", "update", f"JobId={training.job}", "Requeue=0")
    training.go_on()
    ask("scancel", "--signal=USR1", training.job)


def preempt(requeued: Training, bound: Training) -> None:
    """Let a job of higher priority take the GPUs of two trainings, of which Slurm is not to requeue the second."""
    ask("scontrol", "update", f"JobId={bound.job}", "Requeue=0")
    ask("sbatch", "--partition=urgent", f"--gres=gpu:{cluster.GPUS}", "--output=/dev/null", "--wrap=true")
    wait_until(lambda: job(requeued.job)["Restarts"] == "2", lambda: f"not requeued: {job(requeued.job)}")
    wait_until(lambda: job(bound.job)["JobState"] == "PREEMPTED", lambda: f"not preempted: {job(bound.job)}")


def copy_of(directory: Path) -> Path:
    """A second working copy with the same corpus, for which no trainings were begun."""
    another = directory.with_name("another copy")
    shutil.copytree(directory, another, ignore=shutil.ignore_patterns("locks", "incomplete"))
    shutil.rmtree(another / "results/x/pretrain")
    adapt(another, gpu=0, nodes=1)
    return another


def train_jointly(directory: Path) -> Training:
    """Two processes as on two nodes: warned and requeued, then cancelled by Ctrl-C in Snakemake; gives the training."""
    training = Training(directory / "results/x/pretrain/tiny-shared/seed-1")
    changes = ["sweep={attention: [shared]}", "pretrain={processes: 2, nodes: 2}"]
    with snakemake(directory, "pretrain", "--config", *changes) as process:
        hold([training], process)
        training.go_on()
        ask("scancel", "--signal=USR1", training.job)
        hold([training.next_session()], process)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) != 0
    wait_until(lambda: job(training.job)["JobState"] == "CANCELLED", lambda: str(job(training.job)))
    return training


@pytest.fixture
def undisturbed(story, tmp_path) -> Path:
    """The training that came near its limit, without a limit, outside Slurm."""
    results = story.directory / "results/x"
    words = options(results / "corpus/shards/manifest.json", results / "settings/pretrain.json", tmp_path, "original")
    environment = {**os.environ, "PYTHONPATH": str(story.directory / "src")}
    subprocess.run([sys.executable, "-m", "symbert", *words], check=True, env=environment, capture_output=True)
    return tmp_path


def fingerprints(run: Path) -> dict[str, str]:
    """What a training leaves, without what tells of time and machine."""
    files = [run / "metrics.jsonl", run / "done.json", *sorted((run / "state/weights").glob("*.safetensors"))]
    return {file.name: sha256_of(file) for file in files}


def sessions(run: Path) -> list[dict]:
    """What a training tells of each of its starts."""
    return json.loads((run / "state/provenance.json").read_text())["sessions"]


def test_the_chain_ends_in_the_table(story):
    table = (story.directory / "results/x/report/tables/table3_glue.csv").read_text()
    assert "tiny-original" in table and "tiny-pairwise" in table


def test_a_training_has_what_the_profile_asks_for(story):
    told = story.limited
    assert told["Partition"] == "gpu" and told["TresPerJob"] == "gres:gpu:1"
    assert story.environment["CUDA_VISIBLE_DEVICES"] in ("0", "1")
    assert (told["MinMemoryNode"], told["NumCPUs"], told["NumNodes"]) == ("2000M", "1", "1")
    assert (told["TimeLimit"], told["Requeue"]) == ("1-00:00:00", "1")


def test_a_training_that_nears_its_limit_and_is_preempted_later_ends_with_the_bits_of_an_undisturbed_one(
    story, undisturbed
):
    (only,) = [told for told in jobs_of("rule_pretrain_model") if "original" in told["StdOut"]]
    assert (only["JobId"], only["Restarts"]) == (story.limited["JobId"], "2")
    assert only["JobState"] == "COMPLETED" and len(sessions(story.run("original"))) == 3
    assert fingerprints(story.run("original")) == fingerprints(undisturbed)


def test_a_training_that_may_not_be_requeued_fails_and_goes_on_in_attempts_with_more_memory(story):
    attempts = [told for told in jobs_of("rule_pretrain_model") if "pairwise" in told["StdOut"]]
    assert [told["JobState"] for told in attempts] == ["FAILED", "PREEMPTED", "COMPLETED"]
    assert [told["MinMemoryNode"] for told in attempts] == ["2000M", "4000M", "6000M"]
    assert {told["Restarts"] for told in attempts} == {"0"} and len(sessions(story.run("pairwise"))) == 3
    first = attempts[0]
    said = Path(first["StdOut"]).read_text()
    assert "SIGUSR1: saved at step" in said and f"job {first['JobId']} is not requeued" in said


def test_the_parts_of_a_batch_are_one_job_and_so_are_the_tables(story):
    (parts,) = jobs_of("filter_part")
    assert parts["StdOut"].split("/")[-2] == "group_parts-0_filter_part_tokenize_part"
    assert (parts["NumCPUs"], parts["MinMemoryNode"]) == ("2", "4000M"), "two parts at once"
    (report,) = jobs_of("tabulate")
    assert report["JobState"] == "COMPLETED"


def test_two_processes_train_one_model_in_one_job_which_is_requeued_and_once_cancelled_stays_away(story):
    """As on two nodes: each has its torchrun, but both are the one that there is."""
    (only,) = [told for told in jobs_of("rule_pretrain_model") if "shared" in told["StdOut"]]
    assert (only["JobId"], only["JobState"], only["Restarts"]) == (story.joint.job, "CANCELLED", "1")
    assert sessions(story.joint.folder)[0]["processes"] == 2
    assert not (story.joint.folder / "done.json").exists()
