"""The commands that write tables: each reads counts or scores and writes one table in several formats.

The suffix of each output decides its format: .csv, .md, .tex or .html.
"""

from pathlib import Path

from symbert.report.categories_table import categories_table
from symbert.report.claims.evidence import Evidence
from symbert.report.claims_table import claims_table
from symbert.report.corpus_table import corpus_table
from symbert.report.formats import write_table
from symbert.report.glue_tables import glue_table, published_table
from symbert.report.milestones_table import milestones_table
from symbert.report.parameter_tables import operators_table, parameters_table, read_parameters
from symbert.report.robustness import read_comparison, read_robustness
from symbert.report.robustness_table import robustness_table
from symbert.report.runs import models_of, read_runs
from symbert.report.scores import read_scores
from symbert.report.scores_table import scores_table
from symbert.report.statistics import final_scores
from symbert.report.statistics_table import statistics_table
from symbert.report.timings import read_timings
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
    write_table(operators_table(read_parameters(parameters)), output)


def tabulate_parameters(parameters: Path, output: list[Path]) -> None:
    """Write Table 2: parameters of each model and its attention, the shares saved, and what was printed of them."""
    write_table(parameters_table(read_parameters(parameters)), output)


def tabulate_training(
    done: list[Path], metrics: list[Path], timing: list[Path], settings: Path, output: list[Path]
) -> None:
    """Write Table 2, continued: loss, plateau, initial logits, step time and tokens per second of each model."""
    write_table(training_table(done, metrics, timing, read_settings(settings, ReportSettings)), output)


def tabulate_published(output: list[Path]) -> None:
    """Write Table 3 as the paper prints it, in a table of its own."""
    write_table(published_table(), output)


def tabulate_glue(
    scores: list[Path], settings: Path, finetune_seeds: list[int], output: list[Path], allow_missing: bool = False
) -> None:
    """Write Table 3 of this experiment: scores at the final step, mean and spread over seeds.

    A missing score is refused, or a dash that the caption names where scores may be missing.
    """
    report = read_settings(settings, ReportSettings)
    table = read_scores(scores, report.tasks, finetune_seeds, report.settings_hash, allow_missing, report.runs)
    write_table(glue_table(table, report), output)


def tabulate_scores(scores: list[Path], settings: Path, finetune_seeds: list[int], output: list[Path]) -> None:
    """Write the scores behind Table 3: of every seed at the final step, with mean and standard deviation."""
    report = read_settings(settings, ReportSettings)
    table = read_scores(scores, report.tasks, finetune_seeds, report.settings_hash, runs=report.runs)
    write_table(scores_table(table, report), output)


def tabulate_statistics(scores: list[Path], settings: Path, finetune_seeds: list[int], output: list[Path]) -> None:
    """Write differences between models at the final step: intervals, permutation tests, and what they support."""
    report = read_settings(settings, ReportSettings)
    table = read_scores(scores, report.tasks, finetune_seeds, report.settings_hash, runs=report.runs)
    write_table(statistics_table(table, report), output)


def tabulate_milestones(
    settings: Path,
    output: list[Path],
    done: list[Path] | None = None,
    metrics: list[Path] | None = None,
    scores: list[Path] | None = None,
    finetune_seeds: list[int] | None = None,
) -> None:
    """Write where losses leave the plateau, and where scores over checkpoints first reach 95 % of the best."""
    report = read_settings(settings, ReportSettings)
    runs = read_runs(done, metrics or [], report.steps, report.runs) if done else []
    table = (
        read_scores(scores, report.tasks, finetune_seeds or [], report.settings_hash, runs=report.curve_runs)
        if scores
        else None
    )
    write_table(milestones_table(runs, table, report), output)


def tabulate_robustness(
    scores: list[Path], robustness: list[Path], settings: Path, finetune_seeds: list[int], output: list[Path]
) -> None:
    """Write what noise leaves of the scores at the final step, and the scores on out-of-domain sets."""
    report = read_settings(settings, ReportSettings)
    comparison = read_comparison(scores, robustness, report, finetune_seeds)
    write_table(robustness_table(*comparison, report), output)


def tabulate_claims(
    parameters: Path,
    settings: Path,
    output: list[Path],
    scores: list[Path] | None = None,
    finetune_seeds: list[int] | None = None,
    curve: list[Path] | None = None,
    curve_seeds: list[int] | None = None,
    done: list[Path] | None = None,
    metrics: list[Path] | None = None,
    timing: list[Path] | None = None,
    robustness: list[Path] | None = None,
) -> None:
    """Write what became of the papers' claims; those about what is not given are not tested."""
    report = read_settings(settings, ReportSettings)
    final, checkpoints = (
        read_scores(files, report.tasks, seeds or [], report.settings_hash, runs=wanted) if files else None
        for files, seeds, wanted in ((scores, finetune_seeds, report.runs), (curve, curve_seeds, report.curve_runs))
    )
    final = None if final is None else final_scores(final, report.steps).query("step > 0")
    runs = read_runs(done, metrics or [], report.steps, report.runs) if done else []
    evidence = Evidence(
        report,
        read_parameters(parameters),
        final,
        checkpoints,
        models_of(runs),
        read_timings(timing, runs, report.batch_size) if timing else [],
        read_robustness(robustness, final, report.settings_hash) if robustness else None,
    )
    write_table(claims_table(evidence), output)
