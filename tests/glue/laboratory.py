"""results/ of a test: rows, checkpoints and scores where an experiment has them, with settings.json beside."""

import json
from pathlib import Path

import msgspec

from foreign import make_model, model_in
from glue.protocol import SETTINGS
from symbert.configuration import PairLimits, RobustnessSettings, TaskLimits
from symbert.files import write_json
from symbert.foreign import ForeignModel, Tokenizer, Tuning
from symbert.glue.metrics import checked
from symbert.glue.prepare import PreparePairs, PrepareRobustness, PrepareTasks, prepare_task
from symbert.glue.score import Finetune, MinimalPairs, Robustness, score
from symbert.glue.tasks import CustomRows, suite_of
from symbert.model.bert import MaskedModel, initialize
from symbert.model.configuration import Configuration
from symbert.model.hf import write_model
from symbert.paths import key
from symbert.sources import DEMO
from symbert.steps import AnyStep, File, Step

PROTOCOL = {"epochs": 1, "dropout": 0.0, "precision": "auto"}
STEP = 300
RUN = {"size": "tiny", "pretrain_seed": 1, "step": STEP}


class Laboratory:
    """The folder with results/, in which the test runs; what is not said is the stand-in's, of few rows, one epoch."""

    def __init__(self, folder: Path, vocabulary: Path) -> None:
        self.results, self.vocabulary = folder / "results", vocabulary

    def planned(self, step: AnyStep) -> AnyStep:
        """A step, whose settings.json is written."""
        write_json(Path(step.settings_file), msgspec.to_builtins(step))
        return step

    def _pieces(self, tokenizer: Tokenizer | None) -> dict[str, File | Tokenizer]:
        """By what texts become token ids."""
        return {"tokenizer": tokenizer} if tokenizer else {"vocabulary": File(str(self.vocabulary))}

    def rows(
        self,
        task: str,
        root: Path = DEMO,
        custom: CustomRows | None = None,
        tokenizer: Tokenizer | None = None,
        **limits,
    ) -> PrepareTasks:
        """How the rows of a task are prepared, of the published files below `root`."""
        suite = suite_of(task)
        wanted = {"max_length": 64, "max_examples": 64, "max_evaluation_examples": 40} | limits
        source = None if custom else File(str(root / suite.repository))
        step = PrepareTasks(
            suite=suite.name,
            limits=TaskLimits(**wanted),
            source=source,
            custom={task: custom} if custom else {},
            **self._pieces(tokenizer),
        )
        return self.planned(step)

    def sets(self, clean: PrepareTasks, root: Path | None = None, sets=(), noise=(), kinds=()) -> PrepareRobustness:
        """How the noisy and out-of-domain sets of tasks are prepared."""
        chosen = RobustnessSettings(list(sets), list(noise), list(kinds))
        return self.planned(PrepareRobustness(clean=clean, chosen=chosen, root=root and File(str(root))))

    def pairs(
        self, root: Path = DEMO, max_length: int = 64, max_evaluation_examples=None, tokenizer: Tokenizer | None = None
    ) -> PreparePairs:
        """How minimal pairs are prepared."""
        source = File(str(root / "nyu-mll/blimp"))
        limits = PairLimits(max_length=max_length, max_evaluation_examples=max_evaluation_examples)
        return self.planned(PreparePairs(limits=limits, source=source, **self._pieces(tokenizer)))

    def prepared(self, step: Step, task: str, allow_partial: bool = True) -> Path:
        """The rows of a task, computed."""
        prepare_task(Path(step.folder), task, allow_partial)
        return Path(step.file(task))

    def prepare(self, task: str, allow_partial: bool = True, **changes) -> Path:
        """The rows of a task, computed, with changes of the limits or files."""
        return self.prepared(self.rows(task, **changes), task, allow_partial)

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

    def place(self, checkpoint: Path, how: Step) -> Path:
        """Where the scores of a checkpoint lie."""
        runs = self.results / "runs"
        return Path(how.folder) / checkpoint.relative_to(runs if checkpoint.is_relative_to(runs) else self.results)

    def foreign(self, family: str, name: str = "mine", **config) -> tuple[Path, ForeignModel]:
        """A model from elsewhere: the folder that says so, and what it says."""
        model = self.planned(model_in(make_model(self.results / "theirs" / name, family, **config), name))
        return Path(model.folder).absolute(), model

    def protocol(self, rows: PrepareTasks, tuning: Tuning | None = None, **protocol) -> Finetune:
        """How models are fine-tuned on rows."""
        settings = msgspec.structs.replace(SETTINGS, **(PROTOCOL | protocol))
        return self.planned(Finetune(rows=rows, protocol=settings, tuning=tuning))

    def robustness(self, rows: PrepareRobustness, trained: Finetune) -> Robustness:
        """How fine-tuned models are scored on sets."""
        return self.planned(Robustness(rows=rows, trained=trained))

    def score_pairs(self, rows: PreparePairs) -> MinimalPairs:
        """How checkpoints judge pairs."""
        return self.planned(MinimalPairs(rows=rows))

    def finetune(
        self, tasks=("rte",), seeds=(1,), attention="pairwise", weights=1, rows=None, keep=None, name=None, **protocol
    ) -> Path:
        """The file of the scores of a checkpoint, computed."""
        step = self.rows(tasks[0], **(rows or {}))
        for task in tasks:
            if not Path(step.file(task)).exists():
                self.prepared(step, task)
        return self.score(
            self.protocol(step, **protocol), self.checkpoint(attention, weights), tasks, seeds, keep, name
        )

    def score(self, how: Step, checkpoint: Path, tasks=None, seeds=None, keep=None, name=None) -> Path:
        """The file of a selection, computed."""
        selection = name or (f"{len(tasks)}x{len(seeds)}-{key(tasks, seeds)}" if tasks else "pairs")
        file = self.place(checkpoint, how) / f"{selection}.json"
        file.unlink(missing_ok=True)  # as Snakemake does
        trained = self.place(checkpoint, how.trained) if isinstance(how, Robustness) else None
        score(file, Path(how.folder), checkpoint, 1, trained, tasks and list(tasks), seeds and list(seeds), keep)
        return file


def records_in(file: Path) -> list[dict]:
    """The records of a file of scores, without their hashes, which are right."""
    return [checked({**record, "hash": record["hash"]}, str(file), "") for record in json.loads(file.read_text())]
