"""What runs and fine-tunings leave in their folders, made up."""

import json
from dataclasses import dataclass
from pathlib import Path

from symbert.pretrain.guard import recorded_settings

from symbert.config import parts_of
from symbert.paths import Experiment, Run
from symbert.settings import hash_of
from symbert.tasks import GLUE


def write(path: Path, value) -> Path:
    """A JSON file, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


@dataclass(frozen=True)
class Traces:
    """Leaves what runs and fine-tunings leave."""

    experiment: Experiment

    def run(self, run: Run, state: str = "done", step: int | None = None, reason: str | None = None, **other) -> Path:
        """The state folder of a run that came to a step; `other` are settings that it had instead of today's."""
        step = self.experiment.final if step is None else step
        folder = self.experiment.place(self.experiment.state, run)
        settings = {**run.model, **recorded_settings(self.experiment.pretraining), "precision": "fp32", **other}
        write(folder / "identity.json", {**run.facts, **settings, "corpus_hash": "c"})
        for kept in self.experiment.steps(run):
            write(folder / f"weights/step-{kept:08d}.json", {"step": kept, "sha256": "w"})
        write(folder / "status.json", {"state": state, "step": step, "exit_code": 0, "reason": reason, "file": None})
        if state == "done":
            self.done(run, **other)
        return folder

    def done(self, run: Run, **other) -> Path:
        """What a finished run publishes of itself."""
        settings = {**run.model, **recorded_settings(self.experiment.pretraining), "precision": "fp32", **other}
        path = self.experiment.place(self.experiment.run, run) / "done.json"
        return write(path, {**run.facts, "settings": settings, "corpus_hash": "c"})

    def corpus(self, mark: str = "c") -> Path:
        """A packed corpus of all parts."""
        manifest = {"hash": mark, "parts": parts_of(self.experiment.config)}
        return write(Path(self.experiment.shards) / "manifest.json", manifest)

    def aside(self, run: Run, step: int, **other) -> Path:
        """A state that was set aside."""
        state = self.run(run, "preempted", step, **other)
        return state.rename(state.with_name("state.superseded-0a"))

    def robustness(self, run: Run, task: str, seeds: list[int], **changes) -> Path:
        """The published scores on today's noise."""
        chosen = self.experiment.config["glue"]["robustness"]
        kinds = [f"{kind}-{100 * share:g}" for kind in chosen["noise_kinds"] for share in chosen["noise"]]
        sets = {f"{kind} {column}": {} for kind in kinds for column in GLUE[task].scores.values()}
        final = self.experiment.final
        path = self.experiment.place(self.experiment.robustness, run, step=final, task=task)
        return write(path, [{**self.record(run, final, task, seed, **changes), "sets": sets} for seed in seeds])

    def lease(self, folder: Path, host: str, process: int) -> None:
        """The lock file of a folder, as its holder leaves it."""
        write(folder / "lock", {"host": host, "process": process, "slurm_job": None})

    def record(self, run: Run, step: int, task: str, seed: int, **changes) -> dict:
        """A score under today's settings."""
        basis = {"checkpoint_sha256": "w", "data_sha256": "d", "precision": "fp32"}
        today = {"settings_hash": hash_of(self.experiment.finetuning(task)), **basis}
        return {**run.facts, "step": step, "task": task, "finetune_seed": seed, **today, **changes}

    def scores(self, run: Run, step: int, task: str, seeds: list[int], **changes) -> Path:
        """The published scores of a task."""
        path = self.experiment.scores(run, step, task)
        return write(path, [self.record(run, step, task, seed, **changes) for seed in seeds])

    def judged(self, run: Run, step: int, **changes) -> Path:
        """How a checkpoint judged BLiMP's pairs."""
        today = {"settings_hash": hash_of(self.experiment.judging), "checkpoint_sha256": "w"}
        return write(self.experiment.place(self.experiment.judged, run, step=step), {**today, **changes})

    def kept(self, run: Run, step: int, task: str, seed: int, key: str = "0123abcd", **changes) -> Path:
        """One fine-tuning in the state folder."""
        state = self.experiment.scores(run, step, task).parent / "state"
        record = self.record(run, step, task, seed, **changes)
        return write(state / task / f"seed-{seed}-{key}.json", {"record": record, "predictions": {}})
