"""Others' scores, one tidy csv, become an experiment that the report reads."""

import itertools
import random
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csv_rows import read_shown
from documented import custom_files
from legibility import assert_legible
from symbert.cli import main
from symbert.errors import ConfigError, DataError, UsageError
from symbert.experiment.layout import Experiment
from symbert.experiment.project import read_config
from symbert.files import read_json
from symbert.report import published
from symbert.report.claims import CHECKS, judged_claims
from symbert.report.collect import collect, losses_of, read_record
from symbert.report.figures import loss_figures
from symbert.report.imported import AUTHORS, import_scores
from symbert.report.statistics import escapes_of
from symbert.report.style import house_style
from symbert.report.summary import summary
from symbert.report.tables.corpus import provenance_table
from symbert.report.tables.scores import glue_table
from symbert.report.tidy import parted, read_scores, tables_of

ESCAPES = {
    ("small", "original"): 13_250,
    ("small", "symmetric"): 12_750,
    ("small", "pairwise"): 10_500,
}  # of their losses
ESCAPES |= {("base", "original"): 26_750, ("base", "symmetric"): 14_250, ("base", "pairwise"): 12_250}
HEADER = "size,attention,task,finetune_seed,value"
SCORES = "size,attention,step,task,finetune_seed,value"
LOSSES = "size,attention,step,loss"


@pytest.fixture
def write(tmp_path):
    """Writes a csv file of lines; returns it."""

    def make(*lines, header=HEADER, name="theirs.csv", encoding="utf-8"):
        file = tmp_path / name
        file.write_bytes("\n".join([header, *lines, ""]).encode(encoding))
        return file

    return make


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Imports files as results/theirs, without its report; returns the final records."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("symbert.report.imported.report", lambda folder: None)

    def make(scores, losses=None, **options):
        shutil.rmtree("results", ignore_errors=True)
        import_scores(scores, "theirs", losses, **options)
        steps = read_json(tmp_path / "results/theirs/experiment.json")["inputs"]["origin"]["steps"]
        return parted(read_scores(tmp_path / "results/theirs/scores.csv"), steps)[0].to_dict("records")

    return make


def read_tidy(file):
    """The scores of a csv file, a row each."""
    return read_scores(file).to_dict("records")


def scores_of(file):
    """The scores of a csv file by size, attention, column and fine-tuning seed."""
    return {
        (row["size"], row["attention"], row["column"], row["finetune_seed"]): row["score"] for row in read_tidy(file)
    }


def test_numbers_without_a_zero_and_blanks_after_commas_are_read(write):
    """As Stata and people write them; .5 was no number, and ' value' no column."""
    file = write("base, mine, cola, 1, -.5", "base, mine, rte, 1, .581", header=", ".join(HEADER.split(",")))
    assert scores_of(file) == {("base", "mine", "cola", 1): -0.5, ("base", "mine", "rte", 1): 0.581}


