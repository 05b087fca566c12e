"""Looks, axes and files of figures."""

import resource

import pytest
from matplotlib.figure import Figure

from symbert.errors import ConfigError
from symbert.operators import OPERATORS, Description, Operator
from symbert.report.style import Plot, looks_of, prepare, write_plot


def test_a_caption_stands_beside_its_figure_as_text_and_as_latex(tmp_path):
    plot = Plot(Figure((7.0, 2.0)), "On 95 % of A_b.\n\nHow to\nread it.")
    outputs = [tmp_path / "f.txt", tmp_path / "f.tex"]
    write_plot(plot, "A figure.", outputs)
    assert outputs[0].read_text() == "A figure. On 95 % of A_b.\n\nHow to read it.\n"
    latex = outputs[1].read_text()
    assert r"\caption{A figure. On 95 \% of A\_b.}" in latex and r"{\footnotesize How to read it.}" in latex
    assert r"{f.pdf}" in latex and r"\label{fig:f}" in latex and r"\begin{figure*}" in latex, "two columns wide"
    write_plot(Plot(Figure((3.5, 2.0))), "A figure.", outputs)
    assert outputs[0].read_text() == "A figure.\n" and r"\end{figure}" in outputs[1].read_text()


@pytest.mark.parametrize(("key", "value"), [("color", "ultra"), ("marker", "?"), ("line", "wavy")])
def test_looks_that_no_figure_can_have_are_refused_with_the_class(monkeypatch, key, value):
    own = Operator("own", "my_operators:Own")
    vars(own)["description"] = Description(**{key: value})  # as if its class said so
    monkeypatch.setitem(OPERATORS, "own", own)
    with pytest.raises(ConfigError, match=f"my_operators:Own: '{key}' is .*; choose from "):
        looks_of(["original"])


@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_a_disk_that_fails_while_a_figure_is_written_is_no_bug_of_matplotlibs(tmp_path, suffix):
    figure = Figure()
    for panel in figure.subplots(2, 2).flat:
        panel.set_title("abc")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=f"File too large.*figure.{suffix}"):
            write_plot(Plot(figure), "", [tmp_path / f"figure.{suffix}"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not [*tmp_path.iterdir()]


def test_no_step_that_lies_between_two_is_called_by_one_of_them():
    figure = Figure(figsize=(3, 2))
    panel = figure.subplots()
    panel.plot([10, 20], [1, 2])
    prepare(panel, "score")
    figure.draw_without_rendering()
    places = panel.get_xticks()
    assert [label.get_text() for label in panel.get_xticklabels()] == [str(int(place)) for place in places]
    assert [*places] == [*map(round, places)]
