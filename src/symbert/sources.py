"""Where text and tasks come from: the sources, their words in captions, and where their files lie.

A source is a value of `source`, `corpus.source` or `glue.source`. Files that users do not bring have the publishers'
names and layout: `corpus.published` downloads them.
"""

import glob
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from symbert.digests import read_digests
from symbert.errors import ConfigError, MissingInputError
from symbert.files import known_sha256, verify_sha256
from symbert.steps import RESULTS, File

Config = dict[str, Any]
EMBEDDED, DEMO = "embedded:", Path(__file__).parent / "demo"  # in names of files: the package's own stand-ins
SUMS = "SHA256SUMS"  # in a mirror and in the package: the digest of each file as it came
DEMO_PARTS = 4  # of its corpus
DOCUMENTATION_PARTS = (5, 6)  # the text `documentation` of small studies; the demo does not read them
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")
RESTORE = "delete it, and get it again from where it came"
TEXT_FILE = re.compile(r"\.((jsonl|ndjson|json)(\.gz|\.zst)?|(txt|csv|tsv)(\.gz)?|parquet)$")
# Names that a job can be given: no wildcards in braces, no bytes that are not UTF-8, nothing like an option.
NAMEABLE = re.compile("(?!-)[^{}\ud800-\udfff]+")


@dataclass(frozen=True)
class PublishedFile:
    """A file of a publisher: a hub repository `owner/name` and the path in it."""

    repo_type: Literal["dataset", "model", "ut1"]
    repository: str
    path: str

    @property
    def location(self) -> str:
        """The path below the root of a mirror."""
        return f"{self.repository}/{self.path}"

    @property
    def name(self) -> str:
        """The path without folders."""
        return Path(self.path).name


OSCAR = "oscar-corpus/OSCAR-2301"  # at the hub


def part_file(part: str) -> PublishedFile:
    """The file of a part: `en_meta_part_1` is `en_meta/en_meta_part_1.jsonl.zst`."""
    return PublishedFile("dataset", OSCAR, f"en_meta/{part}.jsonl.zst")


BLOCKLIST = PublishedFile("ut1", "ut1", "blacklists.tar.gz")
BLOCKLIST_CHECKSUMS = PublishedFile("ut1", "ut1", "MD5SUM.LST")
CORPUS_CHECKSUMS = PublishedFile("dataset", OSCAR, "en_meta/checksum.sha256")
HARMFUL_MODEL = PublishedFile("model", "oscar-corpus/harmful-kenlms", "en.arpa")  # of KenLM
VOCABULARY = PublishedFile("model", "google-bert/bert-base-uncased", "vocab.txt")


def name_of_text(path: str, sha256: str) -> str:
    """The name of a part that is a file of the user's own: its content and its kind."""
    suffix = Path(re.sub(r"\.(gz|zst)$", "", path)).suffix[1:]
    kind = "folder" if Path(path).is_dir() else re.sub(r"^(jsonl|ndjson)$", "json", suffix)
    return f"{sha256[:16]}-{kind}"


def located(name: str) -> str:
    """The path of a published file by its name in settings, which omit where the package is installed.

    It is relative, because Snakemake compares the inputs of a job, and a copy of the project runs nothing again.
    """
    return f"{os.path.relpath(DEMO)}{name.removeprefix(EMBEDDED)}" if name.startswith(EMBEDDED) else name


def file_of(name: str) -> File:
    """A published file by its name in settings. Its content counts, for another may take its place; but not that of an
    absent one, nor of a download, whose folder's key says what it is."""
    path = Path(located(name))
    return File(name, None if path.is_relative_to(RESULTS) or not path.exists() else known_sha256(path))


def verified(name: str) -> Path:
    """The path of a file or folder by its name in settings. IntegrityError when the list SHA256SUMS of a folder above,
    as of a mirror or the package, has another digest of it, or of a file in it."""
    path = Path(located(name))
    for file in filter(Path.is_file, path.rglob("*")) if path.is_dir() else [path]:
        if listed := listed_sha256(file):
            verify_sha256(file, listed, RESTORE)
    return path


