"""Tables of operators: parameters against counts by hand, training and heads."""

import pytest

from csv_rows import read_shown
from report.written import write_exhibit
from symbert.errors import DataError
from symbert.operators import OPERATORS
from symbert.report.collect import read_table
from symbert.report.names import OF_PROJECT


def test_an_operator_of_the_user_is_counted_without_a_formula(counted, outputs):
    counts = counted(("base",))
    counts["base"]["attention_parameters"]["mine"] = 7
    write_exhibit("table-table1_operators", outputs, parameters=counted((), **counts))
    row = read_shown(outputs[0])[-1]
    assert (row["attention"], row["expression"], row["counted_base"], row["exact_is_counted"]) == ("mine", "", "7", "")


ATTENTION = tuple(OPERATORS)


def test_table_2_has_the_share_of_attention_that_an_operator_saves(counted, outputs):
    """At base 1 − (h² + h + 3h)/(3(h² + h)) = 66.5366 % for shared, which its authors print as 66.53."""
    write_exhibit("table-table2_parameters", outputs, parameters=counted(attention=ATTENTION))
    rows = {(row["size"], row["attention"]): row for row in read_shown(outputs[0])}
    saved = {model: row["attention_saved_percent"] for model, row in rows.items()}
    assert [saved["base", name] for name in ATTENTION] == [
        *("", "33.33", "30.56", "66.54", "0.00", "0.00", "0.00", "30.56", "30.56", "33.33"),
        *("-0.00", "33.33", "33.33", "-0.47", "0.00"),  # gains of qk-norm and the perceptron of coupled are added
    ]
    assert [saved["small", name] for name in ATTENTION[:4]] == ["", "33.33", "29.17", "66.47"]
    assert rows["base", "shared"]["attention_parameters"] == "592896"
    printed = {model: row["printed_attention_saved_percent"] for model, row in rows.items()}
    assert {model: share for model, share in printed.items() if share} == {("base", "shared"): "66.53"}
    assert "what arXiv 2412.00359 prints for shared (66.5366, cut off)" in outputs[1].read_text()
    assert [rows[size, "shared"]["parameters"] for size in ("small", "base")] == ["26700090", "95367738"]


@pytest.mark.parametrize("name", ["NA", "null", "None", "nan"])
def test_an_operator_of_the_user_has_any_name(tmp_path, name):
    """In the tables of probes and heads it was an empty cell."""
    (tmp_path / "probes.csv").write_text(f"attention,share\n{name},\n")
    table = read_table(tmp_path / "probes.csv", [], OF_PROJECT)
    assert list(table["attention"]) == [name] and table["share"].isna().all()


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no csv"), ("size,attention\ntiny,original\n", "no column 'pretrain_seed'")],
)
def test_another_file_is_refused_with_its_name(tmp_path, report_settings, text, message):
    path = tmp_path / "anatomy.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=f"anatomy.csv: {message}"):
        write_exhibit("table-anatomy", [tmp_path / "out.csv"], anatomy=path, experiment=report_settings())
