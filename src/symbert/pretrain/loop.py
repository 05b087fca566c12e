"""The training loop: step after step, evaluated, written down and saved as configured, until done or asked to stop."""

import math
from dataclasses import dataclass

from symbert.errors import IntegrityError, PreemptedError, TimeLimitError
from symbert.pretrain.checkpoint import CheckpointStore, Position
from symbert.pretrain.journal import Journal
from symbert.pretrain.pace import Pace
from symbert.pretrain.stop import LIMIT, StopRequest
from symbert.pretrain.trainer import Stepped, Trainer
from symbert.progress import Progress

LOG_EVERY = 10  # steps between training lines in metrics.jsonl


@dataclass
class Reached:
    """How many steps of a run are completed."""

    step: int = 0


class Loop:
    """A session of a run: from its newest checkpoint to its end, or to the step at which it is asked to stop."""

    def __init__(self, trainer: Trainer, journal: Journal, pace: Pace, stop: StopRequest, reached: Reached) -> None:
        self.trainer, self.journal, self.pace, self.stop, self.reached = trainer, journal, pace, stop, reached
        self.settings, self.world = trainer.settings, trainer.world
        self.checkpoints = CheckpointStore(trainer.state)

    def run(self) -> float:
        """Do the remaining steps; returns the final validation loss (nats per masked token)."""
        self._resume()
        told = Progress(f"pretrain {self.trainer.run}", self.settings.steps, "steps", self.reached.step)
        for step in range(self.reached.step, self.settings.steps):
            stepped = self.trainer.step(step)
            self.reached.step = step + 1
            self.pace.step()
            self._measure(stepped)
            self._save()
            if self.world.leads:
                told.update(self.reached.step, _note(stepped, self.pace))
        return self.journal.last_validation_loss()

    def _resume(self) -> None:
        trainer = self.trainer
        position = self.checkpoints.load_newest(trainer.model, trainer.optimizer) or Position(0, 0, {})
        if position.scaler:
            trainer.scaler.load_state_dict(position.scaler)
        if self.world.total(position.step) != [position.step * self.world.size]:
            raise IntegrityError(
                f"{self.checkpoints.resume}: process {self.world.rank} could load step {position.step}, others another "
                "one; a file there is damaged or not yet seen everywhere: run again"
            )
        self.reached.step = position.step
        self.journal.resume(position)
        self.journal.measured(position.step, self.pace.summary())
        if position.step == 0:
            self.journal.write(split="initial", step=0, **trainer.describe_start())

    def _measure(self, stepped: Stepped) -> None:
        if self.reached.step % LOG_EVERY == 0:
            norm = stepped.gradient_norm if math.isfinite(stepped.gradient_norm) else None
            self.journal.write(split="train", step=self.reached.step, **{**vars(stepped), "gradient_norm": norm})
        if self.reached.step % self.settings.evaluate_every == 0 or self.reached.step == self.settings.steps:
            self.journal.write(split="validation", step=self.reached.step, loss=self.trainer.evaluate())
            self.pace.restart()

    def _save(self) -> None:
        final = self.reached.step == self.settings.steps
        due = final or self.reached.step % self.settings.save_every == 0
        asked, near_limit = self._count_asked_to_stop()
        if self.world.leads and due:  # before the checkpoint: a run that resumes from it never comes back to this step
            self.checkpoints.keep_weights(self.trainer.model, self.reached.step)
        if self.world.leads and (due or asked):
            position = self.journal.position(self.reached.step, self.trainer.scaler.state_dict())
            self.journal.measured(self.reached.step, self.pace.summary())
            self.checkpoints.save(self.trainer.model, self.trainer.optimizer, position)
            self.pace.restart()
        if asked and not final:
            self.world.wait()
            why = self.stop.signal or "another process was asked to stop"
            kind = TimeLimitError if near_limit == asked else PreemptedError
            raise kind(f"{self.trainer.run}: {why}: saved at step {self.reached.step}; run the same command to go on")

    def _count_asked_to_stop(self) -> list[float]:
        """How many processes were asked to stop, and how many of these by the limit: all stop after the same step."""
        return self.world.total(float(self.stop.signal is not None), float(self.stop.signal == LIMIT))


def _note(stepped: Stepped, pace: Pace) -> str:
    """What a line of the log says beside step and remaining time."""
    norm, rate = f"gradient norm {stepped.gradient_norm:.2f}", f"learning rate {stepped.learning_rate:.2e}"
    return f"loss {stepped.loss:.3f}, {rate}, {norm}, {pace.note()}"
