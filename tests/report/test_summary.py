"""The page's three sentences: what was compared, on what, and what tests support."""

import itertools
import math
import random
from dataclasses import replace

import pandas as pd
import pytest

from report.written import collected
from symbert.glue.tasks import GLUE, OWN, SUITES
from symbert.report import captions
from symbert.report.collect import Collection, read_inputs
from symbert.report.summary import summary

STEPS = range(50, 1801, 50)


@pytest.fixture
def sentences(write_scores, report_settings, record, runs_of):
    """The sentences of models whose score is better than that of original by so many points, with noise of a fifth of
    one, and whose exits come after so many steps, a different one in each pre-training seed."""

    def make(points=None, finetune_seeds=(1, 2), exits=None, **settings):
        source, settings, scores = random.Random(1), report_settings(tasks=["rte", "sst2"], **settings), {}
        if points is not None:
            cells = itertools.product(points, ("rte", "sst2"), finetune_seeds)
            records = [
                record("tiny", name, 1800, task, seed, 0.6 + points[name] / 100 + source.gauss(0, 0.002))
                for name, task, seed in cells
            ]
            scores = {"scores": write_scores(records), "finetune_seeds": list(finetune_seeds)}
        runs = [
            ("tiny", name, seed, STEPS, [_loss(step, leaves) for step in STEPS])
            for name, steps in (exits or {}).items()
            for seed, leaves in enumerate(steps, start=1)
        ]
        return summary(collected(settings=settings, runs=runs_of(*runs), **scores))

    return make


SUPERGLUE = list(SUITES["superglue"].tasks)


@pytest.fixture
def beside_glue(write_scores, report_settings, record):
    """Data of SuperGLUE's scores, in which pairwise is better by so many points; of models without pre-training, too,
    where there are several steps; and of GLUE's, in which it is not, where asked."""

    def make(better, glue=False, steps=(1800,), **settings):
        source, records = random.Random(1), []
        for attention, step, task, seed in itertools.product(("original", "pairwise"), steps, SUPERGLUE, range(1, 7)):
            points = (better * (attention == "pairwise") + 20 * (step > 0)) / 100
            score = {task: 0.4 + points + source.gauss(0, 0.002)}
            facts = {"task": task, "metrics": score, "majority": {task: 0.3}, "data_sha256": task}
            records.append(record("tiny", attention, step, "rte", seed) | facts | {"settings_hash": "ab12"})
        of_glue = [
            record("tiny", name, 1800, "rte", seed, 0.6 + source.gauss(0, 0.002))
            for name, seed in itertools.product(("original", "pairwise"), range(1, 7))
        ]
        files = {"superglue": write_scores(records)} | ({"glue": write_scores(of_glue, "glue")} if glue else {})
        tasks = [*(["rte"] if glue else []), *SUPERGLUE]
        settings = report_settings(**{"tasks": tasks, "suites": {"superglue": "ab12"}, **settings})
        return read_inputs(settings, {"scores": files}, finetune_seeds=range(1, 7))

    return make


def test_suites_without_glue_have_scores(beside_glue):
    """The page said "there are no scores", and "not GLUE" of SuperGLUE's stand-ins."""
    compared, on_what, supported = summary(beside_glue(5))
    assert compared.endswith("were compared in BERT-tiny, with one pre-training seed and six fine-tuning seeds each.")
    assert on_what.endswith("; scored on stand-in tasks made from documentation text, not SuperGLUE.")
    assert supported.startswith("The data support a higher SuperGLUE score than original of tiny-pairwise (")
    assert "there are no scores" not in supported


def test_another_suite_may_support_what_glue_leaves_undecided(beside_glue):
    """The page said that nothing was supported, above a significant difference in SuperGLUE."""
    _, on_what, supported = summary(beside_glue(5, glue=True, glue_source="mirror"))
    assert on_what.endswith("; scored on GLUE and SuperGLUE from a local mirror.")
    assert supported.startswith("The data support a higher SuperGLUE score than original of tiny-pairwise (")
    assert "; all else is undecided: no difference in the GLUE score is significant; there are no losses." in supported


