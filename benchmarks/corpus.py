"""The corpus stage beside the authors' way, from a part of OSCAR to packed rows: `make bench-corpus`.

Each contestant is a fresh process. The process that measures imports nothing large (see `harness`), so what needs
packages is a function that `python -m benchmarks.corpus run FUNCTION ARGUMENTS` runs, and imports them there.
"""

import base64
import hashlib
import io
import json
import math
import random
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.harness import Command, Contestant, Figure, Round

PACKAGES = (
    *("backports.zstd", "zstandard", "msgspec", "pyarrow", "marisa-trie", "tokenizers", "tokie", "numpy"),
    *("datasets", "transformers", "torch"),
)
LARGE = 4  # times as much text in the large part
SEQUENCE_LENGTH, DOCUMENTS_AT_ONCE = 512, 1000  # of the authors' rows
BLOCKED = frozenset(
    (
        *("agressif", "adult", "cryptojacking", "dangerous_material", "phishing", "warez"),
        *("ddos", "hacking", "malware", "mixed_adult", "sect"),
    )
)


# What is measured


def main() -> None:
    """Build the input, measure, and write the page."""
    parser = harness.options_of("bench-corpus", __doc__, rounds=5, work="bench")
    parser.add_argument("--megabytes", type=float, default=200, help="text in a part")
    parser.add_argument("--listed", type=int, default=5_000_000, help="domains in the blocklist")
    parser.add_argument("--vocabulary", type=Path, help="a vocab.txt; default: made from the text")
    options = parser.parse_args()
    folder = options.work.resolve()
    conditions = [harness.machine(), harness.versions(*PACKAGES)]
    recipe = {"megabytes": options.megabytes, "listed": options.listed, "vocabulary": options.vocabulary}
    subprocess.run(child("build_input", folder, json.dumps(recipe, default=str)), check=True)
    blocklist = symbert("build-blocklist", folder / "ut1/blocklist.marisa")
    once = {
        "build the blocklist: symbert": harness.run(Contestant("build the blocklist: symbert", [blocklist]), "once")
    }
    rounds = harness.interleave(contestants(folder), options.rounds, lambda: empty(folder))
    text, archive = (
        (folder / f"input/{name}").stat().st_size / 1e6 for name in ("part.jsonl.zst", "blacklists.tar.gz")
    )
    conditions += [
        f"input: a part of {options.megabytes:g} MB of text ({text:.0f} MB compressed), another of {LARGE} × as much; "
        f"a blocklist of {options.listed:,} domains ({archive:.0f} MB compressed); a vocabulary "
        f"{'given' if options.vocabulary else 'made from the text'} of "
        f"{(folder / 'input/vocab.txt').read_bytes().count(10):,} pieces",
        f"the trie made of the blocklist: {(folder / 'ut1/blocklist.marisa').stat().st_size / 1e6:.0f} MB",
        compare(folder),
        f"interleaved rounds: {len(rounds)}; every process fresh, with one thread; CPU seconds are user and system",
    ]
    harness.write_page(
        options.output,
        "the corpus stage",
        conditions,
        [harness.figure_table(FIGURES, rounds), harness.usage_table(once, rounds)],
    )


def contestants(folder: Path) -> list[Contestant]:
    """What runs in a round, in this order: some read what an earlier one wrote to `output`."""
    given, output = folder / "input", folder / "output"
    part, vocabulary = given / "part.jsonl.zst", given / "vocab.txt"
    authors, cache, rows, fast = (output / name for name in ("authors.jsonl.zst", "cache", "rows.arrow", "fast.npy"))
    halves = [prepare_part(folder, "part", name) for name in ("first", "second")]
    return [
        Contestant("decode and parse only", [child("decode_part", part)]),
        Contestant("filter: authors", [child("filter_part", part, authors)]),
        Contestant("load: authors", [child("load_documents", authors, cache)]),
        Contestant("tokenise and pack: authors", [child("tokenize_documents", authors, cache, vocabulary, rows)]),
        Contestant("tokenise: encode_batch_fast", [child("encode_documents", authors, vocabulary, fast)]),
        Contestant("prepare: symbert", [prepare_part(folder, "part", "part")]),
        Contestant("pack: symbert", [symbert("pack", output / "shards/manifest.json")]),
        Contestant("prepare: symbert, large part", [prepare_part(folder, "large", "large")]),
        Contestant("URLs: symbert", [child("look_up", folder / "ut1/blocklist.marisa", given / "urls.txt")]),
        Contestant("two parts: one worker", halves),
        Contestant("two parts: two workers", halves, workers=2),
    ]


