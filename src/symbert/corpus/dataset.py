"""Datasets of the `datasets` library as a corpus: which files a split of one has, and the text in such a file.

A dataset is a folder, or the files of a repository of the hub that has the same layout: its card (README.md) or the
names of its files say which files a configuration and a split have, their format, its options, and the types of
columns. The library reads that, and then the files, a few rows at a time. No code of a dataset is ever run.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from symbert.configuration import Dataset
from symbert.corpus.document import ROWS_AT_ONCE, Row, read_rows, rows_of_tables
from symbert.declared import suggestion
from symbert.errors import ConfigError, DataError, MissingInputError, line_of
from symbert.files import read_json
from symbert.sources import NAMEABLE

if TYPE_CHECKING:
    import datasets
    import pyarrow

FORMATS = ("parquet", "json", "csv", "text", "arrow")  # of the library's, those that hold text; `pandas` reads pickles
CARDS = ("README.md", ".huggingface.yaml")  # of a dataset, where it has any
REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*")  # as the hub calls one: owner/name
NO_OPTIONS = ("name", "version", "data_dir", "data_files", "description", "features")  # of a builder's configuration
KEY = "config: 'corpus.dataset"
SPLIT = "train"  # that a file is alone, and a dataset that was saved without its name
HUBS_REVISION = "main"  # where none is asked for
WRITTEN = "write it again"  # a damaged folder of `save_to_disk`


class Reading(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How the files of a dataset are read, by the column of text; beside it `url` and `id` are read."""

    column: str
    format: str | None = None  # one of FORMATS; None: a folder that `save_to_disk` wrote
    options: dict[str, Any] = {}  # of the format, as the card has them
    features: Any = None  # the types of columns that the card has
    repository: str | None = None  # of the hub
    commit: str | None = None


def is_of_hub(asked: Dataset) -> bool:
    """Whether `corpus.dataset` names a repository of the hub, and no folder or format."""
    path = asked.path
    return path not in FORMATS and not Path(path).exists() and bool(REPOSITORY.fullmatch(path))


def local_dataset(asked: Dataset) -> tuple[Reading, list[str]]:
    """How a dataset is read that lies in a folder, or whose `path` is a format, and its files in the library's order.

    ConfigError or MissingInputError for an unknown configuration, split or column, and where there are no such files.
    """
    path = asked.path
    if asked.revision != HUBS_REVISION:
        raise ConfigError(
            f"{KEY}.revision' is {asked.revision!r}, which is of the hub; {path} is read here, leave it out"
        )
    if path in FORMATS:
        if not asked.data_files:
            raise ConfigError(f"{KEY}.path' is {path}, a format; add the pattern of its files as 'data_files'")
        return _found(asked, path, "")
    if not Path(path).is_dir():
        raise MissingInputError(
            f"{KEY}.path': {path}: no such folder; name a folder, owner/name, or {', '.join(FORMATS)}"
        )
    notes = Path(path, "dataset_dict.json"), Path(path, "state.json")  # of `save_to_disk`, the first of several splits
    if any(note.is_file() for note in notes) and (asked.name or asked.data_files):
        raise ConfigError(f"{KEY}.path': save_to_disk wrote {path}, which is read whole; leave name and data_files out")
    if notes[0].is_file():
        _refuse_unknown("split", asked.split, read_json(notes[0], {"splits": [str]}, WRITTEN)["splits"])
        return Reading(asked.column), [f"{path}/{asked.split}"]
    if notes[1].is_file():
        of = read_json(notes[1], dict, WRITTEN).get("_split")
        _refuse_unknown("split", asked.split, [SPLIT, *([of] if of else [])])
        return Reading(asked.column), [path]
    return _found(asked, str(Path(path).resolve()), path)  # the library wants a name, which . and .. have not


def hub_dataset(asked: Dataset, folder: Path, commit: str, files: list[str]) -> tuple[Reading, list[str]]:
    """How a dataset of the hub is read, and the paths of its files in the repository, by the names of all files at a
    commit and its card, which lies in `folder`. Errors are those of `local_dataset`."""
    with TemporaryDirectory(prefix="symbert-") as above:
        copy = Path(above, asked.path)  # of the names: what they hold is read by the jobs
        for file in map(copy.joinpath, files):
            if file.resolve().is_relative_to(copy.resolve()):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
        for card in CARDS:
            if (folder / card).is_file():
                shutil.copyfile(folder / card, copy / card)
        reading, paths = _found(asked, str(copy), str(copy))
        reading = msgspec.structs.replace(reading, repository=asked.path, commit=commit)
        return reading, [str(Path(path).relative_to(copy)) for path in paths]


