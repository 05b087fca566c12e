"""What made a report is told as it is: versions, hashes, the runs' machines, and the commits that trained them."""

import json

from report.written import collected
from symbert.report.tables.corpus import provenance_table


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
