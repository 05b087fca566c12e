"""A JSON file that holds something else than a command expects, and how the command must end."""

import shlex
from pathlib import Path

import pytest

from symbert.cli import main

CONTENTS = ("[]", "null", "{}", "3", '"x"', "[[3]]", "\ufeff{", "{")
DOCUMENTED = (64, 65)  # exit codes that have a remedy


def assert_named(words: list[str], file: Path, capsys: pytest.CaptureFixture, contents: tuple[str, ...] = CONTENTS):
    """Whatever else `file` holds, the command ends with a documented code and one line that names it."""
    intact = file.read_bytes()
    for content in contents:
        file.write_text(content)
        capsys.readouterr()
        code, said = main([str(word) for word in words]), capsys.readouterr().err.splitlines()
        told = f"{content} in {file.name}: {code} {said} by {shlex.join(map(str, words))}"
        assert code in DOCUMENTED and file.name in said[-1] and "internal error" not in said[-1], told
        file.write_bytes(intact)
