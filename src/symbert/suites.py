"""Suites of tasks: a row per task, with all that is known of it; columns, class names and row counts as on the hub.

The hub holds one parquet file per split; GLUE's original files (gluebenchmark.com) are tab-separated.
"""

from symbert.sources import PublishedFile
from symbert.task import Layout, Suite, Task

_GLUE = (
    Task(
        "mrpc",
        columns=("sentence1", "sentence2"),
        labels=("not_equivalent", "equivalent"),
        metrics=("accuracy", "f1"),
        scores={"validation": "mrpc"},
        official_rows={"train": 3_668, "validation": 408},
        folder="MRPC",
        layout=Layout(("#1 String", "#2 String"), "Quality"),
    ),
    Task(
        "cola",
        columns=("sentence",),
        labels=("unacceptable", "acceptable"),
        metrics=("matthews",),
        scores={"validation": "cola"},
        official_rows={"train": 8_551, "validation": 1_043},
        folder="CoLA",
        layout=Layout(("sentence",), header=("source", "label", "mark", "sentence")),
    ),
    Task(
        "mnli",
        columns=("premise", "hypothesis"),
        labels=("entailment", "neutral", "contradiction"),
        metrics=("accuracy",),
        scores={"validation_matched": "mnli_matched", "validation_mismatched": "mnli_mismatched"},
        official_rows={"train": 392_702, "validation_matched": 9_815, "validation_mismatched": 9_832},
        folder="MNLI",
        layout=Layout(("sentence1", "sentence2"), "gold_label"),
    ),
    Task(
        "qqp",
        columns=("question1", "question2"),
        labels=("not_duplicate", "duplicate"),
        metrics=("accuracy", "f1"),  # the paper's text says accuracy; its printed numbers are this mean
        scores={"validation": "qqp"},
        official_rows={"train": 363_846, "validation": 40_430},
        folder="QQP",
        layout=Layout(("question1", "question2"), "is_duplicate", has_broken_rows=True),
    ),
    Task(
        "rte",
        columns=("sentence1", "sentence2"),
        labels=("entailment", "not_entailment"),
        metrics=("accuracy",),
        scores={"validation": "rte"},
        official_rows={"train": 2_490, "validation": 277},
        folder="RTE",
    ),
    Task(
        "stsb",
        columns=("sentence1", "sentence2"),
        labels=(),
        metrics=("pearson", "spearman"),
        scores={"validation": "stsb"},
        official_rows={"train": 5_749, "validation": 1_500},
        folder="STS-B",
        head="grades",
        layout=Layout(("sentence1", "sentence2"), "score"),
    ),
    Task(
        "qnli",
        columns=("question", "sentence"),
        labels=("entailment", "not_entailment"),
        metrics=("accuracy",),
        scores={"validation": "qnli"},
        official_rows={"train": 104_743, "validation": 5_463},
        folder="QNLI",
    ),
    Task(
        "sst2",
        columns=("sentence",),
        labels=("negative", "positive"),
        metrics=("accuracy",),
        scores={"validation": "sst2"},
        official_rows={"train": 67_349, "validation": 872},
        folder="SST-2",
    ),
    Task(
        "wnli",  # the authors run it, but leave it out of the GLUE score
        columns=("sentence1", "sentence2"),
        labels=("not_entailment", "entailment"),
        metrics=("accuracy",),
        scores={"validation": "wnli"},
        official_rows={"train": 635, "validation": 71},
        folder="WNLI",
    ),
)

