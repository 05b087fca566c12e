"""What we change in Snakemake does as it says, and a name that is gone is a loud error."""

import re
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from symbert import snakemake_internals as internals
from symbert.errors import ConfigError
from workflow.checkout import Checkout

pytest.importorskip("snakemake.api")  # its modules can be imported in this order alone
from snakemake.dag import DAG
from snakemake.exceptions import WorkflowError


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
