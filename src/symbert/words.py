"""The options of a command in the words of bash: many paths as one short word.

Linux takes no argument longer than 128 KiB, and Snakemake hands a whole command to bash as one. Bash itself may pass
megabytes of words on, so it is given `scores/{original,shared}/{cola,mnli}.json` and writes the paths out.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, takewhile
from typing import Any

Words = Callable[[Any, Any], str]  # a rule's parameter, of Snakemake's wildcards and input
Parts = Sequence[str]  # what stands between the slashes of a path
PLAIN = re.compile(r"[\w@%+=:.-]*", re.ASCII)  # text that means itself to bash, in braces too


def option_with(option: str, values: str | Iterable[Any]) -> str:
    """A command's option with its values as one short word of bash; empty without values."""
    values = [values] if isinstance(values, str) else list(values)
    return f"--{option.replace('_', '-')} {braced(values)}" if values else ""


def option_with_files(option: str, files: str | Iterable[str]) -> str:
    """The same with files, which the command reads from a list that bash writes where they are several: Linux takes no
    more than 2 MB of arguments."""
    files = [files] if isinstance(files, str) else list(files)
    if len(files) == 1 and not files[0].startswith("@"):
        return option_with(option, files)
    return f"--{option.replace('_', '-')} @<(printf '%s\\0' {braced(files)})" if files else ""


def given(option: str) -> Words:
    """A rule's parameter: an option of its command with the files of the input that is called alike."""
    return lambda wildcards, input: option_with_files(option, input[option])


def braced(paths: Iterable[str]) -> str:
    """A word of bash that expands to these paths, in this order; nothing for no paths."""
    split = [str(path).split("/") for path in paths]
    return _any_of(split) if split else ""


def _any_of(paths: list[Parts]) -> str:
    """Paths that begin alike share their beginning, and folders that hold alike share what they hold."""
    beginnings = []
    for (head, goes_on), group in groupby(paths, key=lambda path: (path[0], len(path) > 1)):
        tails = [path[1:] for path in group]
        beginnings += [(head, _any_of(tails))] if goes_on else [(head, None)] * len(tails)
    words = [
        _names([head for head, _ in group]) + ("" if rest is None else f"/{rest}")
        for rest, group in groupby(beginnings, key=lambda beginning: beginning[1])
    ]
    return words[0] if len(words) == 1 else f"{{{','.join(words)}}}"


def _names(names: list[str]) -> str:
    """Names of one place in a path, with what all of them begin and end with written once."""
    if len(names) == 1:
        return _quoted(names[0])
    start = _start(names)
    rest = [name.removeprefix(start) for name in names]
    end = _start([name[::-1] for name in rest])[::-1]
    middle = ",".join(_quoted(name.removesuffix(end)) or "''" for name in rest)
    return f"{_quoted(start)}{{{middle}}}{_quoted(end)}"


def _start(names: list[str]) -> str:
    """The letters that all names begin with."""
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in alike)


def _quoted(text: str) -> str:
    """Text that bash takes as it is, in braces too."""
    return text if PLAIN.fullmatch(text) else "'" + text.replace("'", "'\\''") + "'"
