"""A name that is gone is a loud error; what the plugin for Slurm makes of a queue, by itself and through ours."""

import asyncio
import contextlib
import logging
import os
import re
import signal
import threading
from types import SimpleNamespace
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from symbert import snakemake_internals as internals
from symbert.errors import ConfigError
from workflow.checkout import Checkout

slurm = pytest.importorskip("snakemake_executor_plugin_slurm")
pytest.importorskip("snakemake.api")  # its modules can be imported in this order alone
from snakemake.dag import DAG  # noqa: E402
from snakemake.exceptions import WorkflowError  # noqa: E402
from snakemake.scheduling.job_scheduler import JobScheduler  # noqa: E402


@pytest.fixture
def squeue(tmp_path, monkeypatch):
    """Sets what the queue answers: states by job, or no answer."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    script = tmp_path / "squeue"

    def answer(states: dict[str, str] | None) -> None:
        lines = "exit 1" if states is None else "".join(f"echo '{job}|{state}'\n" for job, state in states.items())
        script.write_text(f"#!/bin/sh\n{lines}\n")
        script.chmod(0o755)

    return answer


@pytest.fixture
def executor(monkeypatch):
    """The plugin's executor, of which only its look at the queue is real."""
    monkeypatch.setattr(slurm, "get_min_job_age", lambda: 300)
    found = mock.MagicMock(run_uuid="run", status_rate_limiter=contextlib.nullcontext(), _preemption_warning=False)
    found._status_query_calls = found._status_query_max_seconds = found._status_query_total_seconds = 0
    found._status_query_min_seconds, found.next_seconds_between_status_checks = None, 40
    found.workflow.executor_settings = SimpleNamespace(
        init_seconds_before_status_checks=40, status_attempts=2, requeue=True, keep_successful_logs=True
    )
    found.get_status_command.return_value = "squeue"
    return found


@pytest.fixture
def mended(monkeypatch):
    """The plugin, asking our queue until the test ends."""
    monkeypatch.setattr(slurm, "query_job_status", slurm.query_job_status)
    monkeypatch.setattr(slurm, "Executor", type("Executor", (slurm.Executor,), {}))
    internals.mend_plugin()


def outcome(executor, *jobs: str) -> dict[str, str]:
    """What the plugin makes of each job: active, ended, failed; forgotten where it is none of these."""
    submitted = [SimpleNamespace(external_jobid=job, aux={"slurm_logfile": None}) for job in jobs]
    for report in (executor.report_job_success, executor.report_job_error):
        report.reset_mock()

    async def look() -> list[str]:
        return [job.external_jobid async for job in slurm.Executor.check_active_jobs(executor, submitted)]

    told = dict.fromkeys(jobs, "forgotten") | dict.fromkeys(asyncio.run(look()), "active")
    for report, name in ((executor.report_job_success, "ended"), (executor.report_job_error, "failed")):
        told |= {call.args[0].external_jobid: name for call in report.call_args_list}
    return told


STATES = {"1": "RUNNING", "2": "COMPLETED", "3": "FAILED", "4": "PREEMPTED", "5": "NODE_FAIL", "6": "PENDING"}


def test_by_itself_the_plugin_waits_for_jobs_that_ended_and_forgets_those_of_a_queue_that_does_not_answer(
    executor, squeue
):
    """Where a newer plugin fails here, `Queue` has less to do."""
    squeue(STATES)
    assert outcome(executor, *STATES)["4"] == outcome(executor, *STATES)["5"] == "active"
    squeue(None)
    assert set(outcome(executor, "1", "6").values()) == {"forgotten"}


def test_a_job_that_was_preempted_or_lost_its_node_for_good_has_failed(executor, squeue, mended):
    squeue(STATES)
    assert outcome(executor, *STATES) == dict(
        zip(STATES, ("active", "ended", "failed", "failed", "failed", "active"), strict=True)
    )


def test_a_queue_that_does_not_answer_says_nothing_of_a_job(executor, squeue, mended):
    squeue({"1": "RUNNING"})
    assert outcome(executor, "1") == {"1": "active"}
    squeue(None)
    for _ in range(2 * internals.ABSENCES):
        assert outcome(executor, "1") == {"1": "active"}
    squeue({"1": "COMPLETED"})
    assert outcome(executor, "1") == {"1": "ended"}


def test_ctrl_c_cancels_all_jobs_also_while_the_queue_is_asked(executor, squeue, tmp_path, monkeypatch):
    """It was believed that the plugin cancels its jobs: while the queue is asked it knows of none."""
    squeue({})
    cancelled = tmp_path / "cancelled"
    (tmp_path / "scancel").write_text(f'#!/bin/sh\necho "$@" >> {cancelled}\n')
    (tmp_path / "scancel").chmod(0o755)
    executor._submitted_job_clusters = set()
    slurm.Executor.cancel_jobs(executor, [])
    assert not cancelled.exists(), "a newer plugin needs no mending"
    monkeypatch.setattr(slurm, "query_job_status", slurm.query_job_status)
    monkeypatch.setattr(slurm, "Executor", type("Executor", (slurm.Executor,), {}))
    internals.mend_plugin()
    slurm.Executor.cancel_jobs(executor, [])
    assert cancelled.read_text() == "--name run\n"
    (tmp_path / "scancel").write_text("#!/bin/sh\necho 'no controller' >&2\nexit 1\n")
    slurm.Executor.cancel_jobs(executor, [])
    executor.logger.warning.assert_called_with("jobs may go on (no controller); cancel them: scancel --name run")


