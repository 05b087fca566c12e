"""docs/published-data.md against the files, and tools/inspect_data.py against rows with faults."""

import itertools
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tools.inspect_data import Data, blimp, blimp_lengths, contradictions, copies, labels, markdown, partial

SMALL = ("cola", "wnli", "copa", "wic", "wsc", "cb")


def test_numbers_of_the_page_are_those_of_small_tasks_and_of_blimp(root, mirror):
    page = (root / "docs/published-data.md").read_text(encoding="utf-8")
    data = Data(mirror, tasks=SMALL, has_tokens=False)
    made = {table: markdown(table(data)).splitlines() for table in (contradictions, labels, blimp)}
    lines = [line for table in made.values() for line in table]
    assert len(lines) > 25 and [line for line in lines if line not in page] == []
    counted = markdown(blimp_lengths(data)).splitlines()[2:]
    assert len(counted) == 2 and all(line in page for line in counted)
    again = copies(data).drop(columns="rows").astype(str).to_numpy().tolist()
    for task, split, *cells in again:
        assert f"| {task} | {split} |" in page and len(cells) > 2
    assert partial(data).empty, "these tasks are whole"


@pytest.mark.campaign
def test_every_table_of_the_page_is_what_the_command_writes(root, mirror, tmp_path):
    page = tmp_path / "page.md"
    page.write_text((root / "docs/published-data.md").read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run([sys.executable, root / "tools/inspect_data.py", "--mirror", mirror, "--page", page], check=True)
    assert page.read_text(encoding="utf-8") == (root / "docs/published-data.md").read_text(encoding="utf-8")


@pytest.fixture
def write(tmp_path):
    """Writes the rows of splits of a task of SuperGLUE in the publishers' layout; returns what is found in them."""

    def of(task, **splits):
        for split, rows in splits.items():
            folder = tmp_path / "aps/super_glue" / task
            folder.mkdir(parents=True, exist_ok=True)
            rows = [{**row, "idx": row.get("idx", at)} for at, row in enumerate(rows)]
            pq.write_table(pa.Table.from_pylist(rows), folder / f"{split}-00000-of-00001.parquet")
        return Data(tmp_path, tasks=[task])

    return of


def test_faults_of_rows_are_found_and_rows_without_are_not(write, monkeypatch):
    monkeypatch.setattr(Data, "is_whole", lambda *_: True)
    row = {"text": "Ann saw the dog when she ran .", "span1_text": "Ann", "span1_index": 0, "label": 1}
    row |= {"span2_text": "she", "span2_index": 5}
    other, both = row | {"span2_index": 4}, row | {"span1_text": "she ran", "span1_index": 5}
    data = write("wsc", train=[row], validation=[row | {"text": row["text"] + "."}, other, both, row | {"label": 0}])
    found = contradictions(data)
    assert {(what, rows) for what, rows in zip(found["what"], found["rows"], strict=True)} == {
        ("an index points at other words", "1"),
        ("both phrases share a word", "2"),
        ("texts of another row, with another label", "1, 3"),
    }
    (line,) = copies(data).query("split == 'validation'").to_dict("records")
    assert (line["again"], line["in train"], line["… of another label"]) == (1, 2, 1)
    assert partial(data)["rows"].tolist() == [1, 4]


def test_lengths_alone_score_where_the_longer_choice_is_right_and_the_majority_does_not(write):
    words = itertools.cycle(["a b c d e f g", "a b"])
    rows = [{"premise": "p", "choice1": next(words), "choice2": next(words), "question": "cause"} for _ in range(40)]
    rows = [row | {"label": 0} for row in rows[:20]] + [
        row | {"choice1": row["choice2"], "choice2": row["choice1"], "label": 1} for row in rows[20:]
    ]
    (line,) = labels(write("copa", train=rows, validation=rows)).to_dict("records")
    assert (line["majority"], line["lengths"], line["train"]) == (50, 100, "50.0 / 50.0")
