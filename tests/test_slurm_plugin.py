"""What the Slurm plugin makes of a queue, of an ended job and of Ctrl-C: by itself, and as our repairs have it.

Where a newer plugin passes as ours does, its repair in `snakemake_executor_plugin_symbert_slurm` can go.
"""

import asyncio
import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest import mock

import pytest
import snakemake_executor_plugin_slurm as plugin
import snakemake_executor_plugin_slurm_jobstep as jobstep

import snakemake_executor_plugin_symbert_slurm as repaired

EXECUTORS = {"by itself": plugin.Executor, "repaired": repaired.RepairedExecutor}
STATES = {"1": "RUNNING", "2": "COMPLETED", "3": "FAILED", "4": "PREEMPTED", "5": "NODE_FAIL", "6": "PENDING"}


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Puts a command of Slurm in the place of another one, as a shell script."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def put(name: str, script: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    put("scontrol", "echo 'MinJobAge = 300 sec'")
    return put


@pytest.fixture
def squeue(command):
    """Sets what the queue answers: states by job, or no answer."""

    def answer(states: dict[str, str] | None) -> None:
        lines = [f"echo '{job}|{state}'" for job, state in (states or {}).items()]
        pending = [f"echo '{job}|Priority'" for job, state in (states or {}).items() if state == "PENDING"]
        of_pending = 'case "$*" in *--states=PENDING*)\n' + "\n".join([*pending, "exit 0;; esac"])
        command("squeue", "exit 1" if states is None else "\n".join([of_pending, *lines]))

    return answer


def executor(name: str = "repaired", **settings):
    """An executor that was never started: what it reports is noted, and it asks Slurm as a started one does."""
    usual = {"status_command": "squeue", "keep_successful_logs": True, "requeue": True, "status_attempts": 2}
    settings = SimpleNamespace(init_seconds_before_status_checks=20, **usual | settings)
    workflow = SimpleNamespace(executor_settings=settings)
    with mock.patch.object(plugin.Executor, "__init__", lambda *_: None):
        made = EXECUTORS[name](workflow, mock.MagicMock())
    made.workflow, made.logger, made.run_uuid, made._preemption_warning = workflow, mock.MagicMock(), "run", False
    made._status_query_calls = made._status_query_failures = made._status_query_max_seconds = 0
    made._status_query_total_seconds, made._status_query_min_seconds, made._status_query_cycle_rows = 0, None, []
    made._next_seconds_between_status_checks, made.status_rate_limiter = 20, contextlib.nullcontext()
    made._submitted_job_clusters, made._failed_nodes = set(), set()
    made._job_submission_executor = ThreadPoolExecutor(1)
    made.report_job_success, made.report_job_error = mock.MagicMock(), mock.MagicMock()
    return made


def looked(made, *jobs: str) -> dict[str, str]:
    """What a look makes of each job: active, ended, failed; forgotten where it is none of these."""
    submitted = [SimpleNamespace(external_jobid=job, aux={"slurm_logfile": "/nowhere"}) for job in jobs]
    reports = {"ended": made.report_job_success, "failed": made.report_job_error}
    for report in reports.values():
        report.reset_mock()

    async def look() -> list[str]:
        return [job.external_jobid async for job in made.check_active_jobs(submitted)]

    told = dict.fromkeys(jobs, "forgotten") | dict.fromkeys(asyncio.run(look()), "active")
    return told | {call.args[0].external_jobid: name for name, report in reports.items() for call in report.mock_calls}


def test_by_itself_the_plugin_forgets_jobs_in_silence_and_waits_for_those_that_are_gone(squeue):
    made = executor("by itself")
    squeue(STATES)
    told = [looked(made, *STATES) for _ in range(2 * repaired.LOOKS)][-1]
    assert told["4"] == told["5"] == "active"
    squeue({})
    assert [looked(made, "1") for _ in range(2 * repaired.LOOKS)][-1] == {"1": "active"}
    squeue(None)
    assert looked(made, "1", "6") == {"1": "forgotten", "6": "forgotten"}