def test_a_job_that_the_queue_no_longer_has_fails_after_some_answers_without_it(executor, squeue, mended):
    squeue({"1": "RUNNING", "2": "PENDING"})
    assert set(outcome(executor, "1", "2").values()) == {"active"}
    squeue({"2": "RUNNING"})
    told = [outcome(executor, "1", "2")["1"] for _ in range(internals.ABSENCES)]
    assert told == ["active"] * (internals.ABSENCES - 1) + ["failed"]
    assert outcome(executor, "2") == {"2": "active"}


def test_a_job_that_comes_back_or_was_never_there_is_waited_for(executor, squeue, mended):
    squeue({"1": "RUNNING"})
    outcome(executor, "1", "9")
    for _ in range(internals.ABSENCES):
        squeue({})
        outcome(executor, "1", "9")
        squeue({"1": "RUNNING"})
        assert outcome(executor, "1", "9") == {"1": "active", "9": "active"}


@pytest.mark.parametrize(
    ("memory", "waits"), [(300, [20, 100, 100]), (60, [20, 20, 20]), (2, [1, 1, 1]), (600, [20, 180, 999])]
)
def test_slurm_is_asked_three_times_while_it_remembers_an_ended_job(monkeypatch, memory, waits):
    """By itself the plugin waits up to three minutes: jobs that ended well were submitted again."""
    monkeypatch.setattr(slurm, "get_min_job_age", lambda: memory)
    monkeypatch.setattr(internals.shutil, "which", lambda name: name)
    monkeypatch.setattr(slurm, "query_job_status", slurm.query_job_status)
    monkeypatch.setattr(slurm, "Executor", type("Executor", (slurm.Executor,), {}))
    internals.mend_plugin()
    executor = object.__new__(slurm.Executor)
    executor._next_seconds_between_status_checks = None
    told = []
    for seconds in (20, 180, 999):
        executor.next_seconds_between_status_checks = seconds
        told.append(executor.next_seconds_between_status_checks)
    assert told == waits


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"targets": {"all"}}, True),
        ({"targets": {"glue"}}, False),
        ({"until": {"finetune"}}, False),
        ({"omit_from": {"write_page"}}, False),
    ],
)
def test_a_page_that_until_leaves_out_is_not_announced(changes, expected):
    settings = SimpleNamespace(**{"targets": set(), "until": set(), "omit_from": set(), **changes})
    assert internals.is_everything(SimpleNamespace(dag_settings=settings)) is expected


