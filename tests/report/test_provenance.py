"""How an experiment was made: settings unlike the paper's stand out, and runs with the same facts share a row."""

import json

import pytest

from symbert.errors import DataError
from symbert.report.provenance import import_table, provenance_table, settings_table
from symbert.settings import ReportSettings, read_settings

PAPER = {"steps": 200_000, "batch_size": 256, "sequence_length": 512}
PAPER |= {"corpus_source": "hub", "glue_source": "hub"}


def cells(table):
    return {row["setting"]: (row["here"], row["the_paper"]) for row in table.frame.to_dict("records")}


def bold(table):
    return {table.frame["setting"][row] for row, column in table.best if column == "here"}


def test_settings_stand_beside_the_papers_and_those_that_differ_are_bold(settings_file):
    changes = {"pretrain": {"learning_rate": 1e-3}, "glue": {"max_examples": 1000, "epochs": 3}}
    table = settings_table(read_settings(settings_file(**changes), ReportSettings))
    found = cells(table)
    assert found["pretrain.steps"] == ("1,800", "200,000")
    assert found["pretrain.learning_rate"] == ("0.001", "0.0001")
    assert found["glue.learning_rate"] == ("1e-05", "1e-05")
    assert found["glue.max_examples"] == ("1,000", "all")
    assert found["corpus.pack.sequence_length"] == ("64", "512")
    different = {"pretrain.steps", "pretrain.batch_size", "corpus.pack.sequence_length", "pretrain.learning_rate"}
    assert bold(table) == different | {"glue.max_examples", "glue.epochs", "corpus.source", "glue.source"}
    assert "Hash of the settings of fine-tuning: aaaa." in table.caption


def test_at_the_papers_settings_nothing_is_bold(settings_file):
    assert bold(settings_table(read_settings(settings_file(**PAPER), ReportSettings))) == set()


@pytest.mark.parametrize(
    ("changes", "key", "shown"),
    [
        ({"recipe": "fast"}, "recipe", ("fast", "faithful")),
        ({"corpus_source": "mirror"}, "corpus.source", ("mirror", "hub")),
        ({"glue_source": "files"}, "glue.source", ("files", "hub")),
        ({"match": "suffix"}, "corpus.filter.match", ("suffix", "exact")),
        ({"max_harmful_perplexity": 5e4}, "corpus.filter.max_harmful_perplexity", ("50,000", "100,000")),
        ({"pretrain": {"dropout": 0.100000001}}, "pretrain.dropout", ("0.100000001", "0.1")),
    ],
)
def test_recipe_sources_filter_and_small_differences_stand_out(settings_file, changes, key, shown):
    table = settings_table(read_settings(settings_file(**(PAPER | changes)), ReportSettings))
    assert cells(table)[key] == shown and bold(table) == {key}


def test_a_setting_that_only_one_of_both_has_is_a_dash_in_the_other(settings_file):
    changed = read_settings(settings_file(pretrain={"new_key": 0.5}, batch_size=None), ReportSettings)
    table = settings_table(changed)
    assert cells(table)["pretrain.new_key"] == ("0.5", "–") and cells(table)["pretrain.batch_size"] == ("–", "256")


@pytest.fixture
def runs(write_run, write_timing):
    """done.json and timing.json of these runs: (operator, seed, changes to the timing)."""

    def make(*named):
        files = []
        for attention, seed, changes in named:
            done, _ = write_run("tiny", attention, [(50, 5.0)], seed=seed)
            done.write_text(json.dumps(json.loads(done.read_text()) | {"corpus_hash": "c0ffee"}))
            files += [write_timing(done, **changes), done]
        return files

    return make


def test_runs_with_the_same_facts_share_a_row(runs):
    files = runs(("pairwise", 1, {}), ("original", 2, {"device": "A card"}), ("original", 1, {}))
    rows = provenance_table(files).frame.to_dict("records")
    assert [row["runs"] for row in rows] == ["tiny-original seed 1, tiny-pairwise seed 1", "tiny-original seed 2"]
    assert [row["device"] for row in rows] == ["cpu", "A card"]
    assert rows[0]["versions"] == "torch 2.13.0" and rows[0]["corpus_hash"] == "c0ffee"
    assert (rows[0]["precision"], rows[0]["recipe"], rows[0]["threads"]) == ("fp32", "faithful", 1)


def test_a_run_without_timing_has_dashes(runs):
    (row,) = provenance_table(runs(("original", 1, {}))[1:]).frame.to_dict("records")
    assert row["device"] is None and row["corpus_hash"] == "c0ffee"


def test_a_file_that_is_of_no_run_is_named(tmp_path):
    other = tmp_path / "parameters.json"
    other.write_text("{}")
    with pytest.raises(DataError, match=r"parameters.json: does not say of which run it is; give done.json or timing"):
        provenance_table([other])


def test_imported_results_name_their_directory_and_hash(tmp_path):
    told = {"name": "authors", "directory": "published", "files": 460, "sha256": "ab12", "steps": 200_000, "more": []}
    file = tmp_path / "import.json"
    file.write_text(json.dumps(told))
    (row,) = import_table([file]).frame.to_dict("records")
    assert (row["directory"], row["files"], row["sha256"], row["steps"]) == ("published", 460, "ab12", 200_000)
