"""How accuracy on minimal pairs grows over pre-training, without fine-tuning."""

from symbert.report import captions
from symbert.report.blimp import accuracies
from symbert.report.collect import Collection
from symbert.report.panels import Entry, band_entries, draw_seeds, entries_of, page_of, prepare
from symbert.report.plots import Plot
from symbert.report.style import MAJORITY_LINE, looks_of
from symbert.report.tables.blimp import pairs_in_words

PANEL, CHANCE = 2.4, 50  # inches; percent


def blimp_figure(data: Collection) -> Plot | None:
    """Curves over pre-training steps of the share of minimal pairs in which each operator finds the acceptable sentence
    likelier, with the line of chance; a panel per host and size.
    """
    if data.blimp is None:
        return None
    judgements, settings = data.blimp, data.settings
    means, looks = accuracies(judgements)["accuracy"], looks_of(judgements["attention"])
    curves = {  # of the seeds that judged at every step: others did at the last one only
        model: seeds.droplevel(["host", "size", "attention"]).unstack("step").sort_index(axis=1).dropna()
        for model, seeds in means.groupby(level=["host", "size", "attention"], sort=False)
    }
    models, seeds = list(dict.fromkeys((host, size) for host, size, _ in curves)), [*map(len, curves.values())]
    entries = [*entries_of(looks), *band_entries(seeds), Entry(MAJORITY_LINE, "chance")]
    figure, places = page_of([PANEL] * len(models), entries)
    for model, panel in zip(models, places, strict=True):
        for (*of_model, name), curve in curves.items():
            if tuple(of_model) == model and len(curve):
                draw_seeds(panel, list(curve.columns), curve.to_numpy(), looks[name])
        panel.axhline(CHANCE, zorder=1.5, **MAJORITY_LINE)
        prepare(panel, "accuracy (%)")
        panel.set_title(captions.host_family(*model), loc="left")
    shown = f"Accuracy on {pairs_in_words(judgements)}; {captions.seeds_of(max(seeds))}."
    wording = captions.wording_of(settings)
    return Plot(figure, f"{shown}\n\n{wording.experiment}; pre-trained on {wording.corpus}; no fine-tuning.")
