"""results/ of a test: rows, checkpoints and scores where an experiment has them, with settings.json beside."""

import json
from pathlib import Path

from glue.protocol import SETTINGS
from symbert.configuration import values_of
from symbert.files import write_json
from symbert.glue.metrics import checked
from symbert.glue.prepare import prepare_task
from symbert.glue.score import score
from symbert.glue.tasks import suite_of, task_named
from symbert.model.bert import MaskedModel, initialize
from symbert.model.configuration import Configuration
from symbert.model.hf import write_model
from symbert.paths import key
from symbert.sources import DEMO

PROTOCOL = values_of(SETTINGS) | {"epochs": 1, "dropout": 0.0, "precision": "auto"}
STEP = 300
RUN = {"size": "tiny", "pretrain_seed": 1, "step": STEP}


class Laboratory:
    """A folder results/; what is not said is the stand-in's, of few rows and one epoch."""

    def __init__(self, results: Path, vocabulary: Path) -> None:
        self.results, self.vocabulary = results, vocabulary

    def folder(self, name: str, settings: dict) -> Path:
        """A folder of these settings."""
        folder = self.results / f"{name}-{key(settings)}"
        write_json(folder / "settings.json", settings)
        return folder

    def rows(self, task: str, kind: str = "tasks", root: Path = DEMO, **changes) -> Path:
        """Where the rows of a task are prepared, of the published files below `root`."""
        settings = {"kind": kind, "max_length": 64, "max_examples": 64, "max_evaluation_examples": 40}
        settings |= {"vocabulary": str(self.vocabulary)}
        if "own" not in changes:
            repository = "nyu-mll/blimp" if task == "blimp" else suite_of(task_named(task)).repository
            settings["source"] = str(root / repository)
        return self.folder("tasks/rows", settings | changes) / f"{task}.parquet"

    def prepare(self, task: str, kind: str = "tasks", allow_partial: bool = True, **changes) -> Path:
        """The rows of a task."""
        file = self.rows(task, kind, **changes)
        prepare_task(file, allow_partial)
        return file

    def checkpoint(self, attention: str = "pairwise", weights: int = 1) -> Path:
        """A randomly initialised encoder of one layer."""
        config = Configuration(
            attention=attention,
            vocab_size=len(self.vocabulary.read_text().splitlines()),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
            pretraining={**RUN, "attention": attention},
        )
        model = MaskedModel(config)
        initialize(model, weights)
        folder = self.results / f"runs/encoder/tiny-{attention}-{weights:08}/seed-1/step-{STEP}"
        if not folder.exists():
            write_model(model, folder)
        return folder

    def place(self, checkpoint: Path, suite: Path) -> Path:
        """Where the scores of a checkpoint lie."""
        return suite / checkpoint.relative_to(self.results / "runs")

    def suite(self, rows: Path, **protocol) -> Path:
        """The folder of the scores of fine-tunings on rows."""
        settings = {"kind": "finetune", "suite": "glue", "rows": rows.name, "protocol": PROTOCOL | protocol}
        return self.folder("scores/glue", settings)

    def finetune(
        self, tasks=("rte",), seeds=(1,), attention="pairwise", weights=1, rows=None, keep=None, name=None, **protocol
    ) -> Path:
        """The file of the scores of a checkpoint, computed."""
        files = [self.rows(task, **(rows or {})) for task in tasks]
        for file in files:
            if not file.exists():
                prepare_task(file, allow_partial=True)
        suite = self.suite(files[0].parent, **protocol)
        return self.score(suite, self.checkpoint(attention, weights), tasks, seeds, keep, name)

    def score(self, suite: Path, checkpoint: Path, tasks=None, seeds=None, keep=None, name=None) -> Path:
        """The file of a request, computed."""
        request = name or (f"{len(tasks)}x{len(seeds)}-{key(tasks, seeds)}" if tasks else "pairs")
        file = self.place(checkpoint, suite) / f"{request}.json"
        file.unlink(missing_ok=True)  # as Snakemake does
        score(file, 1, tasks and list(tasks), seeds and list(seeds), keep)
        return file


def records_in(file: Path) -> list[dict]:
    """The records of a file of scores, without their hashes, which are right."""
    return [checked({**record, "hash": record["hash"]}, str(file), "") for record in json.loads(file.read_text())]
