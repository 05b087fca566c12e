"""Tables of the corpus and of provenance: sums per part, settings beside the paper's, machines, hours and commits."""

import json
import shutil

import pytest

from csv_rows import read_shown
from report.written import collected, write_exhibit
from symbert.errors import DataError
from symbert.report.collect import PretrainedRun, read_run
from symbert.report.collect import pretrained as pretrained_run
from symbert.report.tables.corpus import provenance_table, runs_table, settings_table


def tabulate_corpus(files, outputs):
    write_exhibit("table-corpus", outputs, **files)


@pytest.fixture
def corpus(tmp_path, report_settings, corpus_files):
    """Writes parts and a manifest; returns the data of the table."""

    def make(*numbers, documents=(900, 50), tokens=640_060, record=None, **part):
        manifest = tmp_path / "manifest.json"
        values = {"documents": {"train": documents[0], "validation": documents[1]}, "tokens": tokens}
        values |= {"rows": {"train": 9900, "validation": 100}, "sequence_length": 64}
        values |= {"remainder_tokens": 10, "surplus_tokens": {"train": 30, "validation": tokens - 640_040}}
        manifest.write_text(json.dumps(values))
        parts = corpus_files(*numbers, part=part, record=record)
        return {"parts": parts, "manifest": manifest, "settings": report_settings()}

    return make


def test_the_corpus_table_sums_its_parts_in_natural_order(corpus, outputs):
    tabulate_corpus(corpus(10, 9, 1), outputs)
    *parts, total, paper = read_shown(outputs[0])
    assert [row["part"] for row in parts] == ["en_meta_part_1", "en_meta_part_9", "en_meta_part_10"]
    assert [
        total[key] for key in ("part", "read", "bad", "blocked_category", "blocked_url", "quality_warning", "kept")
    ] == (["total", "3035", "6", "9", "0", "20", "3000"])
    assert [total[key] for key in ("characters_read", "characters_kept", "words", "tokens")] == [
        "12000450",
        "12000000",
        "1440000",
        "1926000",
    ]
    packed = ("packed_documents", "packed_tokens", "left_over_tokens", "train_rows", "validation_rows")
    assert [total[key] for key in packed] == ["950", "640000", "60", "9900", "100"]
    assert total["characters_dropped_quality_warning"] == "300"
    assert (paper["kept"], paper["tokens"]) == ("30000000", "70000000000")
    assert (paper["train_rows"], paper["validation_rows"]) == ("137000000", "10000")


def test_every_row_of_the_corpus_table_adds_up(corpus, outputs):
    tabulate_corpus(corpus(1, 2), outputs)
    for row in read_shown(outputs[0])[:-1]:
        reasons = [key for key in row if key.startswith(("blocked", "no_", "perplexity", "quality"))]
        assert len(reasons) == 6
        assert int(row["read"]) == int(row["kept"]) + int(row["bad"]) + sum(int(row[reason]) for reason in reasons)


def test_tokens_per_word_do_not_count_cls_and_sep(corpus, outputs):
    """3,600,000 tokens of 1,000 documents are 3,598,000 of words; 1,799,000 words a part."""
    tabulate_corpus(corpus(1, 2, record={"tokens": 3_600_000, "words": 1_799_000}), outputs)
    assert [row["fertility"] for row in read_shown(outputs[0])] == ["2.00", "2.00", "2.00", ""]


def test_more_documents_or_tokens_than_were_kept_are_refused(corpus, outputs):
    with pytest.raises(DataError, match="1050 documents packed, but 1000 kept"):
        tabulate_corpus(corpus(1, documents=(1000, 50)), outputs)
    with pytest.raises(DataError, match=r"manifest.json: 642001 tokens packed, but 642000 kept"):
        tabulate_corpus(corpus(1, tokens=642_001), outputs)
    files = corpus(1)
    files["manifest"].write_text(json.dumps(json.loads(files["manifest"].read_text()) | {"remainder_tokens": 11}))
    with pytest.raises(DataError, match="640000 tokens in rows and 61 left over are not its 640060"):
        tabulate_corpus(files, outputs)
    assert not any(path.exists() for path in outputs)


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


def facts(runs=(), **given):
    rows = provenance_table(collected(sections={"report": {}}, runs=list(runs), **given)).frame.to_dict("records")
    return {row["what"]: row["value"] for row in rows}


def test_a_report_that_is_made_again_does_not_have_to_differ_by_its_moment(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert facts()["written"] == "2023-11-14 22:13:20 UTC"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "")
    assert facts()["written"] > "2026", "an empty variable says nothing"


def test_weights_are_credited_to_the_commits_that_trained_them(pretrained):
    """Not to the commit that is checked out when the report is written."""
    runs = pretrained("original", commit="4f0e, modified"), pretrained("shared", commit="77aa")
    assert facts(runs)["pre-training: commit"] == "4f0e, modified, 77aa"


