"""Looks, axes and files of figures."""

import resource
from itertools import pairwise

import pytest
from matplotlib.figure import Figure

from symbert.errors import ConfigError
from symbert.operators import OPERATORS, Description, Operator
from symbert.report.names import OF_PROJECT, Known
from symbert.report.style import looks_of, write_figure


@pytest.mark.parametrize(("key", "value"), [("color", "ultra"), ("marker", "?")])
def test_looks_that_no_figure_can_have_are_refused_with_the_class(key, value):
    own = Operator("own", "my_operators:Own")
    vars(own)["description"] = Description(**{key: value})  # as if its class said so
    with pytest.raises(ConfigError, match=f"my_operators:Own: .*{value.replace('?', '.')}"):
        looks_of(["original"], Known(operators={**OPERATORS, "own": own}))


def test_forty_operators_of_ones_own_have_forty_looks():
    """From the fifth on looks were repeated."""
    looks = looks_of(["original", *(f"mine{number}" for number in range(40))], OF_PROJECT)
    assert len(set(map(str, looks.values()))) == 41
    neighbours = list(looks.values())[1:]
    for one, other in pairwise(neighbours):
        assert one.color != other.color and one.marker != other.marker and one.linestyle != other.linestyle
    operators, described = dict(OPERATORS), {"color": "#A00000", "marker": "D", "line": "dashed"}
    for words in (described, {"color": "#B00000"}, {"color": "#C00000", "marker": "s"}):
        for number in range(14):  # a class that its configuration names so often
            own = Operator(f"{words['color']}-{number}", "my_operators:Own")
            vars(own)["description"] = Description(**words)
            operators[own.name] = own
    looks = looks_of(operators, Known(operators=operators))
    assert len(set(map(str, looks.values()))) == len(operators) > 42
    assert [look.color for name, look in looks.items() if name.startswith("#A")] == ["#A00000"] * 14


@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_a_disk_that_fails_while_a_figure_is_written_is_no_bug_of_matplotlibs(tmp_path, suffix):
    figure = Figure()
    for panel in figure.subplots(2, 2).flat:
        panel.set_title("abc")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=f"File too large.*figure.{suffix}"):
            write_figure(figure, "", [tmp_path / f"figure.{suffix}"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not [*tmp_path.iterdir()]
