"""What a user sees of Snakemake's jobs in a log. A chain of sleeping jobs, one of which fails."""

import logging
import os
import sys
import time
from itertools import pairwise

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from symbert import console
from symbert.console import Console
from symbert.snakemake_internals import Job
from workflow.checkout import Checkout

CHAIN = """
import sys
from symbert.console import Console
from symbert.snakemake_internals import take_terminal

CONSOLE = take_terminal(workflow, Console)

rule all:
    input: "tiny-pairwise-1.done"

rule work:
    output: "{n,\\\\d+}.done"
    log: "logs/work-{n}.log"
    shell: "echo 'work: 1,234/5,678 documents, 99.5/s, 7 s left, and more' > {log}; sleep 1.2; touch {output}"

rule pretrain_model:
    input: expand("{n}.done", n=range(6))
    output: "{size}-{attention}-{seed}.done"
    log: "logs/{size}-{attention}-{seed}.log"
    params: 900 * "long "
    shell: "echo 'symbert pretrain-model: corpus.bin: no such file; make it\\nend' > {log}; exit 66; echo {params}"

onsuccess:
    if CONSOLE:
        CONSOLE.stop()

onerror:
    if CONSOLE:
        CONSOLE.stop()
"""
LONG = "/a" * 100 + "/file: not found"  # a line that is longer than one of progress may be
FAILED = [
    "failed: pretrain_model tiny-pairwise seed 1",
    "  symbert pretrain-model: corpus.bin: no such file; make it",
    "  log: logs/tiny-pairwise-1.log",
]


def test_a_log_has_a_line_for_every_few_per_cent_and_no_long_one(tmp_path):
    (tmp_path / "Snakefile").write_text(CHAIN)
    lines = Checkout(tmp_path).snakemake("--show-failed-logs").output.splitlines()
    shown = [int(line.split()[1].rstrip("%,")) for line in lines if line.startswith("symbert: ")]
    assert len(shown) > 1 and all(later - earlier >= 4 for earlier, later in pairwise(shown))
    assert max(map(len, lines)) <= console.WIDTH and "\x1b" not in "".join(lines)
    first = lines.index(FAILED[0])
    assert lines[first : first + 3] == FAILED
    (log,) = (tmp_path / ".snakemake/log").glob("*.log")
    assert f"Complete log(s): {log}" in lines and log.read_text().count("long long") > 1 > "".join(lines).count("long")


# By single records.


class Listener(logging.Handler):
    """In the place of Snakemake's own handler."""

    def emit(self, record):
        print("snakemake says", record.getMessage(), file=sys.stderr)


@pytest.fixture
def listening(capsys):
    """A console without a terminal, and what it has written since."""
    listener = Console(Listener())
    yield listener, lambda: capsys.readouterr().err.splitlines()
    listener.close()


def tell(
    listener: Console, event: LogEvent | None = None, message: str = "", level: int = logging.INFO, **facts
) -> None:
    record = logging.LogRecord("snakemake", level, "file", 1, message, (), None)
    vars(record).update(facts, event=event)
    listener.handle(record)


def start(listener: Console, *jobs: Job) -> None:
    tell(listener, LogEvent.JOB_STARTED, jobs=[])
    for number, job in enumerate(jobs):
        tell(listener, LogEvent.JOB_INFO, jobid=number, rule_name=job.rule, wildcards=job.wildcards, log=[])


def test_a_training_that_was_resumed_is_as_far_as_its_time(listening, tmp_path, monkeypatch):
    """Its steps are three quarters of all, but it has only begun: ten seconds of forty."""
    listener, _ = listening
    training = Job("pretrain_model", {"size": "tiny", "attention": "original", "seed": "2"})
    tell(listener, LogEvent.RUN_INFO, stats={"total": 1})
    log = tmp_path / "log"
    start(listener)
    tell(listener, LogEvent.JOB_INFO, jobid=1, rule_name=training.rule, wildcards=training.wildcards, log=[str(log)])
    assert listener.look() == (0.0, ["pretrain_model tiny-original seed 2: not started yet"])
    log.write_text("pretrain tiny-original seed 2: 1,200/1,600 steps, 13.3/s, 30 s left, loss 4.3\n")
    now = time.time() + 10
    os.utime(log, (now, now))
    monkeypatch.setattr(console.time, "time", lambda: now)
    assert listener.look()[0] == pytest.approx(0.25, abs=0.01)


