import json
import subprocess
import sys

import pytest

from symbert.configuration import check, merge
from symbert.errors import ConfigError, UsageError
from symbert.glue import forms
from symbert.glue.metrics import METRICS, METRICS_OF_GROUPS
from symbert.glue.tasks import GLUE, PUBLISHED, SUITES, task_named


def test_the_eight_tasks_of_the_configuration_give_nine_columns(config):
    columns = [column for name in config["sweep"]["tasks"] for column in GLUE[name].scores.values()]
    assert len(config["sweep"]["tasks"]) == 8 and "wnli" not in config["sweep"]["tasks"]
    assert len(set(columns)) == 9 and {"mnli_matched", "mnli_mismatched"} <= set(columns)


def test_official_rows_are_those_that_the_mirror_states(mirror):
    stated = json.loads((mirror / "nyu-mll/glue/ROWS.json").read_text())
    for name, task in GLUE.items():
        assert task.official_rows == {split: stated[name][split]["official_rows"] for split in task.splits}


def test_a_misspelt_task_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match=r"unknown task 'mnil'; did you mean 'mnli'\?"):
        task_named("mnil")


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("glue.tasks", ("torch", "pyarrow")),
        ("glue.prepare", ("torch",)),
        ("glue.score", ("snakemake", "datasets", "kenlm", "zstandard", "marisa_trie", "sklearn")),
    ],
)
def test_a_module_runs_where_these_packages_are_absent(module, absent):
    hidden = "".join(f"sys.modules[{name!r}] = None; " for name in absent)
    script = f"import sys; {hidden}import symbert.{module}"
    subprocess.run([sys.executable, "-c", script], check=True)


def tasks_of(config, **sweep):
    """The tasks that are fine-tuned with these keys of the sweep."""
    changed = merge(config, {"sweep": sweep})
    check(changed)
    check(changed)  # once more, as a command does that reads what the workflow has checked
    return changed["sweep"]["tasks"]


def test_a_suite_brings_its_tasks_unless_some_are_named(config):
    eight, superglue = list(config["sweep"]["tasks"]), list(SUITES["superglue"].tasks)
    assert tasks_of(config, suites=["glue"]) == eight
    assert tasks_of(config, suites=["superglue"]) == superglue
    assert tasks_of(config, suites=["glue", "superglue"]) == [*eight, *superglue]
    assert tasks_of(config, suites=["glue", "superglue"], tasks=["rte", "cb"]) == ["rte", "cb"]
    assert tasks_of(config, suites=["glue", "blimp"]) == eight and tasks_of(config, suites=["blimp"]) == []


def test_a_sweep_without_tasks_and_a_task_without_its_suite_are_refused(config):
    with pytest.raises(ConfigError, match="'sweep.tasks' has boolq, but 'sweep.suites' lacks superglue; add it there"):
        tasks_of(config, tasks=["sst2", "boolq"])
    with pytest.raises(ConfigError, match="glue.source' is files, which has no superglue; set it to hub or mirror"):
        files = {"source": "files", "files": "."}
        tasks_of(merge(config, {"glue": files}), suites=["superglue"])


def test_each_task_of_superglue_names_functions_that_exist_and_counts_as_published():
    published = "9427/3270 250/56 400/100 27243/4848 100730/10000 2490/277 5428/638 554/104"
    rows = (task.official_rows for task in SUITES["superglue"].tasks.values())
    assert " ".join(f"{each['train']}/{each['validation']}" for each in rows) == published
    for task in PUBLISHED.values():
        assert {*task.metrics} <= {*METRICS, *METRICS_OF_GROUPS}
        assert not task.form or getattr(forms, task.form).__doc__
    assert len({column for suite in SUITES.values() for column in suite.columns}) == 10 + 8 + 1, (
        "no column is of two tasks"
    )
