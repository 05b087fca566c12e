import json

import pytest
import torch

from symbert.errors import IntegrityError, MissingInputError
from symbert.model.bert import SymBertForMaskedLM, build_config, initialize
from symbert.pretrain.checkpoint import KEEP, CheckpointStore, Position, kept_weights
from symbert.pretrain.optimizer import build_optimizer
from symbert.settings import PretrainSettings, read_settings


@pytest.fixture
def make(write_section):
    """Model and optimizer after one real step, so that every state is filled."""
    settings = read_settings(write_section("pretrain"), PretrainSettings)

    def build(seed: int):
        model = SymBertForMaskedLM(build_config("tiny", "pairwise", vocabulary_size=50))
        initialize(model, seed)
        optimizer = build_optimizer(model, settings)
        model.masked_logits(torch.arange(20)[None], torch.tensor([3])).sum().backward()
        optimizer.step()
        return model, optimizer

    return build


def save(store, pair, step):
    store.save(*pair, Position(step, 10 * step, {}))


def equal(one, other) -> bool:
    weights = zip(one[0].state_dict().values(), other[0].state_dict().values(), strict=True)
    states = zip(one[0].parameters(), other[0].parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in weights) and all(
        torch.equal(one[1].state[p][key], other[1].state[q][key])
        for p, q in states
        for key in ("step", "exp_avg", "exp_avg_sq")
    )


def test_a_loaded_checkpoint_is_what_was_saved(tmp_path, make):
    saved, loaded = make(1), make(2)
    assert not equal(saved, loaded)
    store = CheckpointStore(tmp_path)
    save(store, saved, 20)
    assert store.load_newest(*loaded) == Position(20, 200, {})
    assert equal(saved, loaded)


def test_a_new_run_has_none(tmp_path, make):
    assert CheckpointStore(tmp_path).load_newest(*make(1)) is None


def test_only_the_newest_are_kept(tmp_path, make):
    store, pair = CheckpointStore(tmp_path), make(1)
    for step in (10, 20, 30, 40, 50):
        save(store, pair, step)
    assert [path.name for path in sorted(store.resume.iterdir())] == [f"step-{s:08d}" for s in (30, 40, 50)]
    assert KEEP == 3


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors", "checkpoint.json"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_a_damaged_checkpoint_is_skipped_by_name(tmp_path, make, capsys, file, damage):
    store, older, newer, loaded = CheckpointStore(tmp_path), make(1), make(2), make(3)
    save(store, older, 10)
    save(store, newer, 20)
    path = store.resume / "step-00000020" / file
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 64
    path.unlink()
    if damage != "remove":
        path.write_bytes(content[: len(content) // 2] if damage == "truncate" else content)
    assert store.load_newest(*loaded).step == 10
    assert equal(older, loaded)
    assert str(path) in capsys.readouterr().err


def test_when_none_is_intact_the_run_does_not_start_over_silently(tmp_path, make):
    store, pair = CheckpointStore(tmp_path), make(1)
    save(store, pair, 10)
    (store.resume / "step-00000010" / "model.safetensors").write_bytes(b"")
    with pytest.raises(IntegrityError, match="no intact checkpoint"):
        store.load_newest(*pair)


def test_a_half_written_checkpoint_is_not_seen(tmp_path, make):
    store, pair = CheckpointStore(tmp_path), make(1)
    save(store, pair, 10)
    (store.resume / ".step-00000020.tmp").mkdir()
    assert store.load_newest(*pair).step == 10


def test_kept_weights_are_verified_and_a_missing_step_names_the_nearest(tmp_path, make):
    store, pair = CheckpointStore(tmp_path), make(1)
    for step in (100, 200, 300, 900):
        store.keep_weights(pair[0], step)
    assert kept_weights(tmp_path, 200).name == "step-00000200.safetensors"
    with pytest.raises(MissingInputError, match="nearest kept steps: 200, 300, 100"):
        kept_weights(tmp_path, 240)
    path = tmp_path / "weights" / "step-00000300.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(IntegrityError, match="step-00000300.safetensors"):
        kept_weights(tmp_path, 300)


def test_the_manifest_of_a_checkpoint_names_both_tensor_files(tmp_path, make):
    store = CheckpointStore(tmp_path)
    save(store, make(1), 10)
    facts = json.loads((store.resume / "step-00000010" / "checkpoint.json").read_text())
    assert set(facts["sha256"]) == {"model.safetensors", "optimizer.safetensors"}