def test_models_without_pre_training_are_told(beside_glue):
    """The summary of `sweep.untrained` was word for word that of the demo."""
    compared, _, supported = summary(beside_glue(0, steps=(0, 1800)))
    assert compared.endswith(" each, beside models without pre-training.")
    assert "a higher SuperGLUE score than without pre-training of tiny-original (" in supported
    assert "no difference in the SuperGLUE score between operators is significant" in supported


def _of_hosts(report_settings, *runs, steps, **settings):
    """Data of the runs (host, attention) of other hosts of one seed, without the encoder."""
    asked_for = [[host, "tiny", attention, 1] for host, attention in runs]
    hosts = pd.DataFrame(asked_for, columns=["host", "size", "attention", "pretrain_seed"])
    return Collection(report_settings(host_runs=asked_for, host_steps=steps, **settings), hosts=hosts)


def test_of_translation_alone_no_sentence_is_of_the_corpus_or_of_an_encoder(report_settings):
    """The page said "There are neither scores nor losses of any model", and that these were trained on the corpus."""
    runs = [("encoder-decoder", "original"), ("encoder-decoder", "shared")]
    data = _of_hosts(report_settings, *runs, steps={"encoder-decoder": 200}, stand_in_text=True)
    compared, on_what, supported = summary(data)
    assert compared == (
        "Two attention operators, original and shared, were compared in encoder-decoders (tiny), with one pre-training "
        "seed each."
    )
    assert on_what == "Pre-trained: encoder-decoders for 200 steps on a stand-in of parallel text."
    assert supported.endswith(": there are no scores; no test compares the losses of other hosts.")
    wording = captions.wording_of(data.settings)
    assert not [text for text in wording.warnings if "corpus" in text or "tasks" in text]
    assert captions.data_of(data.settings) == {}


def test_of_minimal_pairs_alone_it_is_not_said_that_there_are_no_scores(report_settings):
    data = Collection(report_settings(), blimp=pd.DataFrame())
    assert "judgements of minimal pairs are not tested" in summary(data)[2] and "no scores" not in summary(data)[2]


def test_decoders_have_their_own_steps(report_settings, runs_of):
    data = _of_hosts(report_settings, ("decoder", "original"), steps={"decoder": 5000}, runs=[["tiny", "original", 1]])
    data = replace(data, runs=runs_of(("tiny", "original", 1, [50, 100], [5.0, 4.0])))
    compared, on_what, _ = summary(data)
    assert "was trained in BERT-tiny and decoders (tiny), with one pre-training seed each." in compared
    assert on_what.endswith("on a stand-in corpus made from documentation text; decoders for 5,000 steps.")
    alone = _of_hosts(report_settings, ("decoder", "original"), steps={"decoder": 5000})
    assert (
        summary(alone)[1] == "Pre-trained: decoders for 5,000 steps on a stand-in corpus made from documentation text."
    )


def test_tasks_of_ones_own_are_no_stand_ins(report_settings, monkeypatch):
    """Beside a task of one's own alone the page said "The tasks are stand-ins …, not GLUE"."""
    monkeypatch.setitem(OWN, "mine", replace(GLUE["wnli"], name="mine", scores={"validation": "mine"}))
    own = report_settings(tasks=["mine"])
    assert captions.wording_of(own).tasks == "mine of the user's own"
    assert not [text for text in captions.wording_of(own).warnings if "tasks" in text and "stand-ins made" in text]
    beside = report_settings(tasks=["rte", "mine"])
    assert captions.tasks_in_words(beside).endswith("not GLUE, and mine of the user's own")


def _loss(step, leaves):
    """A plateau that is left after a step; never for None."""
    return 5 + math.exp(-step / 60) - (0 if leaves is None else 1.5 * max(0.0, math.log(step / leaves)))