class Impatient:
    """A lock for which nobody waits for ever."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __enter__(self) -> None:
        if not self.lock.acquire(timeout=5):
            raise TimeoutError("nobody lets go of the lock")

    def __exit__(self, *_) -> None:
        self.lock.release()


def test_a_signal_that_comes_while_snakemake_notes_a_job_does_not_wait_for_itself():
    before = signal.getsignal(signal.SIGTERM)
    scheduler = SimpleNamespace(_lock=Impatient(), _user_kill=None, _open_jobs=threading.Semaphore(0))
    scheduler.exit_gracefully = JobScheduler.exit_gracefully.__get__(scheduler)
    try:
        signal.signal(signal.SIGTERM, scheduler.exit_gracefully)
        internals.heed_termination(SimpleNamespace(scheduler=scheduler))
        with scheduler._lock:
            signal.raise_signal(signal.SIGTERM)
            assert scheduler._user_kill is None
        assert scheduler._open_jobs.acquire(timeout=5) and scheduler._user_kill == "graceful"
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_signal_that_somebody_else_heeds_is_left_to_them():
    before = signal.getsignal(signal.SIGTERM)
    internals.heed_termination(SimpleNamespace(scheduler=SimpleNamespace(exit_gracefully=print)))
    assert signal.getsignal(signal.SIGTERM) == before


class NumberedJob(int):
    """A job of a graph that is only numbers."""

    rule = SimpleNamespace(name="a rule")

    def is_group(self) -> bool:
        return False


class Group(frozenset):
    """Jobs that are submitted together."""

    groupid = "a group"

    def is_group(self) -> bool:
        return True


JOBS = [NumberedJob(number) for number in range(8)]
EDGES = some.sets(some.tuples(some.sampled_from(JOBS), some.sampled_from(JOBS)).filter(lambda pair: pair[0] < pair[1]))


@given(EDGES, some.lists(some.sampled_from((None, "a", "b", "c")), min_size=len(JOBS), max_size=len(JOBS)))
@example({(JOBS[0], JOBS[1]), (JOBS[1], JOBS[2])}, ["a", None, "a", *[None] * 5])
@example({(JOBS[0], JOBS[2]), (JOBS[1], JOBS[3])}, ["a", "b", "b", "a", *[None] * 4])  # Snakemake itself takes these
def test_groups_are_refused_if_and_only_if_they_can_never_all_be_run(edges, names):

    dependencies = {job: {other for other, after in edges if after == job} for job in JOBS}
    members = {name: Group(job for job in JOBS if names[job] == name) for name in names if name}
    group_of = {job: members[names[job]] for job in JOBS if names[job]}
    dag = SimpleNamespace(_group=group_of, _dependencies=dependencies)

    def is_refused(check) -> bool:
        try:
            check(dag)
        except WorkflowError:
            return True
        return False

    refused = is_refused(internals.refuse_circles)
    assert refused == bool(left_waiting(dependencies, group_of))
    assert refused or not is_refused(DAG._check_groups)


def left_waiting(dependencies, group_of) -> set:
    """The jobs that never run, where a group runs once all that its jobs wait for outside of it has run."""
    units, done = {group_of.get(job, frozenset([job])) for job in dependencies}, set()
    while ready := [unit for unit in units if all(dependencies[job] <= done | unit for job in unit)]:
        done.update(*ready)
        units.difference_update(ready)
    return units


def test_groups_are_checked_in_one_look_and_a_snakemake_that_checks_otherwise_is_an_error(monkeypatch):
    monkeypatch.setattr(DAG, "validate_group", DAG.validate_group)
    monkeypatch.setattr(DAG, "_check_groups", DAG._check_groups)
    internals.check_groups_together()
    assert DAG._check_groups is internals.refuse_circles
    monkeypatch.delattr(DAG, "_check_groups")
    with pytest.raises(
        ConfigError, match=r"has no 'DAG._check_groups', .*; install that version: pip install snakemake"
    ):
        internals.check_groups_together()


ANCIENT = """
rule all:
    input: "last"
rule last:
    input: "middle"
    output: "last"
    shell: "touch last"
rule middle:
    input: ancient("first")
    output: "middle"
    shell: "touch middle"
rule first:
    output: "first"
    shell: "touch first"
"""


@pytest.mark.parametrize("made, jobs", [((), {"middle", "last", "all"}), (("middle", "last"), set())])
def test_a_forced_job_of_an_ancient_file_is_not_all_that_runs(tmp_path, made, jobs):
    for name in ("first", *made):
        (tmp_path / name).touch()
    with_look = f"from symbert.snakemake_internals import look_behind_ancient_files as look\nlook()\nlook()\n{ANCIENT}"
    (tmp_path / "Snakefile").write_text(with_look)
    words = ["--cores", "1", "--dry-run", "--forcerun", "first", "--rerun-triggers", "mtime"]
    planned = Checkout(tmp_path).snakemake(*words)
    assert planned.code == 0, planned.output
    assert set(re.findall(r"^(?:local)?rule (\w+):", planned.output, re.M)) == {"first", *jobs}, planned.output


class Listener(logging.Handler):
    """In the place of Snakemake's own."""

    def __init__(self, snakemake: logging.Handler) -> None:
        super().__init__()
        self.snakemake = snakemake


def started(main=True, in_module=False, handler="DefaultStreamHandler", **options) -> SimpleNamespace:
    """A workflow, as far as its terminal goes."""
    logger = logging.Logger("snakemake")
    own = logging.StreamHandler()
    own.name = handler
    logger.addHandler(own)
    options = dict.fromkeys(("dryrun", "verbose", "printshellcmds", "debug_dag"), False) | {"quiet": set()} | options
    return SimpleNamespace(
        output_settings=SimpleNamespace(**options),
        logger_manager=SimpleNamespace(logger=logger),
        is_main_process=main,
        modifier=SimpleNamespace(is_main_snakefile=lambda: not in_module),
    )


@pytest.mark.parametrize(
    "otherwise",
    [
        {"dryrun": True},
        {"verbose": True},
        {"quiet": {"rules"}},
        {"main": False},  # inside a job
        {"in_module": True},
        {"handler": "of --logger"},
    ],
    ids=str,
)
def test_the_terminal_is_left_to_whoever_asked_for_something_else(otherwise):
    workflow = started(**otherwise)
    before = list(workflow.logger_manager.logger.handlers)
    assert internals.take_terminal(workflow, Listener) is None
    assert workflow.logger_manager.logger.handlers == before


def test_a_name_that_the_plugin_no_longer_has_is_an_error_of_one_line_with_the_remedy(monkeypatch):
    monkeypatch.delattr(slurm, "query_job_status")
    with pytest.raises(ConfigError, match=r"plugin-slurm .* has no 'query_job_status', .*; install that version: pip"):
        internals.mend_plugin()