def test_a_csv_has_a_row_for_each_score(write):
    file = write("base,mine,rte,1,0.5", ",roberta, cola ,2,-2.5e-1", encoding="utf-8-sig")
    assert scores_of(file) == {("base", "mine", "rte", 1): 0.5, ("", "roberta", "cola", 2): -0.25}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("base,mine,rte,1,true", "line 3: 'value': expected"),
        ("base,mine,rte,1,NaN", "line 3: 'value': expected"),
        ('base,mine,rte,1,"0,5"', "line 3: 'value': expected"),
        ("base,mine,rte,1", "line 3: not 5 cells, as the header has"),
        ("base,mine,squad,1,0.5", "line 3: unknown task 'squad'; "),
        ("base,mine,rte,one,0.5", "line 3: 'finetune_seed': expected"),
        ("base,../mine,rte,1,0.5", "line 3: 'attention': expected"),
        ("base,=1+1,rte,1,0.5", "line 3: 'attention': expected"),
        ('base,"mi\nne",rte,1,0.5', "line 4: 'attention': expected"),
        ("base,mine,cola,1,0.6", "line 3: a second score of the cell in line 2; keep one of them"),
        ('base,mine,"rte,1,0.5', "unexpected end of data; write it as csv in UTF-8"),
    ],
)
def test_what_is_no_score_is_named_with_its_line(write, line, problem):
    with pytest.raises(DataError) as caught:
        read_tidy(write("base,mine,cola,1,0.5", line))
    assert "theirs.csv" in str(caught.value) and problem in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("task", "metric", "value", "is_one"),
    [
        *(("rte", "", "0", True), ("rte", "", "-0.01", False), ("rte", "", "1.0001", False), ("rte", "", "inf", False)),
        *(("cola", "", "-1", True), ("cola", "", "-1.1", False), ("stsb", "", "-0.2", True)),
        *(("mrpc", "", "-0.1", False), ("stsb", "pearson", "-0.5", True), ("mrpc", "f1", "-0.1", False)),
    ],
)
def test_a_number_that_its_metric_cannot_be_is_no_score(write, task, metric, value, is_one):
    """An accuracy of −0.4 was one."""
    lines = [f"mine,{task},1,{metric},{value}"]
    lines += [f"mine,{task},1,spearman,0.1"] if metric == "pearson" else []
    lines += [f"mine,{task},1,accuracy,0.1"] if metric == "f1" else []
    file = write(*lines, header="attention,task,finetune_seed,metric,value")
    if is_one:
        assert len(read_tidy(file)) == 1
    else:
        with pytest.raises(DataError, match=r"line 2: 'value': expected.*found"):
            read_tidy(file)


def test_percentages_are_refused_as_such(write):
    for value, header in (("87.2", "value"), ("0.8,52.7", "value,majority")):
        with pytest.raises(DataError, match="line 2: .*percentages by 100"):
            read_tidy(write(f"mine,rte,1,{value}", header=f"attention,task,finetune_seed,{header}"))


def test_the_rows_of_another_column_are_not_this_ones(write):
    """Old runs have mismatched scores in the place of matched ones."""
    header = f"{HEADER},rows"
    for task, rows, other in (("mnli_matched", 9832, "mnli_mismatched"), ("mnli_mismatched", 9815, "mnli_matched")):
        with pytest.raises(DataError, match=f"line 2: {rows} rows are those of {other}"):
            read_tidy(write(f"base,mine,{task},1,0.7,{rows}", header=header))
    rows = read_tidy(write("base,mine,mnli_matched,1,0.7,9815", "base,mine,mnli_mismatched,1,0.7,500", header=header))
    assert [row["partial"] for row in rows] == [False, True]


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("attention,task,value", "no column 'finetune_seed', found attention, task, value"),
        ("task,finetune_seed,value", "no column 'attention'"),
        ("attention,task,finetune_seed,value,value", "a column is there twice"),
        ("attention,task,finetune_sed,value", "unknown column 'finetune_sed'; did you mean 'finetune_seed'"),
        ("attention;task;finetune_seed;value", "no comma in the first line; write it as csv"),
        (",attention,task,finetune_seed,value", "a column without a name; leave it out"),  # pandas writes its index
    ],
)
def test_a_column_that_is_missing_unknown_or_there_twice_is_named(write, header, problem):
    with pytest.raises(DataError, match=problem):
        read_tidy(write(",".join("1" for _ in header.split(",")), header=header))


def test_what_is_no_csv_is_named(write, tmp_path):
    with pytest.raises(DataError, match=r"theirs\.csv: .*utf-8.*; write it as csv in UTF-8"):
        read_tidy(write("base,café,rte,1,0.5", encoding="latin1"))
    with pytest.raises(DataError, match=r"theirs\.csv: no row in it; give one for each number"):
        read_tidy(write())
    for path in (tmp_path, tmp_path / "gone.csv"):
        assert main(["import-scores", str(path), "--name", "gone"]) == 65