def prepare_part(folder: Path, part: str, name: str) -> Command:
    return symbert("prepare-part", folder / f"input/{part}.jsonl.zst", folder / f"output/parts/{name}.npy")


def symbert(command: str, *files: Path) -> Command:
    return [sys.executable, "-m", "symbert", command, *map(str, files)]


def child(function: str, *arguments: Path | str) -> Command:
    """A function of this module as a process, which does `run_function`."""
    return [sys.executable, "-m", "benchmarks.corpus", "run", function, *map(str, arguments)]


def run_function(name: str, *arguments: str) -> None:
    global np, zstandard
    import numpy as np
    import zstandard

    globals()[name](*arguments)


def empty(folder: Path) -> None:
    """Delete what an earlier round left in `output`, but for the settings of parts and shards."""
    shutil.rmtree(folder / "output", ignore_errors=True)
    for name in ("parts", "shards"):
        (folder / f"output/{name}").mkdir(parents=True)
        shutil.copy(folder / f"input/{name}.json", folder / f"output/{name}/settings.json")


def cpu(*names: str) -> Callable[[Round], float]:
    return lambda measured: sum(measured[name].cpu for name in names)


def printed(name: str, *keys: str) -> Callable[[Round], float]:
    """The sum of what a contestant prints under these keys."""
    return lambda measured: sum(measured[name].printed[key] for key in keys)


def quotient(slower: Callable[[Round], float], faster: Callable[[Round], float]) -> Callable[[Round], float]:
    return lambda measured: slower(measured) / faster(measured)


AUTHORS = cpu("filter: authors", "load: authors", "tokenise and pack: authors")
OURS = cpu("prepare: symbert", "pack: symbert")
PREPARE, LARGE_PART, URLS = "prepare: symbert", "prepare: symbert, large part", "URLs: symbert"
ONE, TWO = "two parts: one worker", "two parts: two workers"
FIGURES = (
    Figure("part to shards: authors' way / ours", "×", quotient(AUTHORS, OURS), at_least=12),
    Figure(
        "tokenise alone, encode_batch_fast / part to shards, ours", "×",
        quotient(cpu("tokenise: encode_batch_fast"), OURS), at_least=5,
    ),
    Figure("prepare: ours / decode and parse only", "×", quotient(cpu(PREPARE), cpu("decode and parse only"))),
    Figure("prepare: peak memory", "MB", lambda measured: measured[PREPARE].memory, at_most=400),
    Figure("prepare, large part: peak memory", "MB", lambda measured: measured[LARGE_PART].memory, at_most=400),
    Figure("prepare: large part / part", "×", quotient(cpu(LARGE_PART), cpu(PREPARE)), at_most=LARGE),
    Figure("UT1: one URL", "µs", printed(URLS, "microseconds"), at_most=5),
    Figure("UT1: memory of a job, with resident trie", "MB", printed(URLS, "private_mb", "mapped_mb"), at_most=50),
    Figure("UT1: of that private, not shared by jobs", "MB", printed(URLS, "private_mb")),
    Figure(
        "two parts: one worker / two, wall", "×",
        lambda measured: measured[ONE].wall / measured[TWO].wall, at_least=1.8,
    ),
)  # fmt: skip


# The authors' way, written from its description: zstandard, json and json.dumps for the filter; `datasets.map` with the
# fast tokenizer of BERT and Python lists of 512 for the rows


def filter_part(part: str, output: str) -> None:
    """Kept documents as JSON lines, compressed like the part."""
    with (
        open(part, "rb") as file,
        open(output, "wb") as kept,
        zstandard.ZstdCompressor().stream_writer(kept) as compressed,
    ):
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), encoding="utf-8", newline="\n")
        for line in lines:
            document = json.loads(line)
            if is_kept(document["metadata"]):
                compressed.write(json.dumps(document).encode() + b"\n")


def is_kept(metadata: dict) -> bool:
    """The paper's filter, on OSCAR's annotations alone."""
    return (
        BLOCKED.isdisjoint(metadata.get("categories") or ())
        and 5.0 < (metadata.get("harmful_pp") or 100_000.0) < 100_000.0
        and not metadata.get("quality_warnings")
    )