def listed_sha256(path: Path) -> str | None:
    """The digest of a file in the list SHA256SUMS of a folder above it, the nearest first.

    None where there is no list and, with a line on stderr, where none names the file, unless it was downloaded and so
    verified. DataError names a line that is not understood.
    """
    lists = [folder / SUMS for folder in path.parents if (folder / SUMS).is_file()]
    for listing in lists:
        if digest := read_digests(listing, "sha256").get(os.path.normpath(path.relative_to(listing.parent))):
            return digest
    if lists and not path.is_relative_to(RESULTS):
        print(f"warning: {path}: not in {lists[0]}, so its content is not verified; add its line", file=sys.stderr)
    return None


@dataclass(frozen=True)
class Source:
    """The facts of a source."""

    corpus: str  # of a caption
    tasks: str  # of a caption
    training_text: str  # of a model card
    terms: str = (  # of that text, in a model card
        "OSCAR's packaging is CC0; its text comes from Common Crawl, whose terms of use apply, and remains its "
        "authors'."
    )
    annotations: Literal["published", "computed"] = "published"  # those of the corpus, unless the configuration says
    is_stand_in: bool = False  # its text and tasks have only the shape of the paper's
    language: str | None = "en"  # of that text; None: nobody has told
    datasets: tuple[str, ...] = ()  # of the hub, that the text is from


CUSTOM_TEXT, DATASET = "files", "dataset"
OF_USERS = (CUSTOM_TEXT, DATASET)  # the sources of text that users bring
SOURCES = {
    "embedded": Source(
        corpus="a stand-in corpus of refrains and documentation",
        tasks="stand-in tasks, not GLUE",
        training_text="a stand-in corpus of random words that recur and of the documentation of Python packages",
        terms="The documentation is part of the packages that it documents, under their licences.",
        is_stand_in=True,
    ),
    "mirror": Source(
        "OSCAR from a local mirror", "GLUE from a local mirror", "OSCAR parts of a local mirror", datasets=(OSCAR,)
    ),
    "hub": Source("OSCAR-2301 from its publisher", "GLUE from the hub", "OSCAR-2301", datasets=(OSCAR,)),
    CUSTOM_TEXT: Source(
        corpus="the user's own (source files)",
        tasks="",
        training_text="the user's own files",
        terms="The terms of those files are known to whoever gave them.",
        annotations="computed",
        language=None,
    ),
    DATASET: Source(
        corpus="a dataset (corpus.dataset)",
        tasks="",
        training_text="a dataset of the user's choice",
        terms="The terms of that dataset stand on its card.",
        annotations="computed",
        language=None,
    ),
}


def first_parts(count: int) -> list[str]:
    """Names of OSCAR's first parts, in the order in which documents are taken from them."""
    return [f"en_meta_part_{number}" for number in range(1, count + 1)]


def check_address(key: str, url: str, schemes: Sequence[str] = ("https", "http")) -> SplitResult:
    """The parts of a server's address, which a key or variable has; ConfigError where it is none."""
    try:
        parts = urlsplit(url)
        has_blank = url != url.strip() or re.search(r"\s", parts.netloc)
        if parts.scheme in schemes and parts.hostname and parts.port != 0 and not has_blank:
            return parts
    except ValueError:  # of a port, or a bracket
        pass
    known = ", ".join(schemes)
    raise ConfigError(f"{key}: is no address of a server ({known}); write it as {schemes[0]}://HOST:PORT")


