"""A finished run goes on to more steps: to the bits of one run without a break, or from step 0."""

import itertools
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

import pretrain.corpora as corpora
from pretrain.corpora import killed, options, planned, unpublish, write_corpus
from symbert.cli import main
from symbert.files import read_json, sha256_of, write_json
from symbert.pretrain.checkpoint import CheckpointStore
from symbert.pretrain.compute import linear_rate
from symbert.pretrain.run import branch_step, continuation_of, shared_steps
from symbert.pretrain.train import Trainer


def brief(**changes):
    """Settings of a run of 14 steps that evaluates and keeps weights at steps 4, 8, 12 and 14, with changes."""
    few = {"steps": 14, "batch_size": 2, "warmup_steps": 2, "evaluate_every": 4, "save_every": 4}
    return corpora.brief(**few | changes)


def outcome(run: Path) -> dict[str, str]:
    """Everything that a run leaves for others, by content: also what would be resumed from."""
    files = [run / "done.json", run / "metrics.jsonl", *sorted(run.glob("state/*/step-*.safetensors"))]
    return {str(path.relative_to(run)): sha256_of(path) for path in files}


@pytest.fixture
def train(tmp_path, manifest, capsys, monkeypatch):
    """Trains a run in the folder that its key says; gives the folder, the steps that it computed, and what it said."""
    step, computed = Trainer.start, []
    monkeypatch.setattr(Trainer, "start", lambda *given: computed.append(given[1]) or step(*given))

    def run(place: str = "runs", code: int = 0, **changes) -> tuple[Path, list[int], str]:
        folder = tmp_path / place / f"tiny-pairwise-{planned(manifest, brief(**changes)).key}/seed-1"
        computed.clear()
        assert main(options(manifest, brief(**changes), folder)) == code
        return folder, computed.copy(), capsys.readouterr().err

    return run


SCHEDULES = {  # of a run of 7 steps, or of its own number, and one of 14; the step that the latter goes on from
    "the first part of a schedule": ({"schedule_steps": 20}, {"schedule_steps": 20}, 7),
    "the first half, then the whole": ({"schedule_steps": 14}, {}, 7),
    "a constant rate": ({"decay_steps": 0, "steps": 8}, {"decay_steps": 0}, 8),
    "stable, then decay, of other lengths": ({"decay_steps": 2}, {"decay_steps": 5}, 5),
    "two parts of one decay": (
        {"schedule_steps": 16, "decay_steps": 10, "steps": 9},
        {"schedule_steps": 16, "decay_steps": 10},
        6,
    ),
}


@pytest.mark.parametrize("kind", SCHEDULES)
def test_more_steps_give_the_bits_of_a_run_without_a_break(train, kind):
    """Also where the short run evaluates and keeps weights at a last step that is none of the long one's."""
    short, long, step = SCHEDULES[kind]
    first, *_ = train(**{"steps": 7, **short})
    folder, computed, said = train(**long)
    assert computed == list(range(step, 14)) and f"goes on from step {step} of {first}" in said
    alone, computed, said = train("alone", **long)
    assert computed == list(range(14)) and "goes on" not in said
    assert outcome(folder) == outcome(alone)
    assert len(read_json(folder / "state/provenance.json")["sessions"]) == 2


def test_a_rate_that_fell_to_0_begins_at_step_0_and_says_what_would_not(train):
    first, *_ = train(steps=7)
    _, computed, said = train()
    assert computed == list(range(14)) and not (first / "state/continue").exists()
    (line,) = (line for line in said.splitlines() if "begins at step 0" in line)
    assert f"{first} (7 steps): its learning rate fell to 0" in line and "decay_steps" in line


def test_other_rows_or_another_precision_begin_at_step_0_and_say_so(train, manifest, monkeypatch):
    train(steps=7, decay_steps=0)
    with monkeypatch.context() as patch:
        patch.setattr("symbert.pretrain.compute.resolve_precision", lambda *_: "bf16")
        _, computed, said = train(steps=8, decay_steps=0)
    assert computed[0] == 0 and "precision: fp32 → bf16" in said
    train("others", steps=7, decay_steps=0)
    write_corpus(manifest.parent, rows=60)
    _, computed, said = train("others", steps=8, decay_steps=0)
    assert computed[0] == 0 and "corpus_hash" in said


def test_a_damaged_state_is_named_and_the_run_begins_at_step_0(train):
    first, *_ = train(steps=8, decay_steps=0)
    for steps, file in enumerate(("state/weights/step-00000004", "state/continue/step-00000008"), start=9):
        file = first / f"{file}.safetensors"
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        folder, computed, said = train(steps=steps, decay_steps=0)
        assert computed == list(range(steps)) and f"{file}: sha256 expected" in said
        shutil.rmtree(folder)
        file.write_bytes(content)


