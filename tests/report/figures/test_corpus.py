"""The corpus figure: what it shows, that its texts can be read, and what it refuses."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from legibility import assert_legible
from symbert.corpus.counts import EDGES, histogram
from symbert.errors import DataError
from symbert.report.data import Data, write_exhibit
from symbert.report.figures.corpus import compact, corpus_figure, median_of
from symbert.report.style import house_style

LONG = {"experiment": "single-gpu-with-a-rather-long-name-of-the-experiment-folder-that-someone-chose"}


def plot_of(files, settings):
    return corpus_figure(Data(counts=files[0], records=files[1], settings=settings))


def figure_of(files, settings):
    return plot_of(files, settings).figure


def panels_of(figure):
    return [axes for axes in figure.axes if axes.axison]


def drawn(panel):
    return [(patch.get_data().values.tolist(), patch.get_facecolor()) for patch in panel.patches]


@pytest.mark.parametrize(("parts", "changes"), [((1,), {}), (range(1, 301), LONG)])
def test_no_text_runs_into_another(corpus_files, settings_file, parts, changes):
    with house_style():
        assert_legible(figure_of(corpus_files(*parts), settings_file(**changes)))


def test_no_text_of_billions_of_documents_runs_into_another(corpus_files, settings_file, bins):
    many = 1_235_510_986
    lengths = {"read": bins("characters", v0=many - 7, v9=7), "kept": bins("characters", v20000000=many // 2)}
    scores = {"read": bins("harmful_perplexity", v3=many - 123_456_789), "kept": bins("harmful_perplexity", v3=9)}
    part = {"read": many, "kept": many // 2, "bad": 0, "dropped": {"quality_warning": many - many // 2}}
    part["histograms"] = {"harmful_perplexity": scores, "characters": lengths}
    record = {"documents": many // 2, "histogram": bins("tokens", v3=1, v2000000=many // 2 - 1)}
    with house_style():
        found = assert_legible(figure_of(corpus_files(1, part=part, record=record), settings_file(**LONG)))
    assert "harmful perplexity (123M documents have none)" in found and "1,235,510,986" in found


def test_the_panels_show_the_sums_of_the_parts(corpus_files, settings_file, bins):
    with house_style():
        perplexity, characters, tokens = panels_of(figure_of(corpus_files(1, 2), settings_file()))
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


@pytest.mark.parametrize("window", [(5.0, 100_000.0), (2.5, 300_000.0)])
def test_the_window_of_the_experiment_is_marked(corpus_files, settings_file, window):
    changes = {"min_harmful_perplexity": window[0], "max_harmful_perplexity": window[1]}
    with house_style():
        figure = figure_of(corpus_files(1), settings_file(**changes))
        assert f"kept only between {window[0]:,g} and {window[1]:,g}" in assert_legible(figure)
    perplexity, *others = panels_of(figure)
    assert [line.get_xdata()[0] for line in perplexity.lines] == list(window)
    low, high = perplexity.get_xlim()
    assert low < window[0] and window[1] < high
    assert not any(panel.lines for panel in others)


def test_the_key_has_documents_and_medians(corpus_files, settings_file):
    with house_style():
        found = assert_legible(figure_of(corpus_files(1, 2), settings_file()))
    assert "harmful perplexity" in found, "no document lacks one"
    assert {"2,009", "2,000", "read", "kept", "documents", "median"} <= set(found)
    assert found.count("2,000") == 3, "documents kept, in each panel"
    middle = [float(text.removeprefix("≈ ").replace(",", "")) for text in found if text.startswith("≈")]
    assert middle == pytest.approx([800, 800, 4000, 4000, 650], rel=0.13), "a bin is a tenth of a power of ten"


def test_the_caption_names_experiment_and_stand_in_and_what_was_not_read(corpus_files, settings_file, bins):
    counts, records = corpus_files(1, 2)
    nothing = {"read": bins("characters"), "kept": bins("characters")}
    unscored = {side: bins("harmful_perplexity") for side in ("read", "kept")}
    empty = {"taken": False, "read": 0, "kept": 0, "bad": 0, "dropped": {}}
    empty["histograms"] = {"harmful_perplexity": unscored, "characters": nothing}
    counts[1].write_text(json.dumps(json.loads(counts[1].read_text()) | empty))
    tokens = {"part": "en_meta_part_2", "documents": 0, "tokens": 0, "words": 0, "histogram": bins("tokens")}
    records[1].write_text(json.dumps(tokens))
    with house_style():
        caption = plot_of((counts, records), settings_file()).caption
    assert caption == (
        "The corpus: a stand-in corpus made from documentation text.\n\nExperiment demo-embedded, scale demo, recipe "
        "faithful; not read, because there were enough documents: en_meta_part_2."
    )


def test_a_corpus_without_documents_is_drawn(corpus_files, settings_file, bins):
    nothing = {name: {side: bins(name) for side in ("read", "kept")} for name in ("harmful_perplexity", "characters")}
    part = {"read": 0, "kept": 0, "bad": 0, "dropped": {}, "histograms": nothing}
    record = {"documents": 0, "histogram": bins("tokens")}
    with house_style():
        assert "–" in assert_legible(figure_of(corpus_files(1, part=part, record=record), settings_file()))


def test_incomplete_histograms_are_refused(corpus_files, settings_file, bins):
    scores = {"read": bins("harmful_perplexity", v9=1000), "kept": bins("harmful_perplexity", v9=1000)}
    lengths = {"read": bins("characters", v9=1004), "kept": bins("characters", v9=999)}
    part = {"histograms": {"harmful_perplexity": scores, "characters": lengths}}
    with pytest.raises(
        DataError, match="part en_meta_part_1: the histogram of characters has 999 documents, expected 1000"
    ):
        figure_of(corpus_files(1, part=part), settings_file())
    scores["kept"] = bins("harmful_perplexity", v9=1001)
    with pytest.raises(DataError, match="harmful_perplexity has 1001 documents, expected 1000; run filter-part again"):
        figure_of(corpus_files(1, part=part), settings_file())
    with pytest.raises(DataError, match="tokens has 999 documents, expected 1000; run tokenize-part again"):
        figure_of(corpus_files(1, record={"histogram": bins("tokens", v9=999)}), settings_file())
    with pytest.raises(DataError, match=f"part en_meta_part_1: 3 bins of tokens, expected {len(EDGES['tokens']) + 1}"):
        figure_of(corpus_files(1, record={"histogram": [1000, 0, 0]}), settings_file())


@given(st.lists(st.floats(1.0, 999_999.0), min_size=1, max_size=300))
def test_the_median_is_that_of_the_values_but_for_the_width_of_a_bin(values):
    edges = EDGES["tokens"]
    bounds = np.array([edges[0] ** 2 / edges[1], *edges, edges[-1] ** 2 / edges[-2]])
    found = median_of(np.array(histogram("tokens", values)), bounds)
    ordered = sorted(values)
    low, high = ordered[(len(values) - 1) // 2], ordered[len(values) // 2]
    assert low / 10**0.1001 <= found <= high * 10**0.1001


def test_the_figure_has_the_same_bytes_whatever_the_order_of_the_inputs(corpus_files, settings_file, tmp_path):
    counts, records = corpus_files(1, 2, 3)
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    write_exhibit("figure-corpus", [first], counts=counts, records=records, settings=settings_file())
    shuffled = {"counts": counts[::-1], "records": random.Random(1).sample(records, 3)}
    write_exhibit("figure-corpus", [second], settings=settings_file(), **shuffled)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("value", "words"), [(0, "0"), (1, "1"), (950, "950"), (1500, "1.5k"), (137e6, "137M"), (7e10, "70G")]
)
def test_large_numbers_are_short(value, words):
    assert compact(value) == words
