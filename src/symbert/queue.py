"""What Slurm's queue says of jobs, so that Snakemake's plugin for Slurm sees the end of each of them.

By itself the plugin (2.8.0) forgets its jobs when the queue does not answer, and waits for ever for a job that was
preempted or lost its node without being requeued, and for one that the queue no longer has.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

PLUGIN = "snakemake_executor_plugin_slurm"
ENDED = {"PREEMPTED", "NODE_FAIL"}  # a job that is requeued is PENDING at once
ABSENCES = 3  # answers in a row without a job that was there: it is gone

Query = Callable[[str, Any], Awaitable[tuple[dict[str, str] | None, float | None]]]


class Queue:
    """Asks as the plugin does, and calls FAILED what ended without success; a failed job is submitted again."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.absences: dict[str, int] = {}  # answers in a row without a job, of each that was ever there

    async def __call__(self, command: str, logger: object) -> tuple[dict[str, str], float]:
        """State by job, and the seconds that the answer took; no states when there is no answer."""
        states, seconds = await self.query(command, logger)
        if states is None or seconds is None:
            return {}, 0.0
        self.absences = {job: count + 1 for job, count in self.absences.items()} | dict.fromkeys(states, 0)
        gone = {job: "FAILED" for job, count in self.absences.items() if count >= ABSENCES}
        return gone | {job: "FAILED" if state in ENDED else state for job, state in states.items()}, seconds


def mend_plugin() -> None:
    """Let the plugin ask a Queue; nothing where Snakemake has not loaded it."""
    plugin = sys.modules.get(PLUGIN)
    if plugin is not None and not isinstance(plugin.query_job_status, Queue):
        plugin.query_job_status = Queue(plugin.query_job_status)
