"""An operator's code is known by its syntax: its own, and that of all that it is made of in this project."""

import ast
import shutil
import subprocess
import sys

import pytest

from symbert.operators import OPERATORS

IMPORT = "from symbert.operators import Description"


@pytest.fixture
def changed(root, tmp_path):
    """The operators whose code is another one after edits of the module of operators, beside which a module
    `doubling` may lie; told in a copy of the package by a process that never imports torch."""
    words = (
        "import sys; from symbert.operators import operator_code; "
        f"print({{name: operator_code(name) for name in {list(OPERATORS)}}}); assert 'torch' not in sys.modules"
    )

    def codes(*edits: tuple[str, str], doubling: str = "") -> dict[str, str]:
        package, file = root / "src/symbert", tmp_path / "symbert/model/attention.py"
        if not file.is_file():
            shutil.copytree(package, tmp_path / "symbert", ignore=shutil.ignore_patterns("__pycache__"))
        (tmp_path / "symbert/doubling.py").write_text(doubling)
        text = (package / "model/attention.py").read_text(encoding="utf-8")
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        file.write_text(text, encoding="utf-8")
        run = [sys.executable, "-c", words]
        return ast.literal_eval(subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)

    def difference(*edits: tuple[str, str], before: tuple = (), doubling: tuple[str, str] = ("", "")) -> set[str]:
        first = codes(*before, doubling=doubling[0])
        second = codes(*before, *edits, doubling=doubling[1])
        return {name for name in OPERATORS if first[name] != second[name]}

    return difference


@pytest.mark.parametrize(
    ("old", "new", "operators"),
    [
        (
            "return query, query, self",
            "return query, 2 * query, self",
            {"symmetric", "pairwise", "pairwise-identity", "pairwise-scaled", "symmetric-others"},
        ),
        ("init.ones_(scale)", "init.zeros_(scale)", {"shared"}),
        ("init.normal_(self.weight, 0.0, self.deviation)", "init.ones_(self.weight)", {"original-gain"}),
        ("0.0, self.attention_head_size**-0.5)", "0.0, self.attention_head_size**-1)", {"pairwise-scaled"}),
        ("scaling=self.scaling", "scaling=1.0", set(OPERATORS)),
    ],
    ids=["its heirs", "itself", "a layer it has", "a start alone", "the base of all"],
)
def test_an_edit_changes_the_operators_that_it_reaches_and_no_others(changed, old, new, operators):
    assert changed((old, new)) == operators


def test_the_code_of_every_operator_is_that_of_earlier_runs():
    """A run goes on only with the code that began it, so a change here is a change of every run."""
    assert {name: operator.code for name, operator in OPERATORS.items()} == {
        "original": "98e19ea03102a27f",
        "symmetric": "b85d120d1414d832",
        "pairwise": "51714e5381f3a68b",
        "shared": "64947adfae1b4303",
        "original-gain": "e795372c3a2da0d1",
        "pairwise-identity": "b40d0c364e07353b",
        "pairwise-scaled": "88b05c898c8bbb02",
        "original-symmetric": "265b3411c5950ad5",
        "original-unscaled": "899a1aa916ac17fe",
        "symmetric-others": "67f25ab0efafee36",
    }


def test_comments_docstrings_blanks_and_descriptions_are_no_code(changed):
    line = "        query = self.split_heads(self.query(hidden))\n"
    parts = "\n        # the same\n        query = (\n            self.split_heads(self.query(hidden))\n        )\n"
    description = ('color="#009E73",', 'color="#FF0000",\n        marker=".",'), ('leading="2h² + h²/n",', "")
    text = ("The paper's equation 3.", "The paper's third equation.")
    assert not changed(text, (line, parts), *description, ("    description = Description()\n", ""))


@pytest.mark.parametrize(
    ("statement", "used"),
    [
        ("from symbert.doubling import doubled as twice", "twice"),
        ("from .. import doubling as low", "low.doubled"),
        ("import symbert.doubling", "symbert.doubling.doubled"),
    ],
)
def test_what_an_operator_imports_from_this_project_is_its_code(changed, statement, used):
    """A function of another module, and what that function calls in turn."""
    before = ((IMPORT, f"{statement}\n{IMPORT}"), ("projection(hidden)", f"projection({used}(hidden))"))
    module = "def doubled(x):\n    return times(x, 2)\n\n\ndef times(x, factor):\n    return x * factor\n"
    assert changed(before=before, doubling=(module, module.replace("x * factor", "x + factor"))) == {"shared"}
    same = module.replace("times(x, 2)", "times(x, 2)  # twice")
    if statement.startswith("from symbert.doubling"):  # else the module counts whole
        same += "\n\ndef neighbour():\n    pass\n"
    assert not changed(before=before, doubling=(module, same))
