"""Tables of pre-training, read back from their files: escapes, milestones and points of a sweep."""

import math
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pandas as pd
import pytest
from scipy.stats import CensoredData, logrank

from csv_rows import read
from report.conftest import ESCAPE_LOSS, done_of, packed
from report.written import asking_for, collected, write_exhibit
from symbert.errors import DataError
from symbert.experiment.sweep import Contrast, Grid
from symbert.files import write_json
from symbert.report.collect import Collection, grids_of_runs, read_inputs, read_run
from symbert.report.statistics import holm
from symbert.report.tables.pretraining import contrasts_table, grid_escapes_table, milestones_table


@pytest.fixture
def tabulate_escapes(tmp_path, report_settings, write_run, falling):
    """The rows of the table of runs, whose plateaus end at the given steps, by operator."""

    def write(contrasts=None, **escapes_by_name):
        runs = [
            write_run("tiny", name.replace("_", "-"), falling(escape), seed=seed)
            for name, every in escapes_by_name.items()
            for seed, escape in enumerate(every, start=1)
        ]
        outputs = [tmp_path / f"escapes.{suffix}" for suffix in ("csv", "md")]
        experiment = report_settings(contrasts=contrasts, escape_loss=ESCAPE_LOSS)
        write_exhibit("table-escapes", outputs, experiment=experiment, runs=runs)
        return {row["attention"]: row for row in read(outputs[0])}, outputs[1].read_text()

    return write


def test_an_operator_whose_runs_all_escape_at_half_the_steps_is_shorter(tabulate_escapes):
    early, late = [400, 450, 500, 400, 450], [850, 900, 800, 850, 900]
    rows, _ = tabulate_escapes(pairwise=early, original=late)
    pairwise, original = rows["pairwise"], rows["original"]
    assert (original["reference"], original["verdict"]) == ("", "")
    assert [original[key] for key in ("runs", "escaped", "diverged", "median_escape")] == ["5", "5", "0", "900"]
    assert [pairwise[key] for key in ("median_escape", "earliest_escape", "latest_escape")] == ["500", "450", "550"]
    assert pairwise["reference"] == "original" and pairwise["verdict"] == "shorter"
    assert float(pairwise["ratio"]) == pytest.approx(500 / 900, abs=0.005)
    escapes = [[step + 50 for step in every] for every in (early, late)]
    expected = logrank(*(CensoredData(uncensored=every) for every in escapes)).pvalue
    assert float(pairwise["p_value"]) == pytest.approx(expected, abs=5e-5)
    assert float(pairwise["ratio_high"]) < 1


def test_comparisons_are_those_that_were_named(tabulate_escapes):
    rows, _ = tabulate_escapes(
        contrasts=[["pairwise", "symmetric"]], original=[800, 850, 900], symmetric=[700, 750, 800], pairwise=[400] * 3
    )
    assert {name: row["reference"] for name, row in rows.items()} == {
        "original": "",
        "symmetric": "",
        "pairwise": "symmetric",
    }
    assert rows["pairwise"]["p_value"] == rows["pairwise"]["holm_p_value"]


STEPS = list(range(50, 1050, 50))
SEEDS = [1, 2, 3]
ESCAPES = {"original": (600, 650, 700), "pairwise": (300, 350, 400)}  # by operator, of each seed
CONTRAST = Contrast("both-operator", {"attention": "pairwise"}, {"attention": "original"}, "shorter")
AXES = {
    "architecture": ["encoder"],
    "size": ["tiny"],
    "attention": ["original", "pairwise"],
    "learning_rate": [1e-3, 2e-3],
}
GRID = Grid("both", AXES, SEEDS, [CONTRAST])


def plateau_until(escape: float) -> list[float]:
    """A plateau at 3 nats until a step, and a straight fall after it."""
    return [3.0 if step < escape else 3.0 - 0.002 * (step - escape + 50) for step in STEPS]


@pytest.fixture
def swept(report_settings):
    """A collection of the grid with runs whose escapes are known, by operator and seed."""

    def make(escapes=ESCAPES, grid=GRID, levels=(2.9, 2.9, 2.9, 2.9)):
        losses = {name: [plateau_until(step) for step in of_seeds] for name, of_seeds in escapes.items()}
        frames = {name: pd.DataFrame(losses_of_seeds, columns=STEPS) for name, losses_of_seeds in losses.items()}
        grids = [(grid, [frames[point["attention"]] for point in grid.points])]
        return Collection(report_settings(), grids=grids, escape_losses={grid.name: list(levels)})

    return make


STEPS_OF_ESCAPES = ["earliest_escape", "median_escape", "latest_escape"]


def test_escapes_at_each_point_follow_from_the_losses_of_seeds(swept):
    for row in grid_escapes_table(swept()).frame.to_dict("records"):
        assert [row[key] for key in STEPS_OF_ESCAPES] == [*ESCAPES[row["attention"]]]
        assert row["learning_rate"] in ("0.001", "0.002")
    late = grid_escapes_table(swept({"original": (600, 2000, 2000), "pairwise": (2000, 2000, 2000)})).frame
    assert late[STEPS_OF_ESCAPES].drop_duplicates().values.tolist() == [[600, None, None], [None, None, None]]