def load_documents(documents: str, cache: str):
    """Kept documents as a data set on the disk; the first document gives the types, which the library guesses badly."""
    import datasets

    with _lines(documents) as lines:
        features = datasets.Features(_types(datasets, json.loads(lines.readline())))
    return datasets.load_dataset("json", data_files=documents, split="train", cache_dir=cache, features=features)


def _types(datasets, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _types(datasets, item) for key, item in value.items()}
    if isinstance(value, list):
        return datasets.List(_types(datasets, next(item for item in value if item is not None)))
    if value is None:  # the lists that OSCAR leaves out
        return datasets.List(datasets.Value("string"))
    return datasets.Value("string" if isinstance(value, str) else "float64")


def tokenize_documents(documents: str, cache: str, vocabulary: str, output: str) -> None:
    """Tokens of 1,000 documents at a time, joined and cut in Python; the remainder is dropped each time."""
    import datasets

    datasets.disable_progress_bars()
    tokenizer = bert(vocabulary)
    loaded = load_documents(documents, cache)
    tokens = loaded.map(
        lambda batch: tokenizer(batch["content"], return_special_tokens_mask=True),
        batched=True,
        batch_size=DOCUMENTS_AT_ONCE,
        remove_columns=loaded.column_names,
    )
    tokens.map(group, batched=True, batch_size=DOCUMENTS_AT_ONCE, cache_file_name=output)


def group(batch: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
    """Rows of 512 from the joined columns of a batch."""
    joined = {name: list(chain.from_iterable(lists)) for name, lists in batch.items()}
    starts = range(0, len(joined["input_ids"]) - SEQUENCE_LENGTH + 1, SEQUENCE_LENGTH)
    return {name: [items[start : start + SEQUENCE_LENGTH] for start in starts] for name, items in joined.items()}


def bert(vocabulary: str):
    from transformers import BertTokenizerFast

    return BertTokenizerFast(vocabulary, do_lower_case=True)


# The other peers


def decode_part(part: str) -> None:
    """The floor of every filter: decompress, and parse the fields that a filter needs."""
    import msgspec

    class Metadata(msgspec.Struct):
        harmful_pp: float | None = None
        quality_warnings: list[str] | None = None
        categories: list[str] | None = None

    class Headers(msgspec.Struct, rename={"url": "warc-target-uri", "record_id": "warc-record-id"}):
        url: str | None = None
        record_id: str | None = None

    class Document(msgspec.Struct):
        content: str
        warc_headers: Headers
        metadata: Metadata

    decode = msgspec.json.Decoder(Document).decode
    with _lines(part) as lines:
        for line in lines:
            decode(line)


def encode_documents(documents: str, vocabulary: str, output: str) -> None:
    """The ids by `encode_batch_fast` of tokenizers, in numpy: one stream, which needs only another shape to be rows."""
    tokenizer = bert(vocabulary).backend_tokenizer
    pieces = []
    with _lines(documents) as lines:
        while batch := [json.loads(line)["content"] for line in islice(lines, DOCUMENTS_AT_ONCE)]:
            pieces += [np.array(encoding.ids, np.uint16) for encoding in tokenizer.encode_batch_fast(batch)]
    np.save(output, np.concatenate(pieces))


def _lines(path: str) -> io.BufferedReader:
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(open(path, "rb")), 1 << 20)


def look_up(trie: str, urls: str) -> None:
    """Look URLs up as a worker does, and print microseconds per URL and the memory that the worker holds."""
    from symbert.corpus.blocklist import Blocklist

    lines = Path(urls).read_text().split("\n")
    addresses, expected = [line[1:] for line in lines], sum(line[0] == "+" for line in lines)
    before = held(trie)
    blocklist = Blocklist(Path(trie))
    begun = time.process_time()
    listed = sum(1 for address in addresses if blocklist.look_up(address))
    seconds = time.process_time() - begun
    assert listed == expected, f"{listed:,} URLs found of {expected:,} that are listed"
    private, mapped = (after - earlier for after, earlier in zip(held(trie), before, strict=True))
    microseconds = seconds / len(addresses) * 1e6
    print(json.dumps({"microseconds": microseconds, "private_mb": private, "mapped_mb": mapped}))


def held(trie: str) -> tuple[float, float]:
    """MB of this process's own memory, and MB of the trie's pages that are resident in it (shared by all workers)."""
    import psutil

    maps = psutil.Process().memory_maps(grouped=False)
    return sum(each.anonymous for each in maps) / 1e6, sum(each.rss for each in maps if each.path == trie) / 1e6


