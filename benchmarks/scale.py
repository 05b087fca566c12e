"""What grows with the size of a project, until something breaks: `python -m benchmarks.scale SECTION …`.

Sections: `corpus` (JSON lines through prepare-part and pack), `parts` (parts planned), `blocklist` (domains),
`checkpoints` (of a run) and `runs` (of an experiment, whose files the product's own writers make). Each measures fresh
processes at growing sizes, and prints a table: seconds, peak memory, and the most files that were open at once.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from benchmarks import corpus, harness
from benchmarks.harness import ONE_THREAD, Command

ROOT = Path(__file__).parents[1]
EVERY = 0.2  # seconds between two looks at a process
BLOCK = 10_000  # documents that are repeated, each time with other ids and another first word
GIGABYTE = 10**9


class Watched(NamedTuple):
    """How a command ended, and the most that it and its children used at once."""

    code: int
    output: str
    wall: float  # seconds
    cpu: float  # seconds, user and system
    resident: float  # MB, with the pages of mapped files
    own: float  # MB, without them
    files: int  # open at once
    course: list[tuple[float, float]]  # seconds since the start, MB without mapped files

    def row(self, *first: object) -> str:
        """A line of a table."""
        cells = (f"{self.wall:,.1f}", f"{self.cpu:,.1f}", f"{self.own:,.0f}", f"{self.resident:,.0f}", str(self.files))
        return f"| {' | '.join([*map(str, first), *cells])} |"


def watch(command: Command, folder: Path, environment: dict[str, str] | None = None) -> Watched:
    """Run a command in a folder and look at it while it runs."""
    begun, peak, course = time.perf_counter(), [0.0, 0.0, 0], []
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [*command],
            stdout=output,
            stderr=output,
            cwd=folder,
            env={**os.environ, **ONE_THREAD, **(environment or {})},
        )
        while True:
            ended, status, resources = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            now = used_by(process.pid)
            peak = [max(pair) for pair in zip(peak, now, strict=True)]
            course.append((time.perf_counter() - begun, now[1]))
            time.sleep(EVERY)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    cpu = resources.ru_utime + resources.ru_stime
    return Watched(process.returncode, text, time.perf_counter() - begun, cpu, *peak, course)


def used_by(pid: int) -> tuple[float, float, int]:
    """MB resident and MB of its own, of a process and its children, and their open files."""
    try:
        values = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        megabytes = [int(values[key].split()[0]) * 1024 / 1e6 for key in ("VmRSS", "RssAnon")]
        files = len([*Path(f"/proc/{pid}/fd").iterdir()])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, KeyError, ValueError):  # it has just ended
        return 0.0, 0.0, 0
    below = [used_by(int(child)) for child in children]
    return (
        megabytes[0] + sum(child[0] for child in below),
        megabytes[1] + sum(child[1] for child in below),
        files + sum(child[2] for child in below),
    )


def ran(watched: Watched) -> Watched:
    """The same; SystemExit with the end of the output of a command that failed."""
    if watched.code:
        raise SystemExit(f"ended with {watched.code}:\n{watched.output[-2000:]}")
    return watched


def symbert(*words: object) -> list[str]:
    return [sys.executable, "-m", "symbert", *map(str, words)]


HEAD = "wall s | CPU s | peak MB | with mapped files | open files |"


def show(title: str, first: str, rows: Sequence[str]) -> None:
    """Print a table."""
    columns = first.count("|") + 1
    rule = f"|{'---:|' * columns}{'---:|' * 5}"
    print(f"\n{title}\n\n" + harness.table(f"| {first} | {HEAD}", rule, rows), flush=True)


# The corpus: a block of documents in OSCAR's schema, again and again with other ids and another first word.


def documents() -> Iterator[bytes]:
    """Lines of JSON without end."""
    import msgspec

    from symbert.corpus.texts import documentation

    texts = documentation().splitlines()
    words = sorted({word for text in texts for word in text.split() if word.isalpha() and word.islower()})
    block = []
    for record in islice(corpus.records(texts, words, seed=4), BLOCK):
        identity = record["warc_headers"]["warc-record-id"][10:-1]
        record["content"] = f"@@@@@@@@ {record['content']}"
        block.append((msgspec.json.encode(record) + b"\n", identity.encode()))
    number = 0
    while True:
        for line, identity in block:
            number += 1
            yield line.replace(identity, b"%032x" % number).replace(
                b"@@@@@@@@", b"%08x" % (number * 2654435761 % 2**32)
            )


def write_part(path: Path, lines: Iterator[bytes], size: float) -> None:
    """A part of so many bytes of JSON lines."""
    import zstandard

    written = 0
    with open(path, "wb") as file, zstandard.ZstdCompressor(1).stream_writer(file) as compressed:
        while written < size:
            line = next(lines)
            written += len(line)
            compressed.write(line)


def corpus_section(folder: Path, sizes: list[float], parts: list[int], of_each: float) -> None:
    """Single parts of growing size, then growing numbers of parts of one size (GB of JSON lines)."""
    from symbert.corpus.parts import PrepareParts
    from symbert.corpus.shards import Pack
    from symbert.files import read_json, write_json
    from symbert.steps import read_step

    subprocess.run(corpus.child("build_input", folder, "5", "100000"), check=True)
    ran(watch(symbert("build-blocklist", "ut1/blocklist.marisa"), folder))
    corpus.empty(folder)
    lines, made = documents(), folder / "output/parts"
    text = folder / "input/one.jsonl.zst"
    rows = []
    for size in sizes:
        write_part(text, lines, size * GIGABYTE)
        done = ran(watch(symbert("prepare-part", text, made / f"one-{size:g}.npy"), folder))
        record = read_json(made / f"one-{size:g}.json")["record"]
        middle = [used for at, used in done.course if at > done.wall / 2]
        early = [used for at, used in done.course if done.wall / 10 < at <= done.wall / 2]
        growth = max(middle, default=0) - max(early, default=0)
        rows.append(
            done.row(
                f"{size:g}", f"{text.stat().st_size / 1e6:,.0f}", f"{record['tokens'] / 1e6:,.0f}", f"{growth:+.0f}"
            )
        )
        harness.progress(rows[-1])
        for file in made.glob(f"one-{size:g}.*"):
            file.unlink()
    text.unlink()
    show(
        "One part through prepare-part.", "GB of JSON lines | MB compressed | M tokens kept | later MB − earlier", rows
    )
    step = read_step(made, PrepareParts)
    rows, wall, most = [], 0.0, 0.0
    for number in range(1, max(parts) + 1):
        text = folder / f"input/many-{number}.jsonl.zst"
        write_part(text, lines, of_each * GIGABYTE)
        done = ran(watch(symbert("prepare-part", text, made / f"many-{number}.npy"), folder))
        wall, most = wall + done.wall, max(most, done.own)
        harness.progress(f"part {number}: {done.row('')}")
        text.unlink()
        if number in parts:
            packing = read_step(folder / "output/shards", Pack).pack
            names = [f"many-{each}" for each in range(1, number + 1)]
            pack = Pack(parts=step, texts=names, pack=packing)
            write_json(folder / pack.settings_file, pack)
            done = ran(watch(symbert("pack", pack.paths()["manifest"]), folder))
            manifest = read_json(folder / pack.paths()["manifest"])
            rows.append(
                done.row(
                    f"{number * of_each:g}", number, f"{manifest['tokens'] / 1e6:,.0f}", f"{wall:,.0f}", f"{most:,.0f}"
                )
            )
            harness.progress(rows[-1])
            for file in (folder / pack.folder).glob("*.npy"):
                file.unlink()
    head = "GB of JSON lines | parts | M tokens | s of prepare-part, all | its peak MB"
    show("Parts through prepare-part, one after the other, and pack.", head, rows)


# Many small parts.


def pack_section(folder: Path, counts: list[int]) -> None:
    """`pack` of so many parts of 40 documents each, with made-up tokens."""
    from symbert.corpus.shards import Pack
    from symbert.files import write_json
    from symbert.steps import read_step

    subprocess.run(corpus.child("build_input", folder, "5", "1000"), check=True)
    ran(watch(symbert("build-blocklist", "ut1/blocklist.marisa"), folder))
    corpus.empty(folder)
    subprocess.run(
        corpus_child("write_parts", folder / "output/parts", folder / "input/vocab.txt", max(counts)), check=True
    )
    step, rows = read_step(folder / "output/shards", Pack), []
    for count in counts:
        pack = Pack(parts=step.parts, texts=[f"part-{number}" for number in range(count)], pack=step.pack)
        write_json(folder / pack.settings_file, pack)
        done = ran(watch(symbert("pack", pack.paths()["manifest"]), folder))
        rows.append(done.row(f"{count:,}"))
        harness.progress(rows[-1])
    show("`pack` of many parts.", "parts of 40 documents", rows)


def write_parts(folder: str, vocabulary: str, count: str) -> None:
    """Parts of made-up tokens, as prepare-part writes them."""
    import numpy as np

    from symbert.corpus.counts import Counts
    from symbert.corpus.parts import Encoder, PartRecord, Tokens
    from symbert.corpus.tokens import OFFSET, ArrayWriter
    from symbert.corpus.wordpiece import TOKEN
    from symbert.files import sha256_of, write_json

    draw, of_vocabulary = np.random.default_rng(1), sha256_of(Path(vocabulary))
    for number in range(int(count)):
        name = f"part-{number}"
        files = [Path(folder, f"{name}{end}") for end in (".npy", ".offsets.npy")]
        lengths = draw.integers(50, 800, 40)
        ids = draw.integers(1000, 30000, lengths.sum()).astype(TOKEN)
        starts, hashes = np.cumsum(lengths) - lengths, draw.integers(0, 2**64, 40, np.uint64)
        table = np.array([*zip(starts, hashes, range(40), strict=True)], OFFSET)
        for file, kind, content in zip(files, (TOKEN, OFFSET), (ids, table), strict=True):
            with ArrayWriter(file, kind) as writer:
                writer.append(content)
        counted = Counts(
            part=name, file_sha256="0" * 64, read=40, kept=40, bad=0, bad_lines=[], dropped={}, overlaps={},
            without_url=0, characters={"read": 1, "kept": 1, "dropped": {}},
        )  # fmt: skip
        sums = [*map(sha256_of, files)]
        tokens = Tokens(name, 40, len(ids), len(ids), None, Encoder("made up", 0, 0), of_vocabulary, *sums)
        write_json(Path(folder, f"{name}.json"), PartRecord(counted, tokens))


# The plan of many parts.


def parts_section(folder: Path, counts: list[int]) -> None:
    """`symbert plan` and a dry run of the paper's experiment with so many parts of OSCAR."""
    from workflow.checkout import check_out

    checkout = check_out(ROOT, folder / "symbert")
    rows = []
    for count in counts:
        options = ["--config", "scale=paper", "source=hub", f"corpus={{parts: {count}}}"]
        plan = [*symbert("plan"), *options]
        words = ["--cores", "2", "--dry-run", "--quiet", "all", *options]
        for name, command in (("plan", plan), ("dry run", [sys.executable, "-m", "snakemake", *words])):
            done = ran(watch(command, checkout.directory, checkout.environment))
            rows.append(done.row(f"{count:,}", name))
            harness.progress(rows[-1])
    show("The paper's experiment with more parts.", "parts | command", rows)


