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

from benchmarks.commands import build_blocklist, pack, prepare_part
from benchmarks.host import facts
from benchmarks.measure import Command, Contestant, Figure, Usages, interleave, measure
from benchmarks.tables import figure_table, usage_table

LARGE = 4  # times as much text in the large part


def preparations(folder: Path) -> list[Contestant]:
    """What runs once, as in the workflow, whatever the number of parts."""
    return [Contestant("build the blocklist: symbert", [[build_blocklist(folder)]])]


def contestants(folder: Path) -> list[Contestant]:
    """What runs in a round, in this order: some read what an earlier one wrote to `output`."""
    given, output = folder / "input", folder / "output"
    part, vocabulary = given / "part.jsonl.zst", given / "vocab.txt"
    authors, cache, rows, fast = (output / name for name in ("authors.jsonl.zst", "cache", "rows.arrow", "fast.npy"))
    halves = [[prepare_part(folder, "part", name)] for name in ("first", "second")]
    return [
        Contestant("decode and parse only", [[peer("decode_part", part)]]),
        Contestant("filter: authors", [[peer("filter_part", part, authors)]]),
        Contestant("load: authors", [[peer("load_documents", authors, cache)]]),
        Contestant("tokenise and pack: authors", [[peer("tokenize_documents", authors, cache, vocabulary, rows)]]),
        Contestant("tokenise: encode_batch_fast", [[peer("encode_documents", authors, vocabulary, fast)]]),
        Contestant("prepare: symbert", [[prepare_part(folder, "part", "part")]]),
        Contestant("pack: symbert", [[pack(folder)]]),
        Contestant("prepare: symbert, large part", [[prepare_part(folder, "large", "large")]]),
        Contestant("URLs: symbert", [[python("lookups", folder / "ut1/blocklist.marisa", given / "urls.txt")]]),
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


PREPARE, PACK, URLS = "prepare: symbert", "pack: symbert", "URLs: symbert"
AUTHORS = ("filter: authors", "load: authors", "tokenise and pack: authors")
LARGE_PART = f"{PREPARE}, large part"

FIGURES = (
    Figure("part to shards: authors' way / ours", "×", ratio(cpu(*AUTHORS), cpu(PREPARE, PACK)), at_least=12),
    Figure(
        "tokenise alone, encode_batch_fast / part to shards, ours", "×",
        ratio(cpu("tokenise: encode_batch_fast"), cpu(PREPARE, PACK)), at_least=5,
    ),
    Figure("prepare: ours / decode and parse only", "×", ratio(cpu(PREPARE), cpu("decode and parse only"))),
    Figure("prepare: peak memory", "MB", memory(PREPARE), at_most=400),
    Figure("prepare, large part: peak memory", "MB", memory(LARGE_PART), at_most=400),
    Figure("prepare: large part / part", "×", ratio(cpu(LARGE_PART), cpu(PREPARE)), at_most=LARGE),
    Figure("UT1: one URL", "µs", said(URLS, "microseconds"), at_most=5),
    Figure("UT1: memory of a job, with resident trie", "MB", said(URLS, "private_mb", "mapped_mb"), at_most=50),
    Figure("UT1: of that private, not shared by jobs", "MB", said(URLS, "private_mb")),
    Figure(
        "two parts: one worker / two, wall", "×",
        ratio(wall("two parts: one worker"), wall("two parts: two workers")), at_least=1.8,
    ),
)  # fmt: skip


def peer(function: str, *paths: Path) -> Command:
    """One of the functions in `peers`."""
    return python("peers", function, *paths)


def python(module: str, *arguments: Path | str) -> Command:
    """A module of the benchmarks."""
    return [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]


def empty(folder: Path) -> None:
    """Nothing of an earlier round is left in `output`, but for the settings of parts and shards."""
    shutil.rmtree(folder / "output", ignore_errors=True)
    for name in ("parts", "shards"):
        (folder / f"output/{name}").mkdir(parents=True)
        shutil.copy(folder / f"input/{name}.json", folder / f"output/{name}/settings.json")


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
    subprocess.run([*python("inputs", folder), *options], check=True)
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
    lines = [*facts(), build_input(folder, options.megabytes, options.listed, options.vocabulary)]
    once = {contestant.name: measure(contestant, "once") for contestant in preparations(folder)}
    size = (folder / "ut1/blocklist.marisa").stat().st_size / 1e6
    rounds = interleave(contestants(folder), options.rounds, lambda: empty(folder))
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
    return parser.parse_args()


if __name__ == "__main__":
    main()
