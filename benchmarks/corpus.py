"""The corpus stage beside the authors' way, from a part of OSCAR to packed rows: `make bench-corpus`.

Each contestant is a fresh process. The process that measures imports nothing large (see `harness`), so what needs
packages is a function that `python -m benchmarks.corpus run FUNCTION ARGUMENTS` runs, and imports them there.
"""

import io
import json
import random
import re
import shutil
import subprocess
import sys
import tarfile
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
BLOCKED = {"adult", "agressif", "cryptojacking", "dangerous_material", "ddos", "hacking", "malware", "mixed_adult"}
BLOCKED |= {"phishing", "sect", "warez"}


def main() -> None:
    """Build the input, measure, and write the page."""
    parser = harness.options_of("bench-corpus", __doc__, rounds=5)
    parser.add_argument("--megabytes", type=float, default=200, help="text in a part")
    parser.add_argument("--listed", type=int, default=5_000_000, help="domains in the blocklist")
    parser.add_argument("--workers", type=int, default=1, help="more than 1: as many parts, by one worker and by all")
    options = parser.parse_args()
    folder = options.work.resolve()
    recipe = (str(options.megabytes), str(options.listed))
    subprocess.run(child("build_input", folder, *recipe), check=True)
    build = Contestant("build the blocklist: symbert", [symbert(folder, "build-blocklist", "ut1/blocklist.marisa")])
    built = harness.run(build, "once")
    rounds = harness.interleave(contestants(folder, options.workers), options.rounds, lambda: empty(folder))
    trie, part = folder / "ut1/blocklist.marisa", folder / "input/part.jsonl.zst"
    conditions = [
        harness.machine(),
        harness.versions(*PACKAGES),
        f"input: a part of {options.megabytes:g} MB of text ({part.stat().st_size / 1e6:.0f} MB compressed), made of "
        f"the demo's; another of {LARGE} × as much; a vocabulary of {VOCABULARY_SIZE:,} pieces, made from the text",
        f"a blocklist of {options.listed:,} domains: built in {built.cpu:.2f} CPU s with {built.memory:.0f} MB; "
        f"its trie has {trie.stat().st_size / 1e6:.0f} MB",
        compare(folder),
        f"interleaved rounds: {len(rounds)}; every process fresh, with one thread; CPU seconds are user and system",
    ]
    figures = [*FIGURES, *(scaling(options.workers) if options.workers > 1 else [])]
    tables = [harness.figure_table(figures, rounds), harness.usage_table(rounds)]
    harness.write_page(options.output, "the corpus stage", conditions, tables)


def contestants(folder: Path, workers: int = 1) -> list[Contestant]:
    """What runs in a round, in this order: some read what an earlier one wrote to `output`."""
    given, output = folder / "input", folder / "output"
    part, vocabulary = given / "part.jsonl.zst", given / "vocab.txt"
    authors, cache, rows, fast = (output / name for name in ("authors.jsonl.zst", "cache", "rows.arrow", "fast.npy"))
    parts = [prepare_part(folder, "part", f"part-{number}") for number in range(workers)]
    return [
        Contestant("filter: authors", [child("filter_part", part, authors)]),
        Contestant("load: authors", [child("load_documents", authors, cache)]),
        Contestant("tokenise and pack: authors", [child("tokenize_documents", authors, cache, vocabulary, rows)]),
        Contestant("tokenise: encode_batch_fast", [child("encode_documents", authors, vocabulary, fast)]),
        Contestant(PREPARE, [prepare_part(folder, "part", "part")]),
        Contestant("pack: symbert", [symbert(folder, "pack", "output/shards/manifest.json")]),
        Contestant(LARGE_PART, [prepare_part(folder, "large", "large")]),
        *(Contestant(f"{workers} parts by {count}", parts, workers=count) for count in (1, workers) if workers > 1),
    ]


