import json
import random
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from corpus import sites
from corpus.hub_site import COMMIT, served_hub
from glue.originals import write_lines, write_originals
from symbert.corpus.wordpiece import SPECIAL_TOKENS
from symbert.errors import DataError, IntegrityError, MissingInputError, PermissionRefusedError
from symbert.files import read_json, sha256_of
from symbert.glue.prepare import prepare_task
from symbert.glue.sources import REPOSITORY, download_task, published_schema, published_split, resolve_glue
from symbert.glue.tasks import GLUE


@pytest.fixture
def publish_rte(tmp_path, write_section):
    """Writes a small RTE in the hub's layout, its training table changed; gives settings, sources.json and output."""

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
        resolve_glue(settings, tmp_path / "sources.json")
        return settings, tmp_path / "sources.json", tmp_path / "rte.parquet"

    return write


def replaced(name, values):
    return lambda table: table.set_column(table.schema.get_field_index(name), name, values)


def test_all_labelled_splits_become_one_table_with_the_hub_columns(publish_rte):
    settings, sources, output = publish_rte()
    download_task(settings, sources, "rte", output)
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
    settings, sources, output = publish_rte(change)
    with pytest.raises(DataError, match=message) as refusal:
        download_task(settings, sources, "rte", output)
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
    settings, sources, output = places
    return settings, sources, "rte", output


def test_a_missing_split_is_named_and_leaves_nothing_behind(publish_rte, tmp_path):
    settings, sources, output = publish_rte()
    (tmp_path / "mirror" / published_split(GLUE["rte"], "validation").location).unlink()
    with pytest.raises(MissingInputError, match="validation-00000-of-00001.parquet"):
        download_task(settings, sources, "rte", output)
    assert [path.name for path in output.parent.iterdir() if "rte" in path.name] == []


def test_a_file_that_is_not_parquet_is_refused(publish_rte, tmp_path):
    settings, sources, output = publish_rte()
    (tmp_path / "mirror" / published_split(GLUE["rte"], "train").location).write_text("<html>log in</html>")
    with pytest.raises(DataError, match="not a parquet file"):
        download_task(settings, sources, "rte", output)


def flips(content: bytes, count: int):
    """As many copies, each with one bit changed, the same ones each time."""
    for place in random.Random(11).sample(range(8 * len(content)), count):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        yield bytes(flipped)


def test_no_flipped_bit_of_a_fetched_file_is_accepted(publish_rte, tmp_path):
    """It was believed that the sums in fetched.json were compared with something: 191 of 300 flips gave other rows."""
    settings, sources, output = publish_rte()
    path = tmp_path / "mirror" / published_split(GLUE["rte"], "train").location
    location, content = published_split(GLUE["rte"], "train").location, path.read_bytes()
    noted = {"bytes": len(content), "sha256": sha256_of(path)}
    record = {"endpoint": "https://hub.example", "repositories": {}, "blocklist": None, "files": {location: noted}}
    (tmp_path / "mirror/fetched.json").write_text(json.dumps(record))
    download_task(settings, sources, "rte", output)
    whole = output.read_bytes()
    for flipped in flips(content, 300):
        path.write_bytes(flipped)
        with pytest.raises(
            IntegrityError,
            match=rf"^{path}: sha256 expected {noted['sha256']}, found .*; remove {path} and run fetch-m",
        ):
            download_task(settings, sources, "rte", output)
    assert output.read_bytes() == whole


def test_a_flipped_bit_that_parquet_notices_names_the_file_and_is_no_bug_of_ours(publish_rte, tmp_path):
    """Parquet's own complaints were believed to be ArrowInvalid; most are OSError, and some come from JSON."""
    settings, sources, output = publish_rte()
    file, refused = published_split(GLUE["rte"], "train"), 0
    path = tmp_path / "mirror" / file.location
    for flipped in flips(path.read_bytes(), 1500):
        path.write_bytes(flipped)
        try:
            download_task(settings, sources, "rte", output)
        except DataError as error:
            assert str(error).startswith(f"{file.location}: ") and "\n" not in str(error)
            refused += 1
    assert 700 < refused < 1000


def test_a_damaged_table_of_ours_is_named_too(publish_rte, write_section, tmp_path):
    settings, sources, output = publish_rte()
    download_task(settings, sources, "rte", output)
    output.write_bytes(output.read_bytes()[:-20])
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS.values(), "a"]))
    with pytest.raises(
        DataError, match=r"rte\.parquet: not a parquet file, or damaged .*; delete it and run download-ta"
    ):
        prepare_task(output, "rte", tmp_path / "vocab.txt", write_section("task"), tmp_path / "prepared.parquet")


@pytest.mark.parametrize("name", GLUE)
def test_real_rows_load_and_their_counts_are_those_of_the_mirror(mirror, tmp_path, write_section, name):
    settings = write_section("glue_source", source="mirror", root=str(mirror))
    resolve_glue(settings, tmp_path / "sources.json")
    download_task(settings, tmp_path / "sources.json", name, tmp_path / "raw.parquet")
    stated = json.loads((mirror / "nyu-mll/glue/ROWS.json").read_text())[name]
    found = pq.read_table(tmp_path / "raw.parquet", columns=["split"])["split"].value_counts().to_pylist()
    assert {row["values"]: row["counts"] for row in found} == {s: stated[s]["rows"] for s in GLUE[name].splits}


