"""Which tasks and columns a configuration asks for, and that jobs need no more packages than they say."""

import subprocess
import sys

import pytest
from msgspec import to_builtins

from symbert.configuration import merge, resolve
from symbert.errors import ConfigError, UsageError
from symbert.glue.tasks import GLUE, SUITES, task_named

ABSENT = ("snakemake", "datasets", "kenlm", "zstandard", "can_ada", "marisa_trie", "sklearn", "tokie")


def test_packing_and_fine_tuning_run_where_these_packages_are_absent():
    """Images for GPUs lack them."""
    hidden = "".join(f"sys.modules[{name!r}] = None; " for name in ABSENT)
    modules = "symbert.corpus.shards, symbert.corpus.guarded, symbert.glue.prepare, symbert.glue.score"
    subprocess.run([sys.executable, "-c", f"import sys; {hidden}import {modules}"], check=True)


def tasks_of(config, **sweep):
    """The tasks that are fine-tuned with these keys of the sweep."""
    resolved = resolve(merge(config, {"sweep": sweep}))
    assert resolve(to_builtins(resolved)) == resolved, "as of a config.yaml that an experiment wrote"
    return resolved.sweep.tasks


def test_a_suite_brings_its_tasks_unless_some_are_named(config):
    eight, superglue = list(config["sweep"]["tasks"]), list(SUITES["superglue"].tasks)
    assert sorted(eight) == sorted(GLUE.keys() - {"wnli"})
    assert len({column for name in eight for column in GLUE[name].scores.values()}) == 9
    assert tasks_of(config, suites=["glue", "superglue"]) == [*eight, *superglue]
    assert tasks_of(config, suites=["glue", "superglue"], tasks=["rte", "cb"]) == ["rte", "cb"]
    assert tasks_of(config, suites=["glue", "blimp"]) == eight and tasks_of(config, suites=["blimp"]) == []


def test_a_misspelt_task_and_a_task_without_its_suite_are_refused(config):
    with pytest.raises(UsageError, match="'mnil'.*'mnli'"):
        task_named("mnil")
    with pytest.raises(ConfigError, match=r"'sweep.tasks' has boolq, but 'sweep.suites' lacks superglue"):
        tasks_of(config, tasks=["sst2", "boolq"])


PUBLISHED = {
    "glue": "8551/1043 67349/872 3668/408 5749/1500 363846/40430 392702/9815/9832 104743/5463 2490/277 635/71",
    "superglue": "9427/3270 250/56 400/100 27243/4848 100730/10000 2490/277 5428/638 554/104",
}


def test_tasks_have_as_many_rows_as_published():
    for suite, published in PUBLISHED.items():
        rows = {name: "/".join(map(str, task.official_rows.values())) for name, task in SUITES[suite].tasks.items()}
        assert sorted(rows.values()) == sorted(published.split())
    assert len({column for suite in SUITES.values() for column in suite.columns}) == 10 + 8 + 1, "no column is shared"
