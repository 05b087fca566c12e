"""Whether the texts of a figure can be read."""

import itertools

from matplotlib.backends.backend_agg import FigureCanvasAgg


def texts(figure):
    """Visible texts and where they stand, in pixels."""
    FigureCanvasAgg(figure).draw()
    figure.canvas.draw()
    found = [text for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize")) if text.get_text()]
    inside = [text for text in found if text.get_visible() and text.get_window_extent().width > 0]
    ticks = [label for axes in figure.axes if axes.axison for axis in (axes.xaxis, axes.yaxis) for label in shown(axis)]
    labels = {id(label) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for label in axis.get_ticklabels()}
    texts = [text for text in inside if id(text) not in labels] + ticks
    return [(text.get_text(), text.get_window_extent()) for text in texts]


def shown(axis):
    """The labels within the axis; none where the panel beneath has them."""
    (low, high), labels = sorted(axis.get_view_interval()), axis.get_ticklabels()
    places = axis.get_ticklocs() if labels else []
    return [label for place, label in zip(places, labels, strict=True) if low <= place <= high]


def assert_legible(figure):
    """No text overlaps another or leaves the figure; gives all texts."""
    found = texts(figure)
    for (one, box), (other, other_box) in itertools.combinations(found, 2):
        assert not (box.shrunk(0.98, 0.8).overlaps(other_box.shrunk(0.98, 0.8))), f"{one!r} runs into {other!r}"
    for text, box in found:
        assert box.x0 >= 0 and box.y0 >= 0, f"{text!r} leaves the figure"
        assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, f"{text!r} leaves the figure"
    return [text for text, _ in found]
