"""Table 1, against formulas and what the paper prints."""

from csv_rows import read_shown
from report.written import write_exhibit


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
