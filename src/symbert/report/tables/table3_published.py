"""Table 3 as the paper prints it."""

from symbert.report import published
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, table_of
from symbert.report.glue_lines import Line, best_of, printed_row


@exhibit(chapter="GLUE", place=2, heading="Table 3 as the paper prints it")
def published_table(data: Data) -> Table:
    """Table 3 as the paper prints it (arXiv 2406.06366): the paper's own numbers, not this experiment's."""
    lines = [Line({"model": f"{size}-{name}", **printed_row(size, name)}, size) for size, name in published.SCORES]
    caption = (
        f"The paper's own numbers, not this experiment's: GLUE scores in percent as printed in table 3 of "
        f"{published.PAPER}; mean and sample standard deviation over {published.FINETUNE_SEEDS} fine-tuning seeds of "
        "one pre-trained model."
    )
    return table_of(
        [line.row for line in lines], caption, "tab:published", best=best_of(lines, ("glue_score", *published.COLUMNS))
    )
