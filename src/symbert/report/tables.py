"""The commands that write tables: each reads counts or scores and writes one table in several formats.

The suffix of each output decides its format: .csv, .md or .tex.
"""

from pathlib import Path

from symbert.files import read_json
from symbert.report.categories_table import categories_table
from symbert.report.corpus_table import corpus_table
from symbert.report.formats import write_table
from symbert.report.glue_tables import glue_table, published_table
from symbert.report.parameter_tables import operators_table, parameters_table
from symbert.report.scores import read_scores
from symbert.report.training_table import training_table
from symbert.settings import ReportSettings, read_settings


def tabulate_corpus(
    counts: list[Path], records: list[Path], manifest: Path, settings: Path, output: list[Path]
) -> None:
    """Write the corpus table: documents read, dropped by reason and kept, tokens and rows, per part and in all."""
    write_table(corpus_table(counts, records, manifest, read_settings(settings, ReportSettings)), output)


def tabulate_categories(counts: list[Path], settings: Path, output: list[Path]) -> None:
    """Write where the corpus's own categories and its URLs, looked up in UT1, agree and where they do not."""
    write_table(categories_table(counts, read_settings(settings, ReportSettings)), output)


def tabulate_operators(parameters: Path, output: list[Path]) -> None:
    """Write Table 1: each operator's logits and its parameters per layer, with the paper's erratum."""
    write_table(operators_table(read_json(parameters)), output)


def tabulate_parameters(parameters: Path, output: list[Path]) -> None:
    """Write Table 2: parameters of each model and its attention, the shares saved, and what was printed of them."""
    write_table(parameters_table(read_json(parameters)), output)


def tabulate_training(
    done: list[Path], metrics: list[Path], timing: list[Path], settings: Path, output: list[Path]
) -> None:
    """Write Table 2, continued: loss, plateau, initial logits, step time and tokens per second of each model."""
    write_table(training_table(done, metrics, timing, read_settings(settings, ReportSettings)), output)


def tabulate_published(output: list[Path]) -> None:
    """Write Table 3 as the paper prints it, in a table of its own."""
    write_table(published_table(), output)


def tabulate_glue(scores: list[Path], settings: Path, finetune_seeds: list[int], output: list[Path]) -> None:
    """Write Table 3 of this experiment: scores at the final step, mean and spread over seeds."""
    report = read_settings(settings, ReportSettings)
    write_table(glue_table(read_scores(scores, report.tasks, finetune_seeds), report), output)