def test_of_a_group_the_jobs_that_said_why_are_named(listening, tmp_path):
    """Snakemake calls every job of a group failed."""
    listener, written = listening
    good, bad = Job("filter_part", {"part": "en_1"}), Job("filter_part", {"part": "en_2"})
    start(listener, good, bad)
    log = tmp_path / "bad.log"
    log.write_text("filter en_2: 12 documents, 3.0/s\nsymbert filter-part: en_2.zst: truncated; fetch it again\n")
    jobs = [
        {"jobid": number, "rule_name": "filter_part", "rule_msg": None, "log": [str(file)]}
        for number, file in enumerate([tmp_path / "none.log", log])
    ]
    tell(listener, LogEvent.GROUP_ERROR, level=logging.ERROR, job_error_info=jobs, aux_logs=["logs/slurm/7.log"])
    for job in jobs:
        tell(listener, LogEvent.JOB_ERROR, level=logging.ERROR, indent=True, **job)
    failed, message, logs = written()
    assert failed == "failed: filter_part en_2"
    assert message == "  symbert filter-part: en_2.zst: truncated; fetch it again"
    assert logs.endswith("bad.log, logs/slurm/7.log")


def test_a_job_that_ended_without_an_error_of_ours_has_its_schedulers_or_its_last_words(listening, tmp_path):
    listener, written = listening
    log = tmp_path / "log"
    log.write_text("Segmentation fault\n")
    start(listener, Job("finetune", {}), Job("finetune", {}), Job("probe", {}))
    for number, facts in enumerate(
        [
            {"rule_msg": "SLURM status is: 'TIMEOUT'", "log": [str(log)]},
            {"rule_msg": None, "log": [str(log)]},
            {"rule_msg": None, "log": []},
        ]
    ):
        tell(listener, LogEvent.JOB_ERROR, level=logging.ERROR, indent=False, jobid=number, rule_name="x", **facts)
    assert written()[1::3] == ["  SLURM status is: 'TIMEOUT'", "  Segmentation fault", "  it ended without a word"]


def test_warnings_and_errors_of_snakemake_are_shown_but_not_the_shell_command_of_a_job(listening):
    listener, written = listening
    start(listener)
    tell(listener, message="Select jobs to execute...")
    tell(listener, LogEvent.ERROR, "RuleException:\nCalledProcessError in file x: Command 'y'", logging.ERROR)
    tell(listener, LogEvent.ERROR, f"MissingOutputException in rule z:\n{LONG}", logging.ERROR)
    tell(listener, message="Job has no log", level=logging.WARNING)
    lines = written()
    assert lines == ["MissingOutputException in rule z:", LONG, "Job has no log"], "a path stays whole"


def test_what_a_job_warned_of_does_not_stay_in_its_log_alone(listening, tmp_path):
    """That most text was dropped went, with all else that a job says, to a file that nobody opens while all is well."""
    listener, written = listening
    start(listener)
    said = {
        "a": "warning: x/manifest.json: 3 of 7 documents were kept\npack: 4/4 parts, 9/s, 0 s left\n",
        "b": f"a.py:3: UserWarning: of a library\nwarning: GPU 0 is shared\nwarning: {LONG}\n",
        "c": "warning: GPU 0 is shared\nnothing else\n",
    }
    for number, (part, text) in enumerate(said.items()):
        log = tmp_path / part
        log.write_text(text)
        facts = {"rule_name": "work", "wildcards": {"part": part}, "log": [str(log), str(tmp_path / "none.log")]}
        tell(listener, LogEvent.JOB_INFO, jobid=number, **facts)
        tell(listener, LogEvent.JOB_FINISHED, job_id=number)
    assert written() == [
        "warning: x/manifest.json: 3 of 7 documents were kept (work a)",
        "warning: GPU 0 is shared (work b)",
        f"warning: {LONG} (work b)",
    ], "a path stays whole, and what several jobs say is said once"
