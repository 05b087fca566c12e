"""The corpus stage measured beside its peers, in interleaved rounds: `make bench-corpus`.

`contestants` says what runs, FIGURES what is promised. Like `measure`, this module imports nothing large.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.commands import build_blocklist, filter_part, pack_shards, tokenize_part
from benchmarks.host import facts
from benchmarks.measure import Command, Contestant, Figure, Usages, interleave, measure
from benchmarks.tables import figure_table, usage_table

LARGE = 4  # times as much text in the large part


def preparations(folder: Path) -> list[Contestant]:
    """What runs once, as in the workflow, whatever the number of parts."""
    return [
        Contestant("build the blocklist: symbert", [[build_blocklist(folder)]]),
    ]


def contestants(folder: Path, peers: Path) -> list[Contestant]:
    """What runs in a round, in this order: some read what an earlier one wrote to `output`.

    `peers` is the Python that has datatrove.
    """
    given, output = folder / "input", folder / "output"
    part, large, vocabulary = given / "part.jsonl.zst", given / "large.jsonl.zst", given / "vocab.txt"
    kept, fast = output / "part.parquet", output / "fast.npy"
    authors, cache, rows = output / "authors.jsonl.zst", output / "cache", output / "rows.arrow"
    halves = [[filter_part(folder, "part", name), tokenize_part(folder, name)] for name in ("first", "second")]
    return [
        Contestant("decode and parse only", [[peer("decode_part", part)]]),
        Contestant("filter: authors", [[peer("filter_part", part, authors)]]),
        Contestant("filter: datatrove", [[python("trove", given, part.name, output / "datatrove", by=peers)]]),
        Contestant("filter: symbert", [[filter_part(folder, "part", "part")]]),
        Contestant("decode and parse only, large part", [[peer("decode_part", large)]]),
        Contestant("filter: authors, large part", [[peer("filter_part", large, output / "large.jsonl.zst")]]),
        Contestant("filter: datatrove, large part", [[python("trove", given, large.name, output / "trove", by=peers)]]),
        Contestant("filter: symbert, large part", [[filter_part(folder, "large", "large")]]),
        Contestant("URLs: symbert", [[python("lookups", folder / "blocklist.marisa", given / "urls.txt")]]),
        Contestant("load: authors", [[peer("load_documents", authors, cache)]]),
        Contestant("tokenise and pack: authors", [[peer("tokenize_documents", authors, cache, vocabulary, rows)]]),
        Contestant("tokenise: encode_batch_fast", [[peer("encode_documents", kept, vocabulary, fast)]]),
        Contestant("tokenise and pack: symbert", [[tokenize_part(folder, "part"), pack_shards(folder, "part")]]),
        Contestant("two parts: one worker", halves),
        Contestant("two parts: two workers", halves, workers=2),
    ]


def cpu(*names: str) -> Callable[[Usages], float]:
    """CPU seconds of contestants together."""
    return lambda round: sum(round[name].cpu for name in names)


def wall(name: str) -> Callable[[Usages], float]:
    """Wall seconds of a contestant."""
    return lambda round: round[name].wall


def memory(name: str) -> Callable[[Usages], float]:
    """Peak MB of a contestant."""
    return lambda round: round[name].memory


def said(name: str, *keys: str) -> Callable[[Usages], float]:
    """The sum of what a contestant reports under these keys."""
    return lambda round: sum(round[name].said[key] for key in keys)


def ratio(slower: Callable[[Usages], float], faster: Callable[[Usages], float]) -> Callable[[Usages], float]:
    """How many times the second the first is, in one round."""
    return lambda round: slower(round) / faster(round)


FILTER, PACK, URLS = "filter: symbert", "tokenise and pack: symbert", "URLs: symbert"
AUTHORS = ("filter: authors", "load: authors", "tokenise and pack: authors")


def filter_figures(size: str) -> tuple[Figure[Usages], ...]:
    """What is promised of the filter, on a part of that size."""
    ours = cpu(FILTER + size)
    return (
        Figure(f"filter{size}: authors' way / ours", "×", ratio(cpu(AUTHORS[0] + size), ours), at_least=2.1),
        Figure(f"filter{size}: datatrove / ours", "×", ratio(cpu("filter: datatrove" + size), ours), at_least=1.8),
        Figure(f"filter{size}: ours / decode and parse only", "×", ratio(ours, cpu("decode and parse only" + size))),
        Figure(f"filter{size}: peak memory", "MB", memory(FILTER + size), at_most=400),
    )


FIGURES = (
    *filter_figures(""),
    *filter_figures(", large part"),
    Figure("UT1: one URL", "µs", said(URLS, "microseconds"), at_most=5),
    Figure("UT1: memory of a job, with resident trie", "MB", said(URLS, "private_mb", "mapped_mb"), at_most=50),
    Figure("UT1: of that private, not shared by jobs", "MB", said(URLS, "private_mb")),
    Figure("tokenise and pack: authors' way / ours", "×", ratio(cpu(AUTHORS[2]), cpu(PACK)), at_least=10),
    Figure(
        "tokenise and pack: encode_batch_fast / ours", "×",
        ratio(cpu("tokenise: encode_batch_fast"), cpu(PACK)), at_least=6,
    ),
    Figure("part to shards: authors' way / ours", "×", ratio(cpu(*AUTHORS), cpu(FILTER, PACK)), at_least=10),
    Figure(
        "two parts: one worker / two, wall", "×",
        ratio(wall("two parts: one worker"), wall("two parts: two workers")), at_least=1.8,
    ),
)  # fmt: skip


def peer(function: str, *paths: Path) -> Command:
    """One of the functions in `peers`."""
    return python("peers", function, *paths)


def python(module: str, *arguments: Path | str, by: Path | str = sys.executable) -> Command:
    """A module of the benchmarks."""
    return [str(by), "-m", f"benchmarks.{module}", *map(str, arguments)]


def empty(folder: Path) -> None:
    """Nothing of an earlier round is left."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def compare(folder: Path) -> str:
    """What the contestants of the last round agree on; SystemExit when they differ."""
    done = subprocess.run(python("agreement", folder / "output"), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the contestants did not do the same work:\n{done.stderr[-2000:]}")
    same = json.loads(done.stdout)
    return (
        f"equal for all: {same['documents']:,} documents kept, in order; {same['tokens']:,} token ids "
        f"({same['rows']:,} of them in the authors' rows)"
    )


def build_input(folder: Path, megabytes: float, listed: int, vocabulary: Path | None) -> str:
    """Write the input, or find it there; what it consists of."""
    options = ["--megabytes", str(megabytes), "--large", str(LARGE), "--listed", str(listed)]
    options += ["--vocabulary", str(vocabulary)] if vocabulary else []
    subprocess.run([*python("inputs", folder / "input"), *options], check=True)
    sizes = [(folder / f"input/{name}").stat().st_size / 1e6 for name in ("part.jsonl.zst", "blacklists.tar.gz")]
    return (
        f"input: a part of {megabytes:g} MB of text ({sizes[0]:.0f} MB compressed), another of {LARGE} × as much; a "
        f"blocklist of {listed:,} domains ({sizes[1]:.0f} MB compressed); a vocabulary "
        f"{'given' if vocabulary else 'made from the text'} of {_lines(folder / 'input/vocab.txt'):,} pieces"
    )


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def main() -> None:
    """Build the input, measure, and write the tables to a file and to the output."""
    options = _options()
    folder = options.work.resolve()
    lines = [*facts(options.peers), build_input(folder, options.megabytes, options.listed, options.vocabulary)]
    once = {contestant.name: measure(contestant, "once") for contestant in preparations(folder)}
    size = (folder / "blocklist.marisa").stat().st_size / 1e6
    rounds = interleave(contestants(folder, options.peers), options.rounds, lambda: empty(folder / "output"))
    lines += [
        f"the trie made of the blocklist: {size:.0f} MB",
        compare(folder),
        f"interleaved rounds: {len(rounds)}; every process fresh, with one thread; CPU seconds are user and system",
    ]
    page = "\n".join(["# Figures of the corpus stage", "", *(f"* {line}" for line in lines), ""])
    page += "\n" + figure_table(FIGURES, rounds) + "\n" + usage_table(once, rounds)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page)
    print(page)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=200, help="text in a part")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--listed", type=int, default=5_000_000, help="domains in the blocklist")
    parser.add_argument("--vocabulary", type=Path, help="a vocab.txt; default: made from the text")
    parser.add_argument("--work", type=Path, default=Path("results/bench"), help="folder that is kept for next time")
    parser.add_argument("--output", type=Path, default=Path("results/bench-corpus.md"))
    parser.add_argument("--peers", type=Path, default=Path(".venv/bench/bin/python"), help="Python with datatrove")
    return parser.parse_args()


if __name__ == "__main__":
    main()
