"""How attention changes over pre-training: symmetry, width, entropy and own share of each operator's heads."""

from symbert.report import captions
from symbert.report.collect import Collection
from symbert.report.panels import band_entries, draw_seeds, entries_of, page_of, prepare
from symbert.report.plots import Plot
from symbert.report.style import looks_of

PANEL = 1.6  # inches
SHOWN = {
    "symmetry": "symmetry of scores",
    "logit_std": "width of logits",
    "attention_entropy": "attention entropy (nats)",
    "own_share": "share of the own token",
}


def anatomy_figure(data: Collection) -> Plot | None:
    """Curves over pre-training steps, from the start: means over the heads of each operator of the symmetry of their
    scores, the width of their logits, the entropy of their attention, and the share that a token gives to itself.
    """
    if data.anatomy is None:
        return None
    heads, settings = data.anatomy, data.settings
    looks, seeds = looks_of(heads["attention"]), heads["pretrain_seed"].nunique()
    panels = [(size, measure) for size in dict.fromkeys(heads["size"]) for measure in SHOWN]
    wording = captions.wording_of(settings)
    figure, places = page_of([PANEL] * len(panels), entries_of(looks) + band_entries([seeds]))
    for (size, measure), panel in zip(panels, places, strict=True):
        of_size = heads[heads["size"] == size]
        means = of_size.groupby(["attention", "pretrain_seed", "step"], sort=False)[measure].mean()
        for name, look in looks.items():
            if name in means and means[name].notna().all():
                values = means[name].unstack("step")
                draw_seeds(panel, list(values.columns), values.to_numpy(), look)
        prepare(panel, SHOWN[measure])
        panel.set_title(f"BERT-{size}", loc="left")
    shown = f"Means over all heads of all layers, on {wording.corpus}; {captions.seeds_of(seeds)}."
    return Plot(figure, f"{shown}\n\n{wording.experiment}.")