def test_a_run_that_is_killed_while_it_takes_the_state_takes_it_again(train, monkeypatch):
    train(steps=12, decay_steps=0)
    with monkeypatch.context() as patch:
        patch.setattr("symbert.pretrain.checkpoint._write_record", killed)
        folder, computed, _ = train(decay_steps=0, code=75)
    assert not computed and len(list(folder.glob("state/weights/*.safetensors"))) == 3
    assert train(decay_steps=0)[1] == [12, 13]


def test_a_forced_run_computes_all_of_its_steps_again(train):
    train(steps=8, decay_steps=0)
    folder, *_ = train(steps=9, decay_steps=0)
    before = outcome(folder)
    unpublish(folder)
    assert train(steps=9, decay_steps=0)[1] == list(range(9)) and outcome(folder) == before


def test_the_state_that_others_go_on_from_is_there_though_the_run_was_killed_beside_it(train, monkeypatch):
    publish = CheckpointStore._publish

    def last(store, folder, step, *content):
        publish(store, folder, step, *content)
        if (folder, step) == (store.branches, 6):
            killed()

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "_publish", last)
        train(steps=7, decay_steps=1, code=75)
    first, computed, _ = train(steps=7, decay_steps=1)
    assert computed == [4, 5, 6]  # the newest to resume from is of step 4
    assert {path.stem for path in (first / "state/continue").iterdir()} == {"step-00000006"}
    assert train(steps=8, decay_steps=1)[1] == [6, 7]


# Which run goes on from which: without training.


@pytest.fixture
def finished(tmp_path, manifest):
    """A finished run with changed settings, as far as others look at it."""

    def make(**changes):
        run = planned(manifest, brief(**changes))
        folder = tmp_path / run.key
        write_json(folder / "done.json", {})
        if branch := branch_step(run.training):
            write_json(folder / f"state/continue/step-{branch:08d}.json", {})
        return folder, run

    return make


def test_the_latest_state_is_chosen_in_whatever_order_runs_are_found(finished, manifest):
    found = [finished(steps=steps, decay_steps=1) for steps in (8, 7, 12, 30)]
    run = planned(manifest, brief(decay_steps=1))
    chosen = {continuation_of(run, order) for order in itertools.permutations(found)}
    assert {(each.steps, each.step, each.why_not) for each in chosen} == {(12, 11, "")}
    later = planned(manifest, brief(steps=31, decay_steps=2))
    assert continuation_of(later, found).step == 29


@pytest.mark.parametrize("changes", [{"dropout": 0.2}, {"evaluate_every": 5}, {"save_every": 5}, {"warmup_steps": 3}])
def test_a_run_of_another_setting_is_not_gone_on_from(finished, manifest, changes):
    run = planned(manifest, brief(decay_steps=0, **changes))
    assert continuation_of(run, [finished(steps=7, decay_steps=0)]) is None
    assert continuation_of(replace(run, pretrain_seed=2), [finished(steps=7, decay_steps=0, **changes)]) is None
    assert continuation_of(run, [finished(steps=7, decay_steps=0, **changes)]).step == 7
    assert continuation_of(run, [finished(decay_steps=0, **changes)]) is None, "itself"


def test_why_a_run_is_not_gone_on_from_is_said_of_shorter_ones_alone(finished, manifest):
    run = planned(manifest, brief(schedule_steps=50))
    assert "differ from step 2 on" in continuation_of(run, [finished(steps=7, schedule_steps=40)]).why_not
    folder, other = finished(steps=7, schedule_steps=50)
    shutil.rmtree(folder / "state")
    assert "state of its step 7 is not there" in continuation_of(run, [(folder, other)]).why_not
    assert continuation_of(run, [finished(steps=20), finished(steps=15, schedule_steps=40)]) is None


def test_the_steps_that_two_schedules_share_have_equal_rates():
    ways = [
        brief(steps=steps, schedule_steps=end, decay_steps=decay)
        for steps in (2, 8, 20)
        for end in (None, 20, 25)
        for decay in (None, 0, 4, 17)
        if 2 + (decay or 0) <= (end or steps) >= steps
    ]
    assert len(ways) > 20

    def rates(settings):
        end = settings.schedule_steps or settings.steps
        return [linear_rate(step, 1e-3, 2, end, settings.decay_steps) for step in range(settings.steps)]

    for one, other in itertools.permutations(ways, 2):
        shared = min(shared_steps(one, other), one.steps, other.steps)
        assert rates(one)[:shared] == rates(other)[:shared]
    assert shared_steps(brief(steps=8, schedule_steps=20), brief(steps=20)) > 20
    assert branch_step(brief(warmup_steps=0, decay_steps=14)) is None, "not step 0"
