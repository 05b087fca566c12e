"""The benchmark of starting takes a command of each kind, and judges the slowest by its target."""

from benchmarks.measure import Usage
from benchmarks.startup import EMPTY, commands, figures
from benchmarks.tables import figure_table
from workflow.checkout import Outcome

SAID = """\
rule tabulate_corpus:
Shell command: python -m symbert --log a.log exhibit table-corpus  --output a.html
Shell command: python -m symbert --log f.log filter-part --part p
Shell command: RAYON_NUM_THREADS=1 python -m symbert --log b.log tokenize-part --documents b
    python -m symbert --log d.log extract-checkpoint --state s --step 20 --output d
    python -m symbert --log e.log extract-checkpoint --state s --step 10 --output e
"""


class DryRun:
    """A checkout that says what a dry run does."""

    def snakemake(self, *arguments: str) -> Outcome:
        assert "--dry-run" in arguments
        return Outcome(0, SAID)


def test_of_each_kind_of_command_the_first_is_measured_but_for_one_whose_input_is_deleted():
    found = commands(DryRun())
    assert list(found) == ["table-corpus", "tokenize-part", "extract-checkpoint"]
    assert found["tokenize-part"].startswith("RAYON_NUM_THREADS=1 python") and " d" in found["extract-checkpoint"]


def test_the_slowest_exhibit_has_the_target_of_one_second_beside_an_empty_python():
    names = ["table-a", "table-b", "figure-a", "extract-checkpoint", "pretrain-model"]
    seconds = dict.fromkeys([*names, "finetune"], 0.5) | {"table-b": 1.2, "finetune": 3.05, EMPTY: 0.1}
    usages = {name: Usage(cpu, 9, 70) for name, cpu in seconds.items()}
    page = figure_table(figures(usages), [usages])
    assert "| the slowest table | 1.10 s | 1.10–1.10 | ≤ 1 s | **missed** |" in page
    assert "| fine-tuning | 2.95 s | 2.95–2.95 | ≤ 3 s | met |" in page and page.count(" met ") == 4
