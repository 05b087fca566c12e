"""All files of others' results below a folder, each read by the reader of its kind; what none reads is listed."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pandas as pd

from symbert.errors import DataError, MissingInputError
from symbert.report.captions import model_name
from symbert.report.foreign import harness, losses, tables, trainer
from symbert.report.foreign.naming import Naming
from symbert.report.foreign.rows import Row, frame_of, scores_of
from symbert.report.order import model_rank

SHOWN = 8  # names that a line lists


@dataclass(frozen=True)
class Reader:
    """A kind of file with scores: what is one of them, and its rows, with lines on what was left out of it."""

    kind: str
    recognizes: Callable[[Path], bool]
    read: Callable[[Path, Path, Naming], tuple[list[Row], list[str]]]  # of a file, the folder above, and names


READERS = (
    Reader("csv and parquet", tables.recognizes, lambda file, root, naming: tables.read(file)),
    Reader("runs of Hugging Face's Trainer", trainer.recognizes, trainer.read),
    Reader("lm-evaluation-harness", harness.recognizes, harness.read),
)


@dataclass(frozen=True)
class Reading:
    """What was read below a folder."""

    scores: pd.DataFrame  # as `symbert.report.foreign.rows.scores_of` gives them
    files: dict[Path, str]  # that have scores, with the kinds
    losses: list[Path]  # files of validation losses
    unread: list[Path]
    notes: list[str]  # on what was left out of files that were read

    def summary(self) -> pd.DataFrame:
        """A row per model, of its final runs and of its checkpoints: scores by task and seed, and what is missing."""
        rows = []
        for has_step, part in self.scores.groupby(self.scores["step"].notna()):
            columns = sorted(part["column"].unique())
            models = part.groupby(["size", "attention"], sort=False)
            for model, of_model in sorted(models, key=lambda item: model_rank(*item[0])):
                cells = of_model[["pretrain_seed", "step", "finetune_seed"]].drop_duplicates()
                rows.append(
                    {
                        "model": model_name(*model),
                        "runs": f"{of_model['step'].nunique()} checkpoints" if has_step else "final",
                        "tasks": of_model["task"].nunique(),
                        "seeds": of_model["finetune_seed"].nunique(),
                        "scores": len(of_model),
                        "holes": _listed(_holes(of_model, cells, columns)),
                    }
                )
        return pd.DataFrame(rows)

    def left_out(self) -> list[str]:
        """Lines on what was not read: files by name, and parts of files."""
        names = Counter(path.name for path in self.unread)
        unread = [f"{name} ({count})" if count > 1 else name for name, count in sorted(names.items())]
        return [*([f"files: {_listed(unread)}"] if unread else []), *self.notes]


def read_foreign(path: Path, naming: Naming) -> Reading:
    """The scores of a file, or of all files below a folder.

    DataError or MissingInputError name the file that is damaged, or say that there is none with scores.
    """
    root, files = (path, files_below(path)) if path.is_dir() else (path.parent, [path])
    rows, kinds, unread, notes = [], {}, [], []
    curves = [file for file in files if losses.recognizes(file)]
    for file in files:
        reader = next((each for each in READERS if file not in curves and each.recognizes(file)), None)
        if reader is not None:
            of_file, left_out = reader.read(file, root, naming)
            rows += of_file
            notes += left_out
            kinds[file] = reader.kind
        elif file not in curves:
            unread.append(file)
    if not rows:
        known = ", ".join(reader.kind for reader in READERS)
        missing = MissingInputError(f"{path}: no scores in it; known are {known} (docs/scores.md)")
        if not path.exists():
            missing = MissingInputError(f"{path}: file not found")
        if path.is_file() and path.suffix in tables.SUFFIXES:
            tables.read(path)  # says which column it lacks
        raise missing
    for folder in sorted(naming.folders):
        if not any(file.is_relative_to(root / folder) for file in kinds):
            raise DataError(f"{naming.mapping}: '{folder}' has no scores below {root}; correct it")
    scores, extra = scores_of(frame_of(rows))
    return Reading(scores, kinds, curves, unread, [*notes, *extra])


def files_below(directory: Path) -> list[Path]:
    """All files below a directory, sorted, those behind links too; a folder with several ways to it is read once.

    A way without links comes before one with them. MissingInputError names a link that leads nowhere.
    """
    folders, links, files, seen = [directory], [], [], set()
    while folders or links:
        folder = folders.pop() if folders else links.pop(0)
        place = folder.resolve()
        if place in seen or not place.is_dir():
            continue
        seen.add(place)
        for entry in sorted(folder.iterdir()):
            if not entry.exists():
                raise MissingInputError(
                    f"{entry}: a link to {entry.readlink()}, which is not there; mend the link or remove it"
                )
            kind = files if not entry.is_dir() else links if entry.is_symlink() else folders
            kind.append(entry)
    return sorted(files)


def _holes(scores: pd.DataFrame, cells: pd.DataFrame, columns: Iterable[str]) -> list[str]:
    """The score columns that some runs of a model lack, of those that any model has: 'rte (2 of 5)'."""
    present = set(scores[[*cells, "column"]].itertuples(index=False, name=None))
    pairs = product(columns, cells.itertuples(index=False, name=None))
    lacking = Counter(column for column, cell in pairs if (*cell, column) not in present)
    return [name if count == len(cells) else f"{name} ({count} of {len(cells)})" for name, count in lacking.items()]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