def test_metrics_become_the_tasks_score(write):
    """The mean of accuracy and F1; the accuracy of CoLA is no score of GLUE's."""
    lines = ["mrpc,1,0.8,accuracy", "mrpc,1,0.9,f1", "cola,1,0.4,matthews", "qqp,1,0.7,"]
    header = "task,finetune_seed,value,metric,attention"
    rows = {row["column"]: row for row in read_tidy(write(*(f"{line},m" for line in lines), header=header))}
    assert {column: row["score"] for column, row in rows.items()} == pytest.approx(
        {"mrpc": 0.85, "cola": 0.4, "qqp": 0.7}
    )
    assert rows["mrpc"]["details"] == {"accuracy": 0.8, "f1": 0.9} and rows["qqp"]["details"] == {}
    for line, problem in (
        ("cola,1,0.8,accuracy", "line 2: accuracy does not count for cola; leave it out, and give matthews"),
        ("mrpc,1,0.8,accuracy", "line 2: mrpc lacks f1; add it, or leave the column 'metric' empty"),
    ):
        with pytest.raises(DataError, match=problem):
            read_tidy(write(f"{line},m", header=header))
    with pytest.raises(DataError, match="line 3: a second score of the cell in line 2"):
        read_tidy(write("mrpc,1,0.8,accuracy,m", "mrpc,1,0.8,accuracy,m", header=header))
    (row,) = read_tidy(write("mrpc,1,0.8,accuracy,m", "mrpc,1,0.9,,m", header=header))
    assert (row["score"], row["details"]) == (0.9, {"accuracy": 0.8}), "the score itself is there"


def test_the_example_of_the_documentation_is_read(root, tmp_path, imported):
    scores, losses = re.findall(r"```csv\n(.*?)```", (root / "docs/report.md").read_text(encoding="utf-8"), re.S)
    (tmp_path / "scores.csv").write_text(scores)
    (tmp_path / "losses.csv").write_text(losses)
    imported(tmp_path / "scores.csv", tmp_path / "losses.csv")
    assert scores_of(tmp_path / "scores.csv") == pytest.approx(
        {
            ("small", "mine", "rte", 1): 0.581,
            ("small", "mine", "rte", 2): 0.592,
            ("", "roberta", "mrpc", 1): 0.885,
            ("", "roberta", "mnli_matched", 1): 0.872,
        }
    )


CELLS = list(itertools.product(["mine", "other"], ["rte", "cola", "mnli_matched", "stsb"], [1, 2, 3]))


@settings(max_examples=30)
@given(scores=st.dictionaries(st.sampled_from(CELLS), st.floats(0, 1), min_size=1), seed=st.integers(0, 99))
def test_any_order_of_rows_gives_the_same_scores_to_the_last_bit(tmp_path_factory, scores, seed):
    file = tmp_path_factory.mktemp("permuted") / "scores.csv"
    lines = [f"base,{model},{task},{number},{score!r}" for (model, task, number), score in scores.items()]
    found = []
    for _ in range(2):
        file.write_text("\n".join([HEADER, *lines]))
        found.append(read_scores(file))
        random.Random(seed).shuffle(lines)
    assert found[0].equals(found[1])
    assert {(model, *rest): score for (_, model, *rest), score in scores_of(file).items()} == scores


@pytest.fixture
def files(write):
    """Final runs of two small operators with two seeds, checkpoints of one of them, and losses of the other."""
    cells = itertools.product(("original", "symmetric"), ("rte", "wnli"), (1, 2))
    rows = [f"small,{attention},,{task},{seed},0.7" for attention, task, seed in cells]
    rows += [f"small,symmetric,{step},{task},1,0.6" for step in (1_000, 4_000) for task in ("rte", "wnli")]
    losses = [f"small,original,{250 * at},{9 - at / 4}" for at in range(16, 0, -1)]
    return write(*rows, header=SCORES), write(*losses, header=LOSSES, name="losses.csv")


