"""Tasks of the user's own: what is read of which file, and the whole way from the example in docs/glue.md to scores."""

import itertools
import json
import re
from contextlib import nullcontext

import datasets
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from glue.laboratory import records_in
from symbert.configuration import merge, resolve
from symbert.errors import ConfigError, DataError, IntegrityError
from symbert.files import sha256_of
from symbert.glue.export import export_classifier
from symbert.glue.prepare import RobustnessFacts, TaskFacts, metadata_of
from symbert.glue.sources import read_custom_split
from symbert.glue.tasks import CustomTask, custom_task

ROWS = pd.DataFrame({"text": ["NA is a word", "two, words", "007"], "ironic": ["no", "yes", "no"], "more": [1, 2, 3]})
IRONY = {
    "columns": ["text"],
    "label": "ironic",
    "labels": ["no", "yes"],
    "metric": "f1",
    "problem_type": "classification",
}
pytestmark = pytest.mark.usefixtures("folder")


def task_of(path, **changes):
    """A task of this file."""
    return custom_task("irony", CustomTask(**(IRONY | {"train": str(path), "validation": str(path)} | changes)))


def rows_of(path, **changes):
    """Text, label and place of each row of a file."""
    task = task_of(path, **changes)
    return [tuple(row.values()) for row in read_custom_split(task, "train").to_pylist()]


def saved(rows, folder):
    """A folder of `save_to_disk`, whose class numbers are not in the order of the configuration's labels."""
    features = {"text": datasets.Value("string"), "ironic": datasets.ClassLabel(names=["yes", "no"])}
    data = datasets.Dataset.from_pandas(rows[list(features)], preserve_index=False)
    data = data.cast(datasets.Features(features))
    datasets.DatasetDict({"train": data, "test": data}).save_to_disk(folder)


WRITERS = {
    "rows.csv": lambda rows, path: rows.to_csv(path, index=False),
    "rows.csv.gz": lambda rows, path: rows.to_csv(path, index=False),
    "rows.tsv": lambda rows, path: rows.to_csv(path, index=False, sep="\t"),
    "rows.jsonl": lambda rows, path: rows.to_json(path, orient="records", lines=True),
    "rows.parquet": lambda rows, path: rows.to_parquet(path),
    "saved/train": lambda rows, path: saved(rows, path.parent),
}


def test_a_file_of_any_kind_gives_the_same_rows(tmp_path):
    for name, write in WRITERS.items():
        write(ROWS, tmp_path / name)
        assert rows_of(tmp_path / name) == [("NA is a word", 0, 0), ("two, words", 1, 1), ("007", 0, 2)], name


@pytest.mark.parametrize("name", ["rows.csv", "saved/train"])
def test_a_file_of_ones_own_task_is_the_one_that_the_list_above_it_names(tmp_path, name):
    """Only mirrors were compared with their list."""
    WRITERS[name](ROWS, tmp_path / name)
    (file,) = tmp_path.rglob("train/*.arrow") if name.startswith("saved") else [tmp_path / name]
    for digest in (sha256_of(file), "0" * 64):
        (tmp_path / "SHA256SUMS").write_text(f"{digest} *{file.relative_to(tmp_path)}\n")
        with pytest.raises(IntegrityError, match=f"{file}: ") if digest == "0" * 64 else nullcontext():
            assert len(rows_of(tmp_path / name)) == 3


LABELS = [
    *((["no", "yes"], ["0", "1", "no"], [0, 1, 0]), ([False, True], ["no", "yes", "True"], [0, 1, 1])),
    *((["no", "yes"], [True, False, True], [1, 0, 1]), ([1, 2], [2, 1, 1], [1, 0, 0])),
    *((["-1", "1"], [-1, 1, 1], [0, 1, 1]), (["low", "middle", "high"], ["high", "low", "1"], [2, 0, 1])),
    *(
        (["null", "nan", "NA"], ["nan", "null", "NA"], [1, 0, 2]),
        (["None", "true"], ["true", "None", "None"], [1, 0, 0]),
    ),
]


