"""Tables of operators: parameters against counts by hand, training, heads and probes."""

import itertools
import statistics

import pytest

from csv_rows import read, read_shown
from report.written import write_exhibit
from symbert.errors import DataError
from symbert.operators import OPERATORS
from symbert.report import published


def test_table_1_has_printed_corrected_and_counted_parameters(counted, outputs):
    write_exhibit("table-table1_operators", outputs, parameters=counted())
    rows = {row["attention"]: row for row in read_shown(outputs[0])}
    assert list(rows) == ["original", "symmetric", "pairwise"]
    assert [row["printed"] for row in rows.values()] == ["O(3h²)", "O(2h²)", "O(2h² + h/n) (erratum)"]
    assert [row["corrected"] for row in rows.values()] == ["3h²", "2h²", "2h² + h²/n"]
    assert [row["counted_base"] for row in rows.values()] == ["1771776", "1181184", "1230336"]
    assert [row["counted_small"] for row in rows.values()] == ["787968", "525312", "558080"]
    assert {row["exact_is_counted"] for row in rows.values()} == {"yes"}
    for path in outputs[1:]:
        assert "589,824" in path.read_text() and "Erratum" in path.read_text()


def test_table_1_says_so_when_a_count_is_not_the_formulas(counted, outputs):
    write_exhibit(
        "table-table1_operators", outputs, parameters=counted(("small",), base=changed("base", "symmetric", -1))
    )
    assert [row["exact_is_counted"] for row in read_shown(outputs[0])] == ["yes", "no", "yes"]


def changed(size, attention, by):
    from_formula = {"original": 1_771_776, "symmetric": 1_181_184, "pairwise": 1_230_336}
    from_formula[attention] += by
    shape = {"num_hidden_layers": 12, "num_attention_heads": 12, "hidden_size": 768}
    shape |= {"intermediate_size": 3072, "vocab_size": 30522}
    return {"shape": shape, "parameters": from_formula, "attention_parameters": from_formula}


def test_an_operator_of_the_user_is_counted_without_a_formula(counted, outputs):
    counts = counted(("base",))
    counts["base"]["attention_parameters"]["mine"] = 7
    write_exhibit("table-table1_operators", outputs, parameters=counted((), **counts))
    row = read_shown(outputs[0])[-1]
    assert (row["attention"], row["expression"], row["counted_base"], row["exact_is_counted"]) == ("mine", "", "7", "")


ATTENTION = tuple(OPERATORS)


def test_table_2_equals_the_papers(counted, outputs):
    write_exhibit("table-table2_parameters", outputs, parameters=counted())
    rows = read_shown(outputs[0])
    assert {(row["size"], row["attention"]): int(row["parameters"]) for row in rows} == published.PARAMETERS
    assert [row["saved_percent"] for row in rows] == ["", "3.65", "3.19", "", "6.47", "5.93"]
    assert [row["paper_saved_percent"] for row in rows] == ["", "3.65", "3.19", "", "6.47", "5.93"]
    assert {row["match"] for row in rows} == {"yes"}
    assert "109,514,298" in outputs[1].read_text() and r"saved\\(\%)" in outputs[2].read_text()


def test_table_2_has_the_share_of_attention_that_an_operator_saves(counted, outputs):
    """At base 1 − (h² + h + 3h)/(3(h² + h)) = 66.5366 % for shared, which its authors print as 66.53."""
    write_exhibit("table-table2_parameters", outputs, parameters=counted(attention=ATTENTION))
    rows = {(row["size"], row["attention"]): row for row in read_shown(outputs[0])}
    saved = {model: row["attention_saved_percent"] for model, row in rows.items()}
    assert [saved["base", name] for name in ATTENTION] == [
        *("", "33.33", "30.56", "66.54", "0.00", "0.00", "0.00", "30.56", "30.56", "33.33")
    ]
    assert [saved["small", name] for name in ATTENTION[:4]] == ["", "33.33", "29.17", "66.47"]
    assert rows["base", "shared"]["attention_parameters"] == "592896"
    printed = {model: row["printed_attention_saved_percent"] for model, row in rows.items()}
    assert {model: share for model, share in printed.items() if share} == {("base", "shared"): "66.53"}
    assert "what arXiv 2412.00359 prints for shared (66.5366, cut off)" in outputs[1].read_text()
    assert [rows[size, "shared"]["parameters"] for size in ("small", "base")] == ["26700090", "95367738"]