def test_an_import_is_an_experiment_with_a_report(files, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["import-scores", "theirs.csv", "--losses", "losses.csv", "--name", "small"]) == 0
    folder, experiment = read_record(Path("small"))
    assert folder == Path("results/small") and experiment["experiment"] == "small"
    inputs = experiment["inputs"]
    assert inputs["scores"] == {"glue": [folder / "scores.csv"]} and inputs["losses"] == folder / "losses.csv"
    origin = inputs["origin"]
    assert origin["name"] == "small" and list(origin["files"]) == ["theirs.csv", "losses.csv"]
    assert origin["steps"] == 4_000
    data = collect(experiment)
    assert (data.experiment.experiment, data.experiment.steps, data.experiment.settings) == ("small", 4_000, {})
    assert len(data.trained) == 8 and set(data.trained["step"]) == {4_000} and len(data.curves["glue"]) == 4
    assert data.runs[["step", "loss"]].values.tolist() == [[250 * at, 9 - at / 4] for at in range(1, 17)]
    made = {file.stem for file in folder.glob("report/*s/*.*")}
    assert made == {"claims", "table3_glue", "table3_published", "statistics", "provenance"} | {
        *("table1_operators", "table2_parameters", "figure2_small", "figure3_checkpoints", "summary", "milestones")
    }, "neither corpus nor speed nor settings"
    assert (folder / "report/report.html").is_file()
    assert "--escape-loss is missing" in capsys.readouterr().err
    assert "--escape-loss is missing" in (folder / "report/texts/summary.txt").read_text()
    assert main(["prune"]) == 0 and capsys.readouterr().out == "nothing to remove\n"
    assert [file.name for file in folder.glob("report/*.json")] == [f"experiment-{experiment['key']}.json"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("base,pairwise,250,4", "line 3: a second loss of step 250 of this run; keep one of them"),
        ("base,pairwise,500,NaN", "line 3: 'loss': expected"),
        ("base,pairwise,500,low", "line 3: 'loss': expected"),
        ("base,pairwise,0,5", "line 3: 'step': expected.*; correct '0', or leave its row out"),  # before training
        (",pairwise,500,5", "line 3: object missing required field 'size'"),
        ("base,pairwise,500,Infinity", "line 3: 'loss': expected.*; correct 'Infinity', or leave its row out"),
    ],
)
def test_losses_that_are_no_curve_are_named(write, imported, line, problem):
    losses = write("base,pairwise,250,5", line, header=LOSSES, name="losses.csv")
    with pytest.raises(DataError, match=f"losses.csv:{problem}"):
        imported(write("base,pairwise,rte,1,0.5"), losses)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("base,pairwise,2,750,4", "base-pairwise seed 2 was evaluated at other steps than 1, as step 500 shows"),
        ("base,pairwise,2,500,4", "base-pairwise, pretrain_seed 2, ends at step 500.*, or leave the run out"),
    ],
)
def test_curves_that_no_figure_may_show_are_refused_before_the_folder_is_there(write, imported, line, problem):
    """The folder was written, and refused the corrected file."""
    lines = [f"base,pairwise,{seed},{step},5" for seed, step in ((1, 250), (1, 500), (1, 750), (2, 250))]
    losses = write(*lines, line, header="size,attention,pretrain_seed,step,loss", name="losses.csv")
    with pytest.raises(DataError, match=f"losses.csv: {problem}"):
        imported(write("base,pairwise,rte,1,0.5"), losses)
    assert not Path("results").exists()


def test_the_checkpoints_of_a_size_end_at_one_step(write, imported):
    """The line was 95 % of the final score of those that got there, and the highest of Table 3 was another."""
    rows = [f"base,{name},{step},rte,1,0.5" for name, step in itertools.product(("original", "pairwise"), (250, 500))]
    header = "size,attention,step,task,finetune_seed,value"
    with pytest.raises(DataError, match="checkpoints of base-pairwise end at step 250, those of others at 500"):
        imported(write(*rows[:-1], "base,pairwise,,rte,1,0.7", header=header))
    assert imported(write(*rows, "base,pairwise,,rte,1,0.7", header=header))


def test_a_level_without_losses_is_refused(write, imported):
    """It was read, and no word said that nothing is compared with it."""
    with pytest.raises(UsageError, match="--escape-loss is given without --losses"):
        imported(write("base,pairwise,rte,1,0.5"), escape_loss=5.0)


def test_the_status_of_imported_scores_says_what_they_are(write, imported, capsys):
    """There was "no experiment of that name", though its folder was there."""
    imported(write("base,pairwise,rte,1,0.5"))
    capsys.readouterr()
    assert main(["status", "theirs"]) == 0
    assert re.fullmatch(r"Experiment theirs: imported from .*\.csv, .*\n", capsys.readouterr().out)