def endpoint() -> str:
    """The hub's address."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").strip().rstrip("/")


def check_hub_variables() -> None:
    """ConfigError for an environment variable with which neither huggingface_hub nor transformers can be imported."""
    check_address("HF_ENDPOINT", endpoint())
    for name in ("HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT"):
        if not os.environ.get(name, "0").strip().isdecimal():
            raise ConfigError(f"{name}: is no whole number of seconds; correct or unset it")


def check_blocklist_url(url: str) -> None:
    """ConfigError unless it is the address of a server that nobody between can answer for."""
    parts = check_address("corpus.blocklist_url", url)
    if parts.scheme != "https" and parts.hostname not in LOCAL_HOSTS:
        raise ConfigError(f"corpus.blocklist_url: {url!r} is not https; the list decides what is trained on")


def texts_matching(files: str | None) -> list[str]:
    """The files of the user's own that `corpus.files` matches; ConfigError names one that cannot be read."""
    if files is None:
        raise ConfigError("config: 'corpus.source' is files, but 'corpus.files' names none; add a pattern of them")
    pattern = str(Path(files).expanduser())
    folder = Path(*takewhile(lambda name: not glob.has_magic(name), Path(pattern).parts[:-1]))
    check_directory("corpus.files", str(folder), f"your text, or correct {pattern}")
    literal = glob.escape(pattern) if os.path.lexists(pattern) else pattern  # a name may have brackets
    matched = set(map(Path, glob.glob(literal, recursive=True)))  # noqa: PTH207 (Path.glob takes no absolute pattern)
    matched = {path for path in matched if path.name != SUMS}
    notes = ("state.json", "dataset_dict.json")  # that `save_to_disk` of the datasets library leaves in a folder
    datasets = {path for path in matched if any((path / note).is_file() for note in notes)}
    paths = sorted(path for path in matched if path in datasets or not path.is_dir())
    paths = [path for path in paths if datasets.isdisjoint(path.parents)]
    passed = {folder for path in paths for folder in path.parents}
    for path in sorted(matched - datasets - passed):  # such as x.parquet, which Spark wrote
        kind = TEXT_FILE.search(path.name)
        if path.is_dir() and (kind or str(path) == pattern):
            example = f"{path}/*{kind[0] if kind else '.txt'}"
            raise MissingInputError(f"config: 'corpus.files': {path} is a folder; name its files, as {example}")
    if not paths:
        raise MissingInputError(f"config: 'corpus.files': no file matches {pattern}; correct it")
    readable = datasets | {path for path in paths if TEXT_FILE.search(path.name) and path.is_file()}
    kinds = ".jsonl, .ndjson, .json (also .gz or .zst), .txt, .csv, .tsv (also .gz), .parquet"
    alone = f"name {kinds} or folders of datasets.save_to_disk alone"
    faults = (
        (
            "have names with braces, with - at the beginning, or that are not UTF-8",
            lambda path: not NAMEABLE.fullmatch(str(path)),
            "rename them",
        ),
        ("are links to absent files", lambda path: not path.exists(), "get those, as with: git annex get"),
        (f"that match {pattern} cannot be read", lambda path: path not in readable, alone),
    )
    for fact, is_so, remedy in faults:
        if wrong := list(filter(is_so, paths)):
            of = f"{len(wrong)} of {len(paths)} files"
            raise ConfigError(f"config: 'corpus.files': {of} {fact}, as {wrong[0]}; {remedy}")
    return list(map(str, paths))


def is_stand_in(source: str | None) -> bool:
    """Whether a source has only the shape of the paper's text or tasks."""
    return source in SOURCES and SOURCES[source].is_stand_in


def check_directory(key: str, directory: str | None, content: str) -> None:
    """Refuse a key that names no directory, or one that does not exist or may not be read."""
    if directory is None:
        raise ConfigError(f"config: '{key}' names no directory; give the one with {content}")
    check_name(key, directory)
    try:
        os.scandir(directory).close()
    except OSError as error:
        raise MissingInputError(
            f"config: '{key}': {directory}: {error.strerror}; give the one with {content}"
        ) from None


def check_name(key: str, path: str) -> None:
    """ConfigError for the name of a file or folder that no job can be given."""
    if not NAMEABLE.fullmatch(path):
        raise ConfigError(f"config: '{key}': {path}: has braces or - at the beginning, or is not UTF-8; rename it")