def test_each_point_of_a_grid_has_the_level_of_its_own_text(swept):
    """Losses are 2.9 at the escape, and fall by 0.1 with each evaluation; of the last text nothing is known."""
    data = swept(levels=(2.9, 2.7, 2.9, None))
    escapes = grid_escapes_table(data).frame[["escape_loss", "median_escape"]].values.tolist()
    assert escapes == [[2.9, 650], [2.7, 750], [2.9, 350], [None, None]]
    (row,) = contrasts_table(data).frame.to_dict("records")
    assert (row["first_median_escape"], row["second_median_escape"], row["learning_rate"]) == (350, 650, "0.001")


@pytest.mark.parametrize(("key", "levels"), [(None, [0.8 * 3.5, 0.8 * 4.0]), (3.0, [3.0, 3.0])])
def test_the_level_of_a_point_is_the_key_or_follows_from_the_manifest_of_its_text(
    tmp_path, report_settings, key, levels
):
    entropies = {"copies": 3.5, "words": 4.0}
    sweep = {"architectures": ["encoder"], "sizes": ["tiny"], "attention": ["original"], "pretrain_seeds": SEEDS}
    sweep |= {"text": [*entropies], "contrasts": None, "grids": {}, "finetuned_pretrain_seeds": []}
    inputs = {"grids": {"sweep": []}, "manifests": {"sweep": []}}
    for text, entropy in entropies.items():
        write_json(tmp_path / f"{text}.json", packed(unigram_entropy=entropy))
        for seed in SEEDS:
            folder = tmp_path / f"{text}-{seed}"
            _write_run(folder, "original", seed)
            inputs["grids"]["sweep"].append(folder)
            inputs["manifests"]["sweep"].append(tmp_path / f"{text}.json")
    with mock.patch("symbert.report.collect.machine_of", dict):
        data = read_inputs(report_settings(escape_loss=key), asking_for(**sweep, tasks=[]), inputs)
    assert data.escape_losses == {"sweep": pytest.approx(levels) if key else levels}


def test_contrasts_are_answered_at_every_point_of_their_grid_and_corrected_together(swept):
    rows = contrasts_table(swept()).frame.to_dict("records")
    assert [row["learning_rate"] for row in rows] == ["0.001", "0.002"]
    for row in rows:
        assert (row["first_median_escape"], row["second_median_escape"]) == (350, 650)
        assert row["ratio"] == pytest.approx(350 / 650)
    p_values, corrected = ([float(row[key]) for row in rows] for key in ("p_value", "holm_p_value"))
    assert corrected == holm(p_values) and not any(map(math.isclose, corrected, p_values))


def test_a_folder_with_another_run_is_refused(tmp_path):
    folders = [tmp_path / f"{at}" for at in range(len(GRID.points) * len(SEEDS))]
    runs = [(point, seed) for point in GRID.points for seed in SEEDS]
    for folder, (point, seed) in zip(folders, runs, strict=True):
        _write_run(folder, point["attention"], seed)
    ((grid, read),) = grids_of_runs([(GRID, folders)], {folder: read_run(folder) for folder in folders})
    assert grid == GRID and [losses.index.tolist() for losses in read] == [SEEDS] * 4
    assert read[0].loc[2].tolist() == pytest.approx(plateau_until(ESCAPES["original"][1]))
    _write_run(folders[0], "shared", 1)
    with pytest.raises(DataError, match=r"0/done\.json: 'attention' is shared, expected original"):
        grids_of_runs([(GRID, folders)], {folder: read_run(folder) for folder in folders})


def _write_run(folder: Path, attention: str, seed: int) -> None:
    run = {"size": "tiny", "attention": attention, "pretrain_seed": seed}
    losses = zip(STEPS, plateau_until(ESCAPES.get(attention, (600,) * 3)[seed - 1]), strict=True)
    lines = [f'{{"split": "validation", "step": {step}, "loss": {loss}}}' for step, loss in losses]
    folder.mkdir(exist_ok=True)
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    write_json(folder / "done.json", done_of(run, STEPS[-1], 2.0, folder / "metrics.jsonl"))


def test_milestones_are_the_crossings_of_figure_3_with_symmetric(report_settings, record, write_scores):
    """The page had those of two operators alone: where symmetric gets to 95 % stood nowhere."""
    curves = {"original": (0.5, 0.6, 0.8), "symmetric": (0.5, 0.6, 0.7), "pairwise": (0.5, 0.78, 0.79)}
    curves["shared"] = (0.77, 0.78, 0.79)
    records = [
        record("tiny", name, step, "rte", seed, score)
        for name, scores in curves.items()
        for step, score in zip((600, 1200, 1800), scores, strict=True)
        for seed in (1, 2)
    ]
    sweep = {"tasks": ["rte"], "curve": {"sizes": [], "finetune_seeds": [1, 2]}}
    data = collected(report_settings(), curve=write_scores(records), sweep=sweep)
    fewer = data.curves["glue"].query("attention != 'shared' or finetune_seed == 1")
    assert milestones_table(replace(data, curves={"glue": fewer})).frame["finetune_seeds"].tolist() == [2, 2, 2, 1]
    table = milestones_table(data).frame
    found = {
        row["attention"]: [row[key] for key in ("before", "crossing", "after")] for row in table.to_dict("records")
    }
    assert found == {
        "original": [1200, pytest.approx(1200 + 600 * 0.16 / 0.2), 1800],
        "symmetric": [1800, None, None],
        "pairwise": [600, pytest.approx(600 + 600 * 0.26 / 0.28), 1200],
        "shared": [None, 600, 600],
    }
    assert table["target_score"].tolist() == [pytest.approx(76)] * 4 and table["finetune_seeds"].tolist() == [2] * 4
    assert table["final_score"].tolist() == pytest.approx([80, 70, 79, 79])
