"""What a user sees of Snakemake's jobs: the lines of single events, and real runs with and without a terminal."""

import logging
import re
import sys
import time
from pathlib import Path

import pytest
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.tests import MockOutputSettings

from snakemake_logger_plugin_symbert import LogHandler
from symbert import cli
from symbert.console import Progress
from workflow.checkout import Checkout


class Run:
    """Events of a run that are told to the plugin, and what it has written since."""

    def __init__(self, capsys: pytest.CaptureFixture, folder: Path) -> None:
        settings, options = MockOutputSettings(), ("printshellcmds", "verbose", "debug_dag", "dryrun")
        vars(settings).update({**dict.fromkeys(options, False), "quiet": set()})
        self.handler, self.capsys, self.folder = LogHandler(settings, None), capsys, folder

    def tell(self, event: LogEvent | None, message: str = "", level: int = logging.INFO, **facts) -> list[str]:
        record = logging.LogRecord("snakemake", level, "file", 1, message, (), None)
        vars(record).update(facts, event=event)
        self.handler.handle(record)
        return self.capsys.readouterr().err.splitlines()

    def start(self, number: int, rule: str = "score", text: str | None = None, **wildcards: str) -> str:
        """Begin a job whose log has this text; gives the log."""
        log = self.folder / f"{number}.log"
        self.tell(LogEvent.JOB_INFO, jobid=number, rule_name=rule, wildcards=wildcards, log=[str(log)])
        if text is not None:
            log.write_text(text)
        return str(log)

    def fail(self, number: int, log: str, message: str | None = None, **facts) -> list[str]:
        facts = {"rule_name": "x", "rule_msg": message, "log": [log], "indent": False} | facts
        return self.tell(LogEvent.JOB_ERROR, level=logging.ERROR, jobid=number, **facts)


@pytest.fixture
def run(capsys, tmp_path):
    run = Run(capsys, tmp_path)
    stats = {"prepare_part": 2, "pretrain": 1, "total": 3}
    assert run.tell(LogEvent.RUN_INFO, stats=stats) == ["3 jobs: prepare_part 2, pretrain 1"]
    yield run
    run.handler.close()


def test_of_a_running_job_the_last_line_of_progress_is_shown(run, tmp_path):
    """Of `symbert.console`; a job whose log is older than its start waits."""
    with open(tmp_path / "progress", "w") as sys.stderr:
        Progress("pretrain tiny-pairwise seed 1", 400, "steps", interval=0).update(100, "loss 4.1")
    sys.stderr = sys.__stderr__
    run.start(1, "prepare_part", "", part="en_1")
    run.start(2, "pretrain", (tmp_path / "progress").read_text(), size="tiny")
    run.start(3, "prepare_part", part="en_2")
    run.handler.running = {number: (*job[:2], time.time() - 100) for number, job in run.handler.running.items()}
    run.tell(LogEvent.JOB_FINISHED, job_id=1)
    summary, place = run.handler.look()
    assert summary.startswith("1 of 3 jobs in 0:00:0") and summary.endswith(", 1 run")
    assert re.fullmatch(r"pretrain tiny: 100/400 steps, .*/s, .* left, loss 4\.1", place)
    assert run.tell(LogEvent.PROGRESS, done=1, total=9) == []
    assert run.handler.look()[0].startswith("1 of 9 jobs"), "a checkpoint adds jobs"


def test_a_failed_job_is_the_line_that_matters(run):
    """Of a group, the jobs that said why are named."""
    log = run.start(1, text="filter: 9 documents, 3.0/s\nsymbert prepare-part: en_1: truncated; fetch it again\nend\n")
    lines = ["failed: score", "  symbert prepare-part: en_1: truncated; fetch it again", f"  log: {log}"]
    assert run.fail(1, log) == lines
    assert run.fail(2, run.start(2, text="?\n"), "SLURM status is: 'TIMEOUT'")[1] == "  SLURM status is: 'TIMEOUT'"
    assert run.fail(3, run.start(3, text="warning: a\nKilled\n"))[1] == "  Killed"
    good, bad = run.start(4, text="well\n"), run.start(5, text="symbert prepare-part: y: z\n", part="en_2")
    lines = run.tell(LogEvent.GROUP_ERROR, level=logging.ERROR, groupid="parts", aux_logs=["slurm.log"])
    assert lines == ["failed: group parts", "  log: slurm.log"]
    assert run.fail(4, good, indent=True) == []
    assert run.fail(5, bad, indent=True)[0] == "failed: score en_2"


def test_a_job_that_was_stopped_has_not_failed(run):
    """By Ctrl-C or a time limit; what the commands say then is the end of a line of theirs."""
    for number, text in enumerate(
        (
            "symbert score: interrupted; the same command resumes\n",
            "symbert pretrain: tiny-pairwise seed 1: SIGINT: saved at step 40; run the same command to go on\n",
        )
    ):
        assert run.fail(number, run.start(number, text=text))[0] == "stopped: score"
    lost = "symbert pretrain: another process of this run ended; see why, and run the same command again\n"
    assert run.fail(9, run.start(9, text=lost))[0] == "failed: score"
    written = Path(cli.__file__).read_text() + Path(cli.__file__).with_name("pretrain").joinpath("train.py").read_text()
    assert all(words in written for words in ("the same command resumes", "the same command to go on"))


def test_warnings_of_jobs_and_of_snakemake_are_shown_once_and_long_ones_whole(run):
    long = "warning: " + 30 * "/a/path"
    run.start(1, text=f"{long}\nwarning: GPU 0 is shared\nx: UserWarning: y\n")
    run.start(2, text="warning: GPU 0 is shared\n")
    assert run.tell(LogEvent.JOB_FINISHED, job_id=1) == [f"{long} (score)", "warning: GPU 0 is shared (score)"]
    assert run.tell(LogEvent.JOB_FINISHED, job_id=2) == []
    run.start(3)
    assert run.tell(None, "a message") == []
    assert run.tell(None, "no space", logging.WARNING) == ["no space"]
    command = "RuleException:\nCalledProcessError in file x: Command 'y'"
    assert run.tell(LogEvent.ERROR, command, logging.ERROR) == []


# Real runs: a chain of sleeping jobs, the last of which fails.

CHAIN = """
rule all:
    input: "tiny-1.done"

rule work:
    output: "{n,\\\\d+}.done"
    log: "logs/work-{n}.log"
    shell: "echo 'work: 1,234/5,678 documents, 99.5/s, 7 s left' > {log}; sleep 1.2; touch {output}"

rule pretrain:
    input: expand("{n}.done", n=range(4))
    output: "{size}-{seed}.done"
    log: "logs/{size}-{seed}.log"
    shell: "echo 'symbert pretrain: corpus.bin: no such file; make it\\nend' > {log}; exit 66"
"""


def test_without_a_terminal_a_run_has_plain_lines_and_snakemakes_log_the_rest(tmp_path):
    (tmp_path / "Snakefile").write_text(CHAIN)
    dry = ("--logger", "symbert", "--dry-run", "--quiet", "rules")
    outcome, planned = Checkout(tmp_path).commands(("--logger", "symbert", "--show-failed-logs"), dry)
    told = outcome.output.partition("failed: pretrain tiny 1\n")[2].splitlines()[:2]
    assert told == ["  symbert pretrain: corpus.bin: no such file; make it", "  log: logs/tiny-1.log"]
    assert outcome.code == 1 and "\x1b" not in outcome.output
    assert "6 jobs: " in outcome.output and "rule work:" not in outcome.output and "rule work:" in outcome.log
    assert planned.code == 0 and "rule work:" not in planned.output and "dry-run" in planned.output
