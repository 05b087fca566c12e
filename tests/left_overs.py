"""What a command leaves behind that fails at any of the files that it publishes."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from symbert.cli import main


def files_in(folder: Path) -> dict[str, bytes]:
    """The content of all files, by path."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def assert_nothing_is_left(words: list[str], folder: Path) -> None:
    """A command in `folder` that fails at one of its files ends with 65 and leaves none, whichever it is, nor a part.

    The folder is the working folder and holds the command's input.
    """
    before, replace = files_in(folder), os.replace
    assert main(words) == 0
    made = files_in(folder).keys() - before.keys()
    assert len(made) > 1, "else `publish` alone suffices"
    for number in range(len(made)):
        shutil.rmtree(folder)
        for name, content in before.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        published = []

        def fail(source, target, number=number, published=published):
            published.append(target)
            if len(published) > number:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            replace(source, target)

        os.chdir(folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("os.replace", fail)
            assert main(words) == 65, published
        assert files_in(folder) == before, f"after a failure at {published[-1]}"