def test_table_2_says_no_when_a_count_differs(counted, outputs):
    write_exhibit("table-table2_parameters", outputs, parameters=counted((), base=changed("base", "symmetric", 0)))
    assert [row["match"] for row in read_shown(outputs[0])] == ["no", "no", "no"]


FALL = [5.6] * 9 + [4.0, 3.0, 2.6]
SPEED = ("step_milliseconds", "of_original_percent", "tokens_per_second", "mfu_percent")
SINGLE = ["size", "attention", "validation_loss", "logit_std", "attention_entropy", *SPEED]
DECIMALS = dict.fromkeys(("validation_loss", "std", "logit_std", "attention_entropy"), 3) | {"tokens_per_second": 0}


@pytest.fixture
def tabulate(write_run, report_settings, outputs):
    """Writes the table of runs (size, attention, seed, losses) and files of speeds; returns the rows of its csv."""

    def make(*runs, speeds=()):
        folders = []
        for size, attention, seed, losses in runs:
            points = list(zip(range(50, 650, 50), losses, strict=True))
            folders.append(write_run(size, attention, points, seed=seed, initial=([0.3, 0.4], [4.0, 4.1234])))
        given = {"runs": folders, "settings": report_settings(), "speeds": list(speeds)}
        write_exhibit("table-table2_training", outputs, **given)
        return read_shown(outputs[0], **DECIMALS)

    return make


def test_a_model_has_loss_start_and_speed(tabulate, write_speeds, outputs):
    speeds = write_speeds(original=[0.025, 0.024, 0.026], shared=[0.02, 0.024, 0.0234])
    original, shared = tabulate(("tiny", "original", 1, FALL), ("tiny", "shared", 1, FALL), speeds=[speeds])
    assert list(original) == SINGLE
    assert list(original.values()) == [
        "tiny",
        "original",
        "2.600",
        "0.350",
        "4.062",
        "25.00",
        "100.00",
        "81920",
        "20.00",
    ]
    assert (shared["step_milliseconds"], shared["of_original_percent"]) == ("23.40", "90.00"), (
        "median of 80, 100 and 90"
    )
    text = outputs[1].read_text()
    assert "| tiny | shared | 2.600 | 0.350 | 4.062 | 23.40 | 90.00 | 87,521 | 21.37 |" in text
    machine = "tiny on cpu (A chip, AVX2), fp32, 1 thread, 32 sequences at a time"
    assert f"Machines: {machine}." in text and "arXiv 2412.00359 claims about a tenth less time for shared" in text
    assert r"\label{tab:training}" in outputs[2].read_text()


def test_the_speeds_of_runs_that_were_hours_apart_are_not_compared(tabulate, write_run, write_timing, outputs):
    """An operator had 339 % of the step time of original, because a quiet and a loaded hour were compared."""
    runs = [("tiny", "original", 1, FALL), ("tiny", "pairwise", 1, FALL)]
    rows = tabulate(*runs)
    assert {row[column] for row in rows for column in SPEED} == {""}
    assert "step (ms)" not in outputs[1].read_text() and "Speed:" not in outputs[1].read_text()


def test_a_size_that_was_not_measured_has_dashes(tabulate, write_speeds, outputs):
    runs = [("tiny", "original", 1, FALL), ("tiny", "pairwise", 1, FALL), ("small", "original", 1, FALL)]
    rows = tabulate(*runs, speeds=[write_speeds(original=[0.02], pairwise=[0.03])])
    assert [row["of_original_percent"] for row in rows] == ["100.00", "150.00", ""]
    assert "| small | original | 2.600 | 0.350 | 4.062 | – | – | – | – |" in outputs[1].read_text()
    assert "2412.00359" not in outputs[1].read_text(), "of shared alone"


