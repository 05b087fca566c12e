"""SQuAD 2.0: exact match and F1 of all questions, of those with an answer and of those without."""

import pandas as pd

from symbert.report import captions
from symbert.report.collect import Collection
from symbert.report.formats import Table, best_of, table_of
from symbert.report.tables.table3_glue import opening

KEYS = ["size", "attention", "step"]
METRICS = ("exact", "f1", "has_answer_exact", "has_answer_f1", "no_answer_f1")


def answers_table(data: Collection, suite: str) -> Table | None:
    """SQuAD 2.0: exact match and F1 in percent, mean over seeds, of all questions, of those with an answer and of those
    without one, where both are the share that is left unanswered.
    """
    scores = data.scores_of(suite)
    if scores is None or suite != "squad2":
        return None
    settings = data.settings_of(suite)
    details = pd.DataFrame(list(scores["details"]), index=scores.index).reindex(columns=list(METRICS))
    means = scores[KEYS].join(100 * details).groupby(KEYS, sort=False).agg(["mean", "size"])
    rows = [
        {
            "model": captions.model_name(*key),
            **{name: mean[name, "mean"] for name in METRICS},
            "fine_tunings": int(mean["exact", "size"]),
        }
        for key, mean in means.iterrows()
    ]
    sizes = [size if step else None for size, _, step in means.index]
    notes = opening(f"SQuAD 2.0, kinds of questions, at step {settings.steps:,}", settings, scores)
    notes.append(
        "The threshold of no answer is that of the highest F1 on training questions that were held out, not on those "
        "that are scored."
    )
    return table_of(rows, " ".join(notes), "tab:squad2_answers", best=best_of(rows, sizes, METRICS))
