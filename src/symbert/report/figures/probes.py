"""A card per operator: which relations between tokens it can express."""

from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.panels import Entry, draw_names, page_of
from symbert.report.plots import Plot
from symbert.report.style import GREY, MAJORITY_LINE, looks_of

CARD = 1.3  # inches
APART = 0.18  # of the rows of a card: between the points with and without the own position
KEY_COLUMNS = 3
SIDES = {"yes": "all positions", "no": "own one masked"}


@exhibit(chapter="Operators", place=5, heading="Cards of operators", reads=("probes",))
def probes_figure(data: Data) -> Plot:
    """A panel per operator with the share of tokens that point right along a directed cycle, to a partner and along a
    chain, and of right answers in lookups: filled points with all positions, hollow ones with the own position
    masked; lines are 95 % intervals, of lookups the range of seeds.
    """
    probes = data.probes
    looks, relations = looks_of(probes["attention"]), list(dict.fromkeys(probes["relation"]))
    faces = {"yes": {"markerfacecolor": GREY}, "no": {"markerfacecolor": "white"}}
    mark = {"color": GREY, "marker": "o", "linestyle": "none"}
    entries = [Entry({**mark, **faces[side]}, name) for side, name in SIDES.items()] + [
        Entry(MAJORITY_LINE, "about chance")
    ]
    figure, cards, key = page_of([CARD] * len(looks), 1)
    for (name, look), card in zip(looks.items(), cards, strict=True):
        for each in probes[probes["attention"] == name].itertuples():
            row = relations.index(each.relation) + (APART if each.own_position == "no" else -APART)
            face = look.color if each.own_position == "yes" else "white"
            card.plot([each.low, each.high], [row, row], color=look.color, linewidth=0.8)
            card.plot([each.share], [row], marker=look.marker, color=look.color, markerfacecolor=face, markersize=5)
        card.axvline(probes["chance"].mean(), **MAJORITY_LINE)
        card.set_yticks(range(len(relations)), relations)
        card.set_ylim(len(relations) - 0.5, -0.5)
        card.set_xlim(-0.03, 1.03)
        card.set_title(name, loc="left")
    draw_names(key, entries, KEY_COLUMNS)
    return Plot(figure)