def test_labels_are_words_or_whole_numbers_and_yaml_may_have_read_them_as_truth_values(tmp_path):
    for name in ("rows.parquet", "rows.csv"):
        for labels, cells, classes in LABELS:
            WRITERS[name](ROWS.assign(ironic=cells), tmp_path / name)
            assert [row[1] for row in rows_of(tmp_path / name, labels=labels, metric="accuracy")] == classes, labels


def test_pairs_and_grades_and_quotation_marks_in_a_tsv(tmp_path):
    ROWS.assign(ironic=[0.5, -3, 12]).to_csv(tmp_path / "rows.csv", index=False)
    graded = {
        "columns": ["text", "more"],
        "labels": None,
        "problem_type": "regression",
        "metric": ["pearson", "spearman"],
    }
    assert [row[2] for row in rows_of(tmp_path / "rows.csv", **graded)] == [0.5, -3.0, 12.0]
    task = task_of(tmp_path / "rows.csv", **graded)
    assert task.columns == ("sentence1", "sentence2") and task.num_labels == 1
    lines = ["text\tironic", '"What a day\tno', 'He said "so" again\tyes', 'Another "\tno', 'all"\tyes']
    (tmp_path / "rows.tsv").write_text("\n".join(lines) + "\n")  # with the quotes of a csv, four rows were two
    assert [row[0] for row in rows_of(tmp_path / "rows.tsv")] == [line.split("\t")[0] for line in lines[1:]]


GRADES = {"labels": None, "problem_type": "regression", "metric": "pearson"}
MISTAKES = [  # content of a csv, changes of the task, and what is named
    (ROWS, {"label": "verdict"}, ": no column 'verdict'"),
    (ROWS, {"labels": ["a", "b"]}, ": row 1: 'ironic'"),
    (ROWS.assign(ironic=["0", "1", "2"]), {}, ": row 3: 'ironic'"),
    (ROWS.assign(text=["a", "", "c"]), {}, ": row 2: 'text'"),
    (ROWS[:0], {}, "no rows"),
    (ROWS.assign(ironic=["1", "NaN", "2"]), GRADES, ": row 2: 'ironic'"),
    (ROWS.assign(ironic=["1", "2", "1_0"]), GRADES, ": row 3: 'ironic'"),  # which Python reads as 10
    (ROWS.assign(ironic=["1", "1e39", "2"]), GRADES, ": row 2: 'ironic'"),  # infinite as float32
    (ROWS, GRADES, ": row 1: 'ironic'"),
    ("text,ironic,text,,\nWhat a day,no,again,,\n", {}, ": two columns are called 'text'"),
    ("text,ironic\nWhat a day, again,no\nWhat a night,yes\n", {}, ":2: 3 cells"),  # the first became an index
    ("text,ironic\nWhat a day\nWhat a night,yes\n", {}, ":2: 1 cells"),
]


def test_what_does_not_fit_is_refused_in_one_line(tmp_path):
    file = tmp_path / "rows.csv"
    for rows, changes, named in MISTAKES:
        file.write_text(rows if isinstance(rows, str) else rows.to_csv(index=False))
        with pytest.raises(DataError) as refused:
            rows_of(file, **({"metric": "accuracy"} | changes))
        assert "rows.csv" in str(refused.value) and named in str(refused.value) and "\n" not in str(refused.value)


def table_of_classes(path, names, numbers):
    """A parquet file as `datasets` writes it: numbers of classes, and their names in the metadata."""
    features = datasets.Features({"text": datasets.Value("string"), "ironic": datasets.ClassLabel(names=names)})
    table = pa.table({"text": list("abcdefgh")[: len(numbers)], "ironic": numbers}, schema=features.arrow_schema)
    pq.write_table(table, path)
    return path


