import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from symbert.errors import DataError
from symbert.glue.prepare import facts_of
from symbert.glue.sources import published_schema
from symbert.glue.tasks import GLUE, published_split

SCHEMA = {"set": pa.string(), "input_ids": pa.list_(pa.int32()), "token_type_ids": pa.list_(pa.int8())}
ALMOST_NOTHING = 1e-12  # a share that strikes no letter here


def rows_of(name, count, words="the matrix of an array"):
    """As many made-up published rows."""
    task = GLUE[name]
    columns = {
        column: [f"{words} {number} {place}" for number in range(count)] for place, column in enumerate(task.columns)
    }
    labels = {"label": [number % max(2, len(task.labels)) for number in range(count)], "idx": range(count)}
    return pa.table({**columns, **labels}, schema=published_schema(task))


@pytest.fixture
def publish(tmp_path):
    """Writes made-up rows as each split of a task; gives the root."""

    def write(name, rows=None):
        for split in GLUE[name].splits:
            file = tmp_path / "mirror" / published_split(GLUE[name], split).location
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(rows or rows_of(name, 30), file)
        return tmp_path / "mirror"

    return write


@pytest.fixture
def robustness(laboratory, publish):
    """Prepares a task's sets from made-up rows, with changes of the settings; gives the file."""

    def prepare(name, rows=None, task=None, **chosen):
        chosen = {"root": None, "sets": [], "noise": [], "noise_kinds": [], **chosen}
        task = {"max_evaluation_examples": 500, **(task or {})}
        return laboratory.prepare(name, "robustness", root=publish(name, rows), robustness=chosen, **task)

    return prepare


def test_noise_makes_a_set_of_each_kind_and_share_of_each_evaluation_split(robustness):
    output = robustness("mnli", noise=[0.1, 0.2], noise_kinds=["mixed", "drop"])
    facts, table = facts_of(output), pq.read_table(output)
    splits, kinds = ("mnli_matched", "mnli_mismatched"), ("mixed", "drop")
    expected = [f"{kind}-{percent} {split}" for split in splits for kind in kinds for percent in (10, 20)]
    assert list(facts["sets"]) == expected
    assert [row["values"] for row in table["set"].value_counts().to_pylist()] == expected and len(table) == 8 * 30
    told = facts["sets"]["drop-20 mnli_mismatched"]
    assert (told["kind"], told["share"], told["column"], told["metrics"]) == ("noise", 0.2, splits[1], ["accuracy"])
    assert (told["rows"], told["official_rows"], told["partial"]) == (30, 9832, True)


def test_noise_changes_the_rows_that_are_scored_clean(robustness, laboratory, tmp_path):
    limits = {"max_evaluation_examples": 12}
    output = robustness("rte", task=limits, noise=[ALMOST_NOTHING, 0.4], noise_kinds=["mixed"])
    file = laboratory.prepare("rte", root=tmp_path / "mirror", **limits)
    clean = pq.read_table(file).filter(pc.field("split") == "validation").drop_columns("split")
    table, sets = pq.read_table(output), list(facts_of(output)["sets"])
    untouched, noisy = (table.filter(pc.field("set") == name).drop_columns("set") for name in sets)
    assert len(clean) == 12 and untouched.to_pylist() == clean.to_pylist()
    assert noisy["label"].to_pylist() == clean["label"].to_pylist()
    changed = [a != b for a, b in zip(noisy["input_ids"].to_pylist(), clean["input_ids"].to_pylist(), strict=True)]
    assert all(changed)


def test_a_task_without_sets_has_a_valid_file_without_rows(robustness, tmp_path):
    output = robustness("stsb", sets=["hans", "ax", "advglue"], root=str(tmp_path))
    table = pq.read_table(output)
    assert len(table) == 0 and table.column_names == [*SCHEMA, "label"]
    assert facts_of(output) == {"task": "stsb", "stand_in": False, "sets": {}}


def test_real_challenge_sets_stand_beside_the_noise(robustness, mirror):
    chosen = {"root": str(mirror / "ood"), "sets": ["ax", "advglue"], "noise": [0.2], "noise_kinds": ["swap"]}
    output = robustness("mnli", task={"max_evaluation_examples": None}, **chosen)
    facts, table = facts_of(output)["sets"], pq.read_table(output)
    noisy = {"swap-20 mnli_matched": 30, "swap-20 mnli_mismatched": 30}
    sets = {"ax": 1104, "adv_mnli": 121, "adv_mnli_mismatched": 162}
    assert {name: told["rows"] for name, told in facts.items()} == noisy | sets
    assert facts["ax"]["metrics"] == ["matthews"] and not facts["ax"]["partial"]
    real = pq.read_table(mirror / "ood/ax.parquet")["label"].to_pylist()
    assert table.filter(pc.field("set") == "ax")["label"].to_pylist() == real


def test_a_limited_challenge_set_is_spread_over_its_file_and_partial(robustness, tmp_path):
    """HANS has all entailments first."""
    rows = {"premise": ["the matrix"] * 60, "hypothesis": ["a matrix"] * 60, "label": [0] * 30 + [1] * 30}
    pq.write_table(pa.table(rows), tmp_path / "hans.parquet")
    hans = {"root": str(tmp_path), "sets": ["hans"]}
    output = robustness("mnli", task={"max_evaluation_examples": 40}, **hans)
    told, labels = facts_of(output)["sets"]["hans"], pq.read_table(output)["label"].to_pylist()
    assert (told["rows"], told["official_rows"], told["partial"]) == (40, 30000, True)
    assert told["classes"] == [0, 1, 1]
    assert labels == sorted(labels) and 10 <= sum(labels) <= 30
    with pytest.raises(DataError, match=r"the set 'hans' has 60 rows, expected 30,000 .*'glue.allow_partial"):
        robustness("mnli", task={"allow_partial": False}, **hans)
