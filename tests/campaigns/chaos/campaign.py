"""A campaign of faults against the whole chain: `make chaos`.

A trial runs one stage of a tiny chain from what the stage before has left, while faults strike its jobs, Snakemake, or
its files. The same command is given again until it ends with 0; what it stops with must say what to do. Then all
files are compared with those of a run that nothing disturbed. The record has a line for each fault, and the campaign
goes on from there.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from campaigns.chaos import disk
from campaigns.chaos.faults import FULL, NAMES, Fault, draw_trial
from campaigns.chaos.preload import Notes, compile_library, compiler
from campaigns.chaos.stages import TARGETS, Folder, Reference, run_reference
from campaigns.chaos.trial import Result, Trial

PROJECT = Path(__file__).resolve().parents[3]
OUTCOMES = ("equal", "refused", "unexplained", "lost")
Line = dict[str, object]  # of the record: what became of a fault


class Campaign:
    """Trials one after the other, each a function of the seed and its number."""

    def __init__(self, work: Path, seed: int, stages: list[str]) -> None:
        self.work, self.seed, self.stages = work, seed, stages
        self.folder = Folder(work / "run", PROJECT)
        self.folder.root.mkdir(parents=True, exist_ok=True)
        disk.release(self.folder.results)
        self.library = compile_library(work)
        self.commit = _git("describe", "--always", "--dirty", "--abbrev=12")
        self.reference: Reference = run_reference(self.folder, self.library, work / f"reference-{self.commit}")
        self.has_mounts = disk.can_mount()

    def trial(self, number: int) -> Iterator[Line]:
        """The faults of a trial that struck, and what became of them."""
        stage, seed = self.stages[number % len(self.stages)], f"{self.seed} {number}"
        faults = draw_trial(stage, self.reference.undisturbed(stage), random.Random(seed))
        if not self.has_mounts:
            faults = [fault for fault in faults if fault.kind != FULL]
        began = time.monotonic()
        results = self._results(stage, faults, seed, str(number))
        seconds = round(time.monotonic() - began, 1)
        for fault in faults:
            result = results.get(fault.number)
            if result and not result.struck[fault.number].endswith("nothing to damage"):
                facts = {"seed": self.seed, "trial": number, "stage": stage, "fault": fault.number, "kind": fault.kind}
                where = {"point": fault.point, "struck": result.struck[fault.number], "commit": self.commit}
                yield {**facts, **where, **outcome_of(fault, result), "starts": result.starts, "trial_seconds": seconds}

    def _results(self, stage: str, faults: list[Fault], seed: str, name: str) -> dict[int, Result]:
        """What became of each fault that struck: all together or, where something is lost, the one that alone loses it
        (damage is tried first), and the others without it."""
        result = self.run(stage, faults, seed, name)
        if result.lost and len(result.struck) > 1:
            suspects = [fault for fault in faults if fault.number in result.struck]
            for fault in sorted(suspects, key=lambda fault: "damaged" not in fault.kind):
                alone = self.run(stage, [fault], seed, f"{name}-{fault.number}")
                if alone.lost:
                    others = [other for other in faults if other != fault]
                    without = self._results(stage, others, seed, f"{name}-without-{fault.number}")
                    return {**without, fault.number: alone}
        return dict.fromkeys(result.struck, result)

    def run(self, stage: str, faults: list[Fault], seed: str, name: str) -> Result:
        """Run a trial in a folder for its notes, which stay when something is lost."""
        notes = Notes(self.work / "trials" / name, self.library)
        shutil.rmtree(notes.folder, ignore_errors=True)
        notes.folder.mkdir(parents=True)
        try:
            result = Trial(self.folder, self.reference, notes, stage, seed).run(faults)
            if result.lost:
                shutil.copytree(self.folder.results, notes.folder / "results", symlinks=True)
        finally:
            disk.release(self.folder.results)
        return result


def outcome_of(fault: Fault, result: Result) -> Line:
    """What became of a fault, and the line that a stop was explained with."""
    number = fault.number
    line = result.lines.get(number, "")
    if result.lost:
        return {"outcome": "lost", "line": result.lost}
    if number in result.unexplained:
        return {"outcome": "unexplained", "line": result.unexplained[number]}
    return {"outcome": "refused" if number in result.refused else "equal", "line": line}


def read_record(path: Path) -> list[Line]:
    """The lines so far; a last one that was cut counts for nothing."""
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def run_campaign(campaign: Campaign, record: Path, faults: int, pause: Path | None = None) -> list[Line]:
    """Trials until the record has so many faults; while the file `pause` exists none begins."""
    lines = read_record(record)
    record.parent.mkdir(parents=True, exist_ok=True)
    done = {line["trial"] for line in lines if line["seed"] == campaign.seed}
    number = 0
    while len(lines) < faults:
        while pause and pause.exists():
            time.sleep(1)
        if number not in done:
            new = list(campaign.trial(number))
            with open(record, "a", encoding="utf-8") as file:
                file.write("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in new))
            lines += new
            print(f"trial {number} ({campaign.stages[number % len(campaign.stages)]}):", dict(_counts(new)), flush=True)
        number += 1
    return lines


def _counts(lines: list[Line]) -> Counter:
    return Counter(line["outcome"] for line in lines)


def page_of(lines: list[Line]) -> str:
    """The table of a campaign."""
    commits = Counter(str(line["commit"]) for line in lines)
    page = [
        "# Faults of the whole chain",
        "",
        f"{len(lines):,} faults in {len({(line['seed'], line['trial']) for line in lines})} trials, by "
        f"{_commands(lines)}. Code: "
        + ", ".join(f"{commit} ({count})" for commit, count in commits.items())
        + ". `make chaos` goes on from its record to 500. What the words mean, docs/measurements/README.md says.",
        "",
        "| stage | faults | points | at a random time | equal | refused | unexplained | lost |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for stage in TARGETS:
        own = [line for line in lines if line["stage"] == stage]
        points = {line["point"] for line in own if " % of its time" not in str(line["point"])}
        timed = sum(" % of its time" in str(line["point"]) for line in own)
        page.append(f"| {stage} | {len(own)} | {len(points)} | {timed} | {_cells(own)} |")
    page += [
        f"| all | {len(lines)} | | | {_cells(lines)} |",
        "",
        "| fault | tries | equal | refused | unexplained | lost |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for kind in NAMES:
        if own := [line for line in lines if line["kind"] == kind]:
            page.append(f"| {kind} | {len(own)} | {_cells(own)} |")
    return "\n".join([*page, ""])


def _commands(lines: list[Line]) -> str:
    """The commands that made a record, one for each seed; each counts the faults of those before it."""
    commands = []
    for seed, last in {line["seed"]: number for number, line in enumerate(lines, start=1)}.items():
        own = {line["stage"] for line in lines if line["seed"] == seed}
        stages = "" if own == set(TARGETS) else f" --stages {' '.join(stage for stage in TARGETS if stage in own)}"
        commands.append(f"`make chaos CHAOS='--faults {last} --seed {seed}{stages}'`")
    return " and then ".join(commands)


def _cells(lines: list[Line]) -> str:
    counts = _counts(lines)
    return " | ".join(str(counts[outcome]) for outcome in OUTCOMES)


def _git(*words: str) -> str:
    said = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True)
    return said.stdout.strip() or "unknown"


def main() -> None:
    """Run the campaign and write its page; ends with 1 when something was lost."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--faults", type=int, default=500, help="in all, those in the record among them")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--stages", nargs="+", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--work", type=Path, default=Path("results/chaos"), help="the chain's folder, and the record")
    parser.add_argument("--output", type=Path, default=Path("results/chaos.md"), help="the page")
    parser.add_argument("--pause", type=Path, help="while this file exists, no trial begins")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is ended, too
    work = options.work.resolve()
    record = work / "record.jsonl"
    lines = read_record(record)
    if len(lines) < options.faults:
        if compiler() is None:
            sys.exit("chaos: no C compiler, without which no fault strikes at a call; install gcc")
        lines = run_campaign(Campaign(work, options.seed, options.stages), record, options.faults, options.pause)
    page = page_of(lines)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page, encoding="utf-8")
    print(page)
    bad = [line for line in lines if line["outcome"] in OUTCOMES[2:]]
    sys.exit("\n".join(f"{line['stage']}: {line['kind']}: {line['point']}: {line['line']}" for line in bad) or None)


if __name__ == "__main__":
    main()