def test_the_first_sentence_says_what_was_compared_and_the_second_on_what(sentences):
    compared, on_what, _ = sentences({"pairwise": 1, "original": 0}, exits={"original": [500], "pairwise": [400]})
    assert compared == (
        "Two attention operators, original and pairwise, were compared in BERT-tiny, with one pre-training seed and "
        "two fine-tuning seeds each."
    )
    assert on_what == (
        "Pre-trained for 1,800 steps in batches of 32 × 64 tokens on a stand-in corpus made from documentation text; "
        "scored on stand-in tasks made from documentation text, not GLUE."
    )
    compared, *_ = sentences({"pairwise": 1, "original": 0}, exits={"original": [500] * 3, "pairwise": [400] * 3})
    assert compared.endswith("with three pre-training seeds each, of which one had two fine-tuning seeds.")
    compared, *_ = sentences(exits={"original": [500] * 15}, points={"original": 0})
    assert compared.endswith("with 15 pre-training seeds each, of which one had two fine-tuning seeds.")
    (alone, on_what, _), nothing = sentences(exits={"original": [500]}), sentences()
    assert alone == "One attention operator, original, was trained in BERT-tiny, with one pre-training seed each."
    assert on_what.endswith("documentation text.") and "scored" not in on_what
    assert nothing[0] == "There are neither scores nor losses of any model."


@pytest.mark.parametrize(
    ("points", "exits", "reasons"),
    [
        ({"original": 0, "shared": -30}, {"original": [500], "shared": [900]}, [
            "a test of scores takes three fine-tuning seeds", "from the plateau takes five pre-training seeds"]),
        ({"shared": -30}, None, ["no other operator has scores beside original", "there are no losses"]),
        (None, {"original": [400, 600, 900, 500, 800], "pairwise": [900, 400, 600, 800, 500]}, [
            "there are no scores", "no difference of exits from the plateau is significant"]),
    ],
)  # fmt: skip
def test_what_no_test_supports_is_undecided_with_the_reason(sentences, points, exits, reasons):
    """Of two seeds a difference of 30 points is no finding."""
    *_, supported = sentences(points, exits=exits)
    assert supported.startswith("The data support no difference between operators: ")
    assert all(reason in supported for reason in reasons)


def test_a_difference_of_scores_is_supported_where_the_primary_test_shows_it(sentences):
    points = {"original": 0, "symmetric": -4, "pairwise": 0}
    *_, supported = sentences(points, finetune_seeds=range(1, 11))
    assert supported.startswith("The data support a lower GLUE score than original of tiny-symmetric (")
    assert "pairwise" not in supported and "one pre-training seed holds of these trained models, not of" in supported


@pytest.mark.parametrize(
    ("leaves", "words"), [(300, "an earlier exit"), (1000, "a later exit"), (None, "a later exit")]
)
def test_a_difference_of_exits_is_supported_where_its_test_shows_it(sentences, leaves, words):
    original = [500, 550, 600, 650, 500, 550, 600, 650]
    *_, supported = sentences(exits={"original": original, "pairwise": [leaves] * 8})
    assert f"The data support {words} from the plateau of tiny-pairwise than of tiny-original (" in supported
    assert supported.endswith("; all else is undecided: there are no scores.")


def test_a_difference_of_last_losses_is_supported_where_the_paired_test_shows_it(sentences):
    original = [500, 550, 600, 650, 500, 550, 600]
    *_, supported = sentences(exits={"original": original, "pairwise": [step + 10 for step in original]})
    assert "a higher validation loss of tiny-pairwise than of tiny-original (0.0" in supported
    assert "nats, corrected p 0.0156)" in supported


def test_exits_are_equal_where_the_interval_of_their_ratio_says_so(sentences):
    steps = [500, 550, 500, 550, 500, 550]
    *_, supported = sentences(exits={"original": steps, "pairwise": steps[::-1]})
    exits = "exits from the plateau of tiny-pairwise and tiny-original within 25 % of each other"
    assert f"The data support {exits} (ratio of " in supported