# The blocklist.


def blocklist_section(folder: Path, counts: list[int]) -> None:
    """A blocklist of so many domains: built, and looked up."""
    rows = []
    for count in counts:
        place = folder / f"{count}"
        subprocess.run(corpus.child("build_input", place, "1", str(count)), check=True)
        done = ran(watch(symbert("build-blocklist", "ut1/blocklist.marisa"), place))
        trie, archive = place / "ut1/blocklist.marisa", place / "input/blacklists.tar.gz"
        lookup = subprocess.run(corpus_child("look_up", trie), capture_output=True, text=True, check=True)
        sizes = [f"{file.stat().st_size / 1e6:,.0f}" for file in (archive, trie)]
        rows.append(done.row(f"{count:,}", *sizes, lookup.stdout.strip()))
        harness.progress(rows[-1])
    show("The blocklist.", "domains | archive MB | trie MB | µs of a look-up", rows)


def corpus_child(function: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "benchmarks.scale", "run", function, *map(str, arguments)]


def look_up(trie: str) -> None:
    """Microseconds of CPU time of a look-up of hosts of which none was seen before."""
    from symbert.corpus.blocklist import Blocklist

    draw, listed = random.Random(1), Blocklist(Path(trie))
    urls = [f"https://www.{draw.randbytes(5).hex()}.example/{draw.randbytes(4).hex()}" for _ in range(50_000)]
    begun = time.process_time()
    for url in urls:
        listed.look_up(url, "exact")
    print(f"{(time.process_time() - begun) / len(urls) * 1e6:.1f}")


