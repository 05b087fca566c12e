"""Files that are either complete or absent: atomic publishing, checksums, one writer per directory."""

import codecs
import fcntl
import glob
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, TypedDict, TypeVar, Union

import msgspec

from symbert.declared import mistake_in
from symbert.errors import DataError, InputOutputError, IntegrityError, MissingInputError, SymbertError

Shape = Any  # of a JSON value: see `check_shape`
Struct = TypeVar("Struct", bound=msgspec.Struct)

MEGABYTE = 10**6  # bytes
OS_ERROR = re.compile(r"\(os error (\d+)\)")  # as Rust writes it
TEMPORARY = re.compile(r"\..+\.([0-9a-f]{8})-(\d{1,9})-[0-9a-f]{8}\.tmp")  # of `publish`: the machine, the process
ABANDONED = 86_400  # seconds without a write, after which a temporary file of another machine is a leftover


@contextmanager
def publish(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; the file there replaces `path` when the block succeeds.

    The data and then the directory entry are synchronised to disk, so a crash leaves the old file or the new one, never
    a part. A block that fails leaves nothing behind; the next writer removes the temporary file of a killed process.
    Two writers, also of one process or in two containers, have a temporary file each.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            for file in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
                if is_leftover(file):
                    file.unlink(missing_ok=True)
            yield temporary
            synchronise(temporary)
            os.replace(temporary, path)
            for files in _PUBLISHED:
                files.append(path)
            synchronise(path.parent)
    except BaseException:
        with suppress(OSError):  # the first failure is the one to report
            temporary.unlink()
        raise


_PUBLISHED: list[list[Path]] = []  # by each `together` that is at work


@contextmanager
def together() -> Iterator[None]:
    """Files that are published in the block are removed when it fails: none is of use without the others.

    It decorates commands that publish several files and do not resume.
    """
    files: list[Path] = []
    _PUBLISHED.append(files)
    try:
        yield
    except BaseException:
        for file in files:
            with suppress(OSError):  # the first failure is the one to report
                file.unlink()
        raise
    finally:
        _PUBLISHED[:] = [other for other in _PUBLISHED if other is not files]


def is_leftover(file: Path) -> bool:
    """Whether a file is a temporary one of `publish` that nobody writes any more: its process has ended on this
    machine, or it is another machine's or container's, and has not changed for a day."""
    if not (named := TEMPORARY.fullmatch(file.name)):
        return False
    if named[1] == _machine() and Path("/proc/self").exists():
        return not Path("/proc", named[2]).exists()
    with suppress(FileNotFoundError):
        return time.time() - file.stat().st_mtime > ABANDONED
    return False


@cache
def _machine() -> str:
    """8 hexadecimal digits for the running system, in which a number means one process: containers count their own."""
    place = platform.node()
    with suppress(OSError):
        place += Path("/proc/sys/kernel/random/boot_id").read_text() + str(Path("/proc/self/ns/pid").readlink())
    return hashlib.sha256(place.encode()).hexdigest()[:8]


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name `path` in errors of the system that name no file, as those of libraries."""
    try:
        yield
    except OSError as error:
        if error.errno and error.filename is None and not isinstance(error, ConnectionError | BlockingIOError):
            error.filename = str(path)
        raise
    except Exception as error:
        if not isinstance(error, SymbertError) and (number := OS_ERROR.search(str(error))):
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error
        raise


@contextmanager
def reading(path: Path, absent: str = "") -> Iterator[None]:
    """Name `path` as `writing` does; MissingInputError where there is no such file, with the remedy `absent`."""
    try:
        with writing(path):
            yield
    except FileNotFoundError as error:
        if str(error.filename) != str(path):
            raise
        raise MissingInputError(f"{path}: file not found{absent and f'; {absent}'}") from None


def free_space(path: Path) -> tuple[int, Path]:
    """Bytes free for `path`, which need not exist yet, and the mount point of its file system."""
    place = Path(os.path.realpath(path))
    existing = next(folder for folder in (place, *place.parents) if folder.is_dir())
    mount = next(folder for folder in (existing, *existing.parents) if folder.is_mount())
    return shutil.disk_usage(existing).free, mount


def synchronise(path: Path) -> None:
    """Make a file's content, or a directory's entries, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Publish `text` as UTF-8."""
    with publish(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Publish `value`, which may hold Structs, as indented JSON; NaN and infinities are refused with ValueError."""
    plain = msgspec.to_builtins(value)
    write_text(path, json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path, shape: Shape = None, remedy: str = "delete it and run again") -> Any:
    """The value in a JSON file, of a shape as `check_shape` takes it; MissingInputError or DataError name the file."""
    with reading(path, absent="run the rule that makes it"):
        content = Path(path).read_bytes()
    return _parsed(content, shape, str(path), remedy)


def read_struct(path: Path, kind: type[Struct], remedy: str = "delete it and run again") -> Struct:
    """The Struct that a JSON file holds; MissingInputError or DataError name the file."""
    return msgspec.convert(read_json(path, kind, remedy), kind)


def read_json_or_empty(path: Path) -> dict[str, Any]:
    """The object in a JSON file; an empty one where the file is absent or holds anything else."""
    try:
        return read_json(path, dict)
    except (SymbertError, OSError):
        return {}


def read_json_lines(path: Path, remedy: str) -> Iterator[dict[str, Any]]:
    """The objects in a file of JSON lines; MissingInputError or DataError name the file and the line."""
    with reading(path), open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            yield _parsed(line, dict, f"{path}:{number}", remedy)


def _parsed(content: bytes, shape: Shape, place: str, remedy: str) -> Any:
    try:
        value = msgspec.json.decode(content.removeprefix(codecs.BOM_UTF8))  # which refuses NaN
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not JSON ({error}); {remedy}") from None
    check_shape(value, shape, place, remedy)
    return value


def check_shape(value: Any, shape: Shape, place: str | Path, remedy: str) -> None:
    """DataError where a JSON value lacks a key or has a value of a wrong type.

    A shape is a type, or several in a tuple; {"step": shape} stands for an object with at least this key, {str: shape}
    for an object with any keys, [shape] for a list, None for anything.
    """
    try:
        msgspec.convert(value, _type_of(shape))
    except msgspec.ValidationError as error:
        raise DataError(f"{place}: {mistake_in(error, remedy=remedy)}") from None


def _type_of(shape: Shape) -> Any:
    if isinstance(shape, dict) and str in shape:
        return dict[str, _type_of(shape[str])]
    if isinstance(shape, dict):
        return TypedDict("Object", {key: _type_of(item) for key, item in shape.items()})
    if isinstance(shape, list | tuple):
        items = tuple(map(_type_of, shape))
        return list[items[0]] if isinstance(shape, list) else Union[items]  # noqa: UP007 (of a tuple)
    return Any if shape is None else shape


def hash_of(*values: Any) -> str:
    """16 hexadecimal digits that identify JSON values, whatever the key order."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def copy_file(origin: Path, destination: Path) -> None:
    """Publish a copy of `origin`."""
    with publish(destination) as temporary:
        shutil.copyfile(origin, temporary)


def sha256_of(path: Path, absent: str = "") -> str:
    """Hexadecimal SHA-256 of a file's content; of a folder, that of a list of its files as sha256sum prints it.

    MissingInputError with the remedy `absent` where there is none.
    """
    with reading(path, absent):
        if Path(path).is_dir():
            files = sorted(file for file in Path(path).rglob("*") if file.is_file())
            listed = "".join(f"{sha256_of(file)}  {file.relative_to(path)}\n" for file in files)
            return hashlib.sha256(os.fsencode(listed)).hexdigest()
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def verify_sha256(path: Path, expected: str, remedy: str) -> str:
    """The SHA-256 of a file; MissingInputError or IntegrityError, which name it and the remedy, unless it is the
    expected."""
    digest = sha256_of(path, absent=remedy)
    if digest != expected:
        raise IntegrityError(f"{path}: sha256 expected {expected}, found {digest}; {remedy}")
    return digest


@contextmanager
def single_writer(directory: Path) -> Iterator[None]:
    """Hold the directory's lock; InputOutputError, naming its holder, when another process has it.

    The lock belongs to the process, so it is released however the process ends. The file `lock` says who had it
    last: host, process and, under Slurm, the job.
    """
    path = directory / "lock"
    with writing(path):
        directory.mkdir(parents=True, exist_ok=True)
        try:
            file = _locked(path)
        except BlockingIOError:
            holder = holder_of(read_json_or_empty(path))
            raise InputOutputError(f"{directory}: in use by {holder}; wait for it or stop it") from None
    with file:
        with writing(path):
            lease = {"host": platform.node(), "process": os.getpid(), "slurm_job": os.environ.get("SLURM_JOB_ID")}
            file.truncate(0)
            file.write(json.dumps(lease).encode() + b"\n")
        yield


def _locked(path: Path) -> IO[bytes]:
    """A file, open and locked; opened again where its holder removed it meanwhile, as that lock keeps nobody out."""
    while True:
        file = open(path, "ab", buffering=0)  # noqa: SIM115 (returned)
        try:
            _lock(file)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
        except BaseException:
            file.close()
            raise
        file.close()


def _lock(file: IO[bytes]) -> None:
    """Lock a file; tried twice, as `holder` may have it for an instant."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(0.2)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def holder_of(lease: dict[str, Any]) -> str:
    """Who holds a lock, by the content of its file, in words."""
    job = f", Slurm job {lease['slurm_job']}" if lease.get("slurm_job") else ""
    return f"process {lease.get('process')} on {lease.get('host')}{job}"


def holder(directory: Path) -> str | None:
    """Who holds a directory's lock; None where nobody does."""
    with suppress(FileNotFoundError), open(directory / "lock", "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return holder_of(read_json_or_empty(directory / "lock"))
    return None


KNOWN = Path("results/digests.json")  # of the user's large files, by path
LARGE = 100 * MEGABYTE  # whose digest is kept


def known_sha256(path: str | Path) -> str:
    """The SHA-256 of a file, or of all files of a folder; a large one is read once for each size and change time."""
    file = Path(path)
    below = (Path(folder, name) for folder, _, names in os.walk(file, followlinks=True) for name in names)
    files = sorted(filter(Path.is_file, below)) if file.is_dir() else [file]
    with reading(file, absent="correct its path in the configuration"):
        states = [[str(part), part.stat().st_size, part.stat().st_mtime_ns] for part in files]
    size, known = sum(state[1] for state in states), read_json_or_empty(KNOWN)
    entry = known.get(str(file.resolve()), {})
    if entry.get("states") == states:
        return entry["sha256"]
    if size > LARGE:
        print(f"symbert: reads {file} once for its SHA-256 ({size / MEGABYTE:,.0f} MB)", file=sys.stderr)
    digests = list(map(sha256_of, files))
    digest = digests[0] if file.is_file() else hashlib.sha256("".join(digests).encode()).hexdigest()
    if size > LARGE:
        with suppress(OSError, UnicodeEncodeError):  # a folder that cannot be written to, a name that is not UTF-8
            write_json(KNOWN, {**known, str(file.resolve()): {"states": states, "sha256": digest}})
    return digest
