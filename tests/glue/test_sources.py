import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from symbert.errors import DataError, MissingInputError
from symbert.glue.sources import download_task, published_schema, published_split
from symbert.glue.tasks import GLUE


@pytest.fixture
def publish_rte(tmp_path, write_section):
    """Writes a small RTE in the hub's layout, its training table changed; gives source settings and output."""

    def write(change=lambda table: table):
        task = GLUE["rte"]
        columns = [["a b", "c d"], ["e", "f"], [0, 1], [0, 1]]
        for split in task.splits:
            arrays = [
                pa.array(column, field.type) for column, field in zip(columns, published_schema(task), strict=True)
            ]
            table = pa.table(arrays, schema=published_schema(task))
            path = tmp_path / "mirror" / published_split(task, split).location
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(change(table) if split == "train" else table, path)
        settings = write_section("glue_source", source="mirror", root=str(tmp_path / "mirror"))
        return settings, tmp_path / "rte.parquet"

    return write


def replaced(name, values):
    return lambda table: table.set_column(table.schema.get_field_index(name), name, values)


def test_all_labelled_splits_become_one_table_with_the_hub_columns(publish_rte):
    settings, output = publish_rte()
    download_task(settings, "rte", output)
    table = pq.read_table(output)
    assert table.column_names == ["sentence1", "sentence2", "label", "idx", "split"]
    assert table["split"].to_pylist() == ["train", "train", "validation", "validation"]
    assert table["label"].to_pylist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns("sentence2"), "no column 'sentence2'"),
        (replaced("label", pa.array([0.0, 1.0])), "column 'label' is double, expected int64"),
        (replaced("label", pa.array([-1, -1])), "labels from -1 to -1, expected 0 to 1"),
        (replaced("label", pa.array([0, 2])), "labels from 0 to 2, expected 0 to 1"),
        (replaced("sentence1", pa.array(["a", None])), "column 'sentence1' has empty cells"),
    ],
)
def test_a_file_that_is_not_the_task_is_refused_by_name(publish_rte, change, message):
    settings, output = publish_rte(change)
    with pytest.raises(DataError, match=message) as refusal:
        download_task(settings, "rte", output)
    assert "nyu-mll/glue/rte/train-00000-of-00001.parquet" in str(refusal.value)
    assert not output.exists()


def test_classes_in_another_order_are_refused(publish_rte):
    def swap(table):
        written = json.loads(table.schema.metadata[b"huggingface"])
        written["info"]["features"]["label"]["names"].reverse()
        return table.replace_schema_metadata({"huggingface": json.dumps(written)})

    with pytest.raises(DataError, match="classes are not_entailment, entailment, expected entailment, not_entailment"):
        download_task(*_with_task(publish_rte(swap)))


def _with_task(places):
    settings, output = places
    return settings, "rte", output


def test_a_missing_split_is_named_and_leaves_nothing_behind(publish_rte, tmp_path):
    settings, output = publish_rte()
    (tmp_path / "mirror" / published_split(GLUE["rte"], "validation").location).unlink()
    with pytest.raises(MissingInputError, match="validation-00000-of-00001.parquet"):
        download_task(settings, "rte", output)
    assert [path.name for path in output.parent.iterdir() if "rte" in path.name] == []


def test_a_file_that_is_not_parquet_is_refused(publish_rte, tmp_path):
    settings, output = publish_rte()
    (tmp_path / "mirror" / published_split(GLUE["rte"], "train").location).write_text("<html>log in</html>")
    with pytest.raises(DataError, match="not a parquet file"):
        download_task(settings, "rte", output)


@pytest.mark.parametrize("name", GLUE)
def test_real_rows_load_and_their_counts_are_those_of_the_mirror(mirror, tmp_path, write_section, name):
    settings = write_section("glue_source", source="mirror", root=str(mirror))
    download_task(settings, name, tmp_path / "raw.parquet")
    stated = json.loads((mirror / "nyu-mll/glue/ROWS.json").read_text())[name]
    found = pq.read_table(tmp_path / "raw.parquet", columns=["split"])["split"].value_counts().to_pylist()
    assert {row["values"]: row["counts"] for row in found} == {s: stated[s]["rows"] for s in GLUE[name].splits}
