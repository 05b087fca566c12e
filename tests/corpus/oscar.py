"""Files in the publishers' formats, for tests of the corpus stage."""

import io
import json
import tarfile
from functools import cache
from itertools import islice
from pathlib import Path

import zstandard
from msgspec.structs import replace

from symbert.configuration import FilterSettings, filter_of
from symbert.corpus.document import Document, documents
from symbert.corpus.parts import PrepareParts, prepare_part
from symbert.experiment.project import PROJECT, read_config
from symbert.files import read_json, write_json
from symbert.sources import part_file
from symbert.steps import File, Step


def record(content="Some text.", url="https://good.example/page", number=1, **metadata) -> dict:
    """An OSCAR-2301 document that passes every filter, with changes to its metadata."""
    annotation = {"harmful_pp": 500.0, "quality_warnings": None, "categories": None}
    return {
        "content": content,
        "warc_headers": {"warc-target-uri": url, "warc-record-id": f"<urn:uuid:{number}>"},
        "metadata": {**annotation, **metadata},
    }


def refuse(error: Exception) -> None:
    """What to do with a bad line where there should be none."""
    raise error


def write_part(path: Path, lines: list) -> Path:
    """A part of one zstd frame; a line is a record, or bytes to be written as they are."""
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(zstandard.compress(b"".join(line + b"\n" for line in raw)))
    return path


def write_archive(path: Path, members: dict[str, str | tarfile.TarInfo]) -> Path:
    """A UT1 archive: member name to its text, or to a ready member (a link, a device)."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name) if isinstance(content, str) else content
            data = content.encode() if isinstance(content, str) else b""
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    """A link as an archive member."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@cache
def papers_filter() -> FilterSettings:
    """The paper's choice of documents, with OSCAR's annotations."""
    return replace(filter_of(read_config(PROJECT)), annotations="published")


def plan(folder: Path, step: Step) -> Path:
    """settings.json of a step in a folder beside `folder`, with its key, to which `folder` is a link then."""
    keyed = folder.with_name(f"{folder.name}-{step.key}")
    write_json(keyed / "settings.json", step)
    folder.unlink(missing_ok=True)
    folder.symlink_to(keyed.name)
    return folder


def step_of_parts(vocabulary: Path, split_by_content: bool = False, **changes) -> PrepareParts:
    """The step of parts, with the files that filters need and changes to the paper's filter."""
    files = {name: changes.pop(name) for name in ("checksums", "harmful_model", "blocklist") if name in changes}
    files = {name: File(str(file)) if isinstance(file, Path) else file for name, file in files.items()}
    chosen = replace(papers_filter(), **changes)
    return PrepareParts(vocabulary=File(str(vocabulary)), filter=chosen, split_by_content=split_by_content, **files)


def write_settings(folder: Path, vocabulary: Path, **settings) -> Path:
    """Plans the parts of a folder."""
    return plan(folder, step_of_parts(vocabulary, **settings))


def prepare_texts(folder: Path, name: str, texts: list[str], vocabulary: Path, **settings) -> dict:
    """Prepares a part of texts of one's own, no filter, a blank line before each; what is recorded of it."""
    write_settings(folder, vocabulary, rules=[], annotations="computed", **settings)
    lines = [json.dumps({"text": text, "id": f"<urn:uuid:{number}>"}) for number, text in enumerate(texts)]
    part = folder.with_name(f"{folder.name}-{name}.jsonl")
    part.write_text("".join(f"\n{line}\n" for line in lines))
    prepare_part(part, folder / f"{name}.npy")
    return read_json(folder / f"{name}.json")


@cache
def mirrored_documents(mirror: Path, count: int = 1500) -> list[Document]:
    """Real documents of the mirror: part 7, which has several frames cut within lines."""
    part = mirror / part_file("en_meta_part_7").location
    return [document for _, document in islice(documents(part, "published", refuse), count)]
