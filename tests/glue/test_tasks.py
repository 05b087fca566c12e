"""Which tasks and columns a configuration asks for, and that jobs need no more packages than they say."""

import subprocess
import sys

import pytest

from symbert.configuration import check, merge
from symbert.errors import ConfigError, UsageError
from symbert.glue.tasks import GLUE, SUITES, task_named

ABSENT = {
    "glue.tasks": ("torch", "pyarrow"),
    "glue.prepare": ("torch",),
    "glue.score": ("snakemake", "datasets", "kenlm", "zstandard", "marisa_trie", "sklearn"),
}


@pytest.mark.parametrize("module", ABSENT)
def test_a_module_runs_where_these_packages_are_absent(module):
    hidden = "".join(f"sys.modules[{name!r}] = None; " for name in ABSENT[module])
    subprocess.run([sys.executable, "-c", f"import sys; {hidden}import symbert.{module}"], check=True)


def tasks_of(config, **sweep):
    """The tasks that are fine-tuned with these keys of the sweep."""
    changed = merge(config, {"sweep": sweep})
    check(changed)
    check(changed)  # once more, as a command does that reads what the workflow has checked
    return changed["sweep"]["tasks"]


def test_a_suite_brings_its_tasks_unless_some_are_named(config):
    eight, superglue = list(config["sweep"]["tasks"]), list(SUITES["superglue"].tasks)
    assert sorted(eight) == sorted(GLUE.keys() - {"wnli"})
    assert len({column for name in eight for column in GLUE[name].scores.values()}) == 9
    assert tasks_of(config, suites=["glue", "superglue"]) == [*eight, *superglue]
    assert tasks_of(config, suites=["glue", "superglue"], tasks=["rte", "cb"]) == ["rte", "cb"]
    assert tasks_of(config, suites=["glue", "blimp"]) == eight and tasks_of(config, suites=["blimp"]) == []


def test_a_misspelt_task_a_task_without_its_suite_and_a_suite_without_files_are_refused(config):
    with pytest.raises(UsageError, match="'mnil'.*'mnli'"):
        task_named("mnil")
    with pytest.raises(ConfigError, match=r"'sweep.tasks' has boolq, but 'sweep.suites' lacks superglue"):
        tasks_of(config, tasks=["sst2", "boolq"])
    with pytest.raises(ConfigError, match=r"'?glue.source' is files.*superglue"):
        tasks_of(merge(config, {"glue": {"source": "files", "files": "."}}), suites=["superglue"])


def test_superglue_has_as_many_rows_as_published():
    published = "9427/3270 250/56 400/100 27243/4848 100730/10000 2490/277 5428/638 554/104"
    rows = (task.official_rows for task in SUITES["superglue"].tasks.values())
    assert " ".join(f"{each['train']}/{each['validation']}" for each in rows) == published
    assert len({column for suite in SUITES.values() for column in suite.columns}) == 10 + 8 + 1, "no column is shared"