def test_a_run_that_went_on_under_another_commit_was_trained_by_both(pretrained, write_sessions):
    """timing.json tells of one session of several."""
    run = pretrained("original", commit="77aa", sessions=2)
    record = write_sessions(run, ("a", "cpu", 1, 30), ("a", "cpu", 1, 60))
    known = json.loads(record.read_text())
    for session, commit in zip(known["sessions"], ("4f0e, modified", "77aa"), strict=True):
        session["commit"] = commit
    record.write_text(json.dumps(known))
    assert facts([run])["pre-training: commit"] == "4f0e, modified; 77aa"


def test_imported_scores_have_no_runs(write_run):
    runs = [write_run("tiny", "original", [(50, 5.0)])]
    assert not [key for key in facts(runs, origin={"name": "theirs"}) if key.startswith("pre-training")]


def rows(*runs, hosts=()):
    return runs_table(collected(runs=list(runs), hosts=list(hosts))).frame.to_dict("records")


def test_a_run_of_one_session_has_its_hours_and_hashes(pretrained):
    (row,) = rows(pretrained("original"))
    assert row["run"] == "tiny-original seed 1" and row["device"] == "cpu" and row["versions"] == "torch 2.13.0"
    assert (row["settings_hash"], row["corpus_hash"]) == ("5e77", "c0ffee")
    assert (row["sessions"], str(row["wall_hours"]), str(row["gpu_hours"])) == (1, "0.010", "0.000")  # 36 seconds


def test_an_interrupted_run_has_the_hours_of_all_its_sessions_and_each_machine(pretrained, write_sessions):
    """One hour on two GPUs of a, one and a half on one GPU of b: 2.5 hours, and 3.5 of GPUs."""
    run = pretrained("original", device="A card", sessions=2)
    write_sessions(run, ("a", "A card", 2, 60), ("b", "Another card", 1, 90))
    (row,) = rows(run)
    assert (row["device"], row["processes"]) == ("A card; Another card", "2; 1") and "host" not in row
    assert (row["sessions"], str(row["wall_hours"]), str(row["gpu_hours"])) == (2, "2.500", "3.500")


def test_the_hours_of_one_session_are_not_those_of_three(pretrained):
    """Where the state is gone, timing.json tells of the last session alone."""
    (row,) = rows(pretrained("original", sessions=3))
    assert row["sessions"] == 3 and row["wall_hours"] is row["gpu_hours"] is None
    (row,) = rows(pretrained("original", sessions=1))
    assert str(row["wall_hours"]) == "0.010"


def test_a_decoder_is_not_the_encoder_of_its_name(pretrained, write_sessions, tmp_path):
    """Of its commits and machines no table told, and their files would have gone with those of the encoder."""
    encoder = pretrained("original", commit="77aa")
    decoder = shutil.copytree(encoder, tmp_path / "runs/decoder/tiny-original/seed-1")
    for name, changes in (("done.json", {}), ("timing.json", {"commit": "4f0e, modified"})):
        told = {**json.loads((decoder / name).read_text()), **changes, "model_host": "decoder"}
        (decoder / name).write_text(json.dumps(told))
    log = decoder / "metrics.jsonl"
    log.write_text(log.read_text().replace('"loss"', '"perplexity": 9.0, "loss"'))
    write_sessions(encoder, ("a", "cpu", 1, 60))
    write_sessions(decoder, ("b", "cpu", 1, 30))
    assert [(row["run"], str(row["wall_hours"])) for row in rows(encoder, hosts=[decoder])] == [
        ("tiny-original seed 1", "1.000"),
        ("decoder tiny-original seed 1", "0.500"),
    ]
    shutil.rmtree(encoder / "state")
    shutil.rmtree(decoder / "state")
    assert [pretrained_run(read_run(run)).facts_of("commit") for run in (decoder, encoder)] == [
        "4f0e, modified",
        "77aa",
    ]


def test_a_session_that_was_killed_at_once_took_no_time():
    killed = {"started": "2026-01-01T00:00:00Z", "device": "A card", "processes": 4}
    assert PretrainedRun(None, {}, [killed]).hours == (0, 0)
    ended = killed | {"until": "2026-01-02T06:00:00Z"}
    assert PretrainedRun(None, {"sessions": 2}, [killed, ended]).hours == (30, 120)
    assert PretrainedRun(None, {}, [ended | {"device": "cpu"}]).hours == (30, 0)


def test_imported_results_name_their_files_and_hashes():
    told = {"name": "authors", "files": {"scores.csv": "ab12", "losses.csv": "cd34"}, "steps": 200_000}
    (row,) = runs_table(collected(origin=told)).frame.to_dict("records")
    assert (row["name"], row["files"], row["steps"]) == ("authors", "scores.csv ab12, losses.csv cd34", 200_000)
