"""The settings of an experiment beside the paper's."""

from typing import Any

from symbert.report import published
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, table_of
from symbert.settings import PAPERS_FILTERS

UNKNOWN = "–"
TRAINING = ("pretrain.steps", "pretrain.batch_size", "corpus.pack.sequence_length")
PAPER: dict[str, Any] = {  # appendix A, and what `symbert.report.published` has
    "recipe": "faithful",
    "corpus.source": "hub",
    "glue.source": "hub",
    "corpus.filter.match": "exact",
    "corpus.filter.min_harmful_perplexity": 5.0,
    "corpus.filter.max_harmful_perplexity": 100_000.0,
    **dict(zip(TRAINING, published.TRAINING, strict=True)),
    **{f"pretrain.{key}": value for key, value in published.PRETRAIN.items()},
    **{f"glue.{key}": value for key, value in published.GLUE.items()},
}


@exhibit(chapter="Provenance", place=1, heading="Settings, and the paper’s", reads=("settings",), of_imported=False)
def settings_table(data: Data) -> Table:
    """Every setting that changes losses or scores, by its key in config.yaml, beside that of the paper or its authors'
    code; bold where the two differ. Where nothing is bold, the numbers of this experiment may be compared with the
    paper's.
    """
    settings = data.settings
    known = {
        "recipe": settings.recipe,
        "corpus.source": settings.corpus_source,
        "glue.source": settings.glue_source,
        "corpus.filter.match": settings.match,
        "corpus.filter.min_harmful_perplexity": settings.min_harmful_perplexity,
        "corpus.filter.max_harmful_perplexity": settings.max_harmful_perplexity,
        **dict(zip(TRAINING, (settings.steps, settings.batch_size, settings.sequence_length), strict=True)),
    }
    ours, theirs = {key: value for key, value in known.items() if value is not None}, PAPER
    ours |= {f"pretrain.{key}": value for key, value in settings.pretrain.items()}
    ours |= {f"glue.{key}": value for key, value in settings.glue.items()}
    ours |= settings.overrides or {}
    if settings.rules is not None:  # where some filters were chosen
        ours |= {"corpus.filter.rules": ", ".join(settings.rules) or "none"}
        theirs = theirs | {"corpus.filter.rules": ", ".join(PAPERS_FILTERS)}
    keys = list({**theirs, **ours})
    rows = [{"setting": key, "here": _value(ours, key), "the_paper": _value(theirs, key)} for key in keys]
    other = {(at, "here") for at, key in enumerate(keys) if ours.get(key, UNKNOWN) != theirs.get(key, UNKNOWN)}
    by_hash = f" Hash of the settings of fine-tuning: {settings.settings_hash}." if settings.settings_hash else ""
    caption = (
        "Settings that change losses or scores, by their keys in config.yaml, and those of the paper or its authors' "
        f"code; bold where they differ."
        f"\n\nA dash: not told.{by_hash}"
    )
    return table_of(rows, caption, "tab:settings", best=other)


def _value(settings: dict[str, Any], key: str) -> str:
    """A setting in words; null stands for no limit."""
    value = settings.get(key, UNKNOWN)
    if value is None:
        return "all"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else f"{value:,.15g}" if isinstance(value, float) else value
