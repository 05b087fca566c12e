# The files of the report, and what its rules have in common.
from symbert.files import sha256_of
from symbert.report.braces import braced
from symbert.report.contents import place_of
from symbert.settings import hash_of
from symbert.sizes import SIZES
from symbert.operators import operator_code

TABLE_FORMATS = ["html", "csv", "md", "tex"]  # the first is in the Snakemake report and on the page
FIGURE_FORMATS = ["png", "pdf"]
PARAMETERS = f"{RESULTS}/report/parameters.json"
# A parameter of every report rule: editing the report's code, or what it imports from the stages, makes tables and
# figures anew, and nothing else.
PACKAGE = Path(workflow.basedir) / "src/symbert"
ITS_IMPORTS = ["corpus/histograms.py", "corpus/reasons.py", "glue/tasks.py", "draws.py", "sizes.py"]
ITS_IMPORTS += ["operators.py", "model/attention.py"]  # whose classes say how operators look
CODE = hash_of([sha256_of(PACKAGE / path) for path in [*sorted(PACKAGE.glob("report/*.py")), *ITS_IMPORTS]])


def table(name):
    """A table's files."""
    shown, *others = page("tables", TABLE_FORMATS, [name])
    return [exhibit(shown, "table", name), *others]


def figure(name):
    """A figure's files."""
    shown, *others = page("figures", FIGURE_FORMATS, [name])
    return [exhibit(shown, "figure", name), *others]


def exhibit(file, kind, name):
    """A file in the Snakemake report, where the page has it; one caption serves all sizes."""
    place = place_of(f"{kind}-{name}")
    caption = f"../report/{kind}s/{name.partition('_{')[0]}.rst"
    return report(file, caption=caption, category=place.chapter, labels={"shows": place.heading})


def given(name):
    """A command's option with the files of an input, as one short word; nothing where there are none."""

    def words(wildcards, input):
        files = [input[name]] if isinstance(input[name], str) else list(input[name])
        return f"--{name.replace('_', '-')} {braced(files)}" if files else ""

    return words


PAGE = f"{RESULTS}/report/report.html"
PAPER_TABLES = ["table1_operators", "table2_parameters", "table3_published"]
REPORTED_TABLES = [*OWN_TABLES, *PAPER_TABLES, "table3_glue", "scores", "statistics", "milestones", "claims"]
REPORTED_TABLES += ["runs", "provenance"]
REPORTED_FIGURES = [
    *OWN_FIGURES,
    "figure1_operators",
    *(f"figure2_{size}" for size in MEASURED_SIZES),
    *(["figure3_checkpoints"] if curve_scores() else []),
]


def page(kind, formats, names):
    """The files of tables or figures in some formats. A target asks for all of them: Snakemake makes no lost file that
    nobody asks for, though its rule has made it before."""
    return [f"{RESULTS}/report/{kind}/{name}.{suffix}" for name in names for suffix in formats]


def wanted():
    """The runs and scores that were asked for: inputs of the report's targets themselves. A table that lacks an input
    which no rule makes counts as finished where an old one lies there; a target, which has no file, is an error."""
    return [*final_scores(), *curve_scores(), *robustness(), *provenance()]


# What the report says of an experiment's making; of imported scores it knows neither runs nor settings of stages.
if config["imported"]:
    DESCRIBED_RUNS, SESSIONS = [], []
    DESCRIBED_SETTINGS = [settings("report")]
else:
    DESCRIBED_RUNS, SESSIONS = provenance(), runs(f"{STATE}/provenance.json")
    DESCRIBED_SETTINGS = [settings(section) for section in ("filter", "pack", "pretrain", "task", "glue", "report")]


def sessions(wildcards):
    """The option with what the runs noted of their sessions; no input, so that what pruning removes is not missed."""
    return f"--sessions {braced(SESSIONS)}" if SESSIONS else ""
