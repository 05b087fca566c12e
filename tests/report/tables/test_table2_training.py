"""Table 2, continued: loss, plateau, start and speed of each model, read back from its files."""

import itertools
import random
import statistics

import pytest

from csv_rows import read_shown
from symbert.errors import DataError
from symbert.report.data import write_exhibit

FALL = [5.6] * 9 + [4.0, 3.0, 2.6]
SINGLE = "size attention validation_loss logit_std attention_entropy step_milliseconds of_original_percent"
SINGLE += " tokens_per_second mfu_percent"
DECIMALS = dict.fromkeys(("validation_loss", "std", "logit_std", "attention_entropy"), 3)
DECIMALS |= {"tokens_per_second": 0}


@pytest.fixture
def trained(write_run, write_timing, settings_file):
    """Files of runs: a list of (size, attention, seed, losses, changes to the timing)."""

    def make(*runs, **changes):
        files = []
        for size, attention, seed, losses, timing in runs:
            points = list(zip(range(50, 650, 50), losses, strict=True))
            done, metrics = write_run(size, attention, points, seed=seed, initial=([0.3, 0.4], [4.0, 4.1234]))
            files.append((done, metrics, write_timing(done, **timing)))
        return *map(list, zip(*files, strict=True)), settings_file(**changes)

    return make


def tabulate_training(done, metrics, timing, settings, output):
    write_exhibit("table-table2_training", output, done=done, metrics=metrics, timing=timing, settings=settings)


def test_a_model_has_loss_exit_start_and_speed(trained, outputs):
    speed = {"step_seconds": 0.025, "tokens_per_second": 81_920.4, "mfu": 0.3125}
    inputs = trained(("tiny", "original", 1, FALL, speed), ("tiny", "shared", 1, FALL, {"step_seconds": 0.0225}))
    tabulate_training(*inputs, outputs)
    original, shared = read_shown(outputs[0], **DECIMALS)
    assert list(original) == SINGLE.split()
    assert list(original.values()) == [
        *("tiny", "original", "2.600", "0.350", "4.062", "25.00", "100.00", "81920", "31.25"),
    ]
    assert (shared["step_milliseconds"], shared["of_original_percent"]) == ("22.50", "90.00")
    assert "| tiny | shared | 2.600 | 0.350 | 4.062 | 22.50 | 90.00 | 100,000 | 25.00 |" in outputs[1].read_text()
    assert r"\label{tab:training}" in outputs[2].read_text()


def test_the_caption_says_what_was_measured_on_what(trained, outputs):
    inputs = trained(
        ("tiny", "original", 1, FALL, {"peak_flops": 58.4e9}),
        ("tiny", "shared", 1, FALL, {"peak_flops": 61.2e9}),
        ("base", "original", 1, FALL, {"device": "A card", "precision": "bf16", "threads": 8, "peak_flops": 7.9e14}),
    )
    tabulate_training(*inputs, outputs)
    text = outputs[1].read_text()
    tiny, base = "cpu (A chip, AVX2), fp32, 1 thread, peak 58–61 GFLOP/s", "A card, bf16, 8 threads, peak 790 TFLOP/s"
    assert f"Machines: tiny on {tiny}; base on {base}." in text
    assert "Experiment demo-embedded, scale demo, recipe faithful." in text
    assert "one pre-training seed: differences between operators may be chance" in text
    assert "Speed was measured on these machines as they were." in text.splitlines()[0]
    assert "Runs side by side disturb each other" in text
    assert "make bench-pretrain compares operators interleaved" in text
    assert "arXiv 2412.00359 claims about a tenth less time for shared" in text


def test_the_claim_about_shared_is_quoted_beside_shared_only(trained, outputs):
    tabulate_training(*trained(("tiny", "original", 1, FALL, {})), outputs)
    assert "2412.00359" not in outputs[1].read_text()


def test_several_seeds_give_means_and_their_spread(trained, outputs):
    later = [5.6] * 10 + [4.0, 3.0]
    losses = {1: FALL, 2: later, 3: [*FALL[:-1], 2.2]}
    runs = [("tiny", "original", seed, losses[seed], {"step_seconds": 0.01 * seed}) for seed in losses]
    tabulate_training(*trained(*runs, ("tiny", "pairwise", 1, FALL, {"step_seconds": 0.015})), outputs)
    original, pairwise = read_shown(outputs[0], **DECIMALS)
    assert original["pretrain_seeds"] == "3" and pairwise["pretrain_seeds"] == "1"
    assert original["validation_loss"] == f"{(2.6 + 3.0 + 2.2) / 3:.3f}"
    assert original["std"] == f"{statistics.stdev([2.6, 3.0, 2.2]):.3f}" and pairwise["std"] == ""
    assert (original["step_milliseconds"], pairwise["of_original_percent"]) == ("20.00", "150.00")
    text = outputs[1].read_text()
    assert "3 pre-training seeds" in text and "may be chance" not in text
    assert "std is the sample standard deviation of their validation losses" in text


