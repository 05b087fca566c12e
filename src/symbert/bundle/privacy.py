"""What of this machine no bundle may tell: hosts' names, absolute paths, and secrets of the environment.

Results say where they were computed, and their page holds its files as data: both are read here.
"""

import base64
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from symbert.errors import DataError

SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|CREDENTIAL", re.I)
SHORTEST_SECRET = 8  # characters; a shorter value of such a variable is a switch
DATA = re.compile(rb"(data:[^,\"]*;base64,[A-Za-z0-9+/=]+)")
OF_TEXT = (b"data:text/", b"data:application/x-tex")
TEXTS = (".csv", ".html", ".json", ".jsonl", ".md", ".tex", ".tsv", ".txt", ".yaml", ".yml")


class Privacy:
    """Replaces what tells of machines in the bytes of a file: paths by their last part, hosts by numbers."""

    def __init__(self, records: list[Any], folders: list[Path], environment: Mapping[str, str] = os.environ) -> None:
        """`records` are what JSON files of the results hold, `folders` those that the results lie in."""
        paths = {str(path) for folder in folders for path in (folder.absolute(), folder.resolve())}
        paths.add(str(Path.cwd()))
        hosts: dict[str, None] = {}
        for key, text in (each for record in records for each in _texts(record)):
            if key == "host":
                hosts[text] = None
            elif text.startswith("/"):
                paths.add(text)
        longest_first = sorted(paths - {"/"}, key=lambda path: (-len(path), path))
        shorter = {path: f"…/{PurePosixPath(path).name}" for path in longest_first}
        shorter[str(Path.home())] = "~"  # whose last part may be the name of a person
        self.paths = {_word(path): short.encode() for path, short in shorter.items()}
        self.hosts = {host: f"host-{number}" for number, host in enumerate(hosts, start=1)}
        self.secrets = {
            name: value.encode()
            for name, value in environment.items()
            if SECRET.search(name) and len(value) >= SHORTEST_SECRET
        }

    def clean(self, name: str, content: bytes) -> bytes:
        """The same file without them; pictures stay as they are. DataError for a file that holds a secret."""
        if Path(name).suffix not in TEXTS:
            self._refuse_secrets(name, content)
            return content
        return b"".join(self._clean_part(name, part) for part in DATA.split(content))

    def _clean_part(self, name: str, part: bytes) -> bytes:
        """A stretch of text, or a file that the page holds as data; a picture stays as it is."""
        if not DATA.fullmatch(part):
            return self._clean_text(name, part)
        if not part.startswith(OF_TEXT):
            return part
        address, _, held = part.partition(b",")
        return address + b"," + base64.b64encode(self._clean_text(name, base64.b64decode(held)))

    def _clean_text(self, name: str, content: bytes) -> bytes:
        self._refuse_secrets(name, content)
        for path, short in self.paths.items():
            content = path.sub(short, content)
        for host, number in self.hosts.items():
            # A value by itself: in a cell of csv, Markdown, HTML or LaTeX, between quotes, or after "UTC on".
            pattern = rb'((?:^|[,|>&"]|UTC on) ?)' + re.escape(host.encode()) + rb'(?= ?(?:[,|<&;"\n\r]|\\\\|$))'
            content = re.sub(pattern, rb"\g<1>" + number.encode(), content, flags=re.M)
        return content

    def _refuse_secrets(self, name: str, content: bytes) -> None:
        for variable, value in self.secrets.items():
            if value in content:
                raise DataError(f"{name}: holds the value of {variable} of the environment; remove it there first")


def _word(path: str) -> re.Pattern[bytes]:
    """The path where neither it nor its last part goes on."""
    return re.compile(rb"(?<![\w.~/-])" + re.escape(path.encode()) + rb"(?![\w.-])")


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a JSON value, with the key that it stands under."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key)
