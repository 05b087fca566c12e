"""Table 3 as the paper prints it."""

from symbert.report import published
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, best_of, table_of


@exhibit(chapter="GLUE", place=2, heading="Table 3 as the paper prints it")
def published_table(data: Data) -> Table:
    """Table 3 as the paper prints it (arXiv 2406.06366): the paper's own numbers, not this experiment's."""
    columns = ("glue_score", "std", *published.COLUMNS)
    rows = [
        {"model": f"{size}-{name}", **dict(zip(columns, printed, strict=True))}
        for (size, name), printed in published.SCORES.items()
    ]
    best = best_of(rows, [size for size, _ in published.SCORES], ("glue_score", *published.COLUMNS))
    caption = (
        f"The paper's own numbers, not this experiment's: GLUE scores in percent as printed in table 3 of "
        f"{published.PAPER}; mean and sample standard deviation over {published.FINETUNE_SEEDS} fine-tuning seeds of "
        "one pre-trained model."
    )
    return table_of(rows, caption, "tab:published", best=best)
