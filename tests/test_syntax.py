"""The code of operators: versions of this project's, the syntax of a user's module; told without importing torch."""

import subprocess
import sys

import pytest

from symbert import syntax
from symbert.operators import OPERATORS, versions_of


@pytest.fixture
def versions_after(root, tmp_path, monkeypatch):
    """The versions of each operator after an edit of the module of operators, in a copy of the package."""

    def versions(old: str, new: str) -> dict[str, dict[str, int]]:
        text = (root / "src/symbert/model/attention.py").read_text(encoding="utf-8")
        assert old in text
        (tmp_path / "attention.py").write_text(text.replace(old, new), encoding="utf-8")
        found = syntax.file_of
        edited = {"symbert.model.attention": tmp_path / "attention.py"}
        monkeypatch.setattr(syntax, "file_of", lambda module: edited.get(module) or found(module))
        for cached in (syntax._statements, syntax._definitions):
            cached.cache_clear()
        return {name: found for name, operator in OPERATORS.items() if (found := versions_of(operator.path))}

    yield versions
    for cached in (syntax._statements, syntax._definitions):
        cached.cache_clear()


def test_a_local_variable_of_another_name_retrains_no_operator(versions_after):
    """It retrained each operator whose class it stood in."""
    assert versions_after("query, key, value = super()", "one, key, value = super()") == {}


@pytest.mark.parametrize(
    ("head", "operators"),
    [
        ("class SharedAttention(SelfAttention):", {"shared"}),
        (
            "class SymmetricAttention(SelfAttention):",
            {"symmetric", "pairwise", "pairwise-identity", "pairwise-scaled", "symmetric-others"},
        ),
        ("class SelfAttention(nn.Module, ABC):", set(OPERATORS)),
    ],
    ids=["itself", "its heirs", "the base of all"],
)
def test_a_version_that_is_raised_changes_the_operators_of_the_class_and_its_heirs(versions_after, head, operators):
    changed = versions_after(head, f"{head}\n    version = 2\n")
    raised = {head.split()[1].partition("(")[0]: 2}
    assert changed.keys() == set(operators) and all(versions == raised for versions in changed.values())


def test_a_version_with_a_type_counts(versions_after):
    """It was read as version 1 without a word."""
    head = "class SharedAttention(SelfAttention):"
    assert versions_after(head, f"{head}\n    version: int = 2\n") == {"shared": {"SharedAttention": 2}}


def test_operators_are_told_without_torch():
    words = "import sys; from symbert.operators import OPERATORS; assert OPERATORS and 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", words], check=True)
