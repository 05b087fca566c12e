"""The benchmark of growth fits what it says, shows what it recorded, and its commands are those of the workflow."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import growth
from benchmarks.growth import conditions, fit, interval_of_exponent, page_of, read_growths, write_page
from benchmarks.scaled_stages import GROWING, STAGES
from benchmarks.scaling import COLUMNS
from benchmarks.summary import FIGURE
from symbert import cli

SIZES = np.array([1 / 16, 1, 4, 16])
HEAD = "# a machine\n# some versions\n" + ",".join(COLUMNS) + "\n"


def law(start, work, exponent, rounds=1):
    """Seconds of a power law beside a start, alike in all rounds."""
    return np.tile(start + work * SIZES**exponent, (rounds, 1))


@pytest.mark.parametrize("start, work", [(0.0, 1.0), (0.3, 0.1), (5.0, 0.4)])
@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.1, 2.0])
def test_exact_power_laws_are_fitted_exactly(start, work, exponent):
    assert fit(SIZES, law(start, work, exponent)) == pytest.approx((start, work, exponent), abs=1e-5)


def test_seconds_of_starting_do_not_make_a_linear_stage_look_better_than_linear():
    seconds = law(start=5.0, work=0.4, exponent=1.0)[0]
    naive = np.polyfit(np.log(SIZES), np.log(seconds), 1)[0]
    assert naive < 0.3
    assert fit(SIZES, seconds[None])[2] == pytest.approx(1, abs=1e-5)


def test_the_interval_is_of_the_noise_of_rounds_and_knows_linear_from_quadratic(monkeypatch):
    monkeypatch.setattr(growth, "RESAMPLES", 100)
    noise = np.exp(np.random.default_rng(1).normal(0, 0.03, (5, 4)))
    (low, high), (wide_low, wide_high) = (
        interval_of_exponent(SIZES, law(0.5, 0.2, 1.0, 5) * noise**power) for power in (1, 2)
    )
    assert low < 1 < high < 1.2 and high - low < wide_high - wide_low
    steep, steepest = interval_of_exponent(SIZES, law(0.5, 0.2, 2.0, 5) * noise)
    assert 1.8 < steep < 2 < steepest
    same = interval_of_exponent(SIZES, law(0.5, 0.2, 1.3, 5))
    assert same == pytest.approx((1.3, 1.3), abs=1e-4)


def record_of(path, stages):
    """A record of two equal rounds: seconds and MB by stage, each at the four sizes, of 10 to 2,560 items."""
    lines = [
        f"{stage},items,{10 * factor},{number},{cpu},{peak}\n"
        for stage, (seconds, peaks) in stages.items()
        for number in (1, 2)
        for factor, cpu, peak in zip((1, 16, 64, 256), seconds, peaks, strict=True)
    ]
    path.write_text(HEAD + "".join(lines))
    return path


@pytest.fixture
def record(tmp_path, monkeypatch):
    """Two linear stages, one flat in memory and one not; one quadratic; one that does not depend on the size."""
    monkeypatch.setattr(growth, "RESAMPLES", 10)
    flat = [100, 100, 101, 102]
    stages = {
        "linear": (law(0.5, 0.2, 1.0)[0], flat),
        "below": (law(0.5, 0.2, 0.9)[0], [100, 100, 200, 400]),
        "quadratic": (law(0.5, 0.2, 2.0)[0], flat),
        "constant": ([1.0, 1.0, 1.01, 1.3], [100, 100, 100, 109]),
    }
    return record_of(tmp_path / "scaling.csv", stages)


def test_what_is_steep_or_grows_is_missed_and_of_all_others_the_worst_is_shown(record):
    growths = read_growths(record)
    page = page_of(growths, conditions(record), {each.stage: "it keeps all items" for each in growths})
    assert page.startswith(growth.TITLE) and "\n* a machine\n* some versions\n" in page
    assert FIGURE.findall(page) == [
        ("exponent of time: quadratic", "2.00", "≤ 1.1", "**missed**"),
        ("exponent of time: linear, the steepest of 2", "1.00", "≤ 1.1", "met"),
        ("memory, 16 × / 1 ×: below", "4.00 ×", "≤ 1.1 ×", "**missed**"),
        ("memory, 16 × / 1 ×: constant, the largest of 3", "1.09 ×", "≤ 1.1 ×", "met"),
    ]
    # 300 MB for 2,400 more items
    assert "| below | 160 items | 0.50 | 0.20 | 2.93 | 0.90 | 0.90–0.90 | 100 | 400 | 4.00 | 125,000 |" in page
    assert "| constant | 160 items | 1.00 | 0.00 | 1.30 | – | – | 100 | 109 | 1.09 | 3,750 |" in page
    assert page.count("it keeps all items") == 1 and "* below: it keeps all items.\n" in page


def test_page_and_picture_are_made_of_the_record_alone(record):
    page = write_page(record.parent, {})
    assert (record.parent / "README.md").read_text() == page
    picture = (record.parent / "scaling.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) <= 300_000
    write_page(record.parent, {})
    assert (record.parent / "scaling.png").read_bytes() == picture


def test_the_committed_page_is_made_of_the_committed_record(root):
    folder = root / "docs/evidence/scaling"
    page = page_of(read_growths(folder / "scaling.csv"), conditions(folder / "scaling.csv"), GROWING)
    assert (folder / "README.md").read_text(encoding="utf-8") == page, "run make bench-scaling BENCH=--page-only"
    assert (folder / "scaling.png").stat().st_size <= 300_000


MEASURED = """
import dataclasses, sys
from pathlib import Path
from benchmarks import scaling
from benchmarks.scaled_stages import STAGES

