"""Tables of pre-training, read back from their files: milestones, exits, points of a sweep, and other hosts."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import CensoredData, logrank

from csv_rows import read, read_shown
from report.written import collected, write_exhibit
from symbert.errors import DataError
from symbert.experiment.sweep import Contrast, Grid
from symbert.files import write_json
from symbert.report.captions import wording_of
from symbert.report.collect import Collection, grids_of_runs, read_run
from symbert.report.statistics import holm
from symbert.report.tables.pretraining import contrasts_table, grid_exits_table, hosts_table

TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
DECIMALS = {"validation_loss": 3, "plateau_exit": 0, "crossing": 0}
PUBLISHED = ("paper_plateau_exit", "authors_plateau_exit", "authors_before", "authors_after", "authors_crossing")
CROSSINGS = ("target_score", "before", "after", "crossing")


@pytest.fixture
def tabulate(tmp_path, report_settings, write_scores):
    """Writes the table of runs and records of checkpoints; returns the rows of its csv, and its Markdown."""

    def write(runs=None, records=None, tasks=("rte",), **settings):
        outputs = [tmp_path / f"milestones.{suffix}" for suffix in ("csv", "md", "tex")]
        files = {"runs": runs or []}
        if records:
            seeds = sorted({entry["finetune_seed"] for entry in records})
            files |= {"curve": write_scores(records), "curve_seeds": seeds}
        write_exhibit("table-milestones", outputs, settings=report_settings(tasks=list(tasks), **settings), **files)
        return read_shown(outputs[0], **DECIMALS), outputs[1].read_text().replace("\\", "")

    return write


@pytest.fixture
def curve(record):
    """Records of a task at checkpoints 300, 600, … with the given scores in percent."""

    def make(attention, percents, size="tiny", **changes):
        return [
            record(size, attention, 300 * number, "rte", 1, percent / 100, **changes)
            for number, percent in enumerate(percents, start=1)
        ]

    return make


def test_losses_and_scores_meet_in_the_row_of_their_model(tabulate, write_run, curve, falling):
    runs = [write_run("tiny", "pairwise", falling(400)), write_run("tiny", "original", falling(800))]
    records = [*curve("original", [50, 60, 70, 75, 79, 80]), *curve("pairwise", [50, 72, 77, 74, 78, 79])]
    rows, text = tabulate(runs, records)
    original, pairwise = rows
    assert (original["attention"], original["plateau_exit"], original["validation_loss"]) == (
        "original",
        "850",
        "4.800",
    )
    assert (pairwise["attention"], pairwise["plateau_exit"]) == ("pairwise", "450")
    assert [original[key] for key in CROSSINGS] == ["76.00", "1200", "1500", "1275"]
    assert [pairwise[key] for key in CROSSINGS] == ["76.00", "600", "900", "840"]
    assert all(row[key] == "" for row in rows for key in PUBLISHED)
    assert "paper plateau exit" not in text, "nobody published tiny models"
    assert "earliest exit" not in text, "one run has no range"
    assert "95 % of the highest score at the last checkpoint" in text and "by more than 2 % of it" in text


def test_exits_of_several_seeds_are_their_median_and_range_as_in_the_table_of_exits(tabulate, write_run, falling):
    """It was their mean, and a dash where one of three stayed, beside the median and the earliest of other tables."""
    leaves = {1: 400, 2: 800, 3: 600}
    runs = [write_run("tiny", "original", falling(at), seed=seed) for seed, at in leaves.items()]
    flat = [(step, 5.6) for step, _ in falling(400)]
    runs += [
        write_run("tiny", "pairwise", flat if at == 800 else falling(at), seed=seed) for seed, at in leaves.items()
    ]
    rows, text = tabulate(runs)
    exits = [[row[key] for key in ("plateau_exit", "earliest_exit", "latest_exit")] for row in rows]
    assert exits == [["650", "450", "850"], ["650", "450", ""]]
    assert "earliest exit | latest exit" in text and "plateau exits are medians" in text


def test_a_model_that_does_not_leave_the_plateau_has_no_exit_and_the_table_says_so(tabulate, write_run, falling):
    flat = write_run("tiny", "original", [(step, 5.6) for step, _ in falling(400)])
    rows, text = tabulate([flat])
    assert rows[0]["plateau_exit"] == "" and "No model leaves the plateau." in text
    _, text = tabulate([flat, write_run("tiny", "pairwise", falling(400))])
    assert "| tiny | original | 5.600 | – |" in text and "No model leaves" not in text


def test_a_curve_above_the_line_from_the_start_has_no_checkpoint_before_and_one_below_it_has_none(tabulate, curve):
    rows, text = tabulate(None, [*curve("original", [78, 70, 80]), *curve("pairwise", [50, 60, 70])], steps=900)
    assert [rows[0][key] for key in CROSSINGS] == ["76.00", "", "300", "300"]
    assert [rows[1][key] for key in CROSSINGS] == ["76.00", "", "", ""]
    assert "No validation losses were given." in text and "validation loss |" not in text


def test_the_authors_files_give_their_milestones_beside_the_papers_words(
    tabulate, write_run, authors_losses, authors_curve
):
    steps = range(250, 200_001, 250)
    runs = [
        write_run(*model, list(zip(steps, losses, strict=True)), steps=200_000)
        for model, losses in authors_losses.items()
    ]
    rows, _ = tabulate(runs, authors_curve, TASKS, steps=200_000)
    columns = ("validation_loss", "plateau_exit", *PUBLISHED[:2])
    assert {(row["size"], row["attention"]): [row[key] for key in columns] for row in rows} == {
        ("small", "original"): ["2.198", "12000", "12000", "12000"],
        ("small", "symmetric"): ["2.352", "11500", "", "11500"],
        ("small", "pairwise"): ["2.223", "9500", "", "9500"],
        ("base", "original"): ["1.683", "26750", "25000", "26750"],
        ("base", "symmetric"): ["1.788", "14250", "13500", "14250"],
        ("base", "pairwise"): ["1.681", "11750", "12000", "11750"],
    }
    of_base = [row for row in rows if row["size"] == "base"]
    crossings = {row["attention"]: [row[key] for key in (*CROSSINGS, *PUBLISHED[2:])] for row in of_base}
    assert crossings == {
        "original": ["75.10", "50000", "75000", "65515", "50000", "75000", "65515"],
        "symmetric": [""] * 7,
        "pairwise": ["75.10", "30000", "35000", "32799", "30000", "35000", "32799"],
    }


@pytest.fixture
def tabulate_exits(tmp_path, report_settings, write_run, falling):
    """The rows of the table of runs, whose plateaus end at the given steps, by operator."""

    def write(contrasts=None, **leaving):
        runs = [
            write_run("tiny", name.replace("_", "-"), falling(leaves), seed=seed)
            for name, every in leaving.items()
            for seed, leaves in enumerate(every, start=1)
        ]
        outputs = [tmp_path / f"exits.{suffix}" for suffix in ("csv", "md")]
        seeds = list(range(1, 1 + max(map(len, leaving.values()))))
        settings = report_settings(contrasts=contrasts)
        write_exhibit("table-exits", outputs, settings=settings, pretrain_seeds=seeds, runs=runs)
        return {row["attention"]: row for row in read(outputs[0])}, outputs[1].read_text()

    return write


def test_an_operator_whose_runs_all_leave_at_half_the_steps_is_shorter(tabulate_exits):
    early, late = [400, 450, 500, 400, 450], [850, 900, 800, 850, 900]
    rows, _ = tabulate_exits(pairwise=early, original=late)
    pairwise, original = rows["pairwise"], rows["original"]
    assert (original["reference"], original["verdict"]) == ("", "")
    assert (original["runs"], original["left"], original["median_exit"]) == ("5", "5", "900")
    assert [pairwise[key] for key in ("median_exit", "earliest_exit", "latest_exit")] == ["500", "450", "550"]
    assert pairwise["reference"] == "original" and pairwise["verdict"] == "shorter"
    assert float(pairwise["ratio"]) == pytest.approx(500 / 900, abs=0.005)
    exits = [[step + 50 for step in every] for every in (early, late)]
    expected = logrank(*(CensoredData(uncensored=every) for every in exits)).pvalue
    assert float(pairwise["p_value"]) == pytest.approx(expected, abs=5e-5)
    assert float(pairwise["ratio_high"]) < 1


def test_runs_that_stay_are_counted_and_not_dropped(tabulate_exits):
    """Believed of milestones: that a mean over the runs that leave describes the model."""
    rows, text = tabulate_exits(original=[400, 450, 500], shared=[None, 900, None])
    shared = rows["shared"]
    assert (shared["runs"], shared["left"], shared["earliest_exit"]) == ("3", "1", "950")
    assert shared["median_exit"] == shared["latest_exit"] == shared["ratio"] == ""
    assert "3 pre-training seeds" in text


def test_p_values_are_corrected_for_all_operators_beside_the_first(tabulate_exits):
    rows, _ = tabulate_exits(
        original=[800, 850, 900, 950], symmetric=[400, 450, 500, 550], pairwise=[500, 1000, 600, 1200]
    )
    small, large = sorted(float(rows[name]["p_value"]) for name in ("symmetric", "pairwise"))
    corrected = {name: float(rows[name]["holm_p_value"]) for name in ("symmetric", "pairwise")}
    assert corrected["symmetric"] == pytest.approx(2 * small, abs=2e-4)
    assert corrected["pairwise"] == pytest.approx(max(large, 2 * small), abs=2e-4)
    assert rows["pairwise"]["verdict"] == "undecided"


def test_comparisons_are_those_that_were_named(tabulate_exits):
    rows, _ = tabulate_exits(
        contrasts=[["pairwise", "symmetric"]], original=[800, 850, 900], symmetric=[700, 750, 800], pairwise=[400] * 3
    )
    assert {name: row["reference"] for name, row in rows.items()} == {
        "original": "",
        "symmetric": "",
        "pairwise": "symmetric",
    }
    assert rows["pairwise"]["p_value"] == rows["pairwise"]["holm_p_value"]


def test_only_what_was_named_is_called_named_beforehand(tabulate_exits):
    """Without `sweep.contrasts` each operator is compared with the first, and the caption said it was named."""
    exits = {"pairwise": [400, 450, 500, 400, 450], "original": [850, 900, 800, 850, 900]}
    _, named = tabulate_exits(contrasts=[["pairwise", "original"]], **exits)
    _, compared = tabulate_exits(**exits)
    assert "operators that were named beforehand" in named
    assert "beforehand" not in compared and "operators with the first of each size" in compared


def test_readers_see_no_comparison_of_three_seeds_which_tests_nothing(tabulate_exits):
    rows, text = tabulate_exits(pairwise=[400, 450, 500], original=[850, 900, 800])
    assert rows["pairwise"]["verdict"] == "undecided" and rows["pairwise"]["ratio"]
    assert "| tiny | pairwise | 3 | 3 | 500 | 450 | 550 |\n" in text
    assert not [word for word in ("verdict", "holm", "ratio", "comparisons") if word in text.lower()]


STEPS = list(range(50, 1050, 50))
SEEDS = [1, 2, 3]
EXITS = {"original": (600, 650, 700), "pairwise": (300, 350, 400)}  # by operator, of each seed
CONTRAST = Contrast("both-operator", {"attention": "pairwise"}, {"attention": "original"}, "shorter")
AXES = {"host": ["encoder"], "size": ["tiny"], "attention": ["original", "pairwise"], "learning_rate": [1e-3, 2e-3]}
GRID = Grid("both", AXES, SEEDS, [CONTRAST])


def plateau_until(exit_step: float) -> list[float]:
    """A plateau at 3 nats until a step, and a straight fall after it."""
    return [3.0 if step < exit_step else 3.0 - 0.002 * (step - exit_step + 50) for step in STEPS]


@pytest.fixture
def swept(report_settings):
    """A collection of the grid with runs whose exits are known, by operator and seed."""

    def make(exits=EXITS, grid=GRID):
        losses = {name: [plateau_until(step) for step in of_seeds] for name, of_seeds in exits.items()}
        frames = {name: pd.DataFrame(losses_of_seeds, columns=STEPS) for name, losses_of_seeds in losses.items()}
        return Collection(report_settings(), grids=[(grid, [frames[point["attention"]] for point in grid.points])])

    return make


def test_exits_at_each_point_follow_from_the_losses_of_seeds_by_the_reports_rule(swept):
    table = grid_exits_table(swept())
    for row, shown in zip(table.frame.to_dict("records"), table.readable.to_dict("records"), strict=True):
        earliest, median, latest = EXITS[row["attention"]]
        assert [row[key] for key in ("earliest_exit", "median_exit", "latest_exit")] == [earliest, median, latest]
        assert shown["exit"] == f"{median} ({earliest}–{latest})"
        assert shown["at"] == f"learning rate {row['learning_rate']}"
    late = grid_exits_table(swept({"original": (600, 2000, 2000), "pairwise": (2000, 2000, 2000)}))
    assert set(late.readable["exit"]) == {"never (600–never)", "never"}


def test_contrasts_are_answered_at_every_point_of_their_grid_and_corrected_together(swept):
    rows = contrasts_table(swept()).frame.to_dict("records")
    assert [row["learning_rate"] for row in rows] == [1e-3, 2e-3]
    for row in rows:
        assert (row["first_median_exit"], row["second_median_exit"]) == (350, 650)
        assert row["ratio"] == pytest.approx(350 / 650)
    assert [row["holm_p_value"] for row in rows] == holm([row["p_value"] for row in rows])
    assert not any(math.isclose(row["holm_p_value"], row["p_value"]) for row in rows)


def test_too_few_seeds_answer_nothing(swept):
    assert contrasts_table(swept(grid=Grid("both", AXES, SEEDS[:2], [CONTRAST]))) is None
    assert contrasts_table(swept(grid=Grid("both", AXES, SEEDS, []))) is None


def test_a_folder_with_another_run_is_refused(tmp_path):
    folders = [tmp_path / f"{at}" for at in range(len(GRID.points) * len(SEEDS))]
    runs = [(point, seed) for point in GRID.points for seed in SEEDS]
    for folder, (point, seed) in zip(folders, runs, strict=True):
        _write_run(folder, point["attention"], seed)
    ((grid, read),) = grids_of_runs([(GRID, folders)], {folder: read_run(folder) for folder in folders})
    assert grid == GRID and [losses.index.tolist() for losses in read] == [SEEDS] * 4
    assert read[0].loc[2].tolist() == pytest.approx(plateau_until(EXITS["original"][1]))
    _write_run(folders[0], "shared", 1)
    with pytest.raises(DataError, match=r"0/done\.json: 'attention' is shared, expected original"):
        grids_of_runs([(GRID, folders)], {folder: read_run(folder) for folder in folders})


def _write_run(folder: Path, attention: str, seed: int) -> None:
    run = {"size": "tiny", "attention": attention, "pretrain_seed": seed}
    write_json(folder / "done.json", {**run, "steps": STEPS[-1]})
    losses = zip(STEPS, plateau_until(EXITS.get(attention, (600,) * 3)[seed - 1]), strict=True)
    lines = [f'{{"split": "validation", "step": {step}, "loss": {loss}}}' for step, loss in losses]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture
def trained(tmp_path):
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


HOST_RUNS = (("symmetric", 1, 3.5, 33.0), ("original", 1, 3.0, 20.0), ("original", 2, 3.2, 24.0))


def test_seeds_of_an_operator_are_a_row_with_their_mean_and_spread(trained, report_settings):
    table = hosts_table(collected(hosts=trained(*HOST_RUNS), settings=report_settings(steps=1000)))
    original, symmetric = table.frame.to_dict("records")
    assert (original["host"], original["attention"], symmetric["attention"]) == ("decoder", "original", "symmetric")
    assert (str(original["validation_loss"]), str(original["perplexity"])) == ("3.100", "22.000")
    assert (str(original["std"]), symmetric["std"]) == ("0.141", None)
    assert original["parameters"] == 150
    assert "perplexity is that of held-out rows" in table.caption


def test_a_wanted_run_of_another_host_is_not_left_out_of_the_table(trained, report_settings):
    """What was asked for was told by the files alone, as once for the encoder."""
    wanted = [["decoder", "tiny", "original", 1], ["decoder", "tiny", "low_rank8", 1]]
    files, settings = trained(*HOST_RUNS[:2]), report_settings(steps=1000, host_runs=wanted[:1])
    assert not collected(hosts=files, settings=settings).hosts.empty
    with pytest.raises(DataError, match="missing: decoder tiny-low_rank8/seed-1"):
        hosts_table(collected(hosts=files, settings=report_settings(steps=1000, host_runs=wanted)))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"steps": 999}, "the run has 999 steps, expected 1000"),
        ({"model_host": "radio"}, "'model_host' is radio, expected one of encoder, decoder"),
        ({"validation_perplexity": None}, "perplexity"),
    ],
)
def test_a_run_that_cannot_stand_beside_the_others_is_named(trained, report_settings, changes, reason):
    (file,) = trained(HOST_RUNS[0], **changes)
    with pytest.raises(DataError, match=f"{file}.*{reason}"):
        hosts_table(collected(hosts=[file], settings=report_settings(steps=1000)))


def test_a_translation_has_two_scores_and_says_how_sacrebleu_computed_them(trained, report_settings):
    """Perplexity is of other hosts."""
    signatures = {"chrf_signature": "nrefs:1|nc:6", "bleu_signature": "nrefs:1|tok:13a"}
    scores = {"validation_chrf": 41.25, "validation_bleu": 17.5, "validation_perplexity": None}
    text = trained(("shared", 1, 2.5, 0.0), model_host="encoder-decoder", **scores, **signatures)
    table = hosts_table(collected(hosts=[*trained(HOST_RUNS[0]), *text], settings=report_settings(steps=1000)))
    decoder, translation = table.frame.to_dict("records")
    assert [str(translation[name]) for name in ("chrf", "bleu")] == ["41.250", "17.500"]
    assert (translation["perplexity"], decoder["chrf"], str(decoder["perplexity"])) == (None, None, "33.000")
    assert "chrf nrefs:1|nc:6; bleu nrefs:1|tok:13a." in table.caption
    decoders = collected(hosts=trained(HOST_RUNS[0]), settings=report_settings(steps=1000))
    assert "sacrebleu" not in hosts_table(decoders).caption


def test_a_stand_in_for_parallel_text_is_named_beside_its_numbers_and_at_the_top_of_the_page(trained, report_settings):
    scores = {"validation_chrf": 41.25, "validation_bleu": 17.5, "validation_perplexity": None}
    text = trained(("shared", 1, 2.5, 0.0), model_host="encoder-decoder", **scores)
    for stand_in in (True, False):
        settings = report_settings(steps=1000, stand_in_text=stand_in)
        caption = hosts_table(collected(hosts=text, settings=settings)).caption
        assert ("parallel text is a stand-in" in caption) is stand_in
        warnings = wording_of(settings).warnings
        assert any("parallel text is a stand-in" in warning for warning in warnings) is stand_in
    with_no_text = collected(hosts=trained(HOST_RUNS[0]), settings=report_settings(steps=1000, stand_in_text=True))
    assert "stand-in" not in hosts_table(with_no_text).caption
