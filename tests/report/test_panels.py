"""Panels say which steps they show."""

from matplotlib.figure import Figure

from symbert.report.style import prepare


def test_no_step_that_lies_between_two_is_called_by_one_of_them():
    figure = Figure(figsize=(3, 2))
    panel = figure.subplots()
    panel.plot([10, 20], [1, 2])
    prepare(panel, "score")
    figure.draw_without_rendering()
    places = panel.get_xticks()
    assert [label.get_text() for label in panel.get_xticklabels()] == [str(int(place)) for place in places]
    assert [*places] == [*map(round, places)]