def test_nothing_that_is_there_is_overwritten(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "results/theirs/experiment.json"
    own.parent.mkdir(parents=True)
    own.write_text('{"inputs": {}}')
    with pytest.raises(ConfigError, match="results/theirs: exists already; remove it, or choose another --name"):
        import_scores(write("base,pairwise,rte,1,0.5"), "theirs")
    assert list(own.parent.iterdir()) == [own] and own.read_text() == '{"inputs": {}}'


UNLIKE = f"{HEADER},stand_in,majority,rows"


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (["small,original,rte,1,0.5,,,", "small,mine,rte,1,0.9,true,,"], "stand_in"),
        (["small,original,rte,1,0.5,,,277", "small,mine,rte,1,0.9,,,100"], "other partial: small-mine"),
        (["small,original,rte,1,0.5,,0.5,", "small,mine,rte,1,0.9,,0.9,"], "majority"),
        (["small,original,rte,1,0.5,,-0.1,"], "'majority': expected"),
        (["small,original,rte,1,0.5,,,", "small,original,boolq,1,0.5,,,"], "'boolq'"),
    ],
)
def test_scores_that_no_table_may_compare_are_refused(write, imported, lines, named):
    """A stand-in was tested against real rows, some rows against all, and BoolQ counted for the mean of GLUE."""
    with pytest.raises(DataError, match=named):
        imported(write(*lines, header=UNLIKE))


def test_the_comparison_has_final_scores_alone(write, imported):
    """Scores of the checkpoint at the last step, of other seeds, counted with them."""
    lines = [f"small,mine,,rte,{seed},0.5" for seed in (1, 2, 3)]
    lines += [f"small,mine,100,rte,{seed},0.9" for seed in (7, 8)]
    assert [row["finetune_seed"] for row in imported(write(*lines, header=SCORES))] == [1, 2, 3]


@pytest.fixture
def of_base(write):
    """The nine columns of two operators of base, five seeds each, whose steps no file names."""
    cells = itertools.product(("original", "pairwise"), published.COLUMNS, range(1, 6))
    return write(*(f"base,{name},{column},{seed},{0.7 if name == 'pairwise' else 0.6}" for name, column, seed in cells))


def judged(claim, models):
    """The row of a claim on the data of results/theirs."""
    rows = judged_claims(collect(read_record(Path("theirs"))[1]), CHECKS)
    (row,) = (row for row in rows if (row["claim"], row["models"]) == (claim, models))
    return row


def test_a_length_of_pre_training_that_no_file_names_is_not_known(of_base, imported):
    """It was the paper's, and the paper's claims were judged by it."""
    tidy = []
    for steps, length, verdict in ((None, "not known", "not tested here"), (200_000, "200000", "holds")):
        imported(of_base, steps=steps)
        row, data = judged("A higher GLUE score", "base: pairwise − original"), collect(read_record(Path("theirs"))[1])
        assert row["here"].startswith("10.0 ") and row["verdict"].startswith(verdict)
        told = dict(provenance_table(data).frame.itertuples(index=False))
        assert str(told["imported: steps"]) == length
        tidy.append(pd.DataFrame(tables_of(data)["scores"]))
    assert tidy[0].equals(tidy[1]) and tidy[0]["step"].isna().all()


def test_models_without_pre_training_stand_with_the_final_ones(write, imported):
    """They were a checkpoint of Figure 3, and no row of Table 3."""
    lines = [f"small,mine,{step},rte,{seed},0.5" for step in ("", 0) for seed in (1, 2)]
    assert [(row["step"], row["finetune_seed"]) for row in imported(write(*lines, header=SCORES), steps=100)] == [
        *((0, 1), (0, 2), (100, 1), (100, 2))
    ]
    with pytest.raises(UsageError, match="no run of small-mine"):
        imported(write("small,mine,0,rte,1,0.5", header=SCORES))


def test_models_without_a_size_are_named_without_one(root, write, imported):
    """The example of the documentation, and claims of ': 80.0'."""
    example, *_ = re.findall(r"```csv\n(.*?)```", (root / "docs/report.md").read_text(encoding="utf-8"), re.S)
    cells = itertools.product(("original", "pairwise"), published.COLUMNS, range(1, 6))
    lines = [f",{name},{column},{seed},,{0.7 if name == 'pairwise' else 0.6}" for name, column, seed in cells]
    header, *rows = example.split()
    imported(write(*rows, *lines, header=header))
    data = collect(read_record(Path("theirs"))[1])
    assert "a higher GLUE score of pairwise than of original" in summary(data)[2]
    assert judged("A higher GLUE score", "base: pairwise − original")["here"] is None
    table = glue_table(data).frame.set_index("model").loc[["small-mine", "roberta", "pairwise"]]
    assert table["finetune_seeds"].tolist() == [2, 1, 5] and table["glue_score"].isna().tolist() == [True, True, False]


