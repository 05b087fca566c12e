"""A campaign of faults against the whole chain: `make chaos`.

A trial runs one stage of a tiny chain from what the stage before has left, while faults strike its jobs, Snakemake, or
its files. The same command is given again until it ends with 0; what it stops with must say what to do. Then all
files are compared with those of a run that nothing disturbed.
"""

import argparse
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from campaigns.chaos import disk
from campaigns.chaos.faults import FULL, NAMES, Fault, draw_trial
from campaigns.chaos.stages import TARGETS, Folder, Notes, run_reference
from campaigns.chaos.trial import Result, Trial

PROJECT = Path(__file__).resolve().parents[3]
OUTCOMES = ("equal", "refused", "unexplained", "lost")


class Verdict(NamedTuple):
    """What became of a fault that struck."""

    stage: str
    fault: Fault
    outcome: str
    line: str  # that a stop was explained with


class Campaign:
    """Trials one after the other, each a function of the seed and its number."""

    def __init__(self, work: Path, seed: int, stages: list[str]) -> None:
        self.work, self.seed, self.stages = work, seed, stages
        self.folder = Folder(work / "run", PROJECT)
        self.folder.root.mkdir(parents=True, exist_ok=True)
        disk.release(self.folder.results)
        self.reference = run_reference(self.folder, work / f"reference-{commit()}")
        self.has_mounts = disk.can_mount()

    def trial(self, number: int) -> Iterator[Verdict]:
        """The faults of a trial that struck, and what became of them: of all together or, where something is lost, of
        each alone."""
        stage, seed = self.stages[number % len(self.stages)], f"{self.seed} {number}"
        faults = draw_trial(stage, self.reference.calls(stage), random.Random(seed))
        faults = [fault for fault in faults if self.has_mounts or fault.kind != FULL]
        result = self.run(stage, faults, seed, str(number))
        results = dict.fromkeys(result.struck, result)
        if result.lost and len(results) > 1:
            alone = [fault for fault in faults if fault.number in result.struck]
            results = {fault.number: self.run(stage, [fault], seed, f"{number}-{fault.number}") for fault in alone}
        for fault in faults:
            result = results.get(fault.number)
            if result and not result.struck.get(fault.number, "nothing to damage").endswith("nothing to damage"):
                yield verdict_of(stage, fault, result)

    def run(self, stage: str, faults: list[Fault], seed: str, name: str) -> Result:
        """Run a trial in a folder for its notes, which stay when something is lost."""
        notes = Notes(self.work / "trials" / name)
        shutil.rmtree(notes.folder, ignore_errors=True)
        try:
            result = Trial(self.folder, self.reference, notes, stage, seed).run(faults)
            if result.lost:
                shutil.copytree(self.folder.results, notes.folder / "results", symlinks=True)
        finally:
            disk.release(self.folder.results)
        return result


def verdict_of(stage: str, fault: Fault, result: Result) -> Verdict:
    """What became of a fault."""
    number = fault.number
    if result.lost:
        return Verdict(stage, fault, "lost", result.lost)
    if number in result.unexplained:
        return Verdict(stage, fault, "unexplained", result.unexplained[number])
    return Verdict(stage, fault, "refused" if number in result.refused else "equal", result.lines.get(number, ""))


def page_of(verdicts: list[Verdict], seed: int) -> str:
    """The table of a campaign."""
    page = [
        "# Faults of the whole chain",
        "",
        f"{len(verdicts):,} faults, seed {seed}, commit {commit()}: `make chaos`.",
    ]
    page += ["", f"| fault | tries | {' | '.join(OUTCOMES)} |", f"|---|---:{'|---:' * len(OUTCOMES)}|"]
    for name in (*NAMES, "all"):
        counts = Counter(verdict.outcome for verdict in verdicts if name in (verdict.fault.kind, "all"))
        if counts:
            page.append(f"| {name} | {counts.total()} | {' | '.join(str(counts[outcome]) for outcome in OUTCOMES)} |")
    return "\n".join([*page, ""])


def commit() -> str:
    """The commit of the code."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(words, cwd=PROJECT, capture_output=True, text=True).stdout.strip() or "unknown"


def main() -> None:
    """Run the campaign and write its page; ends with 1 when something was lost."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--stages", nargs="+", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--work", type=Path, default=Path("results/chaos"), help="the chain's folder")
    parser.add_argument("--output", type=Path, default=Path("results/chaos.md"), help="the page")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is ended, too
    campaign, verdicts, number = Campaign(options.work.resolve(), options.seed, options.stages), [], 0
    options.output.parent.mkdir(parents=True, exist_ok=True)
    while len(verdicts) < options.faults:
        new = list(campaign.trial(number))
        print(f"trial {number}:", dict(Counter(verdict.outcome for verdict in new)), flush=True)
        verdicts, number = verdicts + new, number + 1
        options.output.write_text(page_of(verdicts, options.seed), encoding="utf-8")
    print(options.output.read_text(encoding="utf-8"))
    bad = [verdict for verdict in verdicts if verdict.outcome in OUTCOMES[2:]]
    sys.exit("\n".join(f"{each.stage}: {each.fault.kind}: {each.fault.point}: {each.line}" for each in bad) or None)


if __name__ == "__main__":
    main()
