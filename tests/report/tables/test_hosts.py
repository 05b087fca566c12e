"""Operators in other hosts: a row per host, size and operator, from what runs published."""

import json

import pytest

from report.written import collected
from symbert.errors import DataError
from symbert.report.captions import wording_of
from symbert.report.tables.hosts import hosts_table


@pytest.fixture
def published(tmp_path):
    """Writes the done.json of runs, and gives their folders."""

    def make(*runs, **changes):
        folders = []
        for attention, seed, loss, perplexity in runs:
            done = {"size": "tiny", "attention": attention, "pretrain_seed": seed, "model_host": "decoder"}
            done |= {"steps": 1000, "parameters": 150, "validation_loss": loss, "validation_perplexity": perplexity}
            folders.append(tmp_path / f"{attention}-{seed}")
            folders[-1].mkdir(exist_ok=True)
            written = {key: value for key, value in {**done, **changes}.items() if value}
            (folders[-1] / "done.json").write_text(json.dumps(written))
            values = {key.removeprefix("validation_"): value for key, value in written.items()}
            (folders[-1] / "metrics.jsonl").write_text(json.dumps(values | {"split": "validation", "step": 1000}))
        return folders

    return make


RUNS = (("symmetric", 1, 3.5, 33.0), ("original", 1, 3.0, 20.0), ("original", 2, 3.2, 24.0))


def test_seeds_of_an_operator_are_a_row_with_their_mean_and_spread(published, report_settings):
    table = hosts_table(collected(hosts=published(*RUNS), settings=report_settings(steps=1000)))
    original, symmetric = table.frame.to_dict("records")
    assert (original["host"], original["attention"], symmetric["attention"]) == ("decoder", "original", "symmetric")
    assert (str(original["validation_loss"]), str(original["perplexity"])) == ("3.100", "22.000")
    assert (str(original["std"]), symmetric["std"]) == ("0.141", None)
    assert original["parameters"] == 150
    assert "perplexity is that of held-out rows" in table.caption


def test_a_wanted_run_of_another_host_is_not_left_out_of_the_table(published, report_settings):
    """What was asked for was told by the files alone, as once for the encoder."""
    wanted = [["decoder", "tiny", "original", 1], ["decoder", "tiny", "low_rank8", 1]]
    files, settings = published(*RUNS[:2]), report_settings(steps=1000, host_runs=wanted[:1])
    assert not collected(hosts=files, settings=settings).hosts.empty
    with pytest.raises(DataError, match="decoder tiny-low_rank8 seed 1 is missing"):
        hosts_table(collected(hosts=files, settings=report_settings(steps=1000, host_runs=wanted)))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"steps": 999}, "the run has 999 steps, expected 1000"),
        ({"model_host": "radio"}, "'model_host' is radio, expected one of decoder"),
        ({"validation_perplexity": None}, "validation_perplexity"),
    ],
)
def test_a_run_that_cannot_stand_beside_the_others_is_named(published, report_settings, changes, reason):
    (file,) = published(RUNS[0], **changes)
    with pytest.raises(DataError, match=f"{file}.*{reason}"):
        hosts_table(collected(hosts=[file], settings=report_settings(steps=1000)))


def test_a_translation_has_two_scores_and_says_how_sacrebleu_computed_them(published, report_settings):
    """Perplexity is of other hosts."""
    signatures = {"chrf_signature": "nrefs:1|nc:6", "bleu_signature": "nrefs:1|tok:13a"}
    scores = {"validation_chrf": 41.25, "validation_bleu": 17.5, "validation_perplexity": None}
    text = published(("shared", 1, 2.5, 0.0), model_host="encoder-decoder", **scores, **signatures)
    table = hosts_table(collected(hosts=[*published(RUNS[0]), *text], settings=report_settings(steps=1000)))
    decoder, translation = table.frame.to_dict("records")
    assert [str(translation[name]) for name in ("chrf", "bleu")] == ["41.250", "17.500"]
    assert (translation["perplexity"], decoder["chrf"], str(decoder["perplexity"])) == (None, None, "33.000")
    assert "chrf nrefs:1|nc:6; bleu nrefs:1|tok:13a." in table.caption
    decoders = collected(hosts=published(RUNS[0]), settings=report_settings(steps=1000))
    assert "sacrebleu" not in hosts_table(decoders).caption


def test_a_stand_in_for_parallel_text_is_named_beside_its_numbers_and_at_the_top_of_the_page(
    published, report_settings
):
    scores = {"validation_chrf": 41.25, "validation_bleu": 17.5, "validation_perplexity": None}
    text = published(("shared", 1, 2.5, 0.0), model_host="encoder-decoder", **scores)
    for stand_in in (True, False):
        settings = report_settings(steps=1000, stand_in_text=stand_in)
        caption = hosts_table(collected(hosts=text, settings=settings)).caption
        assert ("parallel text is a stand-in" in caption) is stand_in
        warnings = wording_of(settings).warnings
        assert any("parallel text is a stand-in" in warning for warning in warnings) is stand_in
    with_no_text = collected(hosts=published(RUNS[0]), settings=report_settings(steps=1000, stand_in_text=True))
    assert "stand-in" not in hosts_table(with_no_text).caption
