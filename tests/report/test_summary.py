"""The page's sentences: what was compared and found, what tests support, and on what data."""

import itertools
import math
import random
import re

import pytest

from report.written import collected
from symbert.report.summary import summary

STEPS = range(50, 1801, 50)


@pytest.fixture
def sentences(write_scores, report_settings, record, runs_of):
    """The sentences of models whose score is better than that of original by so many points, with noise of a fifth of
    one, and whose escapes come after so many steps, a different one in each pre-training seed."""

    def make(points=None, finetune_seeds=(1, 2), escapes=None, escape_loss=4.99, **changes):
        source, scores = random.Random(1), {}
        if points is not None:
            cells = itertools.product(points, ("rte", "sst2"), finetune_seeds)
            records = [
                record("tiny", name, 1800, task, seed, 0.6 + points[name] / 100 + source.gauss(0, 0.002))
                for name, task, seed in cells
            ]
            sweep = {"tasks": ["rte", "sst2"], "finetune_seeds": list(finetune_seeds)}
            scores = {"scores": write_scores(records), "sweep": sweep}
        runs = [
            ("tiny", name, seed, STEPS, [_loss(step, escape) for step in STEPS])
            for name, steps in (escapes or {}).items()
            for seed, escape in enumerate(steps, start=1)
        ]
        experiment = report_settings(escape_loss=escape_loss, **changes)
        return summary(collected(experiment, runs=runs_of(*runs), **scores))

    return make


def _loss(step, escape):
    """A plateau that is escaped after a step; never for None."""
    return 5 + math.exp(-step / 60) / 100 - (0 if escape is None else 1.5 * max(0.0, math.log(step / escape)))


@pytest.mark.parametrize(
    ("points", "escapes", "reasons"),
    [
        ({"original": 0, "shared": -30}, {"original": [500], "shared": [900]}, [
            "2 fine-tuning seeds", "scores takes 3", "1 pre-training seed", "escapes takes 5"]),
        ({"shared": -30}, None, ["tiny-original", "no scores", "there are no losses"]),
        (None, {"original": [400, 600, 900, 500, 800], "pairwise": [900, 400, 600, 800, 500]}, [
            "there are no scores", "no difference of escapes from the plateau is significant"]),
    ],
)  # fmt: skip
def test_what_no_test_supports_is_undecided_with_the_reason(sentences, points, escapes, reasons):
    """Of two seeds a difference of 30 points is no finding."""
    _, _, supported, *_ = sentences(points, escapes=escapes)
    assert "The data support no difference between operators: " in supported
    assert all(reason in supported for reason in reasons)


def test_a_difference_of_scores_is_supported_where_the_primary_test_shows_it(sentences):
    points = {"original": 0, "symmetric": -4, "pairwise": 0}
    _, _, supported, *_ = sentences(points, finetune_seeds=range(1, 11))
    assert supported.startswith("The data support a lower GLUE score of tiny-symmetric than of tiny-original (")
    assert "pairwise" not in supported and "of these trained models: one pre-training seed)" in supported


@pytest.mark.parametrize(
    ("escape", "words", "share"),
    [
        (300, "an earlier escape", r"pairwise takes 5\d %"),
        (1000, "a later escape", r"pairwise takes 1\d\d %"),
        (None, "a later escape", r"pairwise takes more than 2\d\d %"),
    ],
)
def test_a_difference_of_escapes_is_supported_where_its_test_shows_it(sentences, escape, words, share):
    original = [500, 550, 600, 650, 500, 550, 600, 650]
    _, found, supported, *_ = sentences(escapes={"original": original, "pairwise": [escape] * 8})
    assert re.search(f"{share} of the steps of original", found)
    assert f"The data support {words} from the plateau of tiny-pairwise than of tiny-original (" in supported
    assert supported.endswith("; all else is undecided: there are no scores.")


def test_a_difference_of_last_losses_is_supported_where_the_paired_test_shows_it(sentences):
    original = [500, 550, 600, 650, 500, 550, 600]
    _, _, supported, *_ = sentences(escapes={"original": original, "pairwise": [step + 10 for step in original]})
    assert "a higher validation loss of tiny-pairwise than of tiny-original (0.0" in supported
    assert "nats, corrected p 0.0156)" in supported


