"""What the workflow needs of Snakemake where it has no public way.

Each function says what it is for. The names were read in the version READ_IN. Where an installed version lacks one,
the start ends with one line (ConfigError), before any job.
"""

from collections.abc import Callable
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import version
from typing import Any, NamedTuple

from symbert.errors import ConfigError

READ_IN = "9.27.1"


class Job(NamedTuple):
    """A job of the workflow."""

    rule: str
    wildcards: dict[str, str]


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


def is_on_cluster(workflow: Any) -> bool:
    """Whether a scheduler runs the jobs, of which there may be `--jobs` at once."""
    return _attribute(workflow, "nodes") is not None


def starts_jobs(workflow: Any) -> bool:
    """Whether this is the Snakemake that the user started, and not one inside a job."""
    return _attribute(workflow, "is_main_process")


def limit_resource(workflow: Any, name: str, amount: Callable[[], int]) -> None:
    """Let jobs that run at the same time take an amount of a resource together, unless `--resources` names another."""
    if name not in _attribute(workflow, "global_resources"):
        _attribute(workflow, "register_resource")(name, amount())


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