@pytest.mark.parametrize("name", ["corpus", "published", "paper"])
def test_a_name_that_results_has_for_all_is_refused(write, name):
    with pytest.raises(UsageError, match=f"--name is {name}"):
        import_scores(write("base,pairwise,rte,1,0.5"), name)


def test_no_experiment_is_started_over_imported_scores(write, imported, root):
    """Their page was replaced."""
    imported(write("base,pairwise,rte,1,0.5"))
    config = read_config(root, {"experiment": "theirs"})
    with pytest.raises(ConfigError, match="results/theirs: has imported scores; choose another 'experiment'"):
        Experiment(config)
    shutil.rmtree("results/theirs")
    Experiment(config)


@pytest.mark.parametrize("level", [0.0, -1.0, float("nan"), float("inf")])
def test_a_level_that_no_loss_can_cross_is_refused(files, level):
    with pytest.raises(UsageError, match="--escape-loss is"):
        import_scores(files[0], "theirs", files[1], escape_loss=level)


@pytest.mark.parametrize("name", ["../mine", "", ".hidden", "a/b"])
def test_a_name_that_is_no_folders_is_refused(write, name):
    with pytest.raises(UsageError, match="--name is"):
        import_scores(write("base,pairwise,rte,1,0.5"), name)


def test_the_package_has_what_the_recipes_make_of_the_authors_files(authors_csv):
    for ours, made in zip(("scores", "losses"), authors_csv, strict=True):
        pd.testing.assert_frame_equal(pd.read_csv(AUTHORS / f"{ours}.csv"), pd.read_csv(made), check_exact=True)


@pytest.fixture
def published_import(paper_results):
    """The results that are imported from the files that the paper's authors published."""
    return paper_results[0]


def test_the_paper_needs_nothing_but_the_package(published_import):
    """Tables 1 to 3, Figures 2 and 3, and a page that holds them."""
    tables = {file.stem for file in published_import.glob("report/tables/*.csv")}
    assert {"table1_operators", "table2_parameters", "table3_glue", "table3_published", "claims"} <= tables
    figures = {file.name for file in published_import.glob("report/figures/*.png")}
    assert figures == {"figure2_small.png", "figure2_base.png", "figure3_checkpoints.png"}
    assert (published_import / "report/report.html").read_text(encoding="utf-8").count("data:image/png") == len(figures)
    counted = read_shown(published_import / "report/tables/table2_parameters.csv")
    assert [row["match"] for row in counted] == ["yes"] * len(published.PARAMETERS)
    assert {(row["size"], row["attention"]): row["parameters"] for row in counted} == {
        model: str(number) for model, number in published.PARAMETERS.items()
    }


def test_the_authors_files_print_table_3_to_the_last_digit(published_import):
    table = published_import / "report/tables/table3_glue.csv"
    rows = {row["model"]: row for row in read_shown(table)}
    for (size, attention), values in published.SCORES.items():
        model = f"{size}-{attention}"
        ours, printed = rows.pop(model), rows.pop(f"{model}, the paper")
        columns = ("glue_score", "std", *published.COLUMNS)
        expected = [f"{value:.2f}" for value in values]
        assert [ours[column] for column in columns] == [printed[column] for column in columns] == expected
        assert ours["wnli"] and not printed["wnli"]
    assert not rows, "others' scores have no majority baseline"
    text = table.with_suffix(".md").read_text()
    assert text.endswith("measured by others; one pre-training seed.\n")


