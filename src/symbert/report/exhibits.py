"""The list of tables, figures and texts, in the order of the page. To add one, add its function and its line.

A caption says what is shown and how to read it. What depends on the experiment stands in `symbert.report.setting`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from symbert.glue.tasks import BESIDE_GLUE, Suite
from symbert.report import figures
from symbert.report.claims import claims_table
from symbert.report.collect import Collection
from symbert.report.formats import Table
from symbert.report.published import ERRATUM, PAPER, SHARED_PAPER
from symbert.report.summary import summary
from symbert.report.tables import corpus, operators, pretraining, robustness, scores

Made = Table | Figure | Path | list[str]  # a table, a figure, a drawing that is there already, or lines of a text


@dataclass(frozen=True)
class Exhibit:
    """A table, figure or text: its name is that of its files, in the folder of its kind.

    The function returns None where an experiment has no data for it, and for an exhibit per size a dict by size, whose
    files and headings end in the size.
    """

    name: str
    function: Callable[[Collection], Made | dict[str, Made] | None]
    heading: str
    caption: str = ""


SCORES = (
    "Scores in percent of the last checkpoints: means over fine-tuning seeds, std their sample standard deviation. "
    "With several pre-training seeds each has a row; in the row of their mean std is over them. † The mean has a run "
    "in it that predicts one class throughout. A dash: not measured; a mean of columns is of the seeds that have them "
    "all."
)
GLUE_SCORE = (
    "The GLUE score is the mean of nine columns, MNLI’s two counted as two; the mean of tasks counts MNLI once; wnli "
    "and own tasks count for neither. Majority baseline: the most frequent training class, or mean grade, for every "
    "row. Bold: the highest of a size, from three seeds on."
)
CHECKPOINTS = (
    "Score over pre-training checkpoints, one curve per operator, with the line of 95 % of the highest final score. "
    "The legend says where each curve first reaches it, straight between the checkpoints in brackets, and its final "
    "score."
)
STATISTICS = (
    "Model less reference, in percentage points, of the means over n units of each. A unit is a fine-tuning seed; with "
    "several pre-training seeds a pre-training seed with the mean of its fine-tuning seeds. Welch: 95 % interval. p: "
    "two-sided permutation test over all splits of the units of both; Holm p: with Holm’s correction among the "
    "differences of one size from one reference; smallest p: the least that so many units can give. Fewer than three "
    "units have neither. The csv has the intervals of all columns, which describe and are not tested."
)
SEEDS = (
    "Scores in percent of every fine-tuning seed, then their mean and sample standard deviation; in the column of "
    "pre-training seeds those over the means of these. Collapsed: tasks of which a seed predicts one class throughout."
)
PLATEAU = (
    "The exit is the first evaluation after the initial plateau, whose last one is where, over the logarithm of the "
    "step, the loss stands highest above a straight line from an earlier evaluation to the last, by more than 2 % of "
    "it, lone spikes aside. A dash or ‘never’: later than the last step."
)
CONTRASTS = (
    "Ratio: the median exit by that of the reference, with a bootstrap interval over seeds. p: log-rank test, with "
    "Holm’s correction over the comparisons of a size or grid. Verdict: shorter or longer where p (Holm) and the 95 % "
    "interval agree, within 25 % where the 90 % interval, which is not corrected, lies between 0.80 and 1.25, else "
    "undecided, as is every comparison of fewer than five seeds."
)


def _of_suite(suite: Suite) -> list[Exhibit]:
    """The exhibits of a suite beside GLUE."""
    name, title = suite.name, suite.title
    table, statistics = partial(scores.glue_table, suite=name), partial(scores.statistics_table, suite=name)
    curve, seeds = partial(figures.checkpoints_figure, suite=name), partial(scores.scores_table, suite=name)
    return [
        Exhibit(name, table, f"{title}: scores of this experiment", f"{SCORES} {suite.note}"),
        Exhibit(f"{name}_checkpoints", curve, f"{title}: score over checkpoints", CHECKPOINTS),
        Exhibit(f"{name}_statistics", statistics, f"{title}: differences between operators", STATISTICS),
        Exhibit(f"{name}_scores", seeds, f"{title}: scores of every seed", SEEDS),
    ]


EXHIBITS: dict[str, list[Exhibit]] = {  # by chapter of the page
    "At a glance": [
        Exhibit("summary", summary, "What was compared, on what, and what the data support"),
        Exhibit(
            "figure2",
            figures.loss_figures,
            "Figure 2: validation loss",
            "Validation loss over pre-training steps, and beneath it where each operator leaves the initial plateau, "
            "by the rule of the table of exits. Large markers are medians over seeds, ticks single seeds; a + is a run "
            "that is on the plateau at its end.",
        ),
        Exhibit("table3_glue", scores.glue_table, "Table 3: scores of this experiment", f"{SCORES} {GLUE_SCORE}"),
        Exhibit(
            "grids",
            figures.grids_figure,
            "Losses and exits at each point of the sweep",
            "Above, the validation loss, mean and range over seeds; below, the share of runs still on the plateau.",
        ),
        Exhibit(
            "grid_exits",
            pretraining.grid_exits_table,
            "Exits at each point of the sweep",
            f"Median exit from the plateau over pre-training seeds, with its range. {PLATEAU}",
        ),
        Exhibit(
            "grid_contrasts",
            pretraining.contrasts_table,
            "Contrasts named before the runs",
            f"The exits of two values of an axis compared. {CONTRASTS}",
        ),
    ],
    "Claims": [
        Exhibit(
            "claims",
            claims_table,
            "What became of the papers’ claims",
            f"Claims of {PAPER} (by section) and of the abstract of {SHARED_PAPER}: what the papers print, what the "
            "raw files of the first one’s authors give, and what this experiment gives. Differences of scores are in "
            "points, in brackets Welch’s 95 % interval, p with Holm’s correction; losses in nats; steps to 95 % with "
            "the checkpoints around them, and what these leave open of their ratio, also without each run that "
            "predicts one class throughout, where that changes it. Undecided: no difference is significant, there are "
            "too few seeds, the checkpoints leave both open, or a single collapsed run would decide. Only counts of "
            "parameters are judged on models of another size, on other data, or with other settings than the paper’s.",
        )
    ],
    "Pre-training": [
        Exhibit("figure3_checkpoints", figures.checkpoints_figure, "Figure 3: score over checkpoints", CHECKPOINTS),
        Exhibit(
            "table2_training",
            operators.training_table,
            "Table 2, continued: training",
            "Validation loss: nats per masked token at the last step, with several pre-training seeds their mean and "
            "sample standard deviation. Logit std and attention entropy (nats): of the untrained model, means over its "
            "layers. Speed: medians over rounds of one step of each operator, in one process on one machine; of "
            "original: of its step in the same round. MFU: FLOPs of the model in percent of the peak of the device’s "
            "data sheet.",
        ),
        Exhibit(
            "exits",
            pretraining.exits_table,
            "Exits from the plateau",
            f"Left: how many runs, one per pre-training seed, leave the plateau. {PLATEAU} {CONTRASTS}",
        ),
        Exhibit(
            "losses",
            pretraining.losses_table,
            "Differences of validation losses",
            "Last validation loss, model less reference, in nats per masked token, paired by pre-training seed: runs "
            "of a seed start from equal shared parameters, and see the same batches and masks. Low and high: Student’s "
            "95 % interval. p: two-sided sign-flip test over all choices of signs, of which five seeds cannot have "
            "less than 0.0625, and six 0.03125; Holm: corrected for the comparisons of a size.",
        ),
    ],
    "Robustness": [
        Exhibit(
            "robustness",
            figures.robustness_figure,
            "Score over noise, and out of domain",
            "Mean score over the share of changed letters, and scores on out-of-domain sets, per operator.",
        ),
        Exhibit(
            "robustness",
            robustness.robustness_table,
            "Scores on noise and out of domain",
            "Clean: mean in percent of the columns that have noise; beside it the same with that percentage of letters "
            "swapped, dropped, followed by another or hit one key beside (mixed: any of these). Drop: points that the "
            "largest share takes; lost: as much in percent of the clean score’s lead over the majority baseline, a "
            "dash where a seed leads by less than a point. Then out-of-domain sets, and adv mean of AdvGLUE’s. † A "
            f"seed predicts one class throughout. {SHARED_PAPER} claims that shared generalises better on such data, "
            "but names no sets.",
        ),
    ],
    "Operators": [
        Exhibit(
            "figure1_operators",
            operators.operators_drawing,
            "Figure 1: the operators",
            "How a token x attends to a token y, by each operator. Coloured, thick frames: learned; thin frames: "
            "computed, in each head. h: hidden size; n: heads; d = h/n. S: a d × d matrix per head; a, b, c: vectors "
            "of length h; ∘: element by element. Parameters: of a layer, with biases.",
        ),
        Exhibit(
            "table1_operators",
            operators.operators_table,
            "Table 1: parameters per operator",
            "Parameters of query, key, value and factors in one layer (h: hidden size, n: heads). Printed: as in table "
            f"1 of {PAPER}; corrected: leading terms; exact: with biases, checked against the counts. Erratum: "
            f"{ERRATUM}",
        ),
        Exhibit(
            "table2_parameters",
            operators.parameters_table,
            "Table 2: parameters per model",
            "Parameters per model, tied weights counted once, and the share saved against original; beside them table "
            f"2 of {PAPER}. Attention: query, key, value and factors of one layer; beside their saving what "
            f"{SHARED_PAPER} prints for shared (66.5366, cut off).",
        ),
        Exhibit(
            "probes",
            operators.probes_table,
            "What operators can express",
            "Relations between 16 tokens that one head learns: the share of tokens whose largest score is that of "
            "their target, the next of a directed cycle or of a chain, or a partner, with the exact 95 % interval; "
            "others: no token may attend to itself. Chance gives 0.06 or 0.07. A symmetric score cannot point along a "
            "cycle. Lookups of one layer (recall, fuzzy, induction): the share of right answers when a training ends, "
            "and the median of the steps; chance gives 0.03.",
        ),
        Exhibit(
            "anatomy",
            operators.anatomy_table,
            "Attention of trained models",
            "Means over the heads of each layer, on the first validation rows. Symmetry: 1 where the score of two "
            "tokens is the same both ways, −1 where it changes sign, about 0 at random; directionality: 1 where few "
            "columns of the matrix of scores stand out, −1 where few rows do (Saponati et al. 2025, arXiv 2502.10927). "
            "Attention entropy in nats; own share: of a token’s attention, the share that it gives to itself.",
        ),
        Exhibit(
            "anatomy",
            figures.anatomy_figure,
            "Attention over pre-training",
            "Over pre-training steps, means over all heads of each operator.",
        ),
    ],
    "Hosts": [
        Exhibit(
            "hosts",
            pretraining.hosts_table,
            "Operators in other hosts",
            "Validation loss: nats per target at the last step; std over pre-training seeds, all else a mean. Decoders "
            "predict the next token; perplexity is that of held-out rows, by word piece. Encoder-decoders translate "
            "lines of text; chrF and BLEU, from 0 to 100, are of the held-out lines as greedy decoding writes them.",
        ),
        Exhibit(
            "hosts",
            figures.hosts_figure,
            "Other hosts over training",
            "What each host but the encoder measures on held-out data over training steps, a curve per operator.",
        ),
    ],
    "GLUE": [
        Exhibit(
            "table3_published",
            scores.published_table,
            "Table 3 as the paper prints it",
            f"The paper’s own numbers, not this experiment’s: scores in percent as printed in table 3 of {PAPER}; mean "
            "and sample standard deviation over five fine-tuning seeds of one pre-trained model.",
        )
    ],
    **{suite.title: _of_suite(suite) for suite in BESIDE_GLUE if suite.tasks},
    "BLiMP": [
        Exhibit(
            "blimp",
            scores.blimp_table,
            "BLiMP: accuracy by phenomenon",
            "Share in percent of minimal pairs in which a model finds the acceptable sentence likelier at the last "
            "step, without fine-tuning: the mean over paradigms, then by phenomenon; with several pre-training seeds "
            "their mean, and std of the first. Chance is 50; a tie counts half. How likely a sentence is: the sum of "
            "the log probabilities of its tokens, each masked alone (Salazar et al. 2020), of a decoder each given "
            "those before.",
        ),
        Exhibit(
            "blimp",
            figures.blimp_figure,
            "BLiMP: accuracy over checkpoints",
            "The same over pre-training steps, a curve per operator, with the line of chance.",
        ),
    ],
    "Statistics of scores": [
        Exhibit("statistics", scores.statistics_table, "Differences between operators", STATISTICS),
        Exhibit("scores", scores.scores_table, "Scores of every seed", SEEDS),
    ],
    "Corpus": [
        Exhibit(
            "corpus",
            figures.corpus_figure,
            "Perplexity, length and tokens of documents",
            "Documents read and kept, by harmful perplexity, length in characters, and tokens.",
        ),
        Exhibit(
            "corpus",
            corpus.corpus_table,
            "Documents read, dropped and kept",
            "Documents read, bad, dropped by the first reason that applies, and kept; tokens of the documents kept, "
            "and per word (text between white space; [CLS] and [SEP] are not counted there); packed into rows, and "
            "left over: of held-out documents beyond their rows or with rows that are training rows too, beyond the "
            f"budget, and of the last row. The paper is {PAPER}, which does not say what it read or dropped.",
        ),
    ],
    "Provenance": [
        Exhibit(
            "settings",
            corpus.settings_table,
            "Settings, and the paper’s",
            "Settings that change losses or scores, by their keys in config.yaml, and those of the paper or its "
            "authors’ code; bold where they differ. A dash: not known.",
        ),
        Exhibit(
            "provenance",
            corpus.provenance_table,
            "What made this report",
            "Versions and the commit of the machine that wrote this table; what trained the models stands under "
            "pre-training, each run in data/runs.csv.",
        ),
    ],
}
OF_PAPER = ("table1_operators", "table2_parameters", "table3_published")  # which need no experiment
OF_SWEEP = ("grids", "grid_exits", "grid_contrasts", "settings", "provenance")  # of keys that no page compares