def test_a_job_that_was_preempted_or_lost_its_node_fails_unless_it_is_requeued(squeue):
    made = executor()
    squeue(STATES)
    expected = dict(zip(STATES, ("active", "ended", "failed", "active", "active", "active"), strict=True))
    assert looked(made, *STATES) == looked(made, *STATES) == expected
    squeue(STATES | {"5": "PENDING"})
    assert looked(made, *STATES) == expected | {"4": "failed"}
    assert "4 is PREEMPTED" in str(made.report_job_error.mock_calls[-1].kwargs["msg"])
    squeue({"5": "RUNNING"})
    assert looked(made, "5") == {"5": "active"}


def test_a_job_that_sacct_shows_as_it_ended_is_waited_for_while_the_queue_has_it_again(command):
    """Which lasts for half a minute and more, until the requeued job may begin again."""
    command("sacct", "echo '4|PREEMPTED'; echo '5|NODE_FAIL'; echo '6|NODE_FAIL'")
    command("squeue", "echo '4|BeginTime'; echo '5|BeginTime'")
    made = executor(status_command="sacct")
    told = [looked(made, "4", "5", "6") for _ in range(repaired.LOOKS)][-1]
    assert told == {"4": "active", "5": "active", "6": "failed"}


def test_a_queue_that_does_not_answer_says_nothing_of_a_job(squeue):
    made = executor()
    for states in ({"1": "RUNNING"}, *[None] * 2 * repaired.LOOKS):
        squeue(states)
        assert looked(made, "1") == {"1": "active"}
    (line,) = [call.args[0] for call in made.logger.warning.mock_calls]
    assert "see why: squeue" in line, "said once, not at the first look"


def test_a_job_that_the_queue_no_longer_lists_fails_after_some_answers_without_it(squeue):
    """One that comes back, or was never listed, is waited for."""
    made = executor()
    for _ in range(2 * repaired.LOOKS):
        squeue({"1": "RUNNING"})
        assert looked(made, "1", "9") == {"1": "active", "9": "active"}
        squeue({})
        assert looked(made, "1", "9") == {"1": "active", "9": "active"}
    squeue({"1": "RUNNING", "2": "PENDING"})
    assert looked(made, "1", "2") == {"1": "active", "2": "active"}
    squeue({"2": "RUNNING"})
    told = [looked(made, "1", "2") for _ in range(repaired.LOOKS)]
    assert [one["1"] for one in told] == ["active"] * (repaired.LOOKS - 1) + ["failed"]
    assert {one["2"] for one in told} == {"active"}


@pytest.mark.parametrize(
    "state", ["REQUEUE_HOLD", "SPECIAL_EXIT", "LAUNCH_FAILED", "RESV_DEL_HOLD", "REVOKED", "STOPPED"]
)
def test_a_job_that_slurm_holds_is_waited_for_with_one_line_each_time_it_is_held(squeue, state):
    made, told = executor(), []
    for states in ("RUNNING", state, state, state, "PENDING", state):
        squeue({"7": states})
        assert looked(made, "7") == {"7": "active"}
        told.append(made.logger.warning.call_count)
    assert told == [0, 1, 1, 1, 1, 2]
    line = made.logger.warning.call_args.args[0]
    assert state in line and "scontrol release 7" in line and "\n" not in line


HOLDING = {  # of jobs that are PENDING: whether a reason lasts until somebody acts
    **dict.fromkeys(("Resources", "Priority", "QOSMaxGRESPerUser", "BeginTime", "ReqNodeNotAvail", "None"), False),
    **dict.fromkeys(("AssocGrpNodeLimit", "QOSUsageThreshold", "QOSTimeLimit"), False),  # until others' jobs end
    **dict.fromkeys(
        ("job requeued in held state", "launch failed requeued held", "JobHeldAdmin", "JobHoldMaxRequeue"), True
    ),
    **dict.fromkeys(("PartitionTimeLimit", "QOSMaxWallDurationPerJobLimit", "DependencyNeverSatisfied"), True),
    **dict.fromkeys(
        ("PartitionDown", "PartitionInactive", "PartitionNodeLimit", "QOSMaxGRESPerJob", "QOSMinCpuNotSatisfied"), True
    ),
}


