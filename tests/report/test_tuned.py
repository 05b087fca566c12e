"""Learning rates of pre-training that are chosen for each point of a grid: the choice and the page, by runs that are
made up, against going through them one by one."""

import itertools
import json
import math
import random
import statistics
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy import stats

from csv_rows import read
from legibility import assert_legible
from report.conftest import done_of, packed, write
from symbert import cli
from symbert.configuration import merge
from symbert.errors import DivergedError
from symbert.experiment.layout import Experiment
from symbert.experiment.plan import lines_of_rates, outputs_of
from symbert.experiment.project import read_chosen
from symbert.pretrain.tuning import choices_of, read_rates, run
from symbert.report.bundle import bundle
from symbert.report.collect import _compared_grids, collect, read_record
from symbert.report.figures import rates_figure
from symbert.report.setting import sentences_of
from symbert.report.style import house_style

ENTROPIES = {"copies": 4.0, "words": 5.0}  # of which a level is 0.8
OPERATORS, RATES = ["original", "pairwise", "symmetric"], [5e-4, 1e-3, 2e-3]
TUNING, SEEDS = [101, 102, 103], [1, 2, 3, 4, 5]
STEPS, EVERY = 100, 10
CONFIG = yaml.safe_load("""
experiment: tuned-rates
scale: demo
pretrain: {steps: 100, evaluate_every: 10, warmup_steps: 10, schedule_steps: null, save_every: 100}
texts:
  copies: {source: copying, vocabulary: null, sequence_length: 16, validation_sequences: 64}
  words: {source: copying, vocabulary: null, sequence_length: 24, validation_sequences: 64}
sweep:
  text: [copies, words]
  escape_loss: null
  contrasts: [[pairwise, original], [symmetric, original]]
  finetuned_pretrain_seeds: []
  curve: {sizes: []}
""")
CONFIG["sweep"] |= {"attention": OPERATORS, "pretrain_seeds": SEEDS}


@pytest.fixture
def start(root, folder):
    """The experiment with changes; its rows are made up."""

    def start(by="final_loss", **changes) -> Experiment:
        tune = {"sweep": {"tune": {"learning_rate": RATES, "seeds": TUNING, "by": by}}}
        Path("changes.yaml").write_text(yaml.safe_dump(merge(merge(CONFIG, tune), changes)))
        experiment = Experiment(read_chosen(root, None, [Path("changes.yaml")], None))
        for trained in experiment.pretrainings.values():
            write(trained.manifest, packed(unigram_entropy=ENTROPIES[text_of(trained)]))
        experiment.write()
        return experiment

    return start


def text_of(trained) -> str:
    return {16: "copies", 24: "words"}[trained.rows.text.sequence_length]


