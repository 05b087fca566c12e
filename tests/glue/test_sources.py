import json
import math
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.files import sha256_of
from symbert.glue.sources import published_schema, read_published, read_split
from symbert.glue.tasks import GLUE, SUITES, published_split
from symbert.steps import File

REPOSITORY = SUITES["glue"].repository
TRAIN = published_split(GLUE["rte"], "train")


def classes_in_hub_words(labels):
    return json.dumps({"info": {"features": {"label": {"names": list(labels)}}}})


@pytest.fixture
def publish_rte(tmp_path):
    """Writes a small RTE in the hub's layout, its training table changed; gives the root."""

    def write(change=lambda table: table):
        task = GLUE["rte"]
        columns = [["a b", "c d"], ["e", "f"], [0, 1], [0, 1]]
        for split in task.splits:
            schema = published_schema(task).with_metadata({"huggingface": classes_in_hub_words(task.labels)})
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            table = pa.table(arrays, schema=schema)
            path = tmp_path / "mirror" / published_split(task, split).location
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(change(table) if split == "train" else table, path)
        return tmp_path / "mirror"

    return write


def read(root, task="rte", split="train"):
    """The rows of a split of the files below `root`."""
    return read_split(GLUE[task], split, File(str(root / REPOSITORY)))


def replaced(name, values):
    return lambda table: table.set_column(table.schema.get_field_index(name), name, values)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda table: table.drop_columns("sentence2"), "'sentence2'"),
        (replaced("label", pa.array(["entailment", "not_entailment"])), "'label'"),
        (replaced("label", pa.array([0.0, 0.5])), "'label' is 0.5 in row 2, expected int64"),
        (replaced("label", pa.array([1.0, math.nan])), "'label' is nan in row 2"),
        (replaced("label", pa.array([1e30, 0.0])), "'label' holds double"),
        (replaced("label", pa.array(["0", "1"])), "'label' holds string, expected int64"),
        (replaced("label", pa.array([0, 1], pa.timestamp("s"))), "'label' holds timestamp"),
        (replaced("sentence2", pa.array([7, 8])), "'sentence2' holds int64, expected string"),
        (replaced("sentence2", pa.array([True, False])), "'sentence2' holds bool"),
        (replaced("label", pa.array([-1, -1])), "labels from -1"),
        (replaced("label", pa.array([0, 2])), "labels from 0 to 2"),
        (replaced("sentence1", pa.array(["a", None])), "'sentence1'"),
        (replaced("sentence1", pa.array(['"a b"', '"c"'], pa.json_())), "'sentence1' .*JSON"),
        (lambda table: table.replace_schema_metadata({"huggingface": classes_in_hub_words("ba")}), "classes are b, a"),
    ],
)
def test_a_file_that_is_not_the_task_is_refused_by_name(laboratory, publish_rte, change, named):
    with pytest.raises(DataError, match=named) as refusal:
        laboratory.prepare("rte", root=publish_rte(change))
    assert "nyu-mll/glue/rte/train-00000-of-00001.parquet" in str(refusal.value)
    assert not list(laboratory.results.rglob("*.parquet"))


def test_whole_numbers_of_any_type_and_text_of_any_type_are_a_tasks(publish_rte):
    """As other libraries write them: pandas has 0.0 where a cell was empty once, and large or encoded strings."""
    labels = [pa.array([0, 1], kind) for kind in (pa.float64(), pa.int8(), pa.uint64(), pa.float32())]
    for label in (*labels, pa.array([False, True])):
        assert read(publish_rte(replaced("label", label)))["label"].to_pylist() == [0, 1]
    for text in (pa.array(["1", "d"], pa.large_string()), pa.array(["1", "d"]).dictionary_encode()):
        assert read(publish_rte(replaced("sentence2", text)))["sentence2"].to_pylist() == ["1", "d"]


def flips(content: bytes, count: int):
    """As many copies, each with one bit changed, the same ones each time."""
    for place in random.Random(11).sample(range(8 * len(content)), count):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        yield bytes(flipped)


def test_no_flipped_bit_of_a_fetched_file_is_accepted_and_a_missing_one_is_named(publish_rte):
    """It was believed that the sums of a mirror were compared with something."""
    root = publish_rte()
    path = root / TRAIN.location
    content, digest = path.read_bytes(), sha256_of(path)
    (root / "SHA256SUMS").write_text(f"{digest}  {TRAIN.location}\n")
    table = read(root)
    assert table.to_pylist()[0] == {"sentence1": "a b", "sentence2": "e", "label": 0, "idx": 0} and len(table) == 2
    for flipped in flips(content, 50):
        path.write_bytes(flipped)
        with pytest.raises(IntegrityError, match=rf"^{path}: sha256 expected {digest}, found "):
            read(root)
    (root / "SHA256SUMS").unlink()
    refused = 0
    for flipped in flips(content, 100):  # Parquet's own complaints are ArrowInvalid, OSError, and some come from JSON
        path.write_bytes(flipped)
        try:
            read(root)
        except DataError:
            refused += 1
    assert refused > 25
    path.unlink()
    with pytest.raises(MissingInputError, match=r"train-00000-of-00001\.parquet: file not found"):
        read(root)


def test_an_answer_without_its_place_is_refused_and_is_no_bug_of_ours(tmp_path):
    """A cast fills fields that a struct lacks with nulls, which are no nulls of the column."""
    (task,) = SUITES["squad2"].tasks.values()
    schema = published_schema(task)
    cells = {name: pa.array(["a"]) for name in schema.names} | {"answers": pa.array([{"text": ["a"]}])}
    pq.write_table(pa.table(cells), tmp_path / "train.parquet")
    with pytest.raises(DataError, match="column 'answers' has empty cells"):
        read_published(tmp_path / "train.parquet", "train.parquet", schema)