def test_what_was_not_measured_is_a_dash(trained, outputs):
    nothing = dict.fromkeys(("step_seconds", "tokens_per_second", "mfu", "peak_flops"))
    stays = [5.6] * 12
    inputs = trained(("tiny", "original", 1, FALL, {}), ("tiny", "pairwise", 1, stays, nothing))
    tabulate_training(*inputs, outputs)
    assert "| tiny | pairwise | 5.600 | 0.350 | 4.062 | – | – | – | – |" in outputs[1].read_text()
    row = read_shown(outputs[0], **DECIMALS)[1]
    assert {row[key] for key in SINGLE.split()[-4:]} == {""}


def test_the_mean_speed_is_of_the_seeds_that_were_timed(trained, outputs):
    runs = [
        ("tiny", "original", seed, FALL, {"step_seconds": step}) for seed, step in ((1, None), (2, 0.03), (3, 0.05))
    ]
    tabulate_training(*trained(*runs), outputs)
    assert read_shown(outputs[0], **DECIMALS)[0]["step_milliseconds"] == "40.00"


@pytest.mark.parametrize(
    "other",
    [
        {"threads": 2},
        {"device": "another"},
        {"processor": "another"},
        {"precision": "bf16"},
        {"micro_batch_size": 8},
        {"processes": 2},
    ],
)
def test_step_times_of_different_machines_are_not_compared(trained, outputs, other):
    tabulate_training(*trained(("tiny", "original", 1, FALL, {}), ("tiny", "pairwise", 1, FALL, other)), outputs)
    assert [row["of_original_percent"] for row in read_shown(outputs[0], **DECIMALS)] == ["100.00", ""]


def test_no_speed_is_averaged_over_machines(trained, outputs):
    """Means over seeds were taken whatever the seeds ran on."""
    slow, fast = {"processor": "slow", "step_seconds": 0.04}, {"processor": "fast", "step_seconds": 0.01}
    runs = [("tiny", "original", 1, FALL, slow), ("tiny", "original", 2, FALL, fast)]
    tabulate_training(*trained(*runs), outputs)
    (row,) = read_shown(outputs[0], **DECIMALS)
    assert {row[key] for key in ("step_milliseconds", "tokens_per_second", "mfu_percent")} == {""}
    assert row["of_original_percent"] == "100.00"
    assert "Speeds are a dash where the seeds of a model ran on different machines" in outputs[1].read_text()


def test_step_times_are_compared_seed_by_seed(trained, outputs):
    """80 and 60 % of the two pairs that had one machine each; the ratio of means, 213 %, is of the machines."""
    slow, fast = {"processor": "slow"}, {"processor": "fast"}
    runs = [
        ("tiny", "original", 1, FALL, slow | {"step_seconds": 0.04}),
        ("tiny", "original", 2, FALL, fast | {"step_seconds": 0.01}),
        ("tiny", "original", 3, FALL, fast | {"step_seconds": 0.01}),
        ("tiny", "pairwise", 1, FALL, slow | {"step_seconds": 0.032}),
        ("tiny", "pairwise", 2, FALL, fast | {"step_seconds": 0.006}),
        ("tiny", "pairwise", 3, FALL, slow | {"step_seconds": 0.09}),
    ]
    tabulate_training(*trained(*runs), outputs)
    assert [row["of_original_percent"] for row in read_shown(outputs[0], **DECIMALS)] == ["100.00", "70.00"]


def test_a_seed_that_was_not_timed_hides_no_speed_of_the_others(trained, outputs):
    untimed = dict.fromkeys(("step_seconds", "tokens_per_second", "mfu"))
    runs = [("tiny", "original", 1, FALL, {}), ("tiny", "original", 2, FALL, untimed | {"processor": "another"})]
    tabulate_training(*trained(*runs), outputs)
    assert read_shown(outputs[0], **DECIMALS)[0]["step_milliseconds"] == "20.00"


def test_without_original_nothing_is_relative_to_it(trained, outputs):
    tabulate_training(*trained(("tiny", "pairwise", 1, FALL, {}), ("small", "original", 1, FALL, {})), outputs)
    rows = {row["size"]: row for row in read_shown(outputs[0], **DECIMALS)}
    assert (rows["tiny"]["of_original_percent"], rows["small"]["of_original_percent"]) == ("", "100.00")


def test_a_permutation_of_the_inputs_gives_the_same_bytes(trained, outputs):
    runs = list(itertools.product(("small", "tiny"), ("pairwise", "original", "shared"), (2, 1), [FALL], [{}]))
    *files, settings = trained(*runs)
    tabulate_training(*files, settings, outputs)
    first = [path.read_bytes() for path in outputs]
    assert [(row["size"], row["attention"]) for row in read_shown(outputs[0], **DECIMALS)] == [
        (size, name) for size in ("tiny", "small") for name in ("original", "pairwise", "shared")
    ]
    shuffled = [random.Random(seed).sample(paths, len(paths)) for seed, paths in enumerate(files)]
    tabulate_training(*shuffled, settings, outputs)
    assert [path.read_bytes() for path in outputs] == first


def test_a_run_without_timing_is_refused(trained, outputs):
    done, metrics, timing, settings = trained(("tiny", "original", 1, FALL, {}), ("tiny", "shared", 1, FALL, {}))
    with pytest.raises(DataError, match="tiny-shared seed 1 has not all of done, metrics and timing"):
        write_exhibit(
            "table-table2_training", outputs, done=done, metrics=metrics, timing=timing[:1], settings=settings
        )
