"""What README.md and docs/getting-started.md show of one's own, run beside a finished experiment at its tiny scale."""

import csv
import json

import pytest

from documented import own_files
from workflow.checkout import Checkout

IRONY = "text,label\n" + "What a great {0}.,no\nOf course the {0} is wet again.,yes\n" * 20


@pytest.fixture
def folder(copy, root) -> Checkout:
    """The finished tiny demo, with the files of README.md and docs/getting-started.md beside it."""
    for name, text in (own_files(root) | own_files(root, "docs/getting-started.md")).items():
        (copy.directory / name).write_text(text, encoding="utf-8")
    return copy


def tiny(folder: Checkout, *words: str, files: tuple[str, ...]) -> dict[str, int]:
    """The jobs of the tiny settings with files of the pages above them."""
    outcome = folder.snakemake(*words, *folder.tiny_settings(), *files)
    assert outcome.code == 0, outcome.output[-5000:]
    return outcome.jobs


@pytest.mark.campaign
def test_an_operator_a_size_and_a_task_of_ones_own_have_scores(folder):
    """The three in one experiment; the size and the task are those of the files, joined."""
    for name, word in (("train.csv", "day"), ("dev.csv", "evening")):
        (folder.directory / name).write_text(IRONY.format(word))
    table = "results/mine/report/tables/table3_glue.csv"
    sweep = 'sweep={attention: [original, "bounded:Bounded"]}'
    jobs = tiny(folder, "--config", "experiment=mine", sweep, files=("deep.yaml", "irony.yaml"))
    assert jobs["pretrain"] == 3, "tiny-original is the finished experiment's"
    with open(folder.directory / table, newline="") as file:
        rows = {row["model"]: row for row in csv.DictReader(file)}
    assert rows.keys() >= {"tiny-original", "tiny-bounded", "deep-original", "deep-bounded"}
    assert all(0 <= float(rows[model]["irony"]) <= 100 for model in rows if model.startswith(("tiny", "deep")))
    (path,) = folder.directory.glob("results/runs/encoder/deep-bounded-*/seed-1/done.json")
    done = json.loads(path.read_text())
    assert done["steps"] == 20 and done["attention"] == "bounded"
