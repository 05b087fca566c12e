"""Settings unlike the paper's stand out."""

import pytest

from report.written import collected
from symbert.report.tables.corpus import settings_table

PAPER = {"steps": 200_000, "batch_size": 256, "sequence_length": 512}
PAPER |= {"corpus_source": "hub", "glue_source": "hub"}


def cells(table):
    return {row["setting"]: (row["here"], row["the_paper"]) for row in table.frame.to_dict("records")}


def bold(table):
    return {table.frame["setting"][row] for row, column in table.best if column == "here"}


def test_settings_stand_beside_the_papers_and_those_that_differ_are_bold(report_settings):
    changes = {"pretrain": {"learning_rate": 1e-3}, "glue": {"max_examples": 1000, "epochs": 3}}
    table = settings_table(collected(settings=report_settings(**changes)))
    found = cells(table)
    assert found["pretrain.steps"] == ("1,800", "200,000")
    assert found["pretrain.learning_rate"] == ("0.001", "0.0001")
    assert found["glue.learning_rate"] == ("1e-05", "1e-05")
    assert found["glue.max_examples"] == ("1,000", "all")
    assert found["corpus.pack.sequence_length"] == ("64", "512")
    different = {"pretrain.steps", "pretrain.batch_size", "corpus.pack.sequence_length", "pretrain.learning_rate"}
    assert bold(table) == different | {"glue.max_examples", "glue.epochs", "corpus.source", "glue.source"}
    assert "Hash of the settings of fine-tuning: aaaa." in table.caption


def test_keys_of_suites_and_hosts_stand_in_the_table(report_settings):
    """They were left out: a decoder of 5,000 steps stood under `pretrain.steps` 1,800."""
    own = {"suites.squad2.epochs": 2, "hosts.decoder.steps": 5000}
    found = cells(settings_table(collected(settings=report_settings(overrides=own))))
    assert found["suites.squad2.epochs"] == ("2", "–") and found["hosts.decoder.steps"] == ("5,000", "–")


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
def test_recipe_sources_filter_and_small_differences_stand_out(report_settings, changes, key, shown):
    table = settings_table(collected(settings=report_settings(**(PAPER | changes))))
    assert cells(table)[key] == shown and bold(table) == {key}
