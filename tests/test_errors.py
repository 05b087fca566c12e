"""What the system refuses ends with the exit code and the remedy that are promised, never as a bug."""

import errno
import os

import pytest

from symbert.errors import SymbertError, explain, system_error
from symbert.files import reading, writing

DISK = "check the disk or network file system and run again"
WRITTEN = [
    (errno.EACCES, 73, "Permission denied; make the directory writable or choose another"),
    (errno.EPERM, 73, "Operation not permitted; make the directory writable or choose another"),
    (errno.EROFS, 73, "Read-only file system; make the directory writable or choose another"),
    (errno.ENOTDIR, 73, "Not a directory; choose another place for it"),
    (errno.ENAMETOOLONG, 73, "File name too long; choose another place for it"),
    (errno.ENOSPC, 74, "No space left on device; free space and run again"),
    (errno.EDQUOT, 74, "Disk quota exceeded; free space and run again"),
    (errno.EIO, 74, f"Input/output error while it was written; {DISK}"),
    (errno.ESTALE, 74, f"Stale file handle while it was written; {DISK}"),
]
READ = [
    (errno.ENOENT, 66, "file not found"),
    (errno.EACCES, 66, "Permission denied; make it readable"),
    (errno.ENOTDIR, 66, "Not a directory; correct the path"),
    (errno.EISDIR, 66, "Is a directory; correct the path"),
    (errno.ENAMETOOLONG, 66, "File name too long; correct the path"),
    (errno.ELOOP, 66, "Too many levels of symbolic links; correct the path"),
    (errno.EIO, 74, f"Input/output error while it was read; {DISK}"),
    (errno.ESTALE, 74, f"Stale file handle while it was read; {DISK}"),
    (errno.EREMOTEIO, 74, f"Remote I/O error while it was read; {DISK}"),
]


@pytest.mark.parametrize(("number", "code", "said"), WRITTEN)
def test_what_cannot_be_written_is_no_bug(number, code, said):
    failure = system_error(OSError(number, "words of a library"), "out.json", written=True)
    assert explain(failure) == (code, f"out.json: {said}")


@pytest.mark.parametrize(("number", "code", "said"), READ)
def test_what_cannot_be_read_is_no_bug_and_no_matter_of_a_directory_that_is_written_to(number, code, said, tmp_path):
    file = tmp_path / "part.jsonl"
    file.touch()
    told = code, f"{file}: {said}"
    assert explain(OSError(number, os.strerror(number), str(file))) == told
    assert explain(system_error(OSError(number, os.strerror(number)), file, written=False)) == told


def test_an_error_of_a_library_that_names_no_file_does_not_name_none():
    assert explain(OSError(errno.EIO, "Input/output error")) == (
        74,
        f"a file: Input/output error while it was read; {DISK}",
    )
    pyarrow_says = "Failed to open local file '/x/a.parquet'. Detail: [errno 13] Permission denied"
    assert explain(OSError(errno.EACCES, pyarrow_says)) == (
        66,
        f"a file ({pyarrow_says}): Permission denied; make it readable",
    )


def test_words_of_a_library_that_are_no_error_of_the_system_are_a_bug():
    assert explain(OSError("cannot load the config"))[0] == 70


RESOURCES = [
    (errno.ENOMEM, 71, "Cannot allocate memory; run where there is more memory"),
    (errno.EMFILE, 74, "Too many open files; raise the limit (ulimit -n) and run again"),
    (errno.ENFILE, 74, "Too many open files in system; raise the limit (ulimit -n) and run again"),
]


@pytest.mark.parametrize(("number", "code", "said"), RESOURCES)
def test_not_everything_that_the_system_refuses_is_a_failing_disk(number, code, said, tmp_path):
    """A machine without memory was told to check its disk."""
    assert explain(OSError(number, os.strerror(number), "part.jsonl")) == (code, f"part.jsonl: {said}")
    for context in (reading, writing):
        with pytest.raises(SymbertError) as told, context(tmp_path / "part.jsonl"):
            raise OSError(number, os.strerror(number))
        assert explain(told.value) == (code, f"{tmp_path / 'part.jsonl'}: {said}")


@pytest.mark.parametrize("number", [errno.ECONNRESET, errno.EEXIST, errno.EINVAL])
def test_what_has_no_known_remedy_is_given_none(number, tmp_path):
    """A file that is there already was to have its path corrected, a lost connection its disk checked."""
    refused = OSError(number, os.strerror(number))
    internal = f"internal error: {type(refused).__name__}: {refused} (run with --debug for the traceback)"
    assert explain(refused) == (70, internal)
    with pytest.raises(OSError, match=os.strerror(number)) as raised, reading(tmp_path / "part.jsonl"):
        raise refused
    assert raised.value is refused and refused.__cause__ is None
