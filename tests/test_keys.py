import json
import os
import re
import shutil
import subprocess
import sys

import msgspec

from symbert.config import sections
from symbert.keys import Configuration
from symbert.project import read_chosen
from symbert.settings import Settings
from symbert.suites import SUITES

FINE_TUNED = {suite.name for suite in SUITES.values() if suite.tasks}


def keys_of(kind, above=""):
    """Every key that a class declares, and those of its sections."""
    for field in msgspec.structs.fields(kind):
        yield above + field.name
        if isinstance(field.type, type) and issubclass(field.type, Settings):
            yield from keys_of(field.type, f"{above}{field.name}.")


def test_every_declared_key_is_in_the_configuration_and_says_there_what_it_means(root):
    """A schema beside it said that fine-tuning decays all parameters, long after it did not."""
    text = (root / "config.yaml").read_text()
    written, above = {}, []
    for line in text.splitlines():
        if named := re.match(r"( *)(\w+):(.*)", line):
            above[len(named[1]) // 2 :] = [named[2]]
            written[".".join(above)] = named[3]
    del written["sweep.curve.steps.base"]
    values = [key for key in written if not key.startswith("suites.")]  # whose keys are those of `glue`
    assert set(keys_of(Configuration)) == set(values)
    assert [key for key, rest in written.items() if rest and " # " not in rest] == []


SCRIPT = """
import json, sys
from pathlib import Path
from symbert.config import sections
from symbert.project import read_chosen
print(json.dumps([sections(read_chosen(Path(), "paper", None, word and [word]), "") for word in sys.argv[1:]]))
"""


def test_a_new_key_is_a_line_of_the_configuration_and_a_field_of_a_stage(root, tmp_path):
    """It was six places: one was a list of what the report does not compare, another the schema."""
    for part in ("src/symbert", "workflow/scales"):
        shutil.copytree(root / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    line = "  layer_decay: 1.0             # factor of the rate from layer to layer\n"
    text = (root / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text(text.replace("  epochs: 5", f"{line}  epochs: 5"))
    settings = tmp_path / "src/symbert/settings.py"
    head, fields = settings.read_text().split("class GlueSettings(Settings):")
    settings.write_text(
        f"{head}class GlueSettings(Settings):"
        + fields.replace("    recipe: Recipe\n", "    recipe: Recipe\n    layer_decay: Positive = 1.0\n", 1)
    )

    def run(*words):
        told = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
        return subprocess.run([sys.executable, *words], cwd=tmp_path, env=told, capture_output=True, text=True)

    here = sections(read_chosen(root, "paper", None, None), "")
    same, changed = json.loads(run("-c", SCRIPT, "", "glue={layer_decay: 0.9}").stdout)
    assert same == here and here["glue"].keys() - changed["glue"].keys() == set()
    assert changed["glue"]["layer_decay"] == changed["report"]["glue"]["layer_decay"] == 0.9
    assert {name for name in here if here[name] != changed[name]} == {*FINE_TUNED, "report"}
    assert "'glue.layer_decay' is 0, expected a number > 0" in run("-c", SCRIPT, "glue={layer_decay: 0}").stderr