def prepare_part(folder: Path, part: str, name: str) -> Command:
    return symbert(folder, "prepare-part", f"input/{part}.jsonl.zst", f"output/parts/{name}.npy")


def symbert(folder: Path, command: str, *files: str) -> Command:
    """A command in a folder, which has what the command reads below results/."""
    return ["env", "-C", str(folder), sys.executable, "-m", "symbert", command, *files]


def child(function: str, *arguments: Path | str) -> Command:
    """A function of this module as a process, which does `run_function`."""
    return [sys.executable, "-m", "benchmarks.corpus", "run", function, *map(str, arguments)]


def run_function(name: str, *arguments: str) -> None:
    global np, zstandard
    import numpy as np
    import zstandard

    globals()[name](*arguments)


def empty(folder: Path) -> None:
    """Delete what an earlier round left, but for the settings of parts and shards, to which `output` links."""
    shutil.rmtree(folder / "output", ignore_errors=True)
    (folder / "output").mkdir()
    for planned in (folder / "input/corpus").iterdir():
        made = folder / "results/corpus" / planned.name
        shutil.rmtree(made, ignore_errors=True)
        shutil.copytree(planned, made)
        (folder / "output" / planned.name.partition("-")[0]).symlink_to(made)


def cpu(*names: str) -> Callable[[Round], float]:
    return lambda measured: sum(measured[name].cpu for name in names)


def quotient(slower: Callable[[Round], float], faster: Callable[[Round], float]) -> Callable[[Round], float]:
    return lambda measured: slower(measured) / faster(measured)


def scaling(workers: int) -> list[Figure]:
    """How much faster several workers are than one. The wall says so on an idle machine alone; CPU seconds, of which
    workers that disturb each other need more, on any."""
    one, all_of_them = f"{workers} parts by 1", f"{workers} parts by {workers}"
    wall = quotient(lambda measured: measured[one].wall, lambda measured: measured[all_of_them].wall)
    seconds = quotient(cpu(all_of_them), cpu(one))
    return [
        Figure(f"{workers} parts: one worker / {workers}, wall", "×", wall, at_least=0.9 * workers),
        Figure(f"{workers} parts: {workers} workers / one, CPU s", "×", seconds, at_most=1 / 0.9),
    ]


PREPARE, LARGE_PART = "prepare: symbert", "prepare: symbert, large part"
AUTHORS = cpu("filter: authors", "load: authors", "tokenise and pack: authors")
OURS, FAST = cpu(PREPARE, "pack: symbert"), cpu("tokenise: encode_batch_fast")
FIGURES = (
    Figure("part to shards: authors' way / ours", "×", quotient(AUTHORS, OURS), at_least=12),
    Figure("tokenise alone, encode_batch_fast / part to shards, ours", "×", quotient(FAST, OURS), at_least=5),
    Figure("prepare: peak memory", "MB", lambda measured: measured[PREPARE].memory, at_most=400),
    Figure("prepare, large part: peak memory", "MB", lambda measured: measured[LARGE_PART].memory, at_most=400),
    Figure("prepare: large part / part", "×", quotient(cpu(LARGE_PART), cpu(PREPARE)), at_most=LARGE),
)


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