def test_several_seeds_give_means_and_their_spread(tabulate, outputs):
    losses = {1: FALL, 2: [5.6] * 10 + [4.0, 3.0], 3: [*FALL[:-1], 2.2]}
    runs = [("tiny", "original", seed, losses[seed]) for seed in losses]
    original, pairwise = tabulate(*runs, ("tiny", "pairwise", 1, FALL))
    assert original["pretrain_seeds"] == "3" and pairwise["pretrain_seeds"] == "1"
    assert original["validation_loss"] == f"{(2.6 + 3.0 + 2.2) / 3:.3f}"
    assert original["std"] == f"{statistics.stdev([2.6, 3.0, 2.2]):.3f}" and pairwise["std"] == ""
    text = outputs[1].read_text()
    assert "3 pre-training seeds" in text and "may be chance" not in text
    assert "std is the sample standard deviation of their validation losses" in text


HEADS = "checkpoint,size,attention,pretrain_seed,step,layer,head,symmetry,directionality,logit_std"
HEADS += ",attention_entropy,own_share"


@pytest.fixture
def anatomy_file(tmp_path):
    """Heads of some operators at steps 0, 300 and 1800, those of an operator alike but for their seed and head."""

    def make(attention=("pairwise", "original"), seeds=(1,), sizes=("tiny",)):
        lines = [HEADS]
        axes = sizes, attention, seeds, (1800, 0, 300), (1, 2), (1, 2)
        for size, name, seed, step, layer, head in itertools.product(*axes):
            symmetry = "" if name == "pairwise-identity" else 0.1 * head + step / 10_000
            facts = f"d/step-{step},{size},{name},{seed},{step},{layer},{head}"
            lines.append(f"{facts},{symmetry},0.25,{1 + 0.2 * seed},{2.5 - step / 2000},0.125")
        path = tmp_path / "anatomy.csv"
        path.write_text("\n".join(lines) + "\n")
        return path

    return make


@pytest.fixture
def probes_file(tmp_path):
    """Operators that learn chains and partners, and `symmetric`, which learns no cycle."""

    def make(attention=("symmetric", "original")):
        lines = ["attention,relation,own_position,share,low,high,chance,steps"]
        for name, own, relation in itertools.product(attention, ("yes", "no"), ("cycle", "partner", "chain")):
            fails = name == "symmetric" and relation == "cycle"
            learned = "0,0,0.045,0.0625," if fails else "1,0.955,1,0.0625,4"
            lines.append(f"{name},{relation},{own},{learned}")
        path = tmp_path / "probes.csv"
        path.write_text("\n".join(lines) + "\n")
        return path

    return make


def test_the_table_has_means_over_heads_of_each_layer(anatomy_file, report_settings, tmp_path):
    outputs = [tmp_path / "anatomy_table.csv", tmp_path / "anatomy_table.md"]
    write_exhibit("table-anatomy", outputs, anatomy=anatomy_file(seeds=(1, 3)), settings=report_settings())
    rows = read(outputs[0])
    assert [(row["attention"], row["step"], row["layer"]) for row in rows[:3]] == [
        ("original", "0", "1"),
        ("original", "0", "2"),
        ("original", "300", "1"),
    ]
    assert [float(rows[0][key]) for key in ("symmetry", "logit_std")] == pytest.approx([0.15, 1.4])
    assert rows[-1]["attention"] == "pairwise"
    text = outputs[1].read_text()
    assert text.count("| tiny |") == 2 * 2 and "arXiv 2502.10927" in text and "2 pre-training seeds" in text


def test_the_table_of_probes_has_a_row_per_operator_and_states_chance(probes_file, tmp_path, report_settings):
    outputs = [tmp_path / "probes_table.csv", tmp_path / "probes_table.md"]
    write_exhibit("table-probes", outputs, probes=probes_file(), settings=report_settings())
    original, symmetric = read(outputs[0])
    assert (original["attention"], original["cycle"], original["steps"]) == ("original", "1.00 [0.95, 1.00]", "4.0")
    assert (symmetric["cycle"], symmetric["chain others"]) == ("0.00 [0.00, 0.04]", "1.00 [0.95, 1.00]")
    assert "Chance gives 0.06." in outputs[1].read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no csv"), ("attention,relation\noriginal,cycle\n", "no column 'own_position'")],
)
def test_another_file_is_refused_with_its_name(tmp_path, report_settings, text, message):
    path = tmp_path / "probes.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=f"probes.csv: {message}"):
        write_exhibit("table-probes", [tmp_path / "out.csv"], probes=path, settings=report_settings())
