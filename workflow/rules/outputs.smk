# The files of the report, and what its rules have in common.
from symbert.files import sha256_of
from symbert.settings import hash_of
from symbert.sizes import SIZES

TABLES = f"{RESULTS}/report/tables"
FIGURES = f"{RESULTS}/report/figures"
PARAMETERS = f"{RESULTS}/report/parameters.json"
# A parameter of every report rule: editing the report's code, or what it imports from the stages, makes tables and
# figures anew, and nothing else.
PACKAGE = Path(workflow.basedir) / "src/symbert"
ITS_IMPORTS = ["corpus/histograms.py", "corpus/reasons.py", "glue/tasks.py", "draws.py", "sizes.py"]
CODE = hash_of([sha256_of(PACKAGE / path) for path in [*sorted(PACKAGE.glob("report/*.py")), *ITS_IMPORTS]])


def table(name, caption, title):
    """A table's files: csv in the Snakemake report, markdown and LaTeX beside it, and html for the page."""
    csv = report(f"{TABLES}/{name}.csv", caption=f"../report/{caption}.rst", category="Tables", labels={"table": title})
    return [csv, *(f"{TABLES}/{name}.{suffix}" for suffix in ("md", "tex", "html"))]


def figure(name, caption, title):
    """A figure's files: png in the Snakemake report, pdf beside it."""
    png = report(
        f"{FIGURES}/{name}.png", caption=f"../report/{caption}.rst", category="Figures", labels={"figure": title}
    )
    return [png, f"{FIGURES}/{name}.pdf"]


PAGE = f"{RESULTS}/report/report.html"
PAPER_TABLES = ["table1_operators", "table2_parameters", "table3_published"]
REPORTED_TABLES = [*OWN_TABLES, *PAPER_TABLES, "table3_glue", "scores", "statistics", "milestones", "claims"]
REPORTED_FIGURES = [
    *OWN_FIGURES,
    "figure1_operators",
    *(f"figure2_{size}" for size in MEASURED_SIZES),
    *(["figure3_checkpoints"] if curve_scores() else []),
]


def page(kind, suffix, names):
    """The files of tables or figures in one format."""
    return [f"{RESULTS}/report/{kind}/{name}.{suffix}" for name in names]