# A run with many checkpoints, trained here.


def checkpoints_section(folder: Path, counts: list[int]) -> None:
    """A run of 200 steps that keeps so many checkpoints, all of which are scored; the scores are made up."""
    from workflow.checkout import check_out

    rows = []
    for count in counts:
        place = check_out(ROOT, folder / f"checkpoints-{count}/symbert")
        every = 200 // count
        chosen = {"attention": ["original", "symmetric"], "pretrain_seeds": [1], "finetuned_pretrain_seeds": None}
        chosen |= {"tasks": ["rte"], "finetune_seeds": [1, 2, 3], "suites": ["glue"]}
        chosen["curve"] = {"steps": {"tiny": [*range(every, 201, every)]}}
        words = [f"sweep={json.dumps(chosen)}", "glue={robustness: {noise: []}}", "experiment=scored"]
        words.append(f"pretrain={{steps: 200, save_every: {every}, evaluate_every: 10}}")
        snakemake = [sys.executable, "-m", "snakemake", "--cores", "1", "--config", *words]
        commands = {
            "pack": [*snakemake, "--until", "measure_speeds"],
            "train both": [*snakemake, "--until", "pretrain"],
            "status": symbert("status", "scored"),
            "dry run": [*snakemake, "--dry-run"],
            "extract all": [*snakemake, "--until", "extract"],
            "prune --surplus-weights": symbert("prune", "--surplus-weights"),
            "write all scores": corpus_child("write_scores", "scored"),
            "report": symbert("report", "results/scored"),
        }
        for name, command in commands.items():
            done = ran(watch(command, place.directory, {**place.environment, "PYTHONPATH": paths(place.directory)}))
            rows.append(done.row(f"{count:,}", name))
            harness.progress(rows[-1])
    show("Two runs with many checkpoints.", "checkpoints of a run | command", rows)


