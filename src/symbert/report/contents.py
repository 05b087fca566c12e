"""What the report shows in which order, under which headings, and what its figures show to those who cannot see them.

The chapters are those of the page and the categories of Snakemake's report.

An exhibit is called by its kind and its file's name: `table-claims`, `figure-corpus`. One that is drawn per size,
`figure-figure2_tiny`, is called by what stands before the size. A new table or figure needs a line here; without one it
stands at the end under its file's name.
"""

from dataclasses import dataclass

CHAPTERS: dict[str, dict[str, str]] = {
    "Claims": {
        "table-claims": "What became of the papers’ claims",
    },
    "GLUE": {
        "table-table3_glue": "Table 3: scores of this experiment",
        "table-table3_published": "Table 3 as the paper prints it",
    },
    "Statistics of scores": {
        "table-statistics": "Differences between operators",
        "table-scores": "Scores of every seed",
    },
    "Pre-training": {
        "figure-figure2": "Figure 2: validation loss",
        "figure-figure3_checkpoints": "Figure 3: score over checkpoints",
        "table-milestones": "Milestones",
        "table-table2_training": "Table 2, continued: training",
    },
    "Robustness": {
        "figure-robustness": "Score over noise, and out of domain",
        "table-robustness": "Scores on noise and out of domain",
    },
    "Operators": {
        "figure-figure1_operators": "Figure 1: the operators",
        "table-table1_operators": "Table 1: parameters per operator",
        "table-table2_parameters": "Table 2: parameters per model",
    },
    "Corpus": {
        "figure-corpus": "Perplexity, length and tokens of documents",
        "table-corpus": "Documents read, dropped and kept",
        "table-corpus_categories": "Blocked categories: OSCAR’s metadata and UT1",
    },
    "Provenance": {
        "table-settings": "Settings, and the paper’s",
        "table-provenance": "What made this report",
        "table-runs": "What the models were computed on",
        "table-hours": "Hours of each stage",
    },
}
REST = "Further tables and figures"
_CHAPTER_OF = {name: chapter for chapter, headings in CHAPTERS.items() for name in headings}

DESCRIPTIONS: dict[str, str] = {
    "figure-figure1_operators": "Diagram of each operator: the projections that two tokens go through, and what stands "
    "between them in the dot product.",
    "figure-figure2": "Curves of validation loss over pre-training steps, one per operator; a large marker on each "
    "shows where it leaves the initial plateau, and the key beneath gives that step and the last loss.",
    "figure-figure3_checkpoints": "Curves of the score over pre-training checkpoints, one per operator, with the line "
    "of 95 % of the highest final score; the key beneath says where each curve first reaches it, and its final score.",
    "figure-robustness": "Curves of the score over the share of changed letters, and scores on out-of-domain sets, "
    "per operator; the table of robustness gives the numbers.",
    "figure-corpus": "Histograms of the documents read and kept: harmful perplexity, length in characters, and tokens; "
    "the table of documents gives the counts.",
}


@dataclass(frozen=True)
class Place:
    """Where an exhibit stands on the page, under which heading, and what it shows in words."""

    chapter: str
    heading: str
    description: str
    rank: tuple[int, str]  # sorts exhibits


def place_of(name: str) -> Place:
    """The place of an exhibit; what is on no list comes last."""
    drawn, _, size = name.rpartition("_")
    known = next((key for key in (name, drawn) if key in _CHAPTER_OF), None)
    if known is None:
        heading = name.partition("-")[2].replace("_", " ")
        return Place(REST, heading, heading, (len(_CHAPTER_OF), name))
    chapter = _CHAPTER_OF[known]
    heading = CHAPTERS[chapter][known] + (f", {size}" if known == drawn else "")
    return Place(chapter, heading, DESCRIPTIONS.get(known, heading), (list(_CHAPTER_OF).index(known), name))
