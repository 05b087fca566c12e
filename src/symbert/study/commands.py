"""The commands of a study's rules."""

import json
from pathlib import Path

from symbert.configuration import settings_from
from symbert.files import write_json
from symbert.pretrain.stop import StopRequest
from symbert.study.design import StudyText, cell_of


def write_study_text(text: str, output: Path) -> None:
    """Publish rows of a study's text, given as JSON, and their manifest."""
    from symbert.study import texts

    texts.write_study_text(settings_from(json.loads(text), StudyText, "study: text"), output)


def train_cell(text: str, cell: str, seeds: list[int], manifest: Path, runs: Path, output: Path, threads: int) -> None:
    """Train the runs of a cell, given as JSON, that `runs` lacks, and publish the curves of all in `output`.

    SIGTERM or SIGINT ends it between two steps (exit 75). What is finished stays.
    """
    stop = StopRequest()
    from symbert.study.train import train_runs

    definition = json.loads(cell)
    curves = train_runs(cell_of(text, definition), seeds, manifest, runs, stop)
    write_json(output, {"text": text, "cell": definition, "curves": curves})