def test_escapes_are_equal_where_the_interval_of_their_ratio_says_so(sentences):
    steps = [500, 550, 500, 550, 500, 550]
    _, _, supported, *_ = sentences(escapes={"original": steps, "pairwise": steps[::-1]})
    escapes = "escapes from the plateau of tiny-pairwise and tiny-original within 25 % of each other"
    assert f"The data support {escapes} (ratio of " in supported


def test_no_operator_is_said_to_be_first_and_shares_of_steps_are_of_tested_differences(sentences):
    """Medians of three seeds, which are too few for a test, were said to show which operator escapes first."""
    steps = {"original": 500, "symmetric": 510, "pairwise": 300}
    for seeds, tested in ((3, False), (8, True)):
        begun, found, supported, *_ = sentences(
            escapes={name: [step + 10 * seed for seed in range(seeds)] for name, step in steps.items()}
        )
        assert not any("first" in sentence for sentence in (begun, found, supported))
        assert ("% of the steps of original" in found) == tested
        assert all(f"{name} at step" in supported for name in steps)
    pairwise = re.search(r"pairwise takes (\d+) % of the steps of original", found)
    assert 55 <= int(pairwise[1]) <= 65 and "symmetric" not in found.partition("%")[0]


def test_an_operator_that_another_is_with_other_logits_is_named_as_that(sentences):
    steps = {
        "original": [800 + 10 * seed for seed in range(8)],
        "original-wide": [400 + 10 * seed for seed in range(8)],
    }
    _, found, *_ = sentences(escapes=steps)
    assert "original-wide" in found and "of the steps of original" in found


def test_what_has_not_escaped_by_its_end_may_still_do_so(sentences):
    """It was "never", whatever the run would have done after its last step."""
    _, _, supported, *_ = sentences(escapes={"original": [None] * 3, "pairwise": [500] * 3})
    assert "pairwise at step 550" in supported and "original not within 1,800 steps" in supported
    assert "never" not in supported


@pytest.mark.parametrize(("scale", "key"), [("imported", "--escape-loss"), ("demo", "sweep.escape_loss")])
def test_without_a_level_no_escapes_are_stated_and_the_key_is_named(sentences, scale, key):
    escapes = {"original": [800] * 5, "pairwise": [400] * 5}
    _, _, supported, *_ = sentences(escapes=escapes, escape_loss=None, scale=scale)
    assert supported.startswith(f"No escapes from the plateau are stated, as {key} is missing.")
    assert "at step" not in supported and "first" not in supported and "The data support no difference" in supported


def test_what_a_step_reads_is_told_of_each_architecture(report_settings):
    """A decoder of smaller batches and fewer steps."""
    architectures = ["encoder", "decoder"]
    settings = {"architectures.decoder.batch_size": 8, "architectures.decoder.steps": 500}
    *_, trained = summary(collected(report_settings(settings), sweep={"architectures": architectures}))
    steps, *_ = trained.split("; corpus")
    told = [re.findall(r"[\d,]+", part) for part in steps.split("; ")]
    assert told == [["32", "64", "1,800"], ["8", "64", "500"]]


def test_scores_of_another_suite_are_not_said_to_be_glues(write_scores, report_settings, record):
    """Scores of SuperGLUE were "GLUE from its publisher", and stand-ins of GLUE "scores on GLUE, not GLUE"."""
    scored = {"task": "boolq", "metrics": {"boolq": 0.6}, "majority": {"boolq": 0.5}}
    records = [record("tiny", "original", 1800, "rte", 1) | scored]
    sweep = {"tasks": ["boolq"], "finetune_seeds": [1], "suites": ["superglue"]}
    for source, words in (("hub", "scores: SuperGLUE from the hub."), ("embedded", "tasks, not SuperGLUE.")):
        experiment = report_settings({"glue.source": source})
        *_, trained = summary(collected(experiment, scores=write_scores(records), sweep=sweep, suite="superglue"))
        assert trained.endswith(words)
