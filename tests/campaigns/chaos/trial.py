"""One trial: a stage is run by the same command again and again while faults strike, and its files are compared."""

import os
import random
import re
import shutil
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field

from campaigns.chaos import disk
from campaigns.chaos.faults import BETWEEN, CLOCK, DAMAGES, DELETED, EMPTIED, FULL, REBOOT, TIME, Fault
from campaigns.chaos.stages import (
    SNAKEMAKE,
    TARGETS,
    Folder,
    Notes,
    Reference,
    Start,
    artefacts,
    difference,
    measurements,
    without_measured,
)

MOST_STARTS = 30
PATIENCE = 3  # starts that fail though no fault struck and no remedy was named
LINGER = 180  # seconds in which what is left of a killed run must end by itself
WORDS = ([], ["--keep-going"], ["--keep-going", "--retries", "3"])  # with which users start Snakemake
LINE = re.compile(r"^\s*(symbert (?!.*a step failed).*?: .*)$", re.M)
JUMPS = (-400 * 86400, -3600, 3600, 400 * 86400)  # seconds
LOCKED = "Directory cannot be locked: snakemake --unlock"


@dataclass
class Result:
    """What became of a trial."""

    struck: dict[int, str] = field(default_factory=dict)  # the call, by the number of the fault
    lines: dict[int, str] = field(default_factory=dict)  # that a stop was explained with
    refused: set[int] = field(default_factory=set)  # after which the same command went on only once a remedy was used
    unexplained: dict[int, str] = field(default_factory=dict)  # after which a stop had no line that says what to do
    lost: str = ""  # what must never be: other bytes, or no end
    starts: int = 0


