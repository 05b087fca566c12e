"""Table 2, against counts made by hand and what the paper prints."""

from csv_rows import read_shown
from report.written import write_exhibit
from symbert.operators import OPERATORS
from symbert.report import published

ATTENTION = tuple(OPERATORS)


def changed(size, attention, by):
    from_formula = {"original": 1_771_776, "symmetric": 1_181_184, "pairwise": 1_230_336}
    from_formula[attention] += by
    shape = {"num_hidden_layers": 12, "num_attention_heads": 12, "hidden_size": 768}
    shape |= {"intermediate_size": 3072, "vocab_size": 30522}
    return {"shape": shape, "parameters": from_formula, "attention_parameters": from_formula}


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
