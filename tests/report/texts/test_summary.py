"""The page's three sentences: what was compared, on what, and what tests support."""

import itertools
import math
import random

import pytest

from symbert.report.data import Data, write_exhibit
from symbert.report.exhibits import EXHIBITS
from symbert.report.texts.summary import summary

STEPS = range(50, 1801, 50)


@pytest.fixture
def sentences(write_scores, settings_file, record, runs_of):
    """The sentences of models whose score is better than that of original by so many points, with noise of a fifth of
    one, and whose exits come after so many steps, a different one in each pre-training seed."""

    def make(points=None, finetune_seeds=(1, 2), exits=None, **settings):
        source, data = random.Random(1), Data(settings=settings_file(tasks=["rte", "sst2"], **settings))
        if points is not None:
            cells = itertools.product(points, ("rte", "sst2"), finetune_seeds)
            records = [
                record("tiny", name, 1800, task, seed, 0.6 + points[name] / 100 + source.gauss(0, 0.002))
                for name, task, seed in cells
            ]
            data = Data(
                settings=data.files["settings"], scores=write_scores(records), finetune_seeds=list(finetune_seeds)
            )
        runs = [
            ("tiny", name, seed, STEPS, [_loss(step, leaves) for step in STEPS])
            for name, steps in (exits or {}).items()
            for seed, leaves in enumerate(steps, start=1)
        ]
        data.runs = runs_of(*runs)
        return summary(data)

    return make


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


def test_exits_are_equal_where_the_interval_of_their_ratio_says_so(sentences):
    steps = [500, 550, 500, 550, 500, 550]
    *_, supported = sentences(exits={"original": steps, "pairwise": steps[::-1]})
    exits = "exits from the plateau of tiny-pairwise and tiny-original within 25 % of each other"
    assert f"The data support {exits} (ratio of " in supported


def test_the_text_has_a_sentence_a_line_and_is_an_exhibit_of_its_own(write_run, settings_file, tmp_path):
    done, metrics = write_run("tiny", "original", [(step, _loss(step, 500)) for step in STEPS])
    inputs = {"settings": settings_file(), "done": [done], "metrics": [metrics]}
    write_exhibit("text-summary", [tmp_path / "summary.txt"], **inputs)
    assert len((tmp_path / "summary.txt").read_text().splitlines()) == 3
    assert EXHIBITS["text-summary"].stem == "texts/summary" and EXHIBITS["text-summary"].rule == "write_summary"
