"""`executor: symbert-slurm`: Snakemake's Slurm plugin, with repairs of how it follows and cancels its jobs.

Options and resources are the plugin's; an option's name begins with `symbert-slurm-` in place of `slurm-`. Each repair
names its report in docs/upstream/. With another version than REPAIRED they are left out, and a line says so.
"""

import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import suppress
from importlib.metadata import version

import snakemake_executor_plugin_slurm as plugin
from snakemake_executor_plugin_slurm import ExecutorSettings, common_settings  # noqa: F401, Snakemake reads them here
from snakemake_executor_plugin_slurm.job_status_query import query_job_status_sacct, query_job_status_squeue
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface

REPAIRED = "2.8.0"
FAILED = {"BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "OUT_OF_MEMORY", "TIMEOUT"}
AWAY = {"NODE_FAIL", "PREEMPTED", "LOST"}  # ended, unless Slurm requeues the job; LOST: Slurm does not list it
HELD = re.compile(  # a state, or the reason why a job is pending, that lasts until somebody acts
    "[Hh]eld|JobHold|_HOLD|LAUNCH_FAILED|SPECIAL_EXIT|REVOKED|STOPPED|Partition(TimeLimit|NodeLimit|Down|Inactive)|"
    "PerJob|BadConstraints|(Never|Not)Satisfied|Invalid|NotAllowed|ReservationDeleted"
)
LOOKS = 3  # answers in a row in which a job is away: it has failed
LONGEST_WAIT = 180  # seconds between two looks, at most


class RepairedExecutor(plugin.Executor):
    def __init__(self, workflow, logger):
        self.away: dict[str, int] = {}  # answers in a row in which a job was away, for each job that was ever listed
        self.held: dict[str, str] = {}  # why a job is held, as it was said last
        self.unanswered = 0  # looks in a row
        # slurm-interval.md: look three times while Slurm remembers an ended job (MinJobAge).
        self.longest_wait = min(LONGEST_WAIT, max(1, (plugin.get_min_job_age() or 3 * LONGEST_WAIT) / 3))
        super().__init__(workflow, logger)  # starts the thread that calls check_active_jobs

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]) -> AsyncIterator[SubmittedJobInfo]:
        """Report jobs that ended and yield the others; a failed job is submitted again by Snakemake's `retries`."""
        query = query_job_status_sacct if self.get_status_command() == "sacct" else query_job_status_squeue
        settings, states, reasons = self.workflow.executor_settings, {}, {}
        first = settings.init_seconds_before_status_checks
        wait = self.next_seconds_between_status_checks + 10 if active_jobs else first
        if active_jobs:
            async with self.status_rate_limiter:
                states, _ = await plugin.query_job_status(query(self.run_uuid), self.logger)
                self._note_silence(states is None, query(self.run_uuid))
                if {"PENDING", *AWAY} & {*(states or {}).values()}:  # slurm-held.md, slurm-preempted.md
                    words = f"squeue --noheader --states=PENDING --format=%i|%r --name {self.run_uuid}"
                    reasons = (await plugin.query_job_status(words, self.logger))[0] or {}
        for job in active_jobs:
            if states is None:  # slurm-silence.md: no answer says nothing about a job
                yield job
                continue
            name, logfile = job.external_jobid, job.aux["slurm_logfile"]
            keys = [key for key in plugin._status_lookup_ids(name) if key in states]
            state = states[keys[0]].partition(" ")[0] if keys else "LOST"  # sacct: CANCELLED by 1000
            if state in AWAY and any(key in reasons for key in keys):  # sacct shows it as it ended for a while
                state = "PENDING"
            if keys or name in self.away:  # slurm-preempted.md, slurm-lost.md
                self.away[name] = self.away.get(name, 0) + 1 if state in AWAY else 0
            held = next(filter(HELD.search, [state, *(reasons.get(key, "") for key in keys)]), "")
            if held and held != self.held.get(name):
                words = f"scontrol show job {name}; then scontrol release {name} if it is held, or scancel {name}"
                self.logger.warning(
                    f"Slurm job {name} waits until somebody acts ({held}): {words}, which submits it again"
                )
            self.held[name] = held
            if state == "COMPLETED":
                self.report_job_success(job)
                if not settings.keep_successful_logs:
                    with suppress(OSError):
                        logfile.unlink()
            elif state in FAILED or self.away.get(name, 0) >= LOOKS:
                self.report_job_error(job, msg=f"Slurm job {name} is {state}. ", aux_logs=[str(logfile)])
            else:
                yield job
                if not self.away.get(name):
                    continue
            wait = first  # something happens: look again soon
        self.next_seconds_between_status_checks = min(wait, self.longest_wait)

    def _note_silence(self, is_silent: bool, question: str) -> None:
        """Say once, while Slurm does not answer, what it does not answer; its jobs are waited for."""
        self.unanswered = self.unanswered + 1 if is_silent else 0
        if self.unanswered == LOOKS:
            self.logger.warning(
                f"Slurm has not answered {LOOKS} times, and jobs are waited for until it does; see why: {question}"
                + (" (without accounting: --symbert-slurm-status-command squeue)" if "sacct" in question else "")
            )

    def run_job(self, job: JobExecutorInterface) -> None:
        """Submit a job whose GPUs are counted by node with their type: the plugin alone adds `--gpus=TYPE:0`."""
        resources = job.resources
        if resources.get("gpu_model") and (count := re.fullmatch(r"gpu:(\d+)", str(resources.get("gres")))):
            resources.gres, resources.gpu_model = f"gpu:{resources.gpu_model}:{count[1]}", None
        super().run_job(job)

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        """Submit nothing more, and cancel all jobs of this start, by the name that they share (slurm-cancel.md)."""
        self._job_submission_executor.shutdown(cancel_futures=True)
        words = ["scancel", "--name", self.run_uuid, *(["--clusters=all"] if self._submitted_job_clusters else [])]
        try:
            subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            reason = (getattr(error, "stderr", None) or str(error)).strip()
            self.logger.warning(f"jobs may go on ({reason}); cancel them: {' '.join(words)}")


class UnrepairedExecutor(plugin.Executor):
    def __init__(self, workflow, logger):
        logger.warning(f"Slurm plugin: another version than {REPAIRED}, so without repairs (docs/cluster.md)")
        super().__init__(workflow, logger)


Executor = RepairedExecutor if version("snakemake-executor-plugin-slurm") == REPAIRED else UnrepairedExecutor
