"""What the workflow needs of Snakemake where it has no public way.

Each function says what it is for. The names were read in the version READ_IN. Where an installed version lacks one,
the start ends with one line (ConfigError), before any job.
"""

import _thread
import logging
import signal
from collections.abc import Callable
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import version
from typing import Any, NamedTuple

from symbert.errors import ConfigError

READ_IN = "9.27.1"

MODEL = ("size", "attention")  # wildcards that name a model together


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


def _attribute(owner: Any, path: str) -> Any:
    """An attribute by its dotted path; ConfigError where the installed version lacks it."""
    for name in path.split("."):
        if not hasattr(owner, name):
            raise ConfigError(
                f"snakemake {version('snakemake')} has no '{path}', which the workflow uses as {READ_IN} has it; "
                f"install that version: pip install snakemake=={READ_IN}"
            )
        owner = getattr(owner, name)
    return owner