def _found(asked: Dataset, path: str, base: str) -> tuple[Reading, list[str]]:
    """How a dataset is read, and its files, named as `base` is, the folder that has them all; none: this folder."""
    patterns = [asked.data_files] if isinstance(asked.data_files, str) else asked.data_files or []
    if addresses := [pattern for pattern in patterns if "://" in pattern]:
        raise ConfigError(f"{KEY}.data_files': {addresses[0]} is no file here; download it, and name it")
    name, builder = asked.path, _builder(asked, path)
    config, features, kind = builder.config, builder.info.features, type(builder).__module__.split(".")[-2]
    _refuse_unknown("split", asked.split, list(config.data_files))
    if features:
        _refuse_unknown("column", asked.column, list(features))
    if kind not in FORMATS:
        raise ConfigError(f"{KEY}': {name}: is {kind}; name files of {', '.join(FORMATS)} in 'data_files'")
    root, paths = Path(base).resolve(), []
    for address in config.data_files[asked.split]:
        file = Path(address)
        if "://" in address or (base and not file.resolve().is_relative_to(root)):
            raise ConfigError(f"{KEY}': {name}: {address} is not one of its files; download it, and name it")
        paths.append(str(Path(base, file.relative_to(root)) if file.is_relative_to(root) else file))
        if not NAMEABLE.fullmatch(paths[-1]):
            raise ConfigError(f"{KEY}': {paths[-1]}: has braces or - at the beginning, or is not UTF-8; rename it")
    if not paths:
        raise MissingInputError(f"{KEY}.data_files': no file is {asked.data_files}; correct it")
    usual = vars(type(config)())
    options = {key: value for key, value in vars(config).items() if key not in NO_OPTIONS and value != usual.get(key)}
    types = features.to_dict() if features and kind != "parquet" else None  # which has them in its files
    return Reading(asked.column, kind, options, types), paths


def _builder(asked: Dataset, path: str) -> "datasets.DatasetBuilder":
    """The library's builder of a dataset. It leaves nothing in the user's cache."""
    datasets, name = _library(), asked.path
    with TemporaryDirectory(prefix="symbert-") as cache:
        try:
            return datasets.load_dataset_builder(path, asked.name, data_files=asked.data_files, cache_dir=cache)
        except RuntimeError:  # a script
            remedy = (
                "convert it"
                if Path(name).exists()
                else "the hub may have a copy without: revision: refs/convert/parquet"
            )
            raise ConfigError(f"{KEY}': {name}: needs code of its own, which is never run; {remedy}") from None
        except (ValueError, TypeError, OSError, datasets.exceptions.DatasetsError) as error:
            message = line_of(error).replace(path, name).removesuffix(".")
            raise ConfigError(f"{KEY}': {name}: {message}; correct 'name' or 'data_files'") from None


def _library() -> ModuleType:
    """The `datasets` library, which counts no downloads at a server and shows no bars."""
    import datasets

    datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity_error()
    return datasets


def _refuse_unknown(key: str, word: str, known: list[str]) -> None:
    if word not in known:
        raise ConfigError(f"{KEY}.{key}' is {word!r}{suggestion(word, known)}")


def rows_of(file: Path, reading: Reading) -> Iterator[Row]:
    """The rows of a file of a dataset, with `text`, and `url` and `id` where there are such columns.

    DataError where there is no column of text, and where the file is damaged.
    """
    columns = [reading.column, "url", "id"]
    is_read_here = reading.format is None or (file.suffix == ".parquet" and not reading.options)  # by columns
    for row in read_rows(file, columns) if is_read_here else rows_of_tables(file, _tables(file, reading), columns):
        if not isinstance(row, DataError):
            if reading.column not in row:
                found = ", ".join(row) or "nothing"
                raise DataError(f"{file}: no column '{reading.column}', found {found}; set corpus.dataset.column")
            row = {"text": row[reading.column], "url": row.get("url"), "id": row.get("id")}
        yield row


def _tables(file: Path, reading: Reading) -> "Iterator[tuple[list[str], pyarrow.Table]]":
    """The names of all columns and a few rows at a time, as the library streams them."""
    datasets = _library()
    datasets.config.TORCH_AVAILABLE = False  # or it imports torch, two seconds, to ask for workers that read beside it
    features = datasets.Features.from_dict(reading.features) if reading.features else None
    options = dict(reading.options)
    with TemporaryDirectory(prefix="symbert-") as folder:
        link = Path(
            folder, f"file{''.join(file.suffixes)}"
        )  # the library takes a name for a pattern, or for an address
        link.symlink_to(file.resolve())
        options |= {"data_files": {SPLIT: str(link)}, "split": SPLIT, "streaming": True, "cache_dir": folder}
        try:
            rows = datasets.load_dataset(reading.format, features=features, **options)
            for table in rows.with_format("arrow").iter(ROWS_AT_ONCE):
                yield table.column_names, table
        except StopIteration:  # the library looks for a first row in vain
            return
        except (datasets.exceptions.DatasetsError, TypeError) as error:
            raise ValueError(line_of(error)) from error
