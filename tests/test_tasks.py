import json
import subprocess
import sys

import pytest

from symbert.errors import UsageError
from symbert.glue import embedded
from symbert.tasks import GLUE, task_named


def test_the_eight_tasks_of_the_configuration_give_nine_columns(config):
    columns = [column for name in config["sweep"]["tasks"] for column in GLUE[name].scores.values()]
    assert len(config["sweep"]["tasks"]) == 8 and "wnli" not in config["sweep"]["tasks"]
    assert len(set(columns)) == 9 and {"mnli_matched", "mnli_mismatched"} <= set(columns)


def test_official_rows_are_those_that_the_mirror_states(mirror):
    stated = json.loads((mirror / "nyu-mll/glue/ROWS.json").read_text())
    for name, task in GLUE.items():
        assert task.official_rows == {split: stated[name][split]["official_rows"] for split in task.splits}


def test_a_grade_has_one_output_and_classes_have_one_each():
    assert [GLUE[name].num_labels for name in ("stsb", "cola", "mnli")] == [1, 2, 3]


def test_each_task_has_a_maker_of_its_stand_in():
    named = {name: task.stand_in for name, task in GLUE.items() if task.stand_in}
    assert GLUE.keys() - named.keys() == {"stsb"}, "whose shape any other task has that names none"
    for function in named.values():
        assert getattr(embedded, function).__doc__


def test_a_misspelt_task_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match=r"unknown GLUE task 'mnil'; did you mean 'mnli'\?"):
        task_named("mnil")


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("tasks", ("torch", "pyarrow")),
        ("glue.embedded", ("torch",)),
        ("glue.prepare", ("torch",)),
        ("glue.robustness_sets", ("torch",)),
        ("glue.finetune", ("snakemake", "datasets", "kenlm", "zstandard", "marisa_trie", "sklearn")),
    ],
)
def test_a_module_runs_where_these_packages_are_absent(module, absent):
    hidden = "".join(f"sys.modules[{name!r}] = None; " for name in absent)
    script = f"import sys; {hidden}import symbert.{module}"
    subprocess.run([sys.executable, "-c", script], check=True)