def test_the_authors_losses_draw_figure_2(published_import, authors_losses):
    data = collect(read_record(published_import)[1])
    losses = losses_of(data.runs)
    found = {model: seeds.loc[1].tolist() for model, seeds in losses.items()}
    assert found == authors_losses, "800 evaluations, not the 801st"
    for model, seeds in losses.items():
        assert seeds.loc[1, list(published.LOSS_STEPS)].tolist() == pytest.approx(published.LOSSES[model], abs=0.0051)
        assert escapes_of(seeds, published.ESCAPE_LOSS).median.step == ESCAPES[model]
    with house_style():
        found = assert_legible(loss_figures(data)["base"])
    names = ("original: 26,750; 1.683", "symmetric: 14,250; 1.788", "pairwise: 12,250; 1.681")
    assert {*names, "hollow: the authors' runs"} <= set(found)


def test_the_authors_checkpoints_give_the_milestones_of_all_operators(published_import):
    """The table was removed, and where symmetric gets to 95 % stood nowhere."""
    rows = {row["attention"]: row for row in read_shown(published_import / "report/tables/milestones.csv")}
    found = {name: [row[key] for key in ("before", "crossing", "after")] for name, row in rows.items()}
    assert found["pairwise"] == ["30000", "32798.89", "35000"] and found["original"] == ["50000", "65514.72", "75000"]
    assert [*rows] == ["original", "symmetric", "pairwise"]
    assert found["symmetric"] == ["200000", "", ""] and rows["symmetric"]["final_score"] == "74.74", "not at the line"
    assert {row["target_score"] for row in rows.values()} == {"75.10"}


def test_several_results_stand_in_one_table_as_documented(published_import, root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ours = Path("results/laptop-mirror/report/data/scores.csv")
    ours.parent.mkdir(parents=True)
    shutil.copy(published_import / "report/data/scores.csv", ours)
    rows = [f"base,mine,{column},{seed},0.7" for column in published.COLUMNS for seed in (1, 2, 3)]
    Path("scores.csv").write_text("\n".join([HEADER, *rows]), encoding="utf-8")
    exec(custom_files(root, "docs/report.md")["join.py"], {})
    import_scores(Path("both.csv"), "both")
    table = {row["model"]: row for row in read_shown(Path("results/both/report/tables/table3_glue.csv"))}
    first = {row["model"]: row for row in read_shown(published_import / "report/tables/table3_glue.csv")}
    for size in ("small", "base"):
        assert table[f"{size}-original"].items() == first[f"{size}-original"].items()
        assert table[f"{size}-laptop pairwise"] == first[f"{size}-pairwise"] | {"model": f"{size}-laptop pairwise"}
    assert table["base-theirs mine"]["glue_score"] == "70.00"


def test_sizes_with_other_columns_have_their_own_tested_score(tmp_path, monkeypatch):
    """The table and the sentence of differences had the first size alone."""
    monkeypatch.chdir(tmp_path)
    sizes, operators = {"tiny": "wnli", "base": "rte"}, {"original": 0.5, "pairwise": 0.8}
    rows = [
        f"{size},{name},{task},{seed},{value + (size == 'base') * seed / 1000}"
        for (size, task), (name, value) in itertools.product(sizes.items(), operators.items())
        for seed in range(1, 6)
    ]
    Path("scores.csv").write_text("\n".join(["size,attention,task,finetune_seed,value", *rows]), encoding="utf-8")
    import_scores(Path("scores.csv"), "theirs")
    report = Path("results/theirs/report")
    assert "| base | pairwise | original | GLUE score | 5 | 30.00 |" in (report / "tables/statistics.md").read_text()
    assert "a higher GLUE score of base-pairwise than of base-original" in (report / "texts/summary.txt").read_text()
    assert "one class is predicted throughout is not known of any of 20 fine-" in (report / "report.html").read_text()


def test_a_stand_in_has_no_row_of_the_paper_and_a_collapse_in_one_column_of_mnli_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {"mnli_matched": "false", "mnli_mismatched": "true"}
    rows = [f"base,original,{column},1,0.4,{collapsed},true" for column, collapsed in columns.items()]
    header = "size,attention,task,finetune_seed,value,constant_prediction,stand_in"
    Path("scores.csv").write_text("\n".join([header, *rows]), encoding="utf-8")
    import_scores(Path("scores.csv"), "theirs")
    report = Path("results/theirs/report")
    assert "the paper" not in (report / "tables/table3_glue.csv").read_text()
    assert "† One class is predicted throughout in 1 of 1 fine-tunings." in (report / "report.html").read_text()
