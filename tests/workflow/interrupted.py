"""Snakemake, interrupted: in a workflow of seconds that heeds signals as the project's does, or in the project's."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from workflow.checkout import Checkout, wait_for

SNAKEFILE = """\
import sys
from symbert.experiment.status import heed_signals

onstart:
    {onstart}
    print("symbert: a toy", file=sys.stderr, flush=True)

rule all:
    input: expand("{{number}}.txt", number=[1, 2, 3])

rule one:
    output: "{{number}}.txt"
    shell: "touch {{output}}.begun; {shell}"
"""
LATE = "sleep 0.5; (sleep 1.5; touch {output}) > /dev/null 2>&1 &"  # as the file of another node
TOY = ("--scheduler", "greedy", "--latency-wait", "4")  # seconds
BEGINS = "symbert: "  # from when on signals are heeded
WAITS = "Waiting at most"  # Snakemake, for a file
PATIENCE = 90  # seconds after a signal, in which jobs end and their files are waited for; an end after that is none


@dataclass(frozen=True)
class Interruption:
    """When and how Snakemake is interrupted."""

    moment: str | float  # "runs": a job does; "waits": Snakemake does, for its file; or seconds after the start
    numbers: tuple[int, ...]  # signals
    pause: float  # seconds between two of them
    to_all: bool  # to the jobs as well


def drawn(draw: random.Random, moments: tuple[str, ...], stretch: float) -> Interruption:
    """Any interruption; one of seconds is within a stretch of them, and as likely as one of the moments."""
    patterns: list[tuple[int, ...]] = [
        (signal.SIGTERM,),
        (signal.SIGHUP,),
        (signal.SIGTERM, signal.SIGTERM),
        (signal.SIGHUP, signal.SIGTERM),
        (signal.SIGTERM,) * draw.randint(3, 40),
        (signal.SIGTERM, signal.SIGINT),
        (signal.SIGINT,),
    ]
    moment = draw.choice([*moments, draw.uniform(0, stretch)])
    return Interruption(moment, draw.choice(patterns), draw.choice([0, 0.0001, 0.001, 0.05, 1]), draw.random() < 0.5)


@dataclass(frozen=True)
class End:
    """What came of an interruption."""

    code: int | None  # None: Snakemake did not end
    output: str
    is_locked: bool  # the folder, against the next start


def toy(folder: Path, onstart: str = "heed_signals()", shell: str = LATE) -> Checkout:
    """The workflow of seconds in a folder of its own."""
    folder.mkdir(parents=True)
    (folder / "Snakefile").write_text(SNAKEFILE.format(onstart=onstart, shell=shell))
    return Checkout(folder)


def interrupted(checkout: Checkout, by: Interruption, *words: str, patience: float = PATIENCE) -> End:
    """Start Snakemake and interrupt it; where it does not end, its process group is killed."""
    with checkout.running(*words) as (process, output):

        def is_moment() -> bool:
            if by.moment == "runs":
                return any(checkout.directory.glob("*.begun"))
            return (WAITS if by.moment == "waits" else BEGINS) in output.read_text()

        wait_for(lambda: process.poll() is not None or is_moment(), process)
        if isinstance(by.moment, float):
            time.sleep(by.moment)
        for number in by.numbers:
            if process.poll() is None:
                (os.killpg if by.to_all else os.kill)(process.pid, number)
                time.sleep(by.pause)
        code = None
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(patience)
        return End(code, output.read_text(), any(checkout.directory.glob(".snakemake/locks/*")))


def some_at_once(tries: Iterable[Callable[[], End]], at_once: int = 4) -> list[End]:
    """The ends of several interruptions, some at a time."""
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda interrupt: interrupt(), tries))
