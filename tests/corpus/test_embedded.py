import errno
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from unittest.mock import ANY

import pyarrow.parquet as pq
import pytest

from corpus.oscar import refuse
from symbert.corpus.annotation import harmful_perplexity, quality_warnings
from symbert.corpus.blocklist import build_blocklist
from symbert.corpus.document import documents
from symbert.corpus.documentation import DOCUMENTATION
from symbert.corpus.embedded import write_embedded_corpus
from symbert.corpus.parts import filter_part
from symbert.files import read_json
from symbert.filters import REASONS
from symbert.sources import (
    CORPUS_CHECKSUMS,
    HARMFUL_MODEL,
    download_blocklist,
    download_part,
    part_file,
    resolve_corpus,
)

SMALL = ("networkx", "snakemake")


@pytest.fixture(scope="module")
def brief(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "embedded.json"
    path.write_text('{"parts": 2, "vocabulary_size": 500}')
    return path


@pytest.fixture(scope="module")
def root(tmp_path_factory, brief) -> Path:
    """An embedded corpus of two packages."""
    folder = tmp_path_factory.mktemp("embedded")
    pq.write_table(pq.read_table(DOCUMENTATION, filters=[("package", "in", SMALL)]), folder / "documentation.parquet")
    write_embedded_corpus(brief, folder, folder / "documentation.parquet")
    return folder


def files_below(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_what_cannot_be_removed_any_more_does_not_stay_among_the_stand_ins(root, brief, tmp_path, monkeypatch):
    """A folder below them stayed where the disk became read-only before its end."""
    read_only = OSError(errno.EROFS, os.strerror(errno.EROFS))
    monkeypatch.setattr("symbert.corpus.embedded.build_blocklist", lambda *_: refuse(read_only))
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    with pytest.raises(OSError, match="Read-only"):
        write_embedded_corpus(brief, tmp_path, root / "documentation.parquet")
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


def test_another_process_writes_the_same_bytes(root, brief, tmp_path):
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-m", "symbert", "write-embedded-corpus", "--settings", brief]
    command += ["--documentation", root / "documentation.parquet", "--root", tmp_path / "other"]
    subprocess.run(command, env=environment, check=True)
    assert files_below(tmp_path / "other") | {"documentation.parquet": ANY} == files_below(root)


def test_every_filter_is_seen_to_act_and_most_text_is_kept(root, tmp_path, write_section):
    source = write_section("corpus_source", root=str(root))
    rules = write_section("filter")
    resolve_corpus(source, [CORPUS_CHECKSUMS.repository], tmp_path / "sources.json")
    blocklist = write_section("blocklist_source", root=str(root))
    download_blocklist(blocklist, tmp_path / "archive", tmp_path / "record.json")
    build_blocklist(tmp_path / "archive", tmp_path / "trie", tmp_path / "summary.json")
    total = Counter()
    for part in ("en_meta_part_1", "en_meta_part_2"):
        raw = tmp_path / f"{part}.jsonl.zst"
        download_part(source, tmp_path / "sources.json", part, raw)
        filter_part(raw, part, rules, tmp_path / "kept", tmp_path / "counts.json", tmp_path / "trie")
        counts = read_json(tmp_path / "counts.json")
        total.update(counts["dropped"])
        total.update({f"characters {key}": counts["characters"][key] for key in ("read", "kept")})
    assert {reason: total[reason] for reason in REASONS[:5]} == dict(zip(REASONS, [22, 22, 22, 6, 6], strict=False))
    assert total["quality_warning"] > 50
    assert total["characters kept"] > 0.6 * total["characters read"], "the examples weigh much in so small a corpus"


def test_annotations_are_those_of_our_own_rules(root):
    perplexity = harmful_perplexity(root / HARMFUL_MODEL.location)
    pages = [document for _, document in documents(root / part_file("en_meta_part_1").location, "published", refuse)]
    for document in pages:
        assert (document.metadata.quality_warnings or []) == quality_warnings(document.content)
        assert document.metadata.harmful_pp in (None, perplexity(document.content))
    assert len({document.record_id for document in pages}) == len(pages)
