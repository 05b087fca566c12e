"""The demo is data: its list, and the tool that wrote it."""

import hashlib
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from symbert.corpus.texts import CHARACTERS, documentation
from symbert.files import sha256_of
from symbert.sources import DEMO
from tools.demo_documentation import PACKAGES


def files_below(folder: Path) -> dict[str, Path]:
    """All files but those at the top."""
    return {path.relative_to(folder).as_posix(): path for path in folder.glob("*/**/*") if path.is_file()}


def test_the_list_has_the_sha256_of_every_file():
    listed = dict(line.split("  ")[::-1] for line in (DEMO / "SHA256SUMS").read_text().splitlines())
    assert listed == {name: sha256_of(path) for name, path in files_below(DEMO).items()}


def test_the_text_of_the_studies_is_the_documentation_that_they_were_run_on():
    digest = hashlib.sha256(documentation()[:CHARACTERS].encode()).hexdigest()
    assert digest == "7bdaf6eeada3217ef7b63ef3e8b1d3e25fcd8f067601dd822657a7b68a85a592"


@pytest.mark.campaign
def test_the_tool_writes_the_demo_byte_for_byte(root, tmp_path):
    """From the packages of this environment, or from those of the registry where it has others."""
    command = [sys.executable, root / "tools/make_demo.py", tmp_path / "demo"]
    if any(metadata.version(package.name) != package.version for package in PACKAGES):
        wanted = [f"{package.name}=={package.version}" for package in PACKAGES]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "packages"]
        subprocess.run([*pip, *wanted], check=True)
        command += ["--packages", tmp_path / "packages"]
    subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "7"}, check=True)
    written, kept = files_below(tmp_path / "demo"), files_below(DEMO)
    assert written.keys() == kept.keys()
    assert [name for name in kept if written[name].read_bytes() != kept[name].read_bytes()] == []
    assert (tmp_path / "demo/SHA256SUMS").read_bytes() == (DEMO / "SHA256SUMS").read_bytes()