# The texts of BERT's baseline (Wang et al., "SuperGLUE", NeurIPS 2019, section 4.1): a pair for BoolQ, CB, RTE; the
# context beside each answer for COPA, MultiRC, ReCoRD, where COPA takes the choice with the higher output, MultiRC
# classifies each answer and ReCoRD takes the likeliest candidate. Not as there: the words of WiC and the phrases of WSC
# are marked in the text (Raffel et al., JMLR 21, 2020, do so for WSC), and [CLS] alone is classified.
_SUPERGLUE = (
    Task(
        "boolq",
        columns=("question", "passage"),
        labels=("False", "True"),
        metrics=("accuracy",),
        scores={"validation": "boolq"},
        official_rows={"train": 9_427, "validation": 3_270},
        row_tokens=140,
    ),
    Task(
        "cb",
        columns=("premise", "hypothesis"),
        labels=("entailment", "contradiction", "neutral"),
        metrics=("accuracy", "macro_f1"),
        scores={"validation": "cb"},
        official_rows={"train": 250, "validation": 56},
        row_tokens=85,
    ),
    Task(
        "copa",
        columns=("premise", "choice1", "choice2", "question"),
        labels=("choice1", "choice2"),
        metrics=("chosen_right",),
        scores={"validation": "copa"},
        official_rows={"train": 400, "validation": 100},
        head="choices",
        form="choices",
        row_tokens=22,
        rows_of_row=2,
    ),
    Task(
        "multirc",
        columns=("paragraph", "question", "answer"),
        labels=("False", "True"),
        metrics=("f1", "whole_groups"),
        scores={"validation": "multirc"},
        official_rows={"train": 27_243, "validation": 4_848},
        form="answers",
        index="paragraph question answer",
        row_tokens=250,
    ),
    Task(
        "record",
        columns=("passage", "query"),
        labels=("False", "True"),  # of a candidate
        metrics=("chosen_right", "chosen_credit"),
        scores={"validation": "record"},
        official_rows={"train": 100_730, "validation": 10_000},
        head="candidates",
        form="candidates",
        details={"entities": "texts", "answers": "texts"},
        index="passage query",
        has_label=False,
        row_tokens=250,
        rows_of_row=10,
    ),
    Task(
        "superglue_rte",
        columns=("premise", "hypothesis"),
        labels=("entailment", "not_entailment"),
        metrics=("accuracy",),
        scores={"validation": "superglue_rte"},
        official_rows={"train": 2_490, "validation": 277},
        folder_at_hub="rte",
        row_tokens=70,
    ),
    Task(
        "wic",
        columns=("word", "sentence1", "sentence2"),
        labels=("False", "True"),
        metrics=("accuracy",),
        scores={"validation": "wic"},
        official_rows={"train": 5_428, "validation": 638},
        form="marked_words",
        details=dict.fromkeys(("start1", "start2", "end1", "end2"), "int32"),
        row_tokens=30,
    ),
    Task(
        "wsc",
        columns=("text", "span1_text", "span2_text"),
        labels=("False", "True"),
        metrics=("accuracy",),
        scores={"validation": "wsc"},
        official_rows={"train": 554, "validation": 104},
        form="marked_phrases",
        details={"span1_index": "int32", "span2_index": "int32"},
        row_tokens=40,
    ),
)


# Of 130,319 training questions 86,821 have an answer, of 11,873 for evaluation 5,928 (Rajpurkar, Jia and Liang, "Know
# What You Don't Know", ACL 2018, table 2). `symbert.glue.spans` has how they are read.
_SQUAD2 = (
    Task(
        "squad2",
        columns=("id", "title", "context", "question"),
        labels=("first", "last"),  # outputs of each token
        metrics=("f1",),  # of answers: see symbert.glue.answers
        scores={"validation": "squad2"},
        official_rows={"train": 130_319, "validation": 11_873},
        folder_at_hub="squad_v2",
        head="spans",
        details={"answers": "text answer_start"},
        index="",
        has_label=False,
        row_tokens=165,
    ),
)


SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite("glue", "GLUE", "nyu-mll/glue", {task.name: task for task in _GLUE}, bytes=160_000_000),
        Suite(
            "superglue",
            "SuperGLUE",
            "aps/super_glue",
            {task.name: task for task in _SUPERGLUE},
            bytes=190_000_000,
            revision="3de24cf8022e94f4ee4b9d55a6f539891524d646",
            note=(
                "Majority baseline: the most frequent training class for every row; for copa and record the answer at "
                "the place where the right one stands most often in training."
            ),
        ),
        Suite(
            "squad2",
            "SQuAD 2.0",
            "rajpurkar/squad_v2",
            {task.name: task for task in _SQUAD2},
            bytes=17_700_000,
            revision="3ffb306f725f7d2ce8394bc1873b24868140c412",
            note="The score is the F1 of answers. Majority baseline: no answer to any question.",
        ),
        Suite(
            "blimp",  # minimal pairs, which models judge without fine-tuning: symbert.blimp
            "BLiMP",
            "nyu-mll/blimp",
            {},
            bytes=3_200_000,
            revision="877fba0801ffb7cbd8c39c1ff314a46f053f6036",
        ),
    )
}
BESIDE_GLUE = tuple(suite for suite in SUITES.values() if suite.name != "glue")


def suite_of(task: Task) -> Suite:
    """The suite of a task; GLUE of one of the user's own, which stands beside its tasks."""
    return next((suite for suite in SUITES.values() if task.name in suite.tasks), SUITES["glue"])


def published_split(task: Task, split: str) -> PublishedFile:
    """The hub's file of a split."""
    folder = task.folder_at_hub or task.name
    return PublishedFile("dataset", suite_of(task).repository, f"{folder}/{split}-00000-of-00001.parquet")
