"""A session of a run: what surrounds the loop so that nothing is mixed, lost, or published twice."""

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch

from symbert.commit import PROJECT, commit_of
from symbert.errors import ConfigError
from symbert.files import copy_file, read_json, sha256_of, single_writer, write_json
from symbert.model.device import resolve_precision
from symbert.pretrain.flops import measure_peak, model_flops
from symbert.pretrain.guard import guard_settings, settings_told
from symbert.pretrain.job import Execution, Places, Run
from symbert.pretrain.journal import Journal, NoJournal
from symbert.pretrain.loop import Loop, Reached
from symbert.pretrain.memory import memory_explained
from symbert.pretrain.metrics import METRICS
from symbert.pretrain.pace import Pace
from symbert.pretrain.provenance import facts_of_machine, open_session, read_sessions
from symbert.pretrain.recipe import RECIPES, compiler_explained, dropout_told
from symbert.pretrain.rows import verify_manifest, verify_shards
from symbert.pretrain.status import reported
from symbert.pretrain.stop import StopRequest
from symbert.pretrain.storage import plan, refuse_full, storage_of
from symbert.pretrain.trainer import Trainer
from symbert.pretrain.world import World, join_world, peers_explained
from symbert.settings import PretrainSettings, hash_of, read_settings


def hold_session(run: Run, places: Places, execution: Execution, stop: StopRequest) -> None:
    """Train from the newest checkpoint to the end, or until `stop`; publish when done."""
    torch.set_num_threads(execution.threads)
    with join_world() as world, _writing(world, places):
        settings = read_settings(places.settings, PretrainSettings)
        reached, at_a_time = Reached(), execution.micro_batch_size or settings.batch_size
        with (
            reported(places.state / "status.json", lambda: reached.step, world.leads),
            memory_explained(run, at_a_time),
            compiler_explained(),
            peers_explained(world.rank),
        ):
            identity = identity_of(run, settings, world.device, places)
            if world.leads:
                guard_settings(places.state, identity, execution.on_settings_change, places.done.parent)
                verify_shards(places.manifest, places.state / "shards.json")
            world.wait()
            trainer = Trainer(run, settings, places.manifest, places.state, world, execution.micro_batch_size)
            journal = _open(trainer, execution, places.state) if world.leads else NoJournal()
            validation_loss = Loop(trainer, journal, _pace_of(trainer), stop, reached).run()
            if world.leads:
                _publish(trainer, identity, validation_loss, places)


def _writing(world: World, places: Places) -> AbstractContextManager:
    """The run directory's lock, for the one process that writes into it."""
    return single_writer(places.state.parent) if world.leads else nullcontext()


def identity_of(run: Run, settings: PretrainSettings, device: torch.device, places: Places) -> dict[str, Any]:
    """All that determines a run's result, with what the device decides: another identity is another run.

    IntegrityError when the manifest is not the one that its hash was made of.
    """
    decided = {
        "precision": resolve_precision(settings.precision, device),
        **dropout_told(RECIPES[settings.recipe], settings.dropout, device),
        "corpus_hash": verify_manifest(places.manifest),
    }
    return {**vars(run), **run.model, **settings_told(settings), **decided}


def _open(trainer: Trainer, execution: Execution, state: Path) -> Journal:
    """Say what the run writes, refuse a disk that is too small, and begin the session's records."""
    storage = storage_of(trainer.parameters, trainer.settings)
    print(f"pretrain {trainer.run}: {plan(storage, state)}", file=sys.stderr)
    refuse_full(storage, state)
    trainer.model.config.to_json_file(state / "config.json", use_diff=False)
    open_session(state / "provenance.json", facts_of(trainer, execution))
    return Journal(state, execution.tensorboard)


def facts_of(trainer: Trainer, execution: Execution) -> dict[str, Any]:
    """What a session runs on; a run whose facts change goes on, but not with the same bits."""
    return {
        **facts_of_machine(trainer.device),
        "commit": commit_of(PROJECT),
        "threads": execution.threads,
        "processes": trainer.world.size,
        "micro_batch_size": trainer.micro_batch_size,
        "precision": trainer.precision,
        "recipe": trainer.settings.recipe,
    }


def _pace_of(trainer: Trainer) -> Pace:
    sequences, tokens = trainer.settings.batch_size, trainer.training.sequence_length
    flops = model_flops(trainer.model, sequences, tokens, trainer.settings.mask_probability * sequences * tokens)
    peak = measure_peak(trainer.device, trainer.precision) * trainer.world.size
    return Pace(sequences * tokens, flops, peak, trainer.device)


def _publish(trainer: Trainer, identity: dict[str, Any], validation_loss: float, places: Places) -> None:
    """Write the declared outputs, unless the settings changed meanwhile: an orphan must not publish an old run."""
    settings = read_settings(places.settings, PretrainSettings)
    if identity_of(trainer.run, settings, trainer.device, places) != identity:
        raise ConfigError(f"{places.settings}: changed while {trainer.run} was trained; run the same command again")
    sessions = read_sessions(places.state / "provenance.json")
    timed = max(sessions, key=lambda session: session.get("steps_timed", 0))  # of several, that which timed most steps
    decided = dropout_told(trainer.recipe, settings.dropout, trainer.device)
    summary = {
        "steps": settings.steps,
        "validation_loss": validation_loss,
        "parameters": trainer.parameters,
        "corpus_hash": identity["corpus_hash"],
        "vocabulary_sha256": read_json(places.manifest, {"vocabulary_sha256": str})["vocabulary_sha256"],
        "settings_hash": hash_of(identity),
        "settings": {name: identity[name] for name in (*trainer.run.model, *settings_told(settings), *decided)},
    }
    copy_file(places.state / METRICS, places.metrics)
    summary["metrics_sha256"] = sha256_of(places.metrics)
    write_json(places.timing, {**vars(trainer.run), **timed, "sessions": len(sessions)})
    write_json(places.done, {**vars(trainer.run), **summary})