def test_a_number_of_no_class_is_refused_though_a_class_has_it_as_its_name(tmp_path):
    """Of the names 1 to 5, stored as 1, 2 and 5, the last was taken for the class called 5, and all else for the next.
    Publishers label rows of a test split -1, which counted as the last class."""
    file, stars = tmp_path / "rows.parquet", [str(number) for number in range(1, 6)]
    changes = {"labels": stars, "metric": "accuracy"}
    assert [row[1] for row in rows_of(table_of_classes(file, stars, [0, 1, 4]), **changes)] == [0, 1, 4]
    for names, numbers, told in (
        (stars, [1, 2, 5], r"row 3: 'ironic' .*class number 5, expected 0 \(1\) to 4 \(5\)"),
        (["no", "yes"], [1, 2], "row 2: 'ironic' .*class number 2, expected 0"),
        (["no", "yes"], [1, -2], "row 2: 'ironic' .*class number -2, expected 0"),
        (["-1", "1"], [1, -1], "row 2: 'ironic' is empty"),
        (["no", "yes"], [1, None], "row 2: 'ironic' is empty"),
    ):
        with pytest.raises(DataError, match=told):
            rows_of(table_of_classes(file, names, numbers), labels=names, metric="accuracy")


def test_whole_numbers_are_labels_however_a_table_holds_them(tmp_path):
    """As in published files; a table that once had an empty cell holds 1.0, and its csv was refused."""
    for name, labels in itertools.product(("rows.parquet", "rows.csv"), ([0, 1], ["no", "yes"], ["0.0", "1.0"])):
        file, write = tmp_path / name, WRITERS[name]
        write(ROWS.assign(ironic=[0.0, 1.0, 0.0]), file)
        assert [row[1] for row in rows_of(file, labels=labels)] == [0, 1, 0]
        write(ROWS.assign(ironic=[0.0, 0.5, 0.0]), file)
        with pytest.raises(DataError, match="row 2: 'ironic' is '?0.5'?, expected"):
            rows_of(file, labels=labels)


def test_labels_that_yaml_reads_as_truth_values_or_numbers_are_told_to_stand_in_quotes(tmp_path):
    """It was told what was expected, and that the cell is to be corrected, which was right."""
    file = tmp_path / "rows.csv"
    for labels, cells in (
        *(("[No, Yes]", ["No", "Yes"]), ("[FALSE, TRUE]", ["FALSE", "TRUE"]), ("[off, on]", ["off", "on"])),
        *(("[NO, SE, DK]", ["NO", "SE"]), ("[01, 02]", ["01", "02"]), ("[1_000, b]", ["1_000", "b"])),
    ):
        ROWS[:2].assign(ironic=cells).to_csv(file, index=False)
        with pytest.raises(
            DataError, match=f"""'{cells[0]}', expected .*in quotes in 'labels', as "{cells[0]}": YAML"""
        ):
            rows_of(file, labels=yaml.safe_load(labels), metric="accuracy")
        quoted = [str(label) for label in yaml.load(labels, yaml.BaseLoader)]
        assert [row[1] for row in rows_of(file, labels=quoted, metric="accuracy")] == [0, 1]
    for cell in ("no", "maybe", "[", "2024-13-45"):  # of which quotes would change nothing
        ROWS[:1].assign(ironic=[cell]).to_csv(file, index=False)
        with pytest.raises(DataError, match="expected one of a, b; correct it"):
            rows_of(file, labels=["a", "b"], metric="accuracy")
    for labels in ("[no, off]", "[1, 01]"):
        with pytest.raises(ConfigError, match="twice .*quotes"):
            rows_of(file, labels=yaml.safe_load(labels), metric="accuracy")


def test_the_column_of_labels_is_no_text(tmp_path):
    """A model that reads the answer learns to repeat it."""
    with pytest.raises(ConfigError, match="'columns' has ironic, the column of labels"):
        rows_of(tmp_path / "rows.csv", columns=["text", "ironic"])


def test_texts_and_labels_of_a_column_of_json_are_its_values(tmp_path):
    """`datasets` 5 makes one of JSON Lines of mixed types; quotation marks and backslashes were read as text."""
    features = datasets.Features({"text": datasets.Json(), "ironic": datasets.Json()})
    rows = {"text": ['"said \\"so\\""', '"plain"'], "ironic": ['"no"', "1"]}
    data = datasets.Dataset.from_dict(rows, features=features)
    data.save_to_disk(tmp_path / "saved")
    data.to_parquet(tmp_path / "rows.parquet")
    for name in ("saved", "rows.parquet"):
        assert [row[:2] for row in rows_of(tmp_path / name)] == [('said "so"', 0), ("plain", 1)]
    datasets.Dataset.from_dict({**rows, "text": ['"a"', "7"]}, features=features).to_parquet(tmp_path / "seven.parquet")
    with pytest.raises(DataError, match="row 2: 'text' is 7, no text"):
        rows_of(tmp_path / "seven.parquet")


