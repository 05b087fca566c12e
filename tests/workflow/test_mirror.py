"""The same chain on real documents, the real UT1 archive, the real vocabulary and real GLUE rows, at a tiny scale."""

import json
import shutil

import pytest

from workflow.checkout import Checkout, check_out

DOCUMENTS_OF_PART_1 = 5_740  # as the mirror's README counts them
BERT_BASE_UNCASED = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"  # sha256 of its vocab.txt


@pytest.fixture(scope="module")
def finished(root, mirror, tmp_path_factory) -> Checkout:
    """A checkout in which the tiny chain ran on the mirror, with one model."""
    copy = check_out(root, tmp_path_factory.mktemp("mirror") / "run")
    challenges = "glue={robustness: {noise: [], sets: [ax, advglue]}}"
    one = "sweep={attention: [original], pretrain_seeds: [1], curve: {sizes: []}}"
    outcome = copy.tiny("--config", "source=mirror", f"mirror={mirror}", challenges, one)
    assert outcome.code == 0, outcome.output[-5000:]
    return copy


@pytest.fixture
def results(finished):
    return finished.directory / "results"


def only(results, pattern):
    """The content of the one file that matches."""
    (path,) = results.glob(pattern)
    return json.loads(path.read_text())


@pytest.mark.campaign
def test_the_real_part_is_read_whole_and_every_document_accounted_for(results):
    counts = only(results, "corpus/parts-*/en_meta_part_1.json")["counts"]
    assert counts["read"] == DOCUMENTS_OF_PART_1
    assert counts["kept"] + sum(counts["dropped"].values()) == DOCUMENTS_OF_PART_1
    assert all(counts["dropped"][reason] for reason in ("blocked_category", "no_perplexity", "quality_warning"))


@pytest.mark.campaign
def test_the_rows_are_of_the_real_vocabulary(results):
    manifest = only(results, "corpus/shards-*/manifest.json")
    assert (manifest["vocabulary_size"], manifest["vocabulary_sha256"]) == (30522, BERT_BASE_UNCASED)
    assert manifest["special_tokens"] == {"pad": 0, "unk": 100, "cls": 101, "sep": 102, "mask": 103}


@pytest.mark.campaign
def test_partial_tasks_are_named_and_none_is_called_a_stand_in(results):
    table = (results / "demo-mirror/report/tables/table3_glue.md").read_text()
    assert "Partial tasks" in table and "local mirror" in table and "stand-in" not in table
    records = only(results, "scores/glue-*/encoder/tiny-original-*/seed-1/step-20/*.json")
    record = next(record for record in records if record["task"] == "qqp")
    assert record["official_rows"] == {"train": 363_846, "validation": 40_430} and record["partial"]


@pytest.mark.campaign
def test_the_real_out_of_domain_sets_are_scored_by_the_classifier_of_their_task(results):
    """32 rows of each set, because the tiny chain evaluates on as many; the files' own rows stand beside."""
    records = only(results, "robustness/glue-*/encoder/tiny-original-*/seed-1/step-20/*.json")
    sets = next(record for record in records if record["task"] == "mnli")["sets"]
    assert {name: facts["official_rows"] for name, facts in sets.items()} == {
        "ax": 1_104,
        "adv_mnli": 121,
        "adv_mnli_mismatched": 162,
    }
    assert all(facts["rows"] == 32 and facts["partial"] for facts in sets.values())
    table = (results / "demo-mirror/report/tables/robustness.md").read_text()
    assert "adv sst2" in table and "adv mean" in table
    assert "cola" not in {record["task"] for record in records}, "no set asks its classifier"


def test_a_damaged_part_stops_the_run_by_name_and_leaves_nothing_half_written(root, mirror, tmp_path):
    copy = check_out(root, tmp_path / "run")
    fake = tmp_path / "mirror"
    folder = fake / "oscar-corpus/OSCAR-2301/en_meta"
    folder.mkdir(parents=True)
    original = mirror / "oscar-corpus/OSCAR-2301/en_meta"
    (folder / "checksum.sha256").write_bytes((original / "checksum.sha256").read_bytes())
    content = bytearray((original / "en_meta_part_1.jsonl.zst").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "en_meta_part_1.jsonl.zst").write_bytes(content)
    shutil.copytree(mirror / "google-bert", fake / "google-bert")
    only_text = ("source=mirror", f"mirror={fake}", "corpus={parts: 1, filter: none}", "glue={source: embedded}")
    outcome = copy.tiny("--until", "prepare_part", "--config", *only_text)
    assert outcome.code == 1 and "symbert prepare-part: " in outcome.output
    assert "en_meta_part_1.jsonl.zst" in outcome.output and "sha256" in outcome.output
    left = [path.name for path in copy.directory.glob("results/corpus/parts-*/*") if path.is_file()]
    assert left == ["settings.json"]
