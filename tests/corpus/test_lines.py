import bz2
import gzip
import io
import lzma
import tarfile

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from symbert.corpus.lines import LONGEST_LINE, NOT_UTF_8, TOO_LONG, read_lines
from symbert.errors import DataError


def test_all_frames_are_read_wherever_they_are_cut(tmp_path):
    raw = b"".join(b"line %d\n" % number for number in range(20))
    path = tmp_path / "part.jsonl.zst"
    for cut in range(0, len(raw), 7):
        path.write_bytes(zstandard.compress(raw[:cut]) + zstandard.compress(raw[cut:-1]))
        assert list(read_lines(path)) == raw[:-1].splitlines(keepends=True)


@pytest.mark.parametrize("pack", [zstandard.compress, gzip.compress])
def test_every_truncation_and_damaged_first_bytes_are_errors_that_name_the_file(tmp_path, pack):
    path = tmp_path / "part.jsonl.zst"
    whole = pack(b"".join(b"text %d " % number * 50 + b"\n" for number in range(40)))
    number = int.from_bytes(pack(b'{"text": "a"}\n' * 9), "little")
    flipped = [(number ^ 1 << bit).to_bytes(999, "little").rstrip(b"\0") for bit in range(16)]
    for content in [*(whole[:size] for size in range(len(whole))), *flipped]:
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"part\.jsonl\.zst"):
            list(read_lines(path))


SKIPPED = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"size"  # a frame of no content, as pzstd begins with


def test_a_file_is_compressed_by_its_content_and_not_by_its_name(tmp_path):
    raw = b'{"text": "a"}\n{}\n'
    for name in ("part.jsonl", "part.json.gz"):
        for content in (raw, gzip.compress(raw), zstandard.compress(raw), SKIPPED + zstandard.compress(raw)):
            (tmp_path / name).write_bytes(content)
            assert list(read_lines(tmp_path / name)) == raw.splitlines(keepends=True)


def test_a_flipped_bit_of_a_gzip_file_is_found_or_changes_nothing(tmp_path):
    raw = b"".join(b"%d\n" % (number * 7919 % 1009) for number in range(500))
    whole = bytearray(gzip.compress(raw, mtime=0))
    harmless = 0  # bits that deflate does not use
    path = tmp_path / "part.jsonl.gz"
    for position in range(10, len(whole), 3):
        path.write_bytes(bytes([*whole[:position], whole[position] ^ 16, *whole[position + 1 :]]))
        try:
            assert b"".join(read_lines(path)) == raw
            harmless += 1
        except DataError as error:
            assert "part.jsonl.gz" in str(error)
    assert harmless < len(whole) / 50