scaling.SIZES = {"1": 1, "2": 2}
(stage,) = (stage for stage in STAGES if stage.name == "build-blocklist")
scaling.measure([dataclasses.replace(stage, count=500)], Path(sys.argv[1]), 1, Path(sys.argv[2]))
"""


def test_two_sizes_of_the_smallest_stage_are_measured_and_nothing_is_left(tmp_path, root):
    """In a process of its own: the peak of a command counts the memory of the process that starts it."""
    record = tmp_path / "scaling.csv"
    record.write_text(HEAD)
    subprocess.run([sys.executable, "-c", MEASURED, tmp_path / "work", record], cwd=root, check=True)
    lines = record.read_text().removeprefix(HEAD).splitlines()
    assert [line.rsplit(",", 2)[0] for line in lines] == [f"build-blocklist,domains,{count},1" for count in (500, 1000)]
    for line in lines:
        seconds, peak = map(float, line.split(",")[-2:])
        assert 0.02 < seconds < 30 and 10 < peak < 500
    assert not any((tmp_path / "work").iterdir())


@pytest.mark.parametrize("stage", [stage for stage in STAGES if "snakemake" not in stage.name], ids=lambda s: s.name)
def test_the_commands_are_those_of_the_workflow_and_the_inputs_are_written_by_a_function(stage, tmp_path):
    (tmp_path / "input/scores").mkdir(parents=True)
    for name in ("scores/a.json", "tokens.list", "offsets.list", "records.list"):
        (tmp_path / f"input/{name}").touch()
    for name in ("done", "metrics", "timing"):
        (tmp_path / f"input/{name}.list").touch()
    (tmp_path / "input/seeds.txt").write_text("3")
    python, _, module, *words = stage.command(tmp_path)
    assert (python, module) == (sys.executable, "symbert")
    assert cli._parse(words).command == words[0]
    module, function = stage.inputs.split(":")
    assert callable(getattr(importlib.import_module(f"benchmarks.{module}"), function))


def test_the_process_that_measures_imports_nothing_large(root):
    check = "import sys, benchmarks.scaling; sys.exit(not {'numpy', 'pandas', 'torch'}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", check], cwd=root).returncode == 0