def test_cells_that_cannot_be_read_and_columns_that_are_missing_are_named(tmp_path):
    """Half of a surrogate pair ended with 70, and of the columns of a table only those asked for were said."""
    (tmp_path / "half.jsonl").write_text(
        '{"text": "a", "ironic": "no", "x": NaN}\n{"text": "\\ud800", "ironic": "no"}\n'
    )
    buffers = [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff")]
    torn = pa.table({"text": pa.Array.from_buffers(pa.string(), 2, buffers), "ironic": ["no", "no"]})
    pq.write_table(torn, tmp_path / "torn.parquet")
    pq.write_table(pa.table({"text": ["a"], "sarcastic": ["no"], "source": ["x"]}), tmp_path / "names.parquet")
    (tmp_path / "pointer.parquet").write_text("version https://git-lfs.github.com/spec/v1\nsize 9\n")
    named = {"half.jsonl": "row 2: .*surrogate", "torn.parquet": "row 2: .*UTF-8", "pointer.parquet": "Git LFS"}
    for name, expected in {**named, "names.parquet": "found text, sarcastic, source;"}.items():
        with pytest.raises(DataError, match=f"{name}: .*{expected}"):
            rows_of(tmp_path / name)


def irony_of(train, validation, tmp_path):
    """A task whose splits have these texts."""
    texts = {"train": (train, "train.csv"), "validation": (validation, "dev.jsonl")}
    for rows, name in texts.values():
        frame = pd.DataFrame(
            {"text": list(rows), "ironic": ["no" if place % 2 else "yes" for place in range(len(rows))]}
        )
        WRITERS[f"rows.{name.partition('.')[2]}"](frame, tmp_path / name)
    return CustomTask(**IRONY, **{split: str(tmp_path / name) for split, (_, name) in texts.items()}).digested()


def test_validation_rows_with_the_tokens_of_a_training_row_are_counted_and_refused_where_they_are_most(
    tmp_path, laboratory, capsys
):
    """Two formats of the same rows are two files, and capitals, blanks and what is cut off are not read."""

    def prepared(train, validation, **changes):
        own = irony_of(train, validation, tmp_path)
        facts = metadata_of(laboratory.prepare("irony", custom=own, **changes), TaskFacts)
        return facts.seen["irony"], capsys.readouterr().err

    train = ["an apple", "a pear", "a plum", "a fig"]
    assert prepared(train, ["the apple", "the pear", "A plum, ", "the fig"]) == ((0, 4), "")
    seen, told = prepared(train, ["An  apple", "the pear", "a PLUM ", "the fig"])
    assert seen == (2, 4) and "dev.jsonl: 2 of 4 rows have the token ids of a training row" in told
    assert prepared(train, ["an apple", "a pear", "x", "y"], max_examples=1)[0][0] <= 1, "of rows that are trained on"
    with pytest.raises(DataError, match=r"dev\.jsonl: 3 of 4 rows"):
        prepared(train, ["An apple", "a pear ", "A PLUM", "the fig"])
    with pytest.raises(DataError, match=r"dev\.jsonl: 3 of 4 rows have the text"):
        prepared(train, ["an apple", "a pear", "a plum", "x"], max_examples=1)
    long = "a long sentence that begins as all the others do"
    assert prepared(train, [f"{long} here", f"{long} there", "x", "y"])[0] == (0, 4)
    with pytest.raises(DataError, match=r"dev\.jsonl: 4 of 4 rows"):
        prepared(
            [f"{long} now", *train[1:]], [f"{long} {word}" for word in ("here", "there", "so", "too")], max_length=8
        )


def test_rows_of_which_nothing_can_be_measured_are_refused_and_no_score_of_0(tmp_path, laboratory):
    """Pearson of equal grades was 0, as that of a wrong model; a constant prediction has that score by convention."""
    graded = {"labels": None, "problem_type": "regression", "metric": "pearson"}
    cases = [
        (["1.5", "1.5", "1.5"], graded, "all labels are the same"),
        (["1.5", "1.5", "1.5"], graded | {"metric": ["pearson", "spearman"]}, "all labels are the same"),
        (["yes", "yes", "yes"], {"metric": "matthews"}, "all labels are the same"),
        (["no", "no", "no"], {"metric": "f1"}, "no row is of the second class"),
        (["yes", "yes", "yes"], {"metric": "f1"}, None),
        (["no", "no", "no"], {"metric": "accuracy"}, None),
        (["1.5", "1.5", "1.6"], graded, None),
    ]
    for cells, changes, told in cases:
        frame = pd.DataFrame({"text": ["an apple", "a pear", "a plum"], "ironic": cells})
        frame.to_csv(tmp_path / "dev.csv", index=False)
        trained = ["1", "2", "3"] if changes.get("problem_type") else ["no", "yes", "no"]
        frame.assign(text=["one", "two", "three"], ironic=trained).to_csv(tmp_path / "train.csv", index=False)
        files = {"train": str(tmp_path / "train.csv"), "validation": str(tmp_path / "dev.csv")}
        own = CustomTask(**(IRONY | files | changes)).digested()
        if told is None:
            laboratory.prepare("irony", custom=own)
            continue
        with pytest.raises(DataError, match=rf"dev\.csv: {told}, so "):
            laboratory.prepare("irony", custom=own)


def test_a_file_that_changed_or_whose_rows_are_all_trained_on_is_not_prepared(tmp_path, laboratory):
    """Changed rows would lie under the key of what the file held before."""
    with pytest.raises(DataError, match="4 of 4 rows"):
        laboratory.prepare("irony", custom=irony_of("abcd", "dcba", tmp_path))
    own = irony_of("abcd", "efgh", tmp_path)
    ROWS.to_csv(tmp_path / "train.csv", index=False)
    with pytest.raises(DataError, match=r"train\.csv: changed since the workflow was started"):
        laboratory.prepare("irony", custom=own)
    assert not list(laboratory.results.rglob("*.parquet"))


def test_the_example_of_the_documentation_has_scores(root, config, laboratory, tmp_path):
    """The configuration is the example of docs/glue.md, whose files lie in the folder of the commands."""
    (block,) = re.findall(r"```yaml\n(.*?)```", (root / "docs/glue.md").read_text(encoding="utf-8"), re.S)
    (tmp_path / "data").mkdir()
    ROWS.to_csv("data/train.csv", index=False)
    ROWS[1:].assign(text=["more, words", "008"]).to_csv("data/dev.csv", index=False)
    own = resolve(merge(config, yaml.safe_load(block))).tasks["irony"].digested()
    rows = laboratory.rows("irony", custom=own)
    facts = metadata_of(laboratory.prepared(rows, "irony", allow_partial=False), TaskFacts)
    assert facts.rows == facts.official_rows == {"train": 3, "validation": 2}
    assert not facts.partial and not facts.stand_in
    scores = laboratory.score(laboratory.protocol(rows), laboratory.checkpoint("original"), ["irony"], [1], keep=300)
    (record,) = records_in(scores)
    assert record["task"] == "irony" and list(record["metrics"]) == ["irony"]
    assert list(record["details"]["irony"]) == ["f1"] and record["stand_in"] is False
    sets = laboratory.sets(rows, root=tmp_path, sets=["ax"], noise=[0.2], kinds=["swap"])
    told = metadata_of(laboratory.prepared(sets, "irony"), RobustnessFacts)
    assert list(told.sets) == ["swap-20 irony"], "no set asks a classifier of irony"
    weights = scores.parent / "finetuned/irony/seed-1.safetensors"
    export_classifier(weights, laboratory.checkpoint("original"), tmp_path / "exported")
    assert json.loads((tmp_path / "exported/config.json").read_text())["id2label"] == {"0": "no", "1": "yes"}
