# What must hold before anything else: our package on the path, its dependencies installed, one-line errors.
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

# The scheduler's warning that the time limit is near is for the training (which heeds it), not for what started it.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def stop(message, exit_code):
    """End Snakemake before any job, with one line and the documented exit code."""
    print(f"symbert: {message}", file=sys.stderr)
    sys.exit(exit_code)


RULES = workflow.current_basedir.get_path_or_uri(secret_free=True)  # also where this is a module
if "://" in RULES:
    stop(f"{RULES}: the Python package does not come with it; clone the project, and name its Snakefile", 64)
PROJECT = Path(RULES).parents[1]
SOURCE = str(PROJECT / "src")
sys.path.insert(0, SOURCE)
os.environ.update(
    PYTHONPATH=os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
    PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
)

from symbert.environment import check_packages
from symbert.errors import SymbertError

if set(str(PROJECT)) & set("{}"):
    stop(f"{PROJECT}: has braces, which Snakemake takes for wildcards; rename the folder", 64)


@contextmanager
def one_line_errors():
    try:
        yield
    except SymbertError as error:
        stop(error, error.exit_code)


with one_line_errors():
    check_packages(PROJECT / "pyproject.toml")

from symbert import checks
from symbert import config as configuration
from symbert.gpus import count_gpus
from symbert.project import imported, read_config
from symbert.snakemake_internals import (
    force,
    is_on_cluster,
    jobs_to_run,
    limit_resource,
    starts_jobs,
)
from symbert.words import given, option_with_files

with one_line_errors():
    # What the user chose, or the workflow whose module this is, stands above config.yaml and the scale.
    config = read_config(PROJECT, config)
    # One job per GPU on this machine. On a cluster its scheduler counts. Another number: --resources gpu=2
    if starts_jobs(workflow) and not is_on_cluster(workflow):
        limit_resource(workflow, "gpu", count_gpus)


def force_if_outdated(file, is_outdated):
    """No input, but a job for a file whose content differs from the configuration.

    Snakemake compares what a file was made from, as long as `.snakemake` is not lost. The content decides always.
    """
    if is_outdated:
        with one_line_errors():
            force(workflow, file)
    return []


def refuse_stand_ins(wildcards):
    """No input. Stops before any job where a stage would read stand-ins at a scale for real text.

    Only a target that needs the stage's source is stopped: the paper's tables are made at any scale.
    """
    with one_line_errors():
        for stage in ("corpus", "glue"):
            if wildcards.section == f"{stage}_source":
                checks.refuse_stand_ins(config, stage)
    return []


def option(name):
    """A command's option for an input that may be absent: a file, or a list of them."""

    def words(wildcards, input):
        files = [input[name]] if isinstance(input[name], str) else list(input[name])
        return [f"--{name.replace('_', '-')}", *files] if files else []

    return words


ENVIRONMENT = "../../envs/symbert.yaml"  # of every rule