def test_a_pending_job_is_held_by_its_reason(command):
    """As Slurm 22.05 shows a job after `scontrol requeuehold`: its state is PENDING."""
    reasons = "; ".join(f"echo '{job}|{reason}'" for job, reason in enumerate(HOLDING))
    states = "; ".join(f"echo '{job}|PENDING'" for job in range(len(HOLDING)))
    command("squeue", f'case "$*" in *%r*) {reasons};; *) {states};; esac')
    made, jobs = executor(), [str(job) for job in range(len(HOLDING))]
    assert {*looked(made, *jobs).values()} == {"active"}
    lines = " ".join(call.args[0] for call in made.logger.warning.mock_calls)
    assert {reason: f"({reason})" in lines for reason in HOLDING} == HOLDING


def test_sacct_knows_jobs_of_an_array_and_names_who_cancelled_one(command):
    command("sacct", "echo '7|RUNNING'; echo '8|CANCELLED by 1000'")
    assert looked(executor(status_command="sacct"), "7_2", "8") == {"7_2": "active", "8": "failed"}


@pytest.mark.parametrize(("memory", "longest"), [(300, 100), (60, 20), (None, 180)])
def test_slurm_is_asked_three_times_while_it_remembers_an_ended_job(squeue, command, memory, longest):
    command("scontrol", f"echo 'MinJobAge = {memory} sec'" if memory else "exit 1")
    squeue({"1": "RUNNING"})
    made, waits = executor(), []
    for _ in range(20):
        looked(made, "1")
        waits.append(made.next_seconds_between_status_checks)
    assert waits == sorted(waits) and waits[0] == min(30, longest) and waits[-1] == longest
    squeue({"1": "PREEMPTED"})
    looked(made, "1")
    assert made.next_seconds_between_status_checks == min(20, longest)


@pytest.mark.parametrize(("name", "expected"), [("by itself", (2, "")), ("repaired", (1, "--name run\n"))])
def test_ctrl_c_cancels_all_jobs_and_submits_no_other(command, tmp_path, name, expected):
    """While one job is being submitted and one waits for that: submissions, and the words of `scancel`."""
    log, submissions, begun, go_on = tmp_path / "cancelled", [], threading.Event(), threading.Event()
    command("scancel", f'echo "$@" >> {log}')

    def submit() -> None:
        begun.set()
        go_on.wait(10)
        submissions.append("sbatch")

    made = executor(name)
    for _ in range(2):
        made._job_submission_executor.submit(submit)
    begun.wait(10)
    threading.Timer(0.2, go_on.set).start()
    made.cancel_jobs([])
    said = log.read_text() if log.exists() else ""
    made._job_submission_executor.shutdown()
    assert (len(submissions), said) == expected


def test_a_site_that_has_slurms_configuration_in_a_variable_alone_runs_its_jobs(command, tmp_path, monkeypatch):
    """Of the jobstep plugin as constraints.txt pins it: 0.6.1 starts srun without the variable."""
    monkeypatch.setenv("SLURM_CONF", "/site/slurm.conf")
    command("srun", f'echo "$SLURM_CONF" > {tmp_path}/told')
    made, job = mock.MagicMock(job_array_task=False, gpu_job=None), mock.MagicMock(resources={}, threads=1)
    made.workflow.executor_settings.pass_command_as_script, made.format_job_exec.return_value = False, "true"
    jobstep.Executor.run_job(made, job)
    assert made.report_job_success.called and (tmp_path / "told").read_text() == "/site/slurm.conf\n"


def test_another_version_of_the_plugin_is_left_as_it_is_with_a_line_that_says_so(monkeypatch):
    assert repaired.Executor is repaired.RepairedExecutor
    logger = mock.MagicMock()
    with mock.patch.object(plugin.Executor, "__init__", lambda *_: None):
        repaired.UnrepairedExecutor(None, logger)
    assert "another version than 2.8.0" in logger.warning.call_args.args[0]
    assert "check_active_jobs" not in vars(repaired.UnrepairedExecutor)
