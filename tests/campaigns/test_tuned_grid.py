"""A tuned grid on a tiny text, from the first training to the page: interrupted as rates are tried and as the runs at
the chosen ones train, and with a rate at which every run diverges. About half a minute on two idle cores."""

import json
import math
import os
import shutil
import signal
from itertools import product
from pathlib import Path
from statistics import fmean

import pytest
import yaml

from csv_rows import read
from workflow.checkout import HANG, Checkout, Outcome, check_out, wait_for

pytestmark = pytest.mark.campaign

OPERATORS, RATES, TUNING, SEEDS = ("original", "pairwise"), (1e-3, 4e-3, 1e30), (101, 102), (1, 2)
CONFIG = yaml.safe_load("""
experiment: rates-chosen
texts: {copies: {source: copying, vocabulary: null, sequence_length: 16, validation_sequences: 32}}
pretrain: {steps: 20, batch_size: 8, warmup_steps: 2, schedule_steps: null, evaluate_every: 5, save_every: 20}
sweep: {text: [copies], finetuned_pretrain_seeds: [], curve: {sizes: []}}
""")
CONFIG["sweep"] |= {"attention": [*OPERATORS], "pretrain_seeds": [*SEEDS]}
TUNE = {"learning_rate": [*RATES], "seeds": [*TUNING], "by": "final_loss"}


@pytest.fixture
def checkout(root, tmp_path):
    checkout = check_out(root, tmp_path / "a copy")
    (checkout.directory / "grid.yaml").write_text(yaml.safe_dump(CONFIG | {"sweep": CONFIG["sweep"] | {"tune": TUNE}}))
    yield checkout
    shutil.rmtree(checkout.directory)


def interrupted(checkout: Checkout, pattern: str) -> None:
    """Run until a file is there, then press Ctrl-C."""
    with checkout.running("--keep-going", "--configfile", "grid.yaml") as (process, _):
        wait_for(lambda: any(checkout.directory.glob(pattern)), process)
        os.killpg(process.pid, signal.SIGINT)
        process.wait(HANG)


def run(checkout: Checkout, *words: str) -> Outcome:
    return checkout.snakemake("--keep-going", *words, "--configfile", "grid.yaml")


def finished(checkout: Checkout) -> dict[tuple[str, float, int], float]:
    """The last loss of each finished run, by operator, rate and seed, by the folders that are there."""
    losses = {}
    for file in checkout.directory.glob("results/runs/*/*/*/done.json"):
        done = json.loads(file.read_text())
        losses[done["attention"], done["settings"]["learning_rate"], done["pretrain_seed"]] = done["validation_loss"]
    return losses


def test_a_tuned_grid_is_trained_and_reported_through_interruptions_and_divergence(checkout):
    dry = run(checkout, "--dry-run")
    assert (dry.code, dry.jobs["pretrain"], dry.jobs["choose_rates"]) == (0, 12, 1), dry.output[-3000:]
    interrupted(checkout, "results/runs/*/*/seed-10?/done.json")
    assert 0 < len(finished(checkout)) < 8
    failed = run(checkout)
    assert failed.code == 1 and "lower 'pretrain.learning_rate'" in failed.output, failed.output[-3000:]
    tried = finished(checkout)
    assert {*tried} == {*product(OPERATORS, RATES[:2], TUNING)} and not any(
        checkout.directory.glob("results/tuned/*/rates.json")
    )
    interrupted(checkout, "results/tuned/*/rates.json")
    resumed = run(checkout)
    assert resumed.code == 0, resumed.output[-3000:]

    means = {cell: fmean(tried[*cell, seed] for seed in TUNING) for cell in product(OPERATORS, RATES[:2])}
    best = {name: min(RATES[:2], key=lambda rate: means[name, rate]) for name in OPERATORS}
    compared = {(name, rate, seed) for name in OPERATORS for rate in (best[name], best["original"]) for seed in SEEDS}
    assert {*finished(checkout)} == {*tried} | compared
    folder = checkout.directory / "results/rates-chosen/report"
    for row in read(folder / "tables/grid_rates.csv"):
        assert float(row["best"]) == best[row["attention"]] and float(row["common"]) == best["original"]
        cell = row["attention"], float(row["rate"])
        assert math.isclose(float(row["mean"]), means[cell]) if cell in means else row["diverged"] == "yes"
    shown = {(row["attention"], float(row["learning_rate"])) for row in read(folder / "tables/grid_escapes.csv")}
    assert shown == {cell[:2] for cell in compared}

    swept = CONFIG["sweep"] | {"learning_rate": [*RATES[:2]], "pretrain_seeds": [*TUNING]}
    (checkout.directory / "swept.yaml").write_text(yaml.safe_dump(CONFIG | {"sweep": swept}))
    for file in checkout.directory.glob("results/*/*/*.json"):
        file.touch()
    shutil.rmtree(checkout.directory / ".snakemake")
    again, trained, sweep = checkout.commands(
        ["--configfile", "grid.yaml"],
        ["--dry-run", "--until", "pretrain", "--configfile", "grid.yaml"],
        ["--dry-run", "--configfile", "swept.yaml"],
    )
    assert [outcome.code for outcome in (again, trained, sweep)] == [0, 0, 0]
    assert (again.jobs, trained.jobs) == ({}, {}) and sweep.jobs == {"report": 1, "all": 1}
    lost = next(checkout.directory.glob("results/runs/*/*/seed-1/done.json"))
    lost.unlink()
    assert run(checkout, "--dry-run", "--until", "pretrain").jobs == {"pretrain": 1}
    for file in Path(checkout.directory, "results/tuned").glob("*/rates.json"):
        file.unlink()
    assert run(checkout, "--dry-run").jobs == {"choose_rates": 1, "report": 1, "all": 1}