# Whether all did the same work


def compare(folder: Path) -> str:
    """What the contestants of the last round agree on; SystemExit if they differ."""
    done = subprocess.run(child("print_agreement", folder / "output"), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the contestants did not do the same work:\n{done.stderr[-2000:]}")
    return done.stdout.strip()


def print_agreement(output: str) -> None:
    """Equal documents by id, equal ids, and equal rows where the authors drop remainders, all in order."""
    import pyarrow.parquet

    folder = Path(output)
    with _lines(str(folder / "authors.jsonl.zst")) as lines:
        kept = [json.loads(line)["warc_headers"]["warc-record-id"] for line in lines]
    assert pyarrow.parquet.read_table(folder / "parts/part.parquet")["id"].to_pylist() == kept, "other documents"
    stream = np.load(folder / "parts/part.npy")
    np.testing.assert_array_equal(stream, np.load(folder / "fast.npy"))
    starts = np.load(folder / "parts/part.offsets.npy")["start"][::DOCUMENTS_AT_ONCE]
    batches = [stream[start:end] for start, end in pairwise([*starts, len(stream)])]
    rows = [batch[: len(batch) // SEQUENCE_LENGTH * SEQUENCE_LENGTH] for batch in batches]
    with pyarrow.memory_map(str(folder / "rows.arrow")) as source:
        column = pyarrow.ipc.open_stream(source).read_all()["input_ids"]
        authors = np.concatenate([chunk.flatten().to_numpy() for chunk in column.chunks])
    np.testing.assert_array_equal(np.concatenate(rows), authors)
    print(
        f"equal for all: {len(kept):,} documents kept, in order; {len(stream):,} token ids "
        f"({len(authors):,} of them in the authors' rows)"
    )


# The input: two parts, a UT1 archive, URLs, a vocabulary, settings

URL_COUNT = 200_000
LISTED_URLS = 0.1  # share that the blocklist has
VOCABULARY_SIZE, VOCABULARY_TEXTS = 30_522, 5_000  # pieces, and documents that they are made of
VALIDATION_SEQUENCES = 50  # as few as a small benchmark can fill
MEDIAN_LENGTH, LENGTH_SIGMA, LONGEST = 2700, 0.9, 1_000_000  # characters of text, log-normal: 4,000 on average
MADE_UP, FOREIGN = 0.02, 0.004  # shares of words
TYPOGRAPHIC = 0.3  # share of documents with curly quotes
FLAGGED, BLOCKED_URLS, LISTED, NO_PERPLEXITY = 0.44, 0.03, 0.05, 0.02  # shares of documents
FOREIGN_WORDS = (
    *("café", "naïve", "crème", "señor", "São", "Zürich", "Straße", "Łódź", "25°C", "20€", "½"),
    *("Ελλάδα", "Москва", "العربية", "東京", "한국", "😀"),
)
QUALITY_WARNINGS = ("tiny", "short_sentences", "header", "footer", "noisy")
LISTED_SUFFIXES, OTHER_SUFFIXES = ("example", "invalid", "blogs.example"), ("test", "co.test")  # reserved (RFC 2606)


def build_input(place: str, recipe: str) -> None:
    """Write `input` unless the folder has it, made by the same code of the same megabytes, domains and vocabulary."""
    from symbert.corpus.texts import documentation
    from symbert.corpus.wordpiece import write_vocabulary

    folder, wanted = Path(place), json.loads(recipe)
    given, vocabulary, listed = folder / "input", wanted["vocabulary"], wanted["listed"]
    sources = [Path(__file__), *([Path(vocabulary)] if vocabulary else [])]
    wanted["sha256"] = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    if not (given / "recipe.json").is_file() or json.loads((given / "recipe.json").read_text()) != wanted:
        shutil.rmtree(given, ignore_errors=True)
        given.mkdir(parents=True)
        paragraphs = documentation().splitlines()
        names = list(domains(frequent_words(paragraphs), LISTED_SUFFIXES, listed, seed=0))
        write_archive(given / "blacklists.tar.gz", names)
        write_part(given / "part.jsonl.zst", Web(paragraphs, names[:2000], seed=1), wanted["megabytes"])
        write_part(given / "large.jsonl.zst", Web(paragraphs, names[:2000], seed=2), LARGE * wanted["megabytes"])
        web = Web(paragraphs, names[:2000], seed=3)
        urls = [f"+{web.url(True)}" for _ in range(int(LISTED_URLS * URL_COUNT))]
        urls += [f"-{web.url(False)}" for _ in range(URL_COUNT - len(urls))]
        random.Random(0).shuffle(urls)
        (given / "urls.txt").write_text("\n".join(urls))
        if vocabulary:
            shutil.copyfile(vocabulary, given / "vocab.txt")
        else:
            write_vocabulary([web.text() for _ in range(VOCABULARY_TEXTS)], VOCABULARY_SIZE, given / "vocab.txt")
    write_settings(folder)  # defaults.yaml may have changed
    (given / "recipe.json").write_text(json.dumps(wanted))


def write_part(path: Path, web: "Web", megabytes: float) -> None:
    """Documents until their text has `megabytes` (10^6 bytes), as one zstd frame of JSON lines."""
    import msgspec

    length = 0
    with open(path, "wb") as file, zstandard.ZstdCompressor().stream_writer(file) as compressed:
        while length < megabytes * 1e6:
            record = web.record()
            length += int(record["warc_headers"]["content-length"])
            compressed.write(msgspec.json.encode(record) + b"\n")


def write_archive(path: Path, names: list[str]) -> None:
    """A UT1 archive of these domains: nearly all are `adult`, as in the published one; each category has some URLs."""
    blocked = configuration()["corpus"]["filter"]["blocked_categories"]
    others = [category for category in (*blocked, "press") if category != "adult"]
    few, end = len(names) // 200, len(names) - len(names) // 200 * len(others)
    with tarfile.open(path, "w:gz", compresslevel=6) as archive:
        for category in ("adult", *others):
            listed, end = names[end - few if category != "adult" else 0 : end], end + few
            urls = [f"{name}/{category}/page" for name in listed[: len(listed) // 20]]
            for kind, lines in (("domains", listed), ("urls", urls)):
                member, content = tarfile.TarInfo(f"blacklists/{category}/{kind}"), "\n".join(lines).encode()
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        alias = tarfile.TarInfo("blacklists/porn")
        alias.type, alias.linkname = tarfile.SYMTYPE, "adult"
        archive.addfile(alias)


def write_settings(folder: Path) -> None:
    """settings.json of UT1's trie; input/parts.json and input/shards.json with the paper's filter and packing."""
    from symbert.configuration import filter_of
    from symbert.corpus.digests import digest_of
    from symbert.files import write_json

    given, config = folder / "input", configuration()
    archive, vocabulary = given / "blacklists.tar.gz", {"vocabulary": str(given / "vocab.txt")}
    listing = given / "MD5SUM.LST"
    listing.write_text(f"{digest_of(archive, 'md5')}  {archive.name}\n")
    write_json(folder / "ut1/settings.json", {"archive": str(archive), "checksums": str(listing)})
    filters = {"filter": {**filter_of(config), "annotations": "published"}, "split_by_content": False}
    write_json(given / "parts.json", {**filters, **vocabulary, "blocklist": str(folder / "ut1/blocklist.marisa")})
    packing = {**config["corpus"]["pack"], "validation_sequences": VALIDATION_SEQUENCES}
    parts = {"parts": ["part"], "from": str(folder / "output/parts")}
    write_json(given / "shards.json", {**parts, **vocabulary, "pack": packing})


def configuration() -> dict:
    """The paper's."""
    import yaml

    return yaml.safe_load((Path(__file__).parents[1] / "workflow/defaults.yaml").read_text())


class Web:
    """Draws documents in OSCAR-2301's schema, and addresses; the blocked ones are on `listed` domains.

    Made-up and foreign words replace some of the prose's, because the web never runs out of new words.
    """

    def __init__(self, paragraphs: list[str], listed: list[str], seed: int) -> None:
        self._random = random.Random(seed)
        self._paragraphs = [paragraph.split(" ") for paragraph in paragraphs]
        self._words = frequent_words(paragraphs)
        self._listed = listed
        self._hosts = [f"www.{domain}" for domain in domains(self._words, OTHER_SUFFIXES, 20_000, seed)]
        # One entry per line; short lines are not identified.
        self._identifications = [
            {"label": "en", "prob": self._probability(0.4)} if self._random.random() > 0.15 else None
            for _ in range(5_000)
        ]

    def record(self) -> dict[str, Any]:
        """A document as OSCAR publishes it; about half of them pass the paper's filter."""
        text, draw = self.text(), self._random.random
        blocked = draw() < BLOCKED_URLS
        categories = ["porn", "adult"] if blocked else ["press"] if draw() < LISTED else None
        identity = self._random.randbytes(16).hex()
        return {
            "content": text,
            "warc_headers": {
                "warc-refers-to": f"<urn:uuid:{identity[::-1]}>",
                "warc-record-id": f"<urn:uuid:{identity}>",
                "warc-type": "conversion",
                "warc-date": f"2022-12-0{self._random.randint(1, 9)}T10:{self._random.randint(10, 59)}:00Z",
                "warc-target-uri": self.url(blocked),
                "warc-block-digest": f"sha1:{base64.b32encode(self._random.randbytes(20)).decode()}",
                "warc-identified-content-language": "eng",
                "content-type": "text/plain",
                "content-length": str(len(text.encode())),
            },
            "metadata": {
                "identification": {"label": "en", "prob": self._probability(0.8)},
                "harmful_pp": None if draw() < NO_PERPLEXITY else round(self._random.lognormvariate(6.5, 1.2), 5),
                "tlsh": "tlsh:T1" + self._random.randbytes(35).hex().upper(),
                "quality_warnings": [self._random.choice(QUALITY_WARNINGS)] if draw() < FLAGGED else None,
                "categories": categories,
                "sentence_identifications": self._random.choices(self._identifications, k=text.count("\n") + 1),
            },
        }

    def text(self) -> str:
        """A document's text, one paragraph per line."""
        wanted = min(MEDIAN_LENGTH * math.exp(self._random.gauss(0, LENGTH_SIGMA)), LONGEST)
        lines: list[str] = []
        while wanted > 0:
            lines.append(" ".join(self._with_rare_words(self._random.choice(self._paragraphs))))
            wanted -= len(lines[-1]) + 1
        text = "\n".join(lines)
        if self._random.random() < TYPOGRAPHIC:
            text = re.sub(r'"([^"\n]*)"', r"“\1”", text).replace("'", "’").replace(" - ", " – ")
        return text

    def url(self, listed: bool) -> str:
        """An address: on a listed domain or on another; a few are written in an unusual way."""
        host = self._random.choice(self._listed if listed else self._hosts)
        slug = "-".join(self._random.choices(self._words, k=self._random.randint(1, 6)))
        form = self._random.random()
        if form < 0.03:
            return f"https://{host.upper()}:443/Caf%C3%A9/../{slug}"
        scheme = "https" if form < 0.7 else "http"
        query = f"?id={self._random.randrange(10**6)}" if form > 0.9 else ""
        return f"{scheme}://{host}/{self._random.choice(self._words)}/{self._random.randint(2001, 2022)}/{slug}{query}"

    def _with_rare_words(self, words: list[str]) -> list[str]:
        count = int(len(words) * (MADE_UP + FOREIGN) + self._random.random())
        words = list(words)
        for _ in range(count):
            words[self._random.randrange(len(words))] = self._rare_word()
        return words

    def _rare_word(self) -> str:
        if self._random.random() < FOREIGN / (MADE_UP + FOREIGN):
            return self._random.choice(FOREIGN_WORDS)
        head, tail = self._random.choices(self._words, k=2)
        return head[: len(head) // 2 + 1] + tail[len(tail) // 2 :]

    def _probability(self, least: float) -> float:
        return round(self._random.uniform(least, 1.0), 8)


def frequent_words(paragraphs: list[str]) -> list[str]:
    """The 20,000 most frequent plain words."""
    counts = Counter(re.findall(r"\b[a-z]{3,12}\b", " ".join(paragraphs)))
    return sorted(counts, key=lambda word: (-counts[word], word))[:20_000]


def domains(words: list[str], suffixes: tuple[str, ...], count: int, seed: int) -> Iterator[str]:
    """Domains of two words each, no two of the same two; some have a hyphen, some a number."""
    draw = random.Random(seed)
    for pair in draw.sample(range(len(words) ** 2), count):
        first, second = divmod(pair, len(words))
        form = draw.random()
        number = draw.randrange(1000) if form > 0.8 else ""
        yield f"{words[first]}{'-' if form < 0.2 else ''}{words[second]}{number}.{draw.choice(suffixes)}"


if __name__ == "__main__":
    run_function(*sys.argv[2:]) if sys.argv[1:2] == ["run"] else main()