# Runs, as the product's own writers leave them.

STEPS, LEVEL = 400, 3.0  # of the demo, whose losses escape at this level
SESSION = {"host": "here", "device": "cpu", "processor": "a chip", "versions": {}, "commit": "0" * 40, "threads": 1}
SESSION |= {"processes": 1, "micro_batch_size": 24, "precision": "fp32", "compile": False}
SPEED = {"step_seconds": 0.02, "tokens_per_second": 5e4, "flops_per_second": 1e9, "mfu": 0.1, "peak_flops": 1e10}
SPEED |= {"memory_mb": 300.0, "steps_timed": STEPS}


def runs_section(folder: Path, counts: list[int]) -> None:
    """Experiments of so many runs of the demo's four operators: with scores of each, and as a sweep of rates."""
    from workflow.checkout import check_out

    rows = []
    for count in counts:
        for kind in ("scored", "swept"):
            place = check_out(ROOT, folder / f"{kind}-{count}/symbert")
            words = [f"experiment={kind}", sweep_of(kind, count), "glue={robustness: {noise: []}}"]
            options = ["--cores", "2", "--config", *words]
            snakemake = [sys.executable, "-m", "snakemake", *options]
            corpus_alone = [*snakemake, "--until", {"scored": "measure_speeds", "swept": "pack"}[kind]]
            commands = {
                "the first start, up to pack": corpus_alone,
                "write all files": corpus_child("write_runs", kind),
                "status": symbert("status", kind),
                "dry run": [*snakemake, "--dry-run"],
                "prune": symbert("prune"),
                "report": symbert("report", f"results/{kind}"),
            }
            for name, command in commands.items():
                done = ran(watch(command, place.directory, {**place.environment, "PYTHONPATH": paths(place.directory)}))
                if name != "write all files":
                    rows.append(done.row(f"{count:,}", kind, name))
                    harness.progress(rows[-1])
            page = place.directory / f"results/{kind}/report/report.html"
            harness.progress(f"page: {page.stat().st_size / 1e6:.1f} MB")
    show("Experiments of many runs.", "runs | kind | command", rows)


def paths(directory: Path) -> str:
    """PYTHONPATH for a copy of the project, and for this benchmark."""
    return os.pathsep.join(map(str, (directory / "src", ROOT, ROOT / "tests")))