def splits_of(table, task, limit):
    """At most `limit` rows of each split, without the column `split`."""
    parts = {split: table.filter(pc.field("split") == split).drop_columns("split") for split in task.splits}
    return {split: rows.slice(0, limit).to_pylist() for split, rows in parts.items()}


@pytest.mark.parametrize("name", GLUE)
def test_original_files_of_real_rows_give_the_table_of_the_hub(mirror, tmp_path, write_section, name):
    task = GLUE[name]
    source = write_section("glue_source", source="mirror", root=str(mirror))
    resolve_glue(source, tmp_path / "sources.json")
    download_task(source, tmp_path / "sources.json", name, tmp_path / "hub.parquet")
    rows = splits_of(pq.read_table(tmp_path / "hub.parquet"), task, 5_000 if name == "mrpc" else 1_000)
    write_originals(tmp_path / "originals", task, rows)
    source = write_section("glue_source", source="files", root=str(tmp_path / "originals"))
    resolve_glue(source, tmp_path / "sources.json")
    download_task(source, tmp_path / "sources.json", name, tmp_path / "originals.parquet")
    found = pq.read_table(tmp_path / "originals.parquet")
    assert found.schema.equals(pq.read_schema(tmp_path / "hub.parquet"), check_metadata=True)
    assert splits_of(found, task, None) == rows


def test_original_files_have_no_commit(tmp_path, write_section):
    resolve_glue(write_section("glue_source", source="files", root=str(tmp_path)), tmp_path / "sources.json")
    found = read_json(tmp_path / "sources.json")
    assert (found["source"], found["repositories"]) == ("files", {})


def test_a_bad_line_of_an_original_file_leaves_nothing_behind(tmp_path, write_section):
    source = write_section("glue_source", source="files", root=str(tmp_path / "glue"))
    resolve_glue(source, tmp_path / "sources.json")
    write_lines(tmp_path / "glue/SST-2/train.tsv", "sentence\tlabel\n", "good\t1\n", "bad\t7\n")
    with pytest.raises(DataError, match=r"SST-2/train.tsv:3: label is '7', expected one of negative, positive"):
        download_task(source, tmp_path / "sources.json", "sst2", tmp_path / "out" / "sst2.parquet")
    assert not (tmp_path / "out").exists()


@pytest.fixture
def hub(monkeypatch):
    with served_hub(monkeypatch) as hub:
        hub.add_repository("dataset", REPOSITORY)
        yield hub


@pytest.fixture
def hub_places(hub, publish_rte, tmp_path, write_section):
    """RTE at the hub: source settings, sources.json, output."""
    publish_rte()
    for split in GLUE["rte"].splits:
        file = published_split(GLUE["rte"], split)
        hub.add_large(file.kind, file.repository, file.path, (tmp_path / "mirror" / file.location).read_bytes())
    settings = write_section("glue_source", source="hub", root=None, revision="main")
    resolve_glue(settings, tmp_path / "sources.json")
    return settings, tmp_path / "sources.json", tmp_path / "glue" / "rte.parquet"


def test_the_hub_gives_the_rows_of_the_commit_that_was_resolved(hub, hub_places):
    settings, sources, output = hub_places
    found = read_json(sources)
    date.fromisoformat(found.pop("resolved"))
    assert found == {
        "source": "hub",
        "endpoint": hub.host.address,
        "repositories": {REPOSITORY: {"kind": "dataset", "revision": "main", "commit": COMMIT}},
        "checksums": {},
    }
    download_task(settings, sources, "rte", output)
    assert pq.read_table(output)["split"].to_pylist() == ["train", "train", "validation", "validation"]
    assert [path.name for path in output.parent.iterdir()] == ["rte.parquet"]


def test_a_commit_in_the_settings_is_not_asked_for(hub, write_section, tmp_path):
    settings = write_section("glue_source", source="hub", root=None)
    resolve_glue(settings, tmp_path / "sources.json")
    assert hub.host.asked == []
    assert read_json(tmp_path / "sources.json")["repositories"][REPOSITORY]["commit"] == read_json(settings)["revision"]


def test_wrong_bytes_from_the_hub_make_no_task(hub, hub_places):
    settings, sources, output = hub_places
    for path in list(hub.store.bodies):
        hub.store.fail(path, sites.flip(4), always=True)
    with pytest.raises(IntegrityError, match=r"rte/train-00000-of-00001\.parquet: sha256 expected"):
        download_task(settings, sources, "rte", output)
    assert list(output.parent.iterdir()) == []


def test_an_interrupted_split_waits_for_the_next_run(hub, hub_places):
    settings, sources, output = hub_places
    (stored,) = hub.store.bodies  # both splits have the same rows
    hub.store.fail(stored, sites.right, sites.drop(100), sites.status(403))
    with pytest.raises(PermissionRefusedError):
        download_task(settings, sources, "rte", output)
    kept = {path.name for path in output.parent.iterdir()}
    assert kept == {f".rte-validation.parquet.{stored[1:13]}.partial"}
    download_task(settings, sources, "rte", output)
    assert hub.store.asked[-1].headers["range"] == "bytes=100-"
    assert [path.name for path in output.parent.iterdir()] == ["rte.parquet"]
