"""The benchmark's input, in `input` below a folder: two parts, a UT1 archive, URLs, a vocabulary, settings."""

import argparse
import hashlib
import io
import random
import shutil
import tarfile
from pathlib import Path

import msgspec
import yaml
import zstandard

from benchmarks.web import LISTED_SUFFIXES, Web, domains, frequent_words
from symbert.configuration import filter_of
from symbert.corpus.digests import digest_of
from symbert.corpus.texts import documentation
from symbert.corpus.wordpiece import write_vocabulary
from symbert.files import read_json, write_json

ROOT = Path(__file__).parents[1]

URLS = 200_000
LISTED_URLS = 0.1  # share of them that the blocklist has
VOCABULARY_SIZE = 30522
VOCABULARY_TEXTS = 5_000  # documents that the vocabulary is made of
VALIDATION_SEQUENCES = 50


def build(folder: Path, megabytes: float, large: float, listed: int, vocabulary: Path | None) -> None:
    """Write `input`, or only settings when the folder has it, made by the same code from the same arguments.

    A part has `megabytes` (10^6 bytes) of text, another `large` times as much, the blocklist `listed` domains;
    without a `vocabulary` one is made from the text.
    """
    recipe = {
        "megabytes": megabytes,
        "large": large,
        "listed": listed,
        "vocabulary": _sha256([vocabulary] if vocabulary else []),
        "code": _sha256(sorted(Path(__file__).with_name(name) for name in ("inputs.py", "web.py"))),
    }
    given = folder / "input"
    if (given / "recipe.json").is_file() and read_json(given / "recipe.json") == recipe:
        write_settings(folder)  # defaults.yaml may have changed
        return
    shutil.rmtree(given, ignore_errors=True)
    given.mkdir(parents=True)
    paragraphs = documentation().splitlines()
    names = list(domains(frequent_words(paragraphs), LISTED_SUFFIXES, listed, seed=0))
    write_archive(given / "blacklists.tar.gz", names)
    write_part(given / "part.jsonl.zst", Web(paragraphs, names[:2000], seed=1), megabytes)
    write_part(given / "large.jsonl.zst", Web(paragraphs, names[:2000], seed=2), large * megabytes)
    web = Web(paragraphs, names[:2000], seed=3)
    write_urls(given / "urls.txt", web)
    if vocabulary:
        shutil.copyfile(vocabulary, given / "vocab.txt")
    else:
        write_vocabulary([web.text() for _ in range(VOCABULARY_TEXTS)], VOCABULARY_SIZE, given / "vocab.txt")
    write_settings(folder)
    write_json(given / "recipe.json", recipe)


def write_part(path: Path, web: Web, megabytes: float) -> None:
    """Documents until their text has `megabytes`, as one zstd frame of JSON lines."""
    length = 0
    with open(path, "wb") as file, zstandard.ZstdCompressor().stream_writer(file) as compressed:
        while length < megabytes * 1e6:
            record = web.record()
            length += int(record["warc_headers"]["content-length"])
            compressed.write(msgspec.json.encode(record) + b"\n")


def write_urls(path: Path, web: Web) -> None:
    """A URL a line in random order, after + if its domain is listed, after - if not."""
    urls = [f"+{web.url(True)}" for _ in range(int(LISTED_URLS * URLS))]
    urls += [f"-{web.url(False)}" for _ in range(URLS - len(urls))]
    random.Random(0).shuffle(urls)
    path.write_text("\n".join(urls))


def write_archive(path: Path, names: list[str]) -> None:
    """A UT1 archive of these domains: nearly all are `adult`, as in the published one; each category has some URLs."""
    others = [category for category in (*blocked_categories(), "press") if category != "adult"]
    few = len(names) // 200
    adult = len(names) - few * len(others)
    with tarfile.open(path, "w:gz", compresslevel=6) as archive:
        _add_category(archive, "adult", names[:adult])
        for number, category in enumerate(others):
            _add_category(archive, category, names[adult + number * few : adult + (number + 1) * few])
        alias = tarfile.TarInfo("blacklists/porn")
        alias.type, alias.linkname = tarfile.SYMTYPE, "adult"
        archive.addfile(alias)


def _add_category(archive: tarfile.TarFile, category: str, names: list[str]) -> None:
    urls = [f"{name}/{category}/page" for name in names[: len(names) // 20]]
    for kind, lines in (("domains", names), ("urls", urls)):
        content = "\n".join(lines).encode()
        member = tarfile.TarInfo(f"blacklists/{category}/{kind}")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))


def write_settings(folder: Path) -> None:
    """settings.json of UT1's trie; input/parts.json and input/shards.json with the paper's filter and packing."""
    given, config = folder / "input", configuration()
    archive, vocabulary = given / "blacklists.tar.gz", {"vocabulary": str(given / "vocab.txt")}
    listing = given / "MD5SUM.LST"
    listing.write_text(f"{digest_of(archive, 'md5')}  {archive.name}\n")
    write_json(folder / "ut1/settings.json", {"archive": str(archive), "checksums": str(listing)})
    filters = {"filter": {**filter_of(config), "annotations": "published"}, "split_by_content": False}
    write_json(given / "parts.json", {**filters, **vocabulary, "blocklist": str(folder / "ut1/blocklist.marisa")})
    parts = {"parts": ["part"], "from": str(folder / "output/parts")}
    write_json(given / "shards.json", {**parts, **vocabulary, "pack": config["corpus"]["pack"]})


def configuration() -> dict:
    """The paper's, with as few validation rows as a small benchmark can fill."""
    config = yaml.safe_load((ROOT / "workflow/defaults.yaml").read_text())
    config["corpus"]["pack"]["validation_sequences"] = VALIDATION_SEQUENCES
    return config


def blocked_categories() -> list[str]:
    """The paper's."""
    return configuration()["corpus"]["filter"]["blocked_categories"]


def _sha256(files: list[Path]) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=float, required=True)
    parser.add_argument("--large", type=float, required=True)
    parser.add_argument("--listed", type=int, required=True)
    parser.add_argument("--vocabulary", type=Path)
    build(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
