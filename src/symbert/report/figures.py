"""The commands that draw figures: operators, corpus, loss over steps, GLUE score over checkpoints, and robustness.

The suffix of each output decides its format: .png or .pdf.
"""

from pathlib import Path

from symbert.report.checkpoints_figure import checkpoints_figure
from symbert.report.corpus_counts import read_counts, read_records
from symbert.report.corpus_figure import corpus_figure
from symbert.report.loss_figure import loss_figure
from symbert.report.operators_figure import operators_figure
from symbert.report.robustness import read_comparison
from symbert.report.robustness_figure import robustness_figure
from symbert.report.runs import read_runs, refuse_absent, size_of
from symbert.report.scores import read_scores
from symbert.report.style import house_style, save_figure
from symbert.settings import ReportSettings, read_settings


def draw_operators(output: list[Path]) -> None:
    """Draw Figure 1: what each operator of the papers learns and computes, its logits and its parameters."""
    with house_style():
        save_figure(operators_figure(), output)


def draw_corpus(counts: list[Path], records: list[Path], settings: Path, output: list[Path]) -> None:
    """Draw the corpus: harmful perplexity, length and tokens of the documents read and kept."""
    parts = read_counts(counts)
    tokens, report = read_records(records, parts), read_settings(settings, ReportSettings)
    with house_style():
        save_figure(corpus_figure(parts, tokens, report), output)


def draw_loss(done: list[Path], metrics: list[Path], settings: Path, output: list[Path]) -> None:
    """Draw Figure 2 for one size: validation loss of each operator, and where it leaves the initial plateau."""
    report = read_settings(settings, ReportSettings)
    runs = read_runs(done, metrics, report.steps)
    refuse_absent(runs, [run for run in report.runs if run[0] == size_of(runs)])
    with house_style():
        save_figure(loss_figure(runs, report), output)


def draw_checkpoints(scores: list[Path], settings: Path, finetune_seeds: list[int], output: list[Path]) -> None:
    """Draw Figure 3: GLUE score over checkpoints, the 95 % line, and where each model first reaches it."""
    report = read_settings(settings, ReportSettings)
    table = read_scores(scores, report.tasks, finetune_seeds, report.settings_hash, runs=report.curve_runs)
    with house_style():
        save_figure(checkpoints_figure(table, report), output)


def draw_robustness(
    scores: list[Path], robustness: list[Path], settings: Path, finetune_seeds: list[int], output: list[Path]
) -> None:
    """Draw score over the share of noise, and scores on out-of-domain sets, where there are such."""
    report = read_settings(settings, ReportSettings)
    comparison = read_comparison(scores, robustness, report, finetune_seeds)
    with house_style():
        save_figure(robustness_figure(*comparison, report), output)
