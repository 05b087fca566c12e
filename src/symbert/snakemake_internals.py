"""What the workflow needs of Snakemake, and of its plugin for Slurm, where they have no public way.

Each function says what it is for. The names were read in the versions of READ_IN. Where an installed version lacks one,
the start ends with one line (ConfigError), before any job.
"""

import _thread
import logging
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import version
from typing import Any, NamedTuple

from symbert.errors import ConfigError

SNAKEMAKE, PLUGIN = "snakemake", "snakemake-executor-plugin-slurm"
READ_IN = {SNAKEMAKE: "9.27.1", PLUGIN: "2.8.0"}
ENDED = {"PREEMPTED", "NODE_FAIL"}  # a job that is requeued is PENDING at once
LONGEST_WAIT = 180  # seconds between two questions of the plugin, at most
ABSENCES = 3  # answers in a row without a job that was listed before: it is gone

MODEL = ("size", "attention")  # wildcards that name a model together

Query = Callable[[str, Any], Awaitable[tuple[dict[str, str] | None, float | None]]]


class Job(NamedTuple):
    """A job of the workflow."""

    rule: str
    wildcards: dict[str, str]

    @property
    def name(self) -> str:
        """In words: 'pretrain_model small-pairwise seed 1'."""
        model = "-".join(self.wildcards[axis] for axis in MODEL if axis in self.wildcards)
        others = [
            f"{key} {value}" if value.isdigit() else value for key, value in self.wildcards.items() if key not in MODEL
        ]
        return " ".join(filter(None, [self.rule, model, *others]))


def jobs_to_run(workflow: Any) -> list[Job]:
    """The jobs that a start is about to run. Public are only their counts by rule, as printed text."""
    jobs = _attribute(workflow, "dag.needrun_jobs")()
    return [Job(_attribute(job, "rule.name"), _attribute(job, "wildcards_dict")) for job in jobs]


def force(workflow: Any, file: str) -> None:
    """Have a file made anew, as `--forcerun` has it, which only a command line can name."""
    _attribute(workflow, "dag.forcefiles").add(file)


def share_components(workflow: Any, groups: list[str], name: str) -> None:
    """Let `--group-components name=…` hold for each of these groups, whose names a function gives.

    For a group that is a text with wildcards Snakemake does so itself, under that text.
    """
    _attribute(workflow, "parent_groupids").update(dict.fromkeys(groups, name))


def check_groups_together() -> None:
    """Let Snakemake look through all jobs once for groups that wait for themselves.

    By itself it goes, once for each two jobs of a group and by recursion, through all jobs that one of them waits for:
    minutes where a corpus has 3,000 parts, and an error where it has 900 batches.
    """
    import snakemake.dag

    for name in ("DAG._check_groups", "DAG.validate_group"):
        _attribute(snakemake.dag, name)
    snakemake.dag.DAG._check_groups = refuse_circles
    snakemake.dag.DAG.validate_group = lambda dag, group: None  # of whom the other one says the same


def refuse_circles(dag: Any) -> None:
    """WorkflowError where jobs, all of a group taken as one, wait for each other in a circle."""
    from snakemake.exceptions import WorkflowError

    group_of, dependencies = _attribute(dag, "_group"), _attribute(dag, "_dependencies")
    needed: dict[Any, set[Any]] = {}
    for job, others in dependencies.items():
        one = group_of.get(job, job)
        needed.setdefault(one, set()).update({group_of.get(other, other) for other in others} - {one})
    try:
        TopologicalSorter(needed).prepare()
    except CycleError as error:
        names = [one.groupid if one.is_group() else one.rule.name for one in error.args[1]]
        raise WorkflowError(f"groups of jobs wait for each other: {' → '.join(reversed(names))}") from None


def look_behind_ancient_files() -> None:
    """Let Snakemake see what is missing behind a job whose file is `ancient` to others.

    By itself it does not look at what follows from a job that must run, because that has to run as well. Behind an
    ancient file it need not, so where a job is forced (its file is incomplete or outdated) and that file exists,
    Snakemake runs this job alone and says that all is done.
    """
    from snakemake.dag import DAG

    whole = _attribute(DAG, "update_needrun")
    if whole.__module__ == __name__:
        return

    async def update_needrun(dag: Any, *arguments: Any, **options: Any) -> None:
        dag.bfs = _jobs_that_follow  # in this method it has no other use
        try:
            await whole(dag, *arguments, **options)
        finally:
            del dag.bfs

    _attribute(DAG, "bfs")
    DAG.update_needrun = update_needrun


def _jobs_that_follow(depending: Any, job: Any) -> set[Any]:
    """A job, and those that run when it does: not by ancient files alone."""
    following, queue = {job}, [job]
    while queue:
        for other, files in depending[queue.pop()].items():
            if other not in following and not all(file.is_ancient for file in files):
                following.add(other)
                queue.append(other)
    return following


def is_everything(workflow: Any) -> bool:
    """Whether no target was named but `all`, and nothing of it is left out."""
    chosen = _attribute(workflow, "dag_settings")
    left_out = {*_attribute(chosen, "until"), *_attribute(chosen, "omit_from")}
    return set(_attribute(chosen, "targets")) <= {"all"} and not left_out


def is_on_cluster(workflow: Any) -> bool:
    """Whether a scheduler runs the jobs, of which there may be `--jobs` at once."""
    return _attribute(workflow, "nodes") is not None


def starts_jobs(workflow: Any) -> bool:
    """Whether this is the Snakemake that the user started, and not one inside a job."""
    return _attribute(workflow, "is_main_process")


