"""The reports of docs/upstream for the Slurm plugin: each patch applies to the version that it names; its test fails
without it and passes with it."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import snakemake_executor_plugin_slurm as plugin

from documented import custom_files
from snakemake_executor_plugin_symbert_slurm import REPAIRED

pytestmark = pytest.mark.campaign
REPORTS = ("silence", "preempted", "lost", "held", "interval", "cancel")


@pytest.mark.skipif(version("snakemake-executor-plugin-slurm") != REPAIRED, reason="the patches are of another version")
@pytest.mark.parametrize("name", REPORTS)
def test_the_test_of_a_report_fails_without_its_patch_and_passes_with_it(root, tmp_path, name):
    package = Path(plugin.__file__).parent
    shutil.copytree(package, tmp_path / package.name)
    page = f"docs/upstream/slurm-{name}.md"
    for file, text in (custom_files(root, page) | custom_files(root, "docs/upstream/README.md")).items():
        (tmp_path / file).write_text(text)

    def outcome() -> int:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"test_{name}.py"]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True).returncode

    assert outcome() == 1
    subprocess.run(["git", "apply", f"slurm-{name}.patch"], cwd=tmp_path, check=True)
    assert outcome() == 0