def sweep_of(kind: str, count: int) -> str:
    """The option of a sweep of so many runs."""
    seeds = {"scored": count // 4, "swept": 5}[kind]
    chosen: dict[str, object] = {"pretrain_seeds": [*range(1, seeds + 1)]}
    if kind == "scored":
        chosen |= {"finetuned_pretrain_seeds": None, "suites": ["glue"], "curve": {"steps": {"tiny": []}}}
    else:
        chosen |= {"learning_rate": [round(1e-4 * (1 + number), 6) for number in range(count // 20)]}
    return f"sweep={json.dumps(chosen)}"


def write_runs(name: str) -> None:
    """Write, in the folder with results/, all that the report of an experiment waits for: runs with made-up losses, and
    made-up scores."""
    from msgspec import to_builtins

    from symbert.experiment.project import read_experiment
    from symbert.files import read_json, write_text
    from symbert.pretrain.run import Initial, Records, SessionFacts, Validated, now

    experiment, draw = read_experiment(None, None, None, name), random.Random(1)
    for step in experiment.pretrainings.values():
        folder = Path(step.folder)
        escape = draw.gauss(150 if "wide" in step.attention or step.attention == "pairwise" else 250, 30)
        lines = [Initial(step=0, logit_std=[0.3, 0.3], logit_step=[0.02, 0.02], attention_entropy=[3.0, 3.0])]
        for at in range(step.training.evaluate_every, STEPS + 1, step.training.evaluate_every):
            loss = 3.2 - 0.5 / (1 + math.exp((escape - at) / 10)) + draw.gauss(0, 0.002)
            lines.append(Validated(step=at, loss=loss))
        text = "".join(json.dumps(to_builtins(line)) + "\n" for line in lines)
        write_text(folder / "state/metrics.jsonl", text)
        records = Records(folder / "state", leads=True)
        with records.status_written():
            identity = records.claim(step, "fp32", read_json(step.manifest, {"hash": str})["hash"])
            records.open(SessionFacts(**SESSION, started=now()))
            records.step = STEPS
            records.update(**SPEED)
            counted = {"steps": STEPS, "parameters": 100_000, "attention_parameters": {"layer": 1000, "layers": 2000}}
            records.publish(step, identity, {"validation_loss": lines[-1].loss, **counted})
    write_scores(name)


def write_scores(name: str) -> None:
    """Write, in the folder with results/, made-up scores of all checkpoints of an experiment."""
    from msgspec import to_builtins

    from symbert.experiment.project import read_experiment
    from symbert.files import hash_of, write_json
    from symbert.glue.metrics import hashed
    from symbert.glue.score import ScoreRecord
    from symbert.glue.tasks import GLUE

    experiment, draw = read_experiment(None, None, None, name), random.Random(2)
    for file, score in experiment.scores.items():
        found = []
        for task in score.tasks:
            columns = list(GLUE[task].scores.values())
            metrics = GLUE[task].metrics
            for seed in score.seeds:
                values = {column: 0.6 + draw.gauss(0, 0.02) for column in columns}
                record = ScoreRecord(
                    size=score.run.size,
                    attention=score.run.attention,
                    pretrain_seed=score.run.pretrain_seed,
                    step=score.step,
                    settings_hash=score.scoring.key,
                    version=score.scoring.version,
                    versions={},
                    checkpoint_sha256=hash_of(str(score.run), score.step),
                    data_sha256=hash_of(task),
                    stand_in=True,
                    task=task,
                    finetune_seed=seed,
                    compile=False,
                    precision="fp32",
                    metrics=values,
                    details={column: dict.fromkeys(metrics, value) for column, value in values.items()},
                    majority=dict.fromkeys(columns, 0.5),
                    constant_prediction=False,
                    rows={"train": 256, **dict.fromkeys(GLUE[task].scores, 160)},
                    official_rows=dict(GLUE[task].official_rows),
                    partial=True,
                    moved={},
                    seen={},
                )
                found.append(hashed(to_builtins(record)))
        write_json(Path(file), found)


SECTIONS = {
    "corpus": corpus_section,
    "parts": parts_section,
    "pack": pack_section,
    "blocklist": blocklist_section,
    "runs": runs_section,
    "checkpoints": checkpoints_section,
}


def main() -> None:
    """Measure a section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=SECTIONS)
    parser.add_argument("--sizes", type=float, nargs="+", default=[0.3, 1, 3], help="GB of a part, or counts")
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 3, 10], help="of 1 GB each, in the section corpus")
    parser.add_argument("--work", type=Path, help="working folder; a temporary one where none is given")
    options = parser.parse_args()
    print(f"* {harness.machine()}\n* {harness.versions('snakemake', 'numpy', 'msgspec', 'marisa-trie', 'tokie')}")
    with tempfile.TemporaryDirectory(prefix="scale-") as temporary:
        folder = (options.work or Path(temporary)).resolve()
        if options.section == "corpus":
            corpus_section(folder, options.sizes, options.parts, 1)
        else:
            SECTIONS[options.section](folder, [int(size) for size in options.sizes])


if __name__ == "__main__":
    globals()[sys.argv[2]](*sys.argv[3:]) if sys.argv[1:2] == ["run"] else main()
