# symbert: from web text to every table and figure of arXiv 2406.06366.
# Data flows one way: corpus → pretrain → glue → report. `snakemake --cores all` makes the page of config.yaml.
# A folder's name ends in a key of all that determines its content, so a file that exists is right: inputs are `ancient`
# (their times count nothing), and `all` asks for a file of every job. EXPERIMENT (src/symbert/experiment/layout.py) names all paths.
import os
import signal
import sys

from snakemake.utils import min_version

min_version("9.0")
os.environ.setdefault("SBATCH_SIGNAL", "USR1@120")  # of Slurm, two minutes before the limit of a job
signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # only trainings heed it: they save, and ask for another session
sys.path.insert(0, f"{workflow.current_basedir}/src")  # also where this is a module

# Of a module that Snakemake reads from a repository it is the project that is installed.
from symbert.provenance import PROJECT

MORE = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))  # an empty path is the folder where jobs run
os.environ.update(
    PYTHONPATH=os.pathsep.join([f"{PROJECT}/src", *MORE]),
    PATH=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
)
if workflow.main_snakefile == f"{PROJECT}/Snakefile":  # scripts of another workflow may need their folder
    os.environ.update(PYTHONSAFEPATH="1")  # a numpy.py in the folder where jobs run is not numpy

from symbert.corpus.blocklist import BuildBlocklist
from symbert.corpus.parts import PrepareParts
from symbert.corpus.shards import Pack
from symbert.corpus.texts import WriteText
from symbert.experiment.status import begin
from symbert.paths import (
    CHECKPOINT,
    CHECKPOINT_FILES,
    DATASET_FILE,
    PART,
    ROBUSTNESS,
    ROBUSTNESS_OF_MODEL,
    RUN,
    SCORES,
    SCORES_OF_MODEL,
)
from symbert.experiment.project import configured_scale, open_experiment, readable


configfile: f"{PROJECT}/workflow/defaults.yaml"
configfile: readable(f"{PROJECT}/config.yaml")
configfile: readable(configured_scale(config))
configfile: f"{PROJECT}/config.yaml"


EXPERIMENT = open_experiment(config, workflow.configfiles)


wildcard_constraints:
    **dict.fromkeys(
        ("repository", "part", "architecture", "model", "batch", "rows", "task", "suite", "selection"), "[^/]+"
    ),
    key="[0-9a-f]{8}",
    seed=r"\d+",
    step=r"\d+",


report: "workflow/report/workflow.rst"


include: "workflow/rules/corpus.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/glue.smk"
include: "workflow/rules/report.smk"


localrules:
    all,


rule all:
    """Make the report of the configured experiment, and everything that it needs."""
    default_target: True
    input:
        rules.report.output,
        EXPERIMENT.everything,
        *CHOSEN,


onstart:
    begin(EXPERIMENT)


PAGE, RECORD = rules.report.output
BEFORE = os.path.exists(RECORD) and os.path.getmtime(RECORD)


onsuccess:
    is_made = os.path.exists(RECORD) and os.path.getmtime(RECORD) != BEFORE
    print(f"symbert: done{f'; {PAGE}' if is_made else ''}", file=sys.stderr)