class Trial:
    """A stage, from what the stage before left to the end."""

    def __init__(self, folder: Folder, reference: Reference, notes: Notes, stage: str, seed: str) -> None:
        self.folder, self.reference, self.notes, self.stage = folder, reference, notes, stage
        self.words = [*TARGETS[stage], *random.Random(seed).choice(WORDS)]
        self.starts: list[Start] = []
        self.damaged: set[str] = set()  # files, which stay as they are where nothing reads them again
        self.result = Result()

    def run(self, faults: list[Fault]) -> Result:
        """Let the faults strike until the command ends with 0, and compare."""
        self.faults = faults
        at_calls = [fault for fault in faults if fault.process and fault.call != TIME]
        self.notes.plan((f.number, f.process, f.call, f.count, f.action, f.error) for f in at_calls)
        self.between = [fault for fault in faults if fault.kind in BETWEEN]
        self.between.sort(key=lambda fault: fault.kind != FULL)  # which holds from the first start on
        self.folder.restore(self.reference.before(self.stage))
        try:
            self._run_to_the_end()
            if not self.result.lost:
                self._compare()
        finally:
            for start in self.starts:
                start.kill_all()
        self.result.struck = self.notes.struck()
        return self.result

    def _run_to_the_end(self) -> None:
        patience, more = PATIENCE, []
        while True:
            before = set(self.notes.struck())
            code, output = self._start(more)
            new = self.notes.struck().keys() - before
            self._spoil(new)
            if self.starts[-1].hangs:
                self.result.lost = "hangs"
            if code == 0 or self.result.lost:
                return
            is_remedied, more = self._heed(output, new)
            patience -= not (new or is_remedied)
            if self.result.starts == MOST_STARTS or not patience:
                self.result.lost = f"does not end: {(LINE.findall(output) or output.splitlines() or [''])[-1]}"
                return

    def _start(self, more: list[str]) -> tuple[int, str]:
        """Start the command once, with what strikes between two starts before it; exit code and output."""
        is_due = self.between and (self.result.starts or self.between[0].kind == FULL)
        event = self.between.pop(0) if is_due else None
        kind, draw = (event.kind, random.Random(event.seed)) if event else ("", random.Random(0))
        if kind in (DELETED, EMPTIED):
            shutil.rmtree(self.folder.root / ".snakemake", ignore_errors=True)
            if kind == EMPTIED:
                (self.folder.root / ".snakemake").mkdir()
            self.notes.mark(event.number, kind)
        elif kind == CLOCK:
            jump = draw.choice(JUMPS)
            disk.shift_times(self.folder.root, draw, jump)
            self.notes.mark(event.number, f"{jump:+} s")
        elif kind == FULL:
            disk.limit(self.folder.results, self._room(draw.random()))
        self.result.starts += 1
        start = self.folder.start(self.notes, [*self.words, *more])
        self.starts.append(start)
        code = self.folder.watch(start, self._strike_in_time)
        if kind == FULL:
            disk.enlarge(self.folder.results)
            if "No space left" in start.text():
                self.notes.mark(event.number, kind)
        return code, start.text()

    def _room(self, share: float) -> int:
        """Bytes of a file system that fills up when the stage has written a share of its files."""
        before, after = (
            disk.size_on_disk(snapshot)
            for snapshot in (self.reference.before(self.stage), self.reference.after(self.stage))
        )
        return before + round(share * (after - before))

    def _strike_in_time(self, start: Start) -> None:
        """Kill Snakemake, or all, where a fault's moment has come."""
        passed = (time.monotonic() - start.begun) / self.reference.seconds(self.stage)
        for fault in self.faults:
            if fault.call == TIME and passed > fault.count / 1000 and fault.number not in self.notes.struck():
                self.notes.mark(fault.number, f"after {fault.count / 10:.0f} % of the time")
                with suppress(ProcessLookupError):
                    os.kill(start.process.pid, signal.SIGKILL)
                    if fault.action == "kill-group":
                        os.killpg(start.process.pid, signal.SIGKILL)
                return

    def _spoil(self, new: set[int]) -> None:
        """Cut what a reboot has cut, and damage the file of a damage for which all was killed."""
        for fault in (fault for fault in self.faults if fault.number in new):
            draw, mark = random.Random(fault.seed), self.notes.struck()[fault.number]
            damages = [kind for kind in DAMAGES[self.stage] if kind.name == fault.kind]
            if fault.kind == REBOOT:
                for start in self.starts:
                    start.kill_all()
                files = disk.unsynced(self.notes.trace(), self.folder.root)
                self.notes.mark(fault.number, f"{mark}: {len([disk.cut(file, draw) for file in files])} files cut")
            elif damages:
                file, how = disk.damage(self.folder.results, damages[0], draw)
                self.damaged.add(file)
                self.notes.mark(fault.number, f"{mark}: {file} {how}")

    def _heed(self, output: str, new: set[int]) -> tuple[bool, list[str]]:
        """Note what a failed start said, and do what it says is to be done; whether it said something, and the words
        that the next start has more."""
        lines = LINE.findall(output)
        errors = [fault for fault in self.faults if fault.number in new and fault.error]
        for fault in errors:
            if meant := [line for line in lines if os.strerror(fault.error) in line]:
                self.result.lines[fault.number] = meant[0]
        if "Traceback" in output and not any(fault.process == SNAKEMAKE for fault in errors):
            self.result.unexplained |= {fault.number: "a traceback" for fault in errors}
        if "--unlock" in output:
            quiet = Notes(self.notes.folder / "quiet")
            quiet.plan([])
            self.starts.append(self.folder.start(quiet, ["--unlock"]))
            self.folder.watch(self.starts[-1])
            self._note_refusal(LOCKED, [f for f in self.faults if f.action == "kill-group" or f.process == SNAKEMAKE])
            return True, []
        if (remedy := disk.follow(lines, self.folder.root)) is None:
            return False, []
        line, words = remedy
        self._note_refusal(line, [fault for fault in self.faults if "damaged" in fault.kind])
        return True, words

    def _note_refusal(self, line: str, faults: list[Fault]) -> None:
        for number in self.notes.struck().keys() & {fault.number for fault in faults}:
            self.result.refused.add(number)
            self.result.lines[number] = line

    def _compare(self) -> None:
        end = time.monotonic() + LINGER
        while any(start.processes() for start in self.starts):
            if time.monotonic() > end:
                self.result.lost = "what a killed run left does not end"
                return
            time.sleep(0.05)
        after = self.reference.after(self.stage) / "results"
        wanted, found = artefacts(after), artefacts(self.folder.results)
        for name in self.damaged & wanted.keys() & found.keys():
            found[name] = wanted[name]
        if measurements(after) != measurements(self.folder.results):  # a job of an earlier stage ran again
            wanted, found = without_measured(wanted), without_measured(found)
        self.result.lost = difference(wanted, found)
