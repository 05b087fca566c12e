"""One trial: a stage is run by the same command again and again while faults strike, and its files are compared."""

import os
import random
import re
import shutil
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from campaigns.chaos import disk
from campaigns.chaos.faults import BETWEEN, CLOCK, DAMAGES, DELETED, EMPTIED, FULL, REBOOT, SECOND, STOPPED, TIME, Fault
from campaigns.chaos.preload import SNAKEMAKE, Notes, unsynced
from campaigns.chaos.stages import (
    RESULTS,
    TARGETS,
    Folder,
    Reference,
    Start,
    artefacts,
    cpu_seconds,
    difference,
    is_measured,
    measurements,
)

MOST_STARTS = 30
PATIENCE = 3  # starts that fail though no fault struck and no remedy was named
LINGER = 180  # seconds in which what is left of a killed run must end by itself
WORDS = ([], ["--keep-going"], ["--keep-going", "--retries", "3"])  # with which users start Snakemake
LINE = re.compile(r"^\s*(symbert (?!.*a step failed).*?: .*)$", re.M)
JUMPS = (-400 * 86400, -86400, -3600, 3600, 86400, 400 * 86400)  # seconds
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "kill-group": signal.SIGKILL}


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
        self.draw = random.Random(seed)
        self.words = [*TARGETS[stage], *self.draw.choice(WORDS)]
        self.seconds = reference.undisturbed(stage).seconds
        self.quiet = Notes(notes.folder / "quiet", notes.library)  # of starts that no fault strikes
        self.quiet.folder.mkdir(parents=True)
        self.groups: list[Start] = []
        self.stopped: Start | None = None  # that had a job stopped, and is no more itself
        self.damaged: set[str] = set()  # files, which stay as they are where nothing reads them again
        self.result = Result()

    def run(self, faults: list[Fault]) -> Result:
        """Let the faults strike until the command ends with 0, and compare."""
        self.faults = faults
        self.between = [fault for fault in faults if fault.kind in BETWEEN]
        self.between.sort(key=lambda fault: fault.kind != FULL)  # which holds from the first start on
        self.notes.plan(
            (fault.number, fault.process, fault.call, fault.count, fault.action, fault.error)
            for fault in faults
            if fault.process and fault.call != TIME
        )
        self.folder.restore(self.reference.before(self.stage))
        try:
            self._run_to_the_end()
            if not self.result.lost:
                self._compare()
        except TimeoutError:
            self.result.lost = "hangs"
        finally:
            for start in self.groups:
                start.kill_all()
        self.result.struck = self.notes.struck()
        return self.result

    def _run_to_the_end(self) -> None:
        patience, more = PATIENCE, []
        while True:
            before = set(self.notes.struck())
            code, output = self._start(more)
            new = self.notes.struck().keys() - before
            if code == 0:
                return
            is_remedied, more = self._heed(output, new)
            patience -= not (new or is_remedied)
            if self.result.starts == MOST_STARTS or not patience:
                self.result.lost = f"does not end: {(LINE.findall(output) or output.splitlines() or [''])[-1]}"
                return

    def _start(self, more: list[str]) -> tuple[int | None, str]:
        """Start the command once, with what strikes between two starts before it; exit code and output."""
        is_due = self.between and (self.result.starts or self.between[0].kind == FULL)
        event = self.between.pop(0) if is_due else None
        kind, clock, second = event.kind if event else "", None, False
        draw = random.Random(event.seed if event else 0)
        if kind in (DELETED, EMPTIED):
            shutil.rmtree(self.folder.root / ".snakemake", ignore_errors=True)
            if kind == EMPTIED:
                (self.folder.root / ".snakemake").mkdir()
            self.notes.mark(event.number, kind)
        elif kind == CLOCK:
            clock = time.monotonic() + draw.uniform(0, 6), draw.choice(JUMPS)
        elif kind == FULL:
            disk.limit(self.folder.results, self._room(draw.random()))
        self.result.starts += 1
        place, wall = self.notes.length(), time.time() - time.monotonic()
        start = self.folder.start(self.notes, [*self.words, *more], clock)
        self.groups.append(start)

        def look(start: Start) -> bool:
            nonlocal second
            self._strike_in_time(start)
            if kind == SECOND and not second and start.pids.keys() - {SNAKEMAKE}:
                second = True
                self._start_second(event)
            return not self.stopped and self._stopped(start) is not None

        code = self.folder.watch(start, self.notes, look)
        output = start.output.read_text(encoding="utf-8", errors="replace")
        if clock and time.monotonic() > clock[0]:
            disk.shift_times(self.folder.root, clock[0] + wall, clock[1])
            self.notes.mark(event.number, f"{clock[1]:+} s")
        if kind == FULL:
            disk.enlarge(self.folder.results)
            if "No space left" in output:
                self.notes.mark(event.number, kind)
        if self.stopped:  # another start has taken the place of this one
            self._go_on()
        if code is None:
            start.process.kill()
            start.process.wait()
            self.stopped = start
        self._spoil(place)
        return code, output

    def _room(self, share: float) -> int:
        """Bytes of a file system that fills up when the stage has written a share of its files."""
        before, after = (
            disk.size_on_disk(snapshot)
            for snapshot in (self.reference.before(self.stage), self.reference.after(self.stage))
        )
        return before + round(share * (after - before))

    def _strike_in_time(self, start: Start) -> None:
        """Let faults strike whose process has taken the share of its time."""
        struck = self.notes.struck()
        waiting: dict[str, Fault] = {}
        for fault in self.faults:
            if fault.call == TIME and fault.number not in struck:
                waiting.setdefault(fault.process, fault)
        for name, fault in waiting.items():
            pid = start.pids.get(name)
            taken = cpu_seconds(pid) if pid else None
            if taken is None or taken < fault.count / 1000 * self.seconds.get(name, 0):
                continue
            del start.pids[name]
            self.notes.mark(fault.number, f"{name} after {taken:.2f} s of CPU time")
            with suppress(ProcessLookupError):
                if fault.action == "kill-group":
                    os.killpg(start.process.pid, signal.SIGKILL)
                else:
                    os.kill(pid, SIGNALS[fault.action])

    def _start_second(self, event: Fault) -> None:
        """The same command at the same time: it must say that the folder is locked."""
        second = self.folder.start(self.quiet, self.words)
        self.groups.append(second)
        code = self.folder.watch(second, self.quiet)
        if code and "cannot be locked" in second.output.read_text(encoding="utf-8"):
            self.notes.mark(event.number, "Directory cannot be locked")

    def _stopped(self, start: Start) -> int | None:
        """The process of a job that a fault has stopped and that was not continued yet."""
        for fault in self.faults:
            if fault.kind == STOPPED.name and fault.number in self.notes.struck():
                pid = start.pids.get(fault.process, 0)
                with suppress(OSError):
                    if pid and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
                        return pid
        return None

    def _go_on(self) -> None:
        """Let the job that was stopped go on, and wait for its end, unless another fault has killed all meanwhile."""
        stopped, self.stopped = self.stopped, None
        if pid := self._stopped(stopped):
            os.kill(pid, signal.SIGCONT)
        if not stopped.wait_for_all(LINGER):
            self.result.lost = "a stopped job does not end when it goes on"

    def _unlock(self) -> None:
        self.folder.watch(unlocking := self.folder.start(self.quiet, ["--unlock"]), self.quiet)
        self.groups.append(unlocking)

    def _spoil(self, place: int) -> None:
        """Cut what a reboot in this start has cut, and damage the file of a damage for which all was killed in it."""
        calls, _ = self.notes.trace(place)
        text = {}
        for fault in self.faults:
            mark = self.notes.struck().get(fault.number, "")
            if not mark or mark.startswith("done: "):
                continue
            draw = random.Random(fault.seed)
            damages = [kind for kind in DAMAGES[self.stage] if kind.name == fault.kind]
            if fault.kind == REBOOT:
                for start in self.groups:
                    start.kill_all()
                cut = [disk.cut(file, draw) for file in unsynced(calls, self.folder.root)]
                text[fault.number] = f"done: {mark}: {len(cut)} files cut"
            elif damages:
                file, how = disk.damage(self.folder.results, damages[0], draw)
                self.damaged.add(file)
                text[fault.number] = f"done: {mark}: {file} {how}"
        for number, words in text.items():
            self.notes.mark(number, words)

    def _heed(self, output: str, new: set[int]) -> tuple[bool, list[str]]:
        """Note what a failed start said, and do what it says is to be done; whether it said something, and the words
        that the next start has more."""
        lines = LINE.findall(output)
        errors = [fault for fault in self.faults if fault.number in new and fault.error]
        for fault in errors:
            meant = [line for line in lines if os.strerror(fault.error) in line]
            if meant:
                self.result.lines[fault.number] = meant[0]
        wrong = [line for line in lines if "internal error" in line]
        if "Traceback" in output and not any(fault.process == SNAKEMAKE for fault in errors):
            wrong.append("Traceback")
        for fault in errors if wrong else ():
            self.result.unexplained[fault.number] = wrong[0]
        for fault in self.faults:  # whose job holds the lock of its folder
            if fault.number in new and fault.kind == STOPPED.name:
                holding = [line for line in lines if "in use by" in line]
                self.result.lines |= dict.fromkeys([fault.number] * len(holding), "".join(holding[:1]))
        if "--unlock" in output:
            self._unlock()
            self._note_refusal("Directory cannot be locked: snakemake --unlock", self._stopping())
            return True, []
        remedy = disk.follow(lines, self.folder.root)
        if remedy is not None:
            line, words = remedy
            self._note_refusal(line, [fault.number for fault in self.faults if "damaged" in fault.kind])
            return True, words
        return False, []

    def _stopping(self) -> list[int]:
        """The faults so far that ended Snakemake before it could take its lock away."""
        return [
            fault.number
            for fault in self.faults
            if fault.action == "kill-group" or (fault.process == SNAKEMAKE and fault.action in ("kill", "stay"))
        ]

    def _note_refusal(self, line: str, numbers: list[int]) -> None:
        for number in self.notes.struck().keys() & set(numbers):
            self.result.refused.add(number)
            self.result.lines[number] = line

    def _compare(self) -> None:
        for start in self.groups:
            if not start.wait_for_all(LINGER):
                self.result.lost = "what a killed run left does not end"
        wanted, found = self.reference.artefacts(self.stage), artefacts(self.folder.results)
        for name in self.damaged & wanted.keys() & found.keys():
            found[name] = wanted[name]
        after = self.reference.after(self.stage) / RESULTS
        if measurements(after) != measurements(self.folder.results):  # a job of an earlier stage ran again
            wanted, found = (
                {name: files[name] for name in files if not is_measured(name)} for files in (wanted, found)
            )
        self.result.lost = self.result.lost or difference(wanted, found)
