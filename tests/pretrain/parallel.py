"""The first lines of the stand-in for parallel text, as files of one's own."""

import gzip
from itertools import islice
from pathlib import Path

from symbert.cli import main
from symbert.configuration import NUMBERS, NUMBERS_TEXT, PARALLEL_FILES
from symbert.files import sha256_of, write_json


def write_text(folder: Path, training: int = 400, held_out: int = 40) -> dict[str, str]:
    """The four files by key, plain text."""
    for key in PARALLEL_FILES:
        with gzip.open(NUMBERS / NUMBERS_TEXT[key], "rt", encoding="utf-8") as lines:
            kept = islice(lines, held_out if key.startswith("validation") else training)
            (folder / f"{key}.txt").write_text("".join(kept), encoding="utf-8")
    return {key: str(folder / f"{key}.txt") for key in PARALLEL_FILES}


def settings_of(files: dict[str, str], folder: Path, **changes: int) -> Path:
    """The file of the manifest of these files' pairs, beside which their settings stand."""
    contents = {key: sha256_of(Path(files[key])) for key in PARALLEL_FILES}
    pairs = {**files, "sha256": contents, **{"vocabulary_size": 200, "max_length": 32, **changes}}
    write_json(folder / "parallel/settings.json", {"pairs": pairs})
    return folder / "parallel/manifest.json"


def pack(files: dict[str, str], folder: Path, **changes: int) -> Path:
    """The manifest of the packed pairs of these files, or of the stand-in's."""
    manifest = settings_of(files, folder, **changes)
    assert main(["pack-pairs", str(manifest)]) == 0
    return manifest
