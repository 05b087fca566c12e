"""Figure 1: each operator as its code is, in its colour, with its formulas; and readable."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from torch import nn
from transformers import BertConfig

from legibility import assert_legible
from symbert.model.sites import attention_of
from symbert.operators import OPERATORS, Operator
from symbert.report.data import Data, write_exhibit
from symbert.report.figures.figure1_operators import operators_figure
from symbert.report.style import PAGE_WIDTH, house_style, looks_of

LOOKS = looks_of(OPERATORS)
DIAGRAMS = [name for name, operator in OPERATORS.items() if not operator.description.control_of]
COUNTS = {  # of base by hand: 3(768² + 768), 2(768² + 768), the same and 768²/12, 768² + 4 · 768
    "original": "base: 1,771,776",
    "symmetric": "base: 1,181,184 (−33.3 %)",
    "pairwise": "base: 1,230,336 (−30.6 %)",
    "shared": "base: 592,896 (−66.5 %)",
}


@pytest.fixture(scope="module")
def columns():
    """The operators' columns of the figure."""
    with house_style():
        return dict(zip(DIAGRAMS, operators_figure(Data()).figure.axes, strict=True))


def boxes(axes):
    """Texts of boxes and the patches around them."""
    patches = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    texts = {(text.get_position(), text.get_text()) for text in axes.texts}
    return {
        text: patch
        for patch in patches
        for (x, y), text in texts
        if abs(x - patch.get_x() - patch.get_width() / 2) < 1e-9
        and abs(y - patch.get_y() - patch.get_height() / 2) < 1e-9
    }


def learned(axes):
    return {text: patch for text, patch in boxes(axes).items() if patch.get_linewidth() > 1}


def arrows(axes):
    """Where arrows start and end: (x, bottom, top)."""
    ends = [patch._posA_posB for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    return [(start[0], start[1], end[1]) for start, end in ends]


def test_figure_1_is_two_columns_wide_and_no_text_runs_into_another(columns):
    figure = columns["original"].figure
    with house_style():
        found = assert_legible(figure)
    assert figure.get_figwidth() == PAGE_WIDTH == 7.0
    assert [text for text in found if text in LOOKS] == ["original", "symmetric", "pairwise", "shared"]


def test_every_text_of_a_box_fits_into_it(columns):
    for axes in columns.values():
        for text in axes.texts:
            patch = boxes(axes).get(text.get_text())
            if patch:
                box, around = text.get_window_extent(), patch.get_window_extent()
                assert around.x0 < box.x0 and box.x1 < around.x1, text.get_text()


@pytest.mark.parametrize("name", DIAGRAMS)
def test_what_is_drawn_as_learned_is_what_the_operator_learns(columns, name):
    """A box per Linear layer and one per other parameter, in the operator's colour and in no other."""
    module = attention_of(BertConfig(hidden_size=24, num_attention_heads=3, attention=name))
    layers = [child for child in module.modules() if isinstance(child, nn.Linear)]
    diagram = OPERATORS[name].description
    assert len(diagram.projections) == len(layers)
    assert len(diagram.factors) == len(list(module.parameters(recurse=False)))
    drawn = learned(columns[name])
    assert set(drawn) == {*diagram.projections, *diagram.factors.values()}
    assert {to_hex(patch.get_edgecolor()).upper() for patch in drawn.values()} == {LOOKS[name].color}
    others = boxes(columns[name]).keys() - drawn.keys()
    assert others == {"hidden x", "hidden y", "dot product / √d", "softmax over y", "weighted sum over y"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("original", ["Q(x)", "K(y)", "V(y)"]),
        ("symmetric", ["Q(x)", "Q(y)", "V(y)"]),
        ("pairwise", ["Q(x)", "Q(y)", "V(y)"]),
        ("shared", ["P(x)", "P(y)", "P(y)"]),
    ],
)
def test_tokens_leave_the_projections_that_the_formula_names(columns, name, words):
    texts = [(text.get_position()[0], text.get_text()) for text in columns[name].texts if text.get_text() in words]
    assert [text for _, text in sorted(texts)] == words
    formula = OPERATORS[name].formula
    assert all(word in formula for word in words[:2])


@pytest.mark.parametrize("name", DIAGRAMS)
def test_every_box_is_reached_and_left(columns, name):
    """An arrow goes into every box but the tokens', and one out of every box."""
    axes = columns[name]
    entered, left = set(), set()
    for x, bottom, top in arrows(axes):
        for text, patch in boxes(axes).items():
            if patch.get_x() < x < patch.get_x() + patch.get_width():
                entered |= {text} if abs(top - patch.get_y()) < 1e-9 else set()
                left |= {text} if abs(bottom - patch.get_y() - patch.get_height()) < 1e-9 else set()
    assert entered == boxes(axes).keys() - {"hidden x", "hidden y"}
    assert left == boxes(axes).keys()


@pytest.mark.parametrize("name", DIAGRAMS)
def test_formulas_and_counts_stand_under_each_operator(columns, name):
    texts = [text.get_text() for text in columns[name].texts]
    assert f"{OPERATORS[name].formula} / √d" in texts and COUNTS[name] in texts
    assert any(text.endswith(f": {OPERATORS[name].description.parameters}") for text in texts)


def test_figure_1_has_the_same_bytes_each_time(tmp_path):
    image, first, second = (tmp_path / name for name in ("first.png", "first.pdf", "second.pdf"))
    write_exhibit("figure-figure1_operators", [image, first])
    write_exhibit("figure-figure1_operators", [second])
    assert first.read_bytes() == second.read_bytes() and first.read_bytes().startswith(b"%PDF")
    assert image.read_bytes().startswith(b"\x89PNG")


def test_operators_of_ones_own_are_drawn_in_a_second_row(monkeypatch, tmp_path):
    """A box without letters where nothing is described; the leading terms of a long formula of parameters."""
    wide = 'parameters="2(h rank + rank) + 2(rank h + h) + h² + h", leading="4h rank + h²"'
    (tmp_path / "drawn_operators.py").write_text(
        f"class Bare(Base):\n    pass\n\n\nclass Wide(Base):\n    description = Description({wide})\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name, arguments in (("bare", {}), ("wide", {"rank": 8})):
        own = Operator(name, f"drawn_operators:{name.capitalize()}", arguments)
        monkeypatch.setitem(OPERATORS, name, own)
    with house_style():
        figure = operators_figure(Data()).figure
        assert_legible(figure)
    bare, wide = figure.axes[4:]
    assert set(learned(bare)) == {"f"} and figure.get_figheight() == pytest.approx(2 * 3.93)
    assert "f: 4h rank + h² + …" in [text.get_text() for text in wide.texts]