def losses_of(cell: tuple, rate: float, seed: int, chance: random.Random) -> list[float] | None:
    """Validation losses: a plateau at the entropy, a fall at a step of chance, or none, and an end that hangs on the
    operator and the rate; rarely they rise again, or are not finite."""
    text, operator = cell
    level, falls = 0.8 * ENTROPIES[text], chance.randint(2, 12)
    if chance.random() < 0.03:
        return None
    end = 2 + 0.2 * OPERATORS.index(operator) + 0.1 * abs(math.log2(rate / 1e-3)) + chance.gauss(0, 0.1)
    losses = [ENTROPIES[text] if at < falls else level - 0.01 * at for at in range(1, STEPS // EVERY)]
    return [*losses, level + 1 if chance.random() < 0.03 else min(end, level) if falls <= 10 else ENTROPIES[text]]


def write_losses(trained, losses: list[float] | None) -> None:
    """The files of a run with these losses; of one without, that a number was not finite."""
    folder, identity = Path(trained.folder), trained.identity
    for name in ("done.json", "metrics.jsonl", "timing.json", "state/status.json"):
        (folder / name).unlink(missing_ok=True)
    if losses is None:
        write(folder / "state/status.json", {"state": "diverged", "step": 7})
        return
    lines = [{"split": "validation", "step": EVERY * at, "loss": loss} for at, loss in enumerate(losses, 1)]
    log = write(folder / "metrics.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    write(folder / "done.json", done_of(identity, STEPS, losses[-1], log))


def made_up(step, number: int) -> dict:
    """The runs of a choice with losses by chance: by cell, rate and seed."""
    chance, made = random.Random(number), {}
    for cell, rate, seed in itertools.product(step.cells, step.rates, step.seeds):
        named = text_of(cell), cell.attention
        made[named, rate, seed] = losses_of(named, rate, seed, chance)
        write_losses(run(cell, rate, seed), made[named, rate, seed])
    return made


def naive_choice(made: dict, by: str) -> dict[tuple, tuple[float, float]] | None:
    """By cell its best and its common rate, by going through the runs; None where all rates of a cell diverge."""
    best = {}
    for cell in itertools.product(ENTROPIES, OPERATORS):
        level, means = 0.8 * ENTROPIES[cell[0]], {}
        for rate in sorted(RATES):
            outcomes = []
            for seed in TUNING:
                losses = made[cell, rate, seed]
                below = [at for at, loss in enumerate(losses or [], 1) if loss <= level]
                if losses is None:
                    outcomes.append(math.inf)
                elif by == "final_loss":
                    outcomes.append(losses[-1])
                else:
                    outcomes.append(EVERY * below[0] if below and losses[-1] <= level else STEPS)
            means[rate] = sum(outcomes) / len(outcomes)
        if min(means.values()) == math.inf:
            return None
        best[cell] = next(rate for rate in means if means[rate] <= min(means.values()) + 1e-12)
    return {cell: (rate, best[cell[0], "original"]) for cell, rate in best.items()}


@pytest.mark.parametrize("by", ["final_loss", "escape"])
def test_the_rates_are_those_of_going_through_the_runs_one_by_one(start, by):
    step = start(by).choosing["sweep"]
    cells, refused, edges = [(text_of(cell), cell.attention) for cell in step.cells], 0, set()
    assert cells == [*itertools.product(ENTROPIES, OPERATORS)]
    for number in range(8):
        expected = naive_choice(made_up(step, number), by)
        if expected is None:
            refused += 1
            continue
        choices = choices_of(step)
        assert {cell: (each.best, each.common) for cell, each in zip(cells, choices, strict=True)} == expected, number
        edges |= {(each.best, each.edge) for each in choices}
    assert refused < 4 and edges == {(5e-4, "lowest"), (1e-3, ""), (2e-3, "highest")}


def test_of_equal_rates_the_lower_is_chosen_and_one_at_which_a_loss_is_not_finite_is_the_last(start):
    step = start("escape").choosing["sweep"]
    fast, slow, none = ([5.5] * at + [2.0] * (10 - at) for at in (3, 7, 10))
    rising = [5.5] * 3 + [2.0] * 6 + [4.9]
    for rates, best in [
        ([[slow] * 3, [fast] * 3, [fast] * 3], 1e-3),
        ([[none] * 3, [none] * 3, [none] * 3], 5e-4),
        ([[none] * 3, [fast, fast, None], [none, none, rising]], 5e-4),
        ([[slow, slow, slow], [fast, fast, None], [slow, slow, fast]], 2e-3),
        ([[slow, slow, rising], [slow, slow, none], [slow] * 3], 2e-3),
        ([[fast, fast, none], [slow] * 3, [none] * 3], 5e-4),  # (40 + 40 + 100) / 3 = 60 < 80
    ]:
        for cell in step.cells:
            for rate, of_rate in zip(RATES, rates, strict=True):
                for seed, losses in zip(TUNING, of_rate, strict=True):
                    write_losses(run(cell, rate, seed), losses)
        assert {choice.best for choice in choices_of(step)} == {best}
    for rate in RATES:
        write_losses(run(step.cells[4], rate, 101), None)
    with pytest.raises(DivergedError, match=f"{step.cells[4]}: the loss was not finite at any rate"):
        choices_of(step)


def test_a_run_that_diverged_is_waited_for_no_more(start):
    """Its job would fail at every start, and the others with it."""
    experiment = start()
    step = experiment.choosing["sweep"]
    lost = run(step.cells[0], RATES[-1], 102)
    awaited = f"{lost.folder}/done.json"
    assert (
        awaited in experiment.input_files and awaited in experiment.inputs_of[experiment.rates_of(experiment.tuned[0])]
    )
    before = len(experiment.input_files)
    write_losses(lost, None)
    again = start()
    assert awaited not in again.input_files and awaited not in again.inputs_of[again.rates_of(again.tuned[0])]
    assert len(again.input_files) == before - 3 and again.key == experiment.key


@pytest.fixture
def finished(start, write_timing) -> tuple[Experiment, dict]:
    """An experiment whose rates are chosen and whose runs are all there, and their losses by cell, rate and seed."""
    experiment = start()
    made = made_up(experiment.choosing["sweep"], 1)
    assert cli.main(["choose-rates", experiment.rates_of(experiment.tuned[0])]) == 0
    experiment, chance = start(), random.Random(0)
    for each in experiment.compared_of(experiment.tuned[0]):
        trained = experiment.pretrainings[each]
        cell, rate = (text_of(trained), trained.attention), trained.training.learning_rate
        losses = None
        while losses is None:
            losses = losses_of(cell, rate, trained.pretrain_seed, chance)
        made[cell, rate, trained.pretrain_seed] = losses
        write_losses(trained, losses)
    for folder in experiment.runs.values():
        if Path(folder, "done.json").is_file():
            write_timing(Path(folder))
    return experiment, made


def test_the_page_has_both_comparisons_and_the_rates_as_the_runs_have_them(finished, capsys):
    experiment, made = finished
    assert cli.main(["report", experiment.folder]) == 0, capsys.readouterr().err
    tables, rates = Path(experiment.folder, "report/tables"), naive_choice(made, "final_loss")
    of_rates = read(tables / "grid_rates.csv")
    assert len(of_rates) == 2 * 3 * 3 * 3
    for row in of_rates:
        cell, rate = (row["text"], row["attention"]), float(row["rate"])
        assert (float(row["best"]), float(row["common"])) == rates[cell]
        assert row["edge"] == {5e-4: "lowest", 2e-3: "highest"}.get(rates[cell][0], "")
        losses = made[cell, rate, int(row["tuning_seed"])]
        assert row["last_loss"] == ("" if losses is None else str(losses[-1]))
    compared, differences = read(tables / "grid_contrasts.csv"), read(tables / "grid_losses.csv")
    assert len(compared) == len(differences) == 2 * 2 * 2
    for escape, loss in zip(compared, differences, strict=True):
        assert [*escape.items()][:8] == [*loss.items()][:8]
        text, (first, second) = escape["text"], escape["contrast"].removeprefix("sweep-").split("-")
        column = {"each at its best rate": 0, "one common rate": 1}[escape["at"]]
        sides = [((text, name), rates[text, name][column]) for name in (first, second)]
        assert [float(escape[f"{side}_rate"]) for side in ("first", "second")] == [rate for _, rate in sides]
        if column:
            assert sides[0][1] == sides[1][1] == rates[text, "original"][0]
        runs = [[made[cell, rate, seed] for seed in SEEDS] for cell, rate in sides]
        ends = [losses[-1] for losses in runs[0]], [losses[-1] for losses in runs[1]]
        assert float(loss["difference"]) == pytest.approx(statistics.fmean(np.subtract(*ends)))
        interval = stats.ttest_rel(*ends).confidence_interval(0.95)
        assert [float(loss["low"]), float(loss["high"])] == pytest.approx([*interval])
        level = 0.8 * ENTROPIES[text]
        steps = [
            sorted(next((EVERY * at for at, x in enumerate(run, 1) if x <= level), math.inf) for run in side)
            for side in runs
        ]
        medians = [side[2] for side in steps]
        assert [escape[f"{side}_median_escape"] for side in ("first", "second")] == [
            "" if math.isinf(median) else str(median) for median in medians
        ]
        if all(10 < median < math.inf for median in medians):
            assert float(escape["ratio"]) == pytest.approx(medians[0] / medians[1])
    page = Path(experiment.folder, "report/report.html").read_text(encoding="utf-8")
    data = collect(read_record(Path(experiment.folder))[1])
    (sentence,) = (line for line in sentences_of(data) if "tuned" not in line and "Learning rates of sweep" in line)
    edges = [cell for cell, (best, _) in rates.items() if best != 1e-3]
    assert sentence in page and f"{len(edges)} of 6" in sentence and all(", ".join(cell) in sentence for cell in edges)
    with house_style():
        figure = rates_figure(data)
        assert_legible(figure)
    shown = {
        panel.get_title(loc="left").splitlines()[1].split(",")[0]: panel
        for panel in figure.axes
        if "loss" in panel.get_ylabel()
    }
    assert [*shown] == [*ENTROPIES]
    for text, panel in shown.items():
        curve = next(line for line in panel.get_lines() if line.get_label() == "symmetric-original")
        for rate, height in zip(*curve.get_data(), strict=True):
            sides = [[made[(text, name), rate, seed] for seed in TUNING] for name in ("symmetric", "original")]
            if None not in itertools.chain(*sides):
                expected = statistics.fmean(a[-1] - b[-1] for a, b in zip(*sides, strict=True))
                assert height == pytest.approx(expected)
    bundle(Path(experiment.folder), output=Path("archive.zip"))
    with zipfile.ZipFile("archive.zip") as archive:
        names = archive.namelist()
    assert sum(name.endswith("metrics.jsonl") for name in names) == len(made) - list(made.values()).count(None)
    assert (
        sum(name.endswith("/".join(Path(experiment.rates_of(experiment.tuned[0])).parts[-3:])) for name in names) == 1
    )


def test_points_of_another_text_or_size_have_no_common_rate_and_are_compared_at_their_best_alone(start):
    sides = {"operator": "attention", "text": "text"}
    values = {"attention": ["pairwise", "original"], "text": ["words", "copies"]}
    contrasts = {
        name: {
            "question": "?",
            "first": {axis: values[axis][0]},
            "second": {axis: values[axis][1]},
            "expected": "unknown",
        }
        for name, axis in sides.items()
    }
    experiment = start(sweep={"grids": {"own": {"contrasts": contrasts}}})
    made_up(experiment.choosing["own"], 1)
    cli.main(["choose-rates", experiment.rates_of(experiment.tuned[0])])
    inputs = experiment.inputs
    choices = {"own": read_rates(Path(inputs["rates"]["own"]))}
    grids = [grid for grid, *_ in _compared_grids(experiment.grids, inputs, choices)]
    assert [[each.name for each in grid.contrasts] for grid in grids] == [
        ["own-operator"],
        ["own-operator", "own-text"],
    ]
    for grid in grids:
        pairs = [(first, second) for contrast, _, first, second in grid.pairs() if contrast.name == "own-operator"]
        assert len(pairs) == 2
        if len(grid.contrasts) == 1:
            assert all(grid.chosen[first] == grid.chosen[second] for first, second in pairs)


def test_a_plan_counts_at_most_the_runs_that_may_follow_and_then_those_that_do(start, finished):
    experiment, _ = finished
    (after,) = lines_of_rates(experiment, outputs_of(experiment))
    compared = {(run.attention, run.pretrain_seed, *run.variant) for run in experiment.compared_of(experiment.tuned[0])}
    assert f"0 of {len(compared)} pre-trainings" in after
    fresh = start(sweep={"tune": {"seeds": [201, 202, 203]}})
    (before,) = lines_of_rates(fresh, outputs_of(fresh))
    assert f"{2 * 3 * 3 * 3} of {2 * 3 * 3 * 3} pre-trainings" in before
    most = fresh.may_follow(fresh.tuned[0])
    assert len(most) == 2 * len(SEEDS) * (1 + 2 + 2) and {*most} <= {*fresh.pretrainings}
    assert (
        f"at most {sum(not Path(fresh.pretrainings[run].folder, 'done.json').is_file() for run in most)} of" in before
    )
    jobs = [output for output in outputs_of(fresh) if output.stage == "pretrain"]
    assert len(jobs) == len({output.file for output in jobs}) == 2 * 3 * 3 * 3 + len(most)