def compare(folder: Path) -> str:
    """What the contestants of the last round agree on; SystemExit if they differ."""
    done = subprocess.run(child("print_agreement", folder / "output"), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the contestants did not do the same work:\n{done.stderr[-2000:]}")
    return done.stdout.strip()


def print_agreement(output: str) -> None:
    """Equal documents by id, equal ids, and equal rows where the authors drop remainders, all in order."""
    import pyarrow

    from symbert.corpus.tokens import id_hash

    folder, offsets = Path(output), np.load(Path(output, "parts/part.offsets.npy"))
    with _lines(str(folder / "authors.jsonl.zst")) as lines:
        kept = [id_hash(json.loads(line)["warc_headers"]["warc-record-id"]) for line in lines]
    assert offsets["id_hash"].tolist() == kept, "other documents"
    stream = np.load(folder / "parts/part.npy")
    np.testing.assert_array_equal(stream, np.load(folder / "fast.npy"))
    starts = offsets["start"][::DOCUMENTS_AT_ONCE]
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


# The input: two parts, a UT1 archive, a vocabulary, settings

VOCABULARY_SIZE, VOCABULARY_TEXTS = 30_522, 5_000  # pieces, and documents that they are made of
VALIDATION_SEQUENCES = 50  # as few as a small benchmark can fill
LONGEST = 500  # paragraphs of the demo in a document; 21 on average, 4,000 characters
RARE = 0.024  # share of words that are made up or foreign
FOREIGN = ("café", "naïve", "señor", "São", "Straße", "Łódź", "25°C")
FOREIGN += ("½", "Ελλάδα", "Москва", "العربية", "東京", "한국", "😀")


def build_input(place: str, megabytes: str, listed: str) -> None:
    """Write `input` unless the folder has it, made of as many megabytes and domains."""
    from symbert.corpus.texts import documentation
    from symbert.corpus.wordpiece import write_vocabulary

    folder, recipe = Path(place), f"{megabytes} {listed}"
    given = folder / "input"
    if not (given / "recipe").is_file() or (given / "recipe").read_text() != recipe:
        shutil.rmtree(given, ignore_errors=True)
        given.mkdir(parents=True)
        texts = documentation().splitlines()
        words = sorted(Counter(re.findall(r"\b[a-z]{3,12}\b", " ".join(texts))))
        write_archive(given / "blacklists.tar.gz", list(domains(words, int(listed))))
        write_part(given / "part.jsonl.zst", records(texts, words, seed=1), float(megabytes))
        write_part(given / "large.jsonl.zst", records(texts, words, seed=2), LARGE * float(megabytes))
        documents = islice(records(texts, words, seed=3), VOCABULARY_TEXTS)
        write_vocabulary([document["content"] for document in documents], VOCABULARY_SIZE, given / "vocab.txt")
        (given / "recipe").write_text(recipe)
    write_settings(folder)  # defaults.yaml may have changed


def records(texts: list[str], words: list[str], seed: int) -> Iterator[dict[str, Any]]:
    """Documents in OSCAR-2301's schema without end, about half of which pass the paper's filter. Each is made of
    paragraphs of the demo, with rare words put in, because the web never runs out of new words."""
    draw = random.Random(seed)
    while True:
        pieces = " \n ".join(draw.choices(texts, k=min(int(draw.lognormvariate(2.6, 0.9)) + 1, LONGEST))).split(" ")
        for _ in range(int(len(pieces) * RARE + draw.random())):
            head, tail = draw.choices(words, k=2)
            made_up = head[: len(head) // 2 + 1] + tail[len(tail) // 2 :]
            pieces[draw.randrange(len(pieces))] = draw.choice(FOREIGN) if draw.random() < 0.2 else made_up
        text, identity, chance = " ".join(pieces), draw.randbytes(16).hex(), draw.random()
        lines = [{"label": "en", "prob": round(draw.uniform(0.4, 1), 8)} for _ in range(text.count("\n") + 1)]
        metadata = {
            "identification": {"label": "en", "prob": round(draw.uniform(0.8, 1), 8)},
            "harmful_pp": None if draw.random() < 0.02 else round(draw.lognormvariate(6.5, 1.2), 5),
            "tlsh": f"tlsh:T1{draw.randbytes(35).hex().upper()}",
            "quality_warnings": ["tiny"] if draw.random() < 0.44 else None,
            "categories": ["porn", "adult"] if chance < 0.03 else ["press"] if chance < 0.08 else None,
            "sentence_identifications": lines,
        }
        headers = {
            "warc-record-id": f"<urn:uuid:{identity}>",
            "warc-refers-to": f"<urn:uuid:{identity[::-1]}>",
            "warc-type": "conversion",
            "warc-date": "2022-12-01T10:00:00Z",
            "warc-target-uri": f"https://www.{draw.choice(words)}.test/{draw.choice(words)}-{draw.choice(words)}",
            "warc-block-digest": f"sha1:{draw.randbytes(20).hex()}",
            "warc-identified-content-language": "eng",
            "content-type": "text/plain",
            "content-length": str(len(text.encode())),
        }
        yield {"content": text, "warc_headers": headers, "metadata": metadata}


def domains(words: list[str], count: int) -> Iterator[str]:
    """Domains of two words each, no two of the same two; some have a hyphen, some a number."""
    draw = random.Random(0)
    for pair in draw.sample(range(len(words) ** 2), count):
        first, second = divmod(pair, len(words))
        hyphen, number = draw.choice(("-", "", "", "", "")), draw.choice(("", "", "", "", draw.randrange(1000)))
        yield f"{words[first]}{hyphen}{words[second]}{number}.example"


def write_part(path: Path, documents: Iterator[dict[str, Any]], megabytes: float) -> None:
    """Documents until their text has `megabytes` (10^6 bytes), as one zstd frame of JSON lines."""
    import msgspec

    length = 0
    with open(path, "wb") as file, zstandard.ZstdCompressor().stream_writer(file) as compressed:
        while length < megabytes * 1e6:
            document = next(documents)
            length += int(document["warc_headers"]["content-length"])
            compressed.write(msgspec.json.encode(document) + b"\n")


def write_archive(path: Path, names: list[str]) -> None:
    """A UT1 archive of these domains: nearly all are `adult`, as in the published one; each category has some."""
    categories, few = sorted(BLOCKED - {"adult"}), len(names) // 200
    listed = {category: names[number * few : (number + 1) * few] for number, category in enumerate(categories)}
    with tarfile.open(path, "w:gz", compresslevel=6) as archive:
        for category, own in [*listed.items(), ("adult", names[len(categories) * few :])]:
            member, content = tarfile.TarInfo(f"blacklists/{category}/domains"), "\n".join(own).encode()
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def write_settings(folder: Path) -> None:
    """settings.json of UT1's trie, to which `ut1` links, and in `input` of parts and shards: the paper's filter."""
    import yaml
    from msgspec.structs import replace

    from symbert.configuration import filter_of, typed
    from symbert.corpus.blocklist import BuildBlocklist
    from symbert.corpus.parts import PrepareParts
    from symbert.corpus.shards import Pack
    from symbert.digests import digest_of
    from symbert.files import write_json
    from symbert.steps import File

    config = typed(yaml.safe_load((Path(__file__).parents[1] / "workflow/defaults.yaml").read_text()))
    given = folder / "input"
    archive, listing, vocabulary = (given / name for name in ("blacklists.tar.gz", "MD5SUM.LST", "vocab.txt"))
    listing.write_text(f"{digest_of(archive, 'md5')}  {archive.name}\n")
    blocklist = BuildBlocklist(archive=File(str(archive)), checksums=File(str(listing)))
    chosen, files = replace(filter_of(config), annotations="published"), {"vocabulary": File(str(vocabulary))}
    parts = PrepareParts(filter=chosen, split_by_content=False, blocklist=blocklist, **files)
    packing = replace(config.corpus.pack, validation_sequences=VALIDATION_SEQUENCES)
    shutil.rmtree(given / "corpus", ignore_errors=True)
    for step in (parts, Pack(parts=parts, texts=["part"], pack=packing)):
        write_json(given / "corpus" / Path(step.folder).name / "settings.json", step)
    write_json(folder / blocklist.settings_file, blocklist)
    (folder / "ut1").unlink(missing_ok=True)
    (folder / "ut1").symlink_to(blocklist.folder)


if __name__ == "__main__":
    run_function(*sys.argv[2:]) if sys.argv[1:2] == ["run"] else main()