def take_terminal(workflow: Any, make: Callable[[logging.Handler], logging.Handler]) -> Any:
    """Let `make(handler)` stand in the place of the handler by which Snakemake writes to the terminal.

    None, and nothing changes, in a dry run, inside a job or a module, and where an option asks for less or more of what
    Snakemake itself says. Public is only `--logger`, which takes a plugin that is installed where Snakemake is.
    """
    settings, logger = _attribute(workflow, "output_settings"), _attribute(workflow, "logger_manager.logger")
    chosen = any(_attribute(settings, name) for name in ("dryrun", "quiet", "verbose", "printshellcmds", "debug_dag"))
    own = [handler for handler in logger.handlers if handler.name == "DefaultStreamHandler"]
    if chosen or not own or not starts_jobs(workflow) or not _attribute(workflow, "modifier.is_main_snakefile")():
        return None
    handler = make(own[0])
    logger.removeHandler(own[0])
    logger.addHandler(handler)
    return handler


def limit_resource(workflow: Any, name: str, amount: Callable[[], int]) -> None:
    """Let jobs that run at the same time take an amount of a resource together, unless `--resources` names another."""
    if name not in _attribute(workflow, "global_resources"):
        _attribute(workflow, "register_resource")(name, amount())


def drop_rate_limit(workflow: Any) -> None:
    """Let jobs begin as soon as they can, from `onstart` on.

    By itself Snakemake begins a hundred a second at most. For that each look for jobs is followed by another one a
    second later: as many a second as jobs have ended, each of which reckons anew what all jobs that could run take.
    """
    _attribute(workflow, "scheduler.job_rate_limiter")
    workflow.scheduler.job_rate_limiter = None


def heed_termination(workflow: Any) -> None:
    """Let SIGTERM end Snakemake at any moment, from `onstart` on.

    By itself Snakemake hangs where the signal comes while it notes what a job has done: the handler waits for a lock,
    which the thread that it interrupts has. Another thread can wait for it.
    """
    end = _attribute(workflow, "scheduler.exit_gracefully")
    if signal.getsignal(signal.SIGTERM) == end:
        signal.signal(signal.SIGTERM, lambda *_: _thread.start_new_thread(end, ()))


class Wait:
    """Seconds between two questions to Slurm, as an attribute of the plugin's executor: at most a third of the time for
    which Slurm remembers ended jobs, which the plugin takes to be five minutes or more."""

    def __init__(self, longest: float) -> None:
        self.longest = longest

    def __get__(self, executor: Any, owner: type | None = None) -> Any:
        return self if executor is None else min(getattr(executor, "_seconds_to_wait", self.longest), self.longest)

    def __set__(self, executor: Any, seconds: float | None) -> None:
        executor._seconds_to_wait = self.longest if seconds is None else seconds


class Queue:
    """Asks Slurm as the plugin does, and calls FAILED what ended without success; a failed job is submitted again.

    By itself the plugin forgets its jobs when the queue does not answer, and waits for ever for a job that was
    preempted or lost its node without being requeued, and for one that the queue no longer lists.
    """

    def __init__(self, query: Query) -> None:
        self.query = query
        self.absences: dict[str, int] = {}  # answers in a row without a job, of each that was ever listed

    async def __call__(self, command: str, logger: object) -> tuple[dict[str, str], float]:
        """State by job, and the seconds that the answer took; no states without an answer."""
        states, seconds = await self.query(command, logger)
        if states is None or seconds is None:
            return {}, 0.0
        self.absences = {job: count + 1 for job, count in self.absences.items()} | dict.fromkeys(states, 0)
        gone = {job: "FAILED" for job, count in self.absences.items() if count >= ABSENCES}
        return gone | {job: "FAILED" if state in ENDED else state for job, state in states.items()}, seconds


def cancel_by_name(executor: Any, active_jobs: list[Any]) -> None:
    """Cancel all jobs of this start, by the name that they have in common; a warning where Slurm does not.

    By itself the plugin cancels `active_jobs`, of which there are none while the queue is asked.
    """
    words = ["scancel", "--name", executor.run_uuid, *(["--clusters=all"] if executor._submitted_job_clusters else [])]
    try:
        subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip()
        executor.logger.warning(f"jobs may go on ({said}); cancel them: {' '.join(words)}")


def mend_plugin() -> None:
    """Let the plugin ask a Queue, often enough, and cancel all jobs; nothing where Snakemake has not loaded it."""
    plugin = sys.modules.get(PLUGIN.replace("-", "_"))
    if plugin is None:
        return
    if not isinstance(_attribute(plugin, "query_job_status", PLUGIN), Queue):
        plugin.query_job_status = Queue(plugin.query_job_status)
    _attribute(plugin, "Executor.cancel_jobs", PLUGIN)
    plugin.Executor.cancel_jobs = cancel_by_name
    memory = _attribute(plugin, "get_min_job_age", PLUGIN)() if shutil.which("scontrol") else None
    if memory is not None and memory < 3 * LONGEST_WAIT:
        _attribute(plugin, "Executor", PLUGIN).next_seconds_between_status_checks = Wait(max(memory / 3, 1))


def _attribute(owner: Any, path: str, package: str = SNAKEMAKE) -> Any:
    """An attribute by its dotted path; ConfigError where the installed version lacks it."""
    for name in path.split("."):
        if not hasattr(owner, name):
            raise ConfigError(
                f"{package} {version(package)} has no '{path}', which the workflow uses as {READ_IN[package]} has it; "
                f"install that version: pip install {package}=={READ_IN[package]}"
            )
        owner = getattr(owner, name)
    return owner
