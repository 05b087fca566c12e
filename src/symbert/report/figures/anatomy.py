"""How attention changes over pre-training: symmetry, width, entropy and own share of each operator's heads."""

import math

from matplotlib.figure import Figure

from symbert.report import captions
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.panels import BAND_ENTRY, Entry, draw_names, draw_seeds, name_of, page_of, prepare
from symbert.report.style import looks_of

PANEL = 1.6  # inches
SHOWN = {
    "symmetry": "symmetry of scores",
    "logit_std": "width of logits",
    "attention_entropy": "attention entropy (nats)",
    "own_share": "share of the own token",
}
KEY_COLUMNS = 4


@exhibit(chapter="Operators", place=7, heading="Attention over pre-training", reads=("settings", "anatomy"))
def anatomy_figure(data: Data) -> Figure:
    """Curves over pre-training steps, from the start: means over the heads of each operator of the symmetry of their
    scores, the width of their logits, the entropy of their attention, and the share that a token gives to itself.
    """
    heads, settings = data.anatomy, data.settings
    looks, seeds = looks_of(heads["attention"]), heads["pretrain_seed"].nunique()
    panels = [(size, measure) for size in dict.fromkeys(heads["size"]) for measure in SHOWN]
    entries = [Entry(look.line(), name_of(name)) for name, look in looks.items()] + [BAND_ENTRY] * (seeds > 1)
    wording = captions.wording_of(settings)
    note = f"{wording.experiment}; {wording.corpus}; means over all heads of all layers"
    rows = math.ceil(len(entries) / KEY_COLUMNS)
    figure, places, key = page_of("Attention over pre-training", note, [PANEL] * len(panels), rows)
    for (size, measure), panel in zip(panels, places, strict=True):
        of_size = heads[heads["size"] == size]
        means = of_size.groupby(["attention", "pretrain_seed", "step"], sort=False)[measure].mean()
        for name, look in looks.items():
            if name in means and means[name].notna().all():
                values = means[name].unstack("step")
                draw_seeds(panel, list(values.columns), values.to_numpy(), look)
        prepare(panel, SHOWN[measure])
        panel.set_title(f"BERT-{size}", loc="left")
    draw_names(key, entries, KEY_COLUMNS)
    return figure
