"""The corpus figure: what it shows, that its texts can be read, and what it refuses."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from legibility import assert_legible
from report.written import collected
from symbert.corpus.counts import EDGES, histogram
from symbert.report.figures.corpus import corpus_figure, median_of
from symbert.report.style import house_style


def plot_of(files, settings):
    return corpus_figure(collected(parts=files, settings=settings))


def figure_of(files, settings):
    return plot_of(files, settings).figure


def panels_of(figure):
    return [axes for axes in figure.axes if axes.axison]


def drawn(panel):
    return [(patch.get_data().values.tolist(), patch.get_facecolor()) for patch in panel.patches]


def test_the_panels_show_the_sums_of_the_parts(corpus_files, report_settings, bins):
    with house_style():
        perplexity, characters, tokens = panels_of(figure_of(corpus_files(1, 2), report_settings()))
    assert [values for values, _ in drawn(perplexity)] == [
        bins("harmful_perplexity", v2=6, v800=2003),
        bins("harmful_perplexity", v800=2000),
    ]
    assert [values for values, _ in drawn(characters)] == [
        bins("characters", v50=9, v4000=2000),
        bins("characters", v4000=2000),
    ]
    assert [values for values, _ in drawn(tokens)] == [bins("tokens", v600=800, v700=1200)]
    assert drawn(perplexity)[1][1] == drawn(tokens)[0][1], "kept has one colour"
    assert all(panel.get_xscale() == "log" for panel in (perplexity, characters, tokens))


def test_a_corpus_without_documents_is_drawn(corpus_files, report_settings, bins):
    nothing = {name: {side: bins(name) for side in ("read", "kept")} for name in ("harmful_perplexity", "characters")}
    part = {"read": 0, "kept": 0, "bad": 0, "dropped": {}, "histograms": nothing}
    record = {"documents": 0, "histogram": bins("tokens")}
    with house_style():
        texts = assert_legible(figure_of(corpus_files(1, part=part, record=record), report_settings()))
    assert "kept: 0 documents" in texts


@given(st.lists(st.floats(1.0, 999_999.0), min_size=1, max_size=300))
def test_the_median_is_that_of_the_values_but_for_the_width_of_a_bin(values):
    edges = EDGES["tokens"]
    bounds = np.array([edges[0] ** 2 / edges[1], *edges, edges[-1] ** 2 / edges[-2]])
    found = median_of(np.array(histogram("tokens", values)), bounds)
    ordered = sorted(values)
    low, high = ordered[(len(values) - 1) // 2], ordered[len(values) // 2]
    assert low / 10**0.1001 <= found <= high * 10**0.1001