def test_a_frame_that_asks_for_too_much_memory_is_refused(tmp_path):
    parameters = zstandard.ZstdCompressionParameters(window_log=28, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path = tmp_path / "part.jsonl.zst"
    path.write_bytes(compressor.compress(b"{}\n") + compressor.flush())
    with pytest.raises(DataError, match=r"part\.jsonl\.zst: .*128 MiB.*--long=31") as refusal:
        list(read_lines(path))
    assert "damaged" not in str(refusal.value), "the file is whole: another copy of it is refused, too"


def test_a_frame_that_needs_a_dictionary_is_not_called_damaged(tmp_path):
    """The remedy was another copy of the file, which is refused, too."""
    dictionary = zstandard.train_dictionary(1 << 10, [b'{"text": "%d tides"}\n' % number for number in range(999)])
    path = tmp_path / "part.jsonl.zst"
    path.write_bytes(zstandard.ZstdCompressor(dict_data=dictionary).compress(b'{"text": "7 tides"}\n'))
    with pytest.raises(DataError, match=r"part\.jsonl\.zst: .*dictionary.* -D ") as refusal:
        list(read_lines(path))
    assert "damaged" not in str(refusal.value)


def test_a_line_too_long_for_memory_is_named_and_the_next_ones_are_read(tmp_path):
    path = tmp_path / "part.jsonl.zst"
    long = b" " * LONGEST_LINE
    path.write_bytes(zstandard.compress(b"first\n" + long[1:] + b"\n" + long + b"\nfourth\n" + 2 * long))
    read = list(read_lines(path))
    assert (len(read), len(read[1])) == (5, LONGEST_LINE)
    assert read[:1] + read[2:] == [b"first\n", TOO_LONG, b"fourth\n", TOO_LONG]


any_text = st.text("aé€\U0001f600\n\r\x1c\u0085\u2028")
torn = st.sampled_from([b"\xff", b"\xe2\x82", b"\xc3", b"\x80"])


@settings(max_examples=200)
@given(st.lists(any_text | torn | st.binary()))
@example([b"\xed\xa0\x80\n\xc0\x80\n\xf4\x90\x80\x80\n\xf4\x8f\xbf\xbf"])  # surrogate, overlong, beyond Unicode
def test_just_the_lines_that_are_not_utf_8_are_named(tmp_path_factory, pieces):
    raw = b"line\n" + b"".join(piece if isinstance(piece, bytes) else piece.encode() for piece in pieces)
    path = tmp_path_factory.mktemp("part") / "part.jsonl.zst"
    path.write_bytes(zstandard.compress(raw))
    expected = []
    for line in io.BytesIO(raw):
        try:
            line.decode()
            expected.append(line)
        except UnicodeDecodeError:
            expected.append(NOT_UTF_8)
    assert list(read_lines(path)) == expected


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9\n"
PARTS = "\n\n".join(f"Document {number}: текст и слово" for number in range(40))
OTHERS = {  # contents of a text file, and what is named
    **{"Git LFS": POINTER, "git-annex": b"/annex/objects/SHA256E-s9--0.txt\n", "zip": b"PK\x03\x04\x14\0\0\0"},
    **{"Parquet": b"PAR1\x15\x04", "PDF": b"%PDF-1.7\n", "RTF": b"{\\rtf1\\ansi ", "xz": lzma.compress(b"a")},
    **{
        "bzip2": bz2.compress(b"a text"),
        "gzip": gzip.compress(gzip.compress(b"a text")),
        "HTML": b"\xef\xbb\xbf\r\n<!DOCTYPE html>\n<html><body>Log in</body></html>\n",
        "HTML as it is": b"<HTML>\n",
        "HTML as XML": b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN">\n',
        "CR alone": b"a\r\rb\r",
        "CR alone as most": b"a\r\rb\n",
    },
    **{f"without a mark as {end}": PARTS.encode(f"utf-{end}") for end in ("16-le", "16-be", "32-le")},
    **{"UTF-16": PARTS.encode("utf-16"), "UTF-32": PARTS.encode("utf-32"), "CR alone as many": b"a\r\rb" * 9999},
}


def test_a_file_that_is_not_what_its_name_says_is_refused_with_what_it_is(tmp_path):
    """A pointer was called neither gzip nor zstd, a tar archive and UTF-16 without a mark were read as text."""
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"))
    others = {**OTHERS, "tar": (tmp_path / "a.tar.gz").read_bytes()}
    for named, content in others.items():
        for name in ("a.txt", "a.jsonl.gz"):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(DataError, match=f"{name}: .*{named.split(' as ')[0]}") as refusal:
                list(read_lines(tmp_path / name))
            assert "\n" not in str(refusal.value)
            (tmp_path / name).write_bytes(zstandard.compress(content))
            with pytest.raises(DataError, match=f"{name}: "):
                list(read_lines(tmp_path / name))


@pytest.mark.parametrize(
    "raw",
    [
        b"a\0b\n",
        b"a\r\nb\rc\n",
        b"\xef\xbb\xbfa\n",
        b"PK and PDF\n",
        b"<htmlish>\n",
        b"a\n\r\r",
        b"a\r\r\n",
        b"\n",
        b"",
        b"a" * 5000 + b"\r\n",
    ],
)
def test_odd_text_is_no_other_kind(tmp_path, raw):
    (tmp_path / "a.txt").write_bytes(raw)
    assert b"".join(read_lines(tmp_path / "a.txt")) == raw
