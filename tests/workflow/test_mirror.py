"""The chain on real documents, the real UT1 archive, the real vocabulary and real GLUE rows, at a tiny scale."""

import json

import pytest

from workflow.checkout import check_out

DOCUMENTS_OF_PART_1 = 5_740  # as the mirror's README counts them
BERT_BASE_UNCASED = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"  # sha256 of its vocab.txt
SETS = {"ax": 1_104, "adv_mnli": 121, "adv_mnli_mismatched": 162}  # the files' rows


@pytest.mark.campaign
def test_real_rows_are_counted_whole_and_called_what_they_are(root, mirror, tmp_path):
    """With one model; 32 rows of each set, because the tiny chain evaluates on as many."""
    copy = check_out(root, tmp_path / "run")
    challenges = "glue={robustness: {noise: [], sets: [ax, advglue]}}"
    one = "sweep={attention: [original], pretrain_seeds: [1], curve: {sizes: []}}"
    outcome = copy.tiny("--config", "source=mirror", f"mirror={mirror}", challenges, one)
    assert outcome.code == 0, outcome.output[-5000:]
    results = copy.directory / "results"

    def only(pattern: str):
        (path,) = results.glob(pattern)
        return json.loads(path.read_text())

    counts = only("corpus/parts-*/en_meta_part_1.json")["counts"]
    assert counts["read"] == counts["kept"] + sum(counts["dropped"].values()) == DOCUMENTS_OF_PART_1
    assert all(counts["dropped"][reason] for reason in ("blocked_category", "no_perplexity", "quality_warning"))
    manifest = only("corpus/shards-*/manifest.json")
    assert (manifest["vocabulary_size"], manifest["vocabulary_sha256"]) == (30522, BERT_BASE_UNCASED)
    assert manifest["special_tokens"] == {"pad": 0, "unk": 100, "cls": 101, "sep": 102, "mask": 103}
    assert "stand-in" not in (results / "demo-mirror/report/tables/table3_glue.md").read_text()
    records = {record["task"]: record for record in only("scores/glue-*/encoder/tiny-original-*/seed-1/step-20/*.json")}
    assert records["qqp"]["official_rows"] == {"train": 363_846, "validation": 40_430} and records["qqp"]["partial"]
    noisy = only("robustness/glue-*/encoder/tiny-original-*/seed-1/step-20/*.json")
    sets = next(record for record in noisy if record["task"] == "mnli")["sets"]
    assert {name: facts["official_rows"] for name, facts in sets.items()} == SETS
    assert all(facts["rows"] == 32 and facts["partial"] for facts in sets.values())
    assert "cola" not in {record["task"] for record in noisy}, "no set asks its classifier"
