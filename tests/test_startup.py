"""What a command imports before it works: a second of start is paid by every job of an experiment."""

import subprocess
import sys

import pytest

from symbert.cli import COMMANDS

HEAVY = {
    *("datasets", "huggingface_hub", "jinja2", "matplotlib", "numpy", "pandas", "pyarrow", "scipy.stats", "sklearn"),
    *("snakemake", "tokenizers", "torch", "torch._dynamo", "transformers", "yaml"),
}
# What commands may import, in groups that share a process each, the lightest first.
LIGHT = {"numpy", "pyarrow", "tokenizers", "yaml"}  # a quarter of a second at most
REPORT = LIGHT | {"jinja2", "matplotlib", "pandas"}
TRAINING = LIGHT | {"torch"}
MODEL = HEAVY - {"datasets", "matplotlib", "sklearn", "snakemake"}  # transformers brings most of them
PROCESSES = ([LIGHT], [REPORT], [TRAINING, MODEL])

# An optimizer imports torch's compiler when it is made, and when it takes a step.
STEP = "from symbert.pretrain.compute import AdamW; weights = __import__('torch').ones(2, requires_grad=True); "
STEP += "weights.sum().backward(); AdamW([{'params': [weights]}], fused=True).step()"
COUNT = "from symbert.model.bert import counts_of; from symbert.operators import OPERATORS; "
COUNT += "from symbert.sizes import SIZES; counts_of(SIZES['small'], [OPERATORS['pairwise']])"
OF_PACKAGE = {"report": REPORT, "model": MODEL}  # of the others: LIGHT
ALLOWED = {
    **{f"load({name!r})": OF_PACKAGE.get(path.split(".")[1], LIGHT) for name, path in COMMANDS.items()},
    **{f"load({name!r})": TRAINING for name in ("measure-speeds", "score")},
    "from symbert.cli import _spare_pandas; import pyarrow; _spare_pandas(); pyarrow.array([1])": LIGHT,
    "import symbert.pretrain.train": TRAINING,  # in its command
    STEP: TRAINING,
    "from symbert.report.collect import OF_PROJECT, counted; counted(['small'], ['pairwise'], OF_PROJECT)": REPORT,
    **{f"load({name!r})": MODEL for name in ("anatomy", "measure-anatomy", "export", "export-classifier")},
    "load('bundle')": REPORT,
}


@pytest.mark.parametrize("groups", PROCESSES, ids=["light", "report", "model"])
def test_a_command_imports_no_heavy_module_that_it_can_do_without(groups):
    loads = [(load, group) for group in groups for load, allowed in ALLOWED.items() if allowed == group]
    lines = ["import sys", "from symbert.cli import load"]
    for load, group in loads:
        lines += [load, f"print({load!r}, *sorted({HEAVY - group} & sys.modules.keys()))"]
    script = "\n".join(lines)
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == [load for load, _ in loads]
