"""In every Python process of a trial: notes what the process does to files of the run, and lets one fault strike.

CHAOS_ROOT    the folder of the run: only what is below its results and its .snakemake counts
CHAOS_FOLDER  has `faults`, which is read, `trace`, which is written, and a file struck-<number> of each fault that
              struck, so that none strikes twice

A line of `faults` is JSON: number, process, call, count, action, error. A process is known by the log of its job,
or is `snakemake`. It meets the first fault of its own that has not struck yet, at the count-th such call. Python's
audit events are seen, and `os.fsync`; writes of libraries in C are not.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path

CALLS = {"open": "open", "os.rename": "rename", "os.remove": "unlink", "os.mkdir": "mkdir"}  # by audit event
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM}
ROOT, FOLDER = os.environ.get("CHAOS_ROOT", ""), os.environ.get("CHAOS_FOLDER", "")


def process_of(words: list[str]) -> str:
    """`snakemake`, the log of a job, or nothing."""
    module = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
    log = os.path.relpath(os.path.realpath("/proc/self/fd/2"), ROOT)
    return "snakemake" if module == "snakemake" else log if module == "symbert" and not log.startswith("..") else ""


class Strike:
    """The fault of this process."""

    def __init__(self) -> None:
        self.process, self.owner, self.seen, self.broken = process_of(sys.orig_argv), os.getpid(), 0, False
        self.lock, self.fault = threading.Lock(), None
        self.append("trace", f"{self.process}\tstart\t{self.owner}\n")
        with open(f"{FOLDER}/faults", encoding="utf-8") as file:
            for fault in map(json.loads, file):
                if fault[1] == self.process and not Path(FOLDER, f"struck-{fault[0]}").exists() and not self.fault:
                    self.fault = fault

    def append(self, name: str, text: str) -> None:
        with open(f"{FOLDER}/{name}", "a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)

    def meet(self, call: str, path: object, after: object = "") -> None:
        """Note a call, and let the fault strike if it is the one: OSError, or a signal."""
        names = [os.path.relpath(os.path.realpath(os.fsdecode(name)), ROOT) if name else "" for name in (path, after)]
        if os.getpid() != self.owner or not names[0].startswith(("results/", ".snakemake/")):
            return
        line = "\t".join([self.process, call, *filter(None, names)])
        self.append("trace", f"{line}\n")
        if not self.fault:
            return
        number, _, wanted, count, action, error = self.fault
        with self.lock:
            self.seen += call == wanted
            strikes = call == wanted and self.seen == count
        if strikes:
            self.append(f"struck-{number}", line)
            if action in SIGNALS:
                os.kill(self.owner, SIGNALS[action])
            elif action in ("kill-group", "term-group"):
                os.kill(0, SIGNALS[action.removesuffix("-group")])
            self.broken = action == "stay"
        if (action == "fail" and strikes) or (self.broken and call not in ("rename", "unlink")):
            raise OSError(error, os.strerror(error), names[0])

    def hear(self, event: str, arguments: tuple) -> None:
        """The audit hook."""
        if event in CALLS and not isinstance(arguments[0], int):
            if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
                return
            self.meet(CALLS[event], arguments[0], arguments[1] if event == "os.rename" else "")


if ROOT and process_of(sys.orig_argv):
    strike, fsync = Strike(), os.fsync
    sys.addaudithook(strike.hear)

    def noted_fsync(descriptor: int) -> None:
        number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        strike.meet("fsync", Path(f"/proc/self/fd/{number}").readlink())
        fsync(descriptor)

    os.fsync = noted_fsync
