"""Made-up inputs of the report and of Snakemake, as many as asked for: equal arguments give equal files.

Every function writes to `input` in a folder, which exists.
"""

import json
import random
import struct
import zlib
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.paper import paper_sections
from benchmarks.scaled_corpus import write_list
from benchmarks.scored import MODELS, record
from symbert.files import write_json
from symbert.tasks import GLUE
from workflow.checkout import check_out

EVALUATIONS = 50  # of a run


def write_scores(folder: Path, seeds: int) -> None:
    """A file for each model and task of the paper, with the scores of so many fine-tuning seeds."""
    given, draw = folder / "input", random.Random(1)
    settings = paper_sections()["report"]
    for (size, attention), task in product(MODELS, GLUE):
        cells = [(size, attention, settings["steps"], task, seed) for seed in range(1, seeds + 1)]
        records = [record(draw, settings["settings_hash"], *cell) for cell in cells]
        write_json(given / f"scores/{size}-{attention}-{task}.json", records)
    (given / "seeds.txt").write_text(str(seeds))
    write_json(given / "report.json", settings)


def write_runs(folder: Path, count: int) -> None:
    """So many runs of pre-training, each of another seed, with EVALUATIONS, and the lists of their files."""
    given, draw = folder / "input", random.Random(1)
    settings = paper_sections()["report"]
    every = settings["steps"] // EVALUATIONS
    places = [given / f"runs/seed-{seed}" for seed in range(1, count + 1)]
    for seed, place in enumerate(places, start=1):
        run = {"size": "small", "attention": "original", "pretrain_seed": seed}
        losses = [8 * 0.97**number + draw.random() / 100 for number in range(EVALUATIONS)]
        lines = [
            {"split": "validation", "step": number * every, "loss": loss} for number, loss in enumerate(losses, start=1)
        ]
        place.mkdir(parents=True)
        (place / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        write_json(place / "done.json", run | {"steps": settings["steps"]})
    for name, file in (("done", "done.json"), ("metrics", "metrics.jsonl")):
        write_list(given / f"{name}.list", [place / file for place in places])
    runs = [["small", "original", seed] for seed in range(1, count + 1)]
    write_json(given / "report.json", settings | {"runs": runs})


def write_shown(folder: Path, rows: int) -> None:
    """A table of so many rows in its formats, a figure of as many pixels, and a summary."""
    given = folder / "input"
    cells = [[f"BERT_{number}", number % 5, f"{number / 7:.3f}", f"{number / 11:.3f}"] for number in range(rows)]
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells)
    (given / "scores.html").write_text(f"<body>\n<table>\n{body}\n</table>\n</body>\n")
    (given / "scores.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in cells))
    (given / "corpus.png").write_bytes(picture(64, rows))
    (given / "summary.txt").write_text("A sentence.\n")
    write_json(given / "report.json", paper_sections()["report"])


def picture(width: int, height: int) -> bytes:
    """A PNG of grey noise (PNG specification, section 5)."""
    lines = np.random.default_rng(1).integers(0, 256, (height, width + 1), np.uint8)
    lines[:, 0] = 0  # of each line, its filter
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def write_project(folder: Path, parts: int) -> None:
    """A copy of the project without results."""
    check_out(Path(__file__).parents[1], folder / "input/project")
    (folder / "input/parts.txt").write_text(str(parts))
