# What the rules of the report share: its files, those that it is made of, and its code.
from symbert.operators import operator_code
from symbert.report.inputs import ReportFiles, code_of, given, option_with
from symbert.sizes import SIZES

PAGE = f"{RESULTS}/report/report.html"
PARAMETERS = f"{RESULTS}/report/parameters.json"
REPORT = ReportFiles(f"{RESULTS}/report", INPUTS | {"parameters": [PARAMETERS]}, OF_SIZE, WORDS, MEASURED_SIZES)
TABLES, FIGURES = ([each for each in REPORT.exhibits if each.kind == kind] for kind in ("table", "figure"))
# On a cluster, which has --jobs, all of the report is one job; here each table is a job of its own.
GROUP = "report" if is_on_cluster(workflow) else None
# A parameter of every report rule: editing the report's code, or what it imports from the stages, makes tables and
# figures anew, and nothing else.
CODE = code_of(Path(workflow.basedir) / "src/symbert")
# The runs and scores that were asked for: inputs of the report's targets themselves. A table that lacks an input which
# no rule makes counts as finished where an old one lies there; a target, which has no file, is an error.
WANTED = [file for option in ("scores", "curve", "robustness", "provenance", "origin") for file in INPUTS[option]]
