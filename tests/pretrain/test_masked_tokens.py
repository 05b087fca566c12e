"""Rows of shards, and batches of masked tokens: functions of seed and step alone, however they are cut or padded."""

import os

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from model.models import configured
from pretrain.corpora import SPECIAL, planned
from symbert.corpus.shards import Manifest, Shard
from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.files import read_json, write_json
from symbert.model.bert import MaskedModel, initialize
from symbert.pretrain import tasks
from symbert.pretrain.tasks import IGNORED, Batch, MaskedTokens, PackedRows, verify_manifest, verify_shards


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4), data=st.data())
def test_rows_are_those_of_the_shards_across_their_borders(tmp_path_factory, sizes, data):
    folder, whole = tmp_path_factory.mktemp("shards"), np.random.default_rng(0).integers(0, 2**16, (sum(sizes), 3))
    for number, piece in enumerate(np.split(whole.astype(np.uint16), np.cumsum(sizes)[:-1])):
        np.save(folder / f"{number}.npy", piece)
    shards = [Shard(f"{number}.npy", "train", size, "") for number, size in enumerate(sizes)]
    write_json(
        folder / "manifest.json",
        Manifest(3, 2**16, "", {}, {"train": sum(sizes)}, shards, hash="", unigram_entropy=0.0),
    )
    rows = PackedRows(folder / "manifest.json", "train")
    index = np.array(data.draw(st.lists(st.integers(0, sum(sizes) - 1), max_size=20)), np.int64)
    assert len(rows) == sum(sizes) and rows.sequence_length == 3
    assert rows[index].dtype == np.int64 and (rows[index] == whole[index]).all()


def test_a_missing_or_shorter_shard_and_a_split_without_one_are_named(manifest):
    shard = manifest.parent / "train-00001.npy"
    np.save(shard, np.load(shard)[:-1])
    with pytest.raises(IntegrityError, match=r"train-00001\.npy: 24 rows, the manifest says 25"):
        PackedRows(manifest, "train")
    shard.unlink()
    for read in (lambda: PackedRows(manifest, "train"), lambda: verify_shards(manifest)):
        with pytest.raises(MissingInputError, match=r"train-00001\.npy"):
            read()
    with pytest.raises(MissingInputError, match=r"manifest\.json: names no shard of the split 'test'"):
        PackedRows(manifest, "test")


def test_a_bit_that_flips_after_a_session_has_verified_its_shard_is_noticed_by_the_next(manifest):
    """A shard of the size and time that were verified once was not read again, and another corpus was learned."""
    verify_shards(manifest)
    shard = manifest.parent / "train-00001.npy"
    status, content = shard.stat(), bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    os.utime(shard, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(IntegrityError, match=r"train-00001\.npy: sha256 expected \w{64}, found \w{64}; run snakemake"):
        verify_shards(manifest)


def test_a_manifest_that_was_edited_is_not_the_corpus_that_its_hash_names(manifest):
    """It was believed that shards with right sums are the corpus; their list, and how ids are read, were not in it."""
    told = read_json(manifest)
    assert verify_manifest(manifest) == told["hash"]
    first, *others = told["shards"]
    for changes in (
        {"sequence_length": 8},
        {"vocabulary_size": 61},
        {"vocabulary_sha256": 64 * "0"},
        {"special_tokens": {**told["special_tokens"], "unk": 9}},
        {"rows": {"train": 49, "validation": 8}},
        {"shards": others},
        {"shards": [{**first, "split": "validation"}, *others]},
        {"shards": [{**first, "sha256": 64 * "0"}, *others]},
        {"hash": "0123456789abcdef"},
    ):
        write_json(manifest, {**told, **changes})
        with pytest.raises(IntegrityError, match=r"manifest\.json: hash expected \w{16}, found \w{16}: edited"):
            verify_manifest(manifest)
    for lacking in ("hash", "special_tokens"):
        write_json(manifest, {key: value for key, value in told.items() if key != lacking})
        with pytest.raises(
            DataError, match=rf"manifest\.json: object missing required field '{lacking}'; run snakemake -R pack"
        ):
            verify_manifest(manifest)


@pytest.fixture
def objective(manifest, brief):
    """What a run is trained on, with batches of so many rows."""

    def make(batch_size: int = 8, seed: int = 1, attention: str = "pairwise") -> MaskedTokens:
        return MaskedTokens(planned(manifest, brief(batch_size=batch_size), attention, seed))

    return make


def original_rows(batch: Batch) -> np.ndarray:
    """Undo the corruption: the true ids `batch token`."""
    return batch["targets"].where(batch["targets"] != IGNORED, batch["input_ids"]).numpy()


def together(parts: list[Batch]) -> Batch:
    """Parts put one after the other again."""
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def assert_same(one: Batch, other: Batch) -> None:
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def loss_and_gradients(model: MaskedModel, batches: list[Batch]) -> tuple[Tensor, list[Tensor]]:
    """Summed loss of the inputs of batches, and what it adds up to in the parameters."""
    model.zero_grad()
    total = torch.zeros((), dtype=torch.float64)
    for batch in batches:
        logits = model.masked_logits(batch["input_ids"], batch["positions"])
        loss = F.cross_entropy(logits, batch["targets"], ignore_index=IGNORED, reduction="sum")
        loss.backward()
        total += loss.detach()
    return total, [parameter.grad.clone() for parameter in model.parameters()]


def test_every_epoch_reads_every_row_once_in_another_order_in_batches_across_its_end(objective, manifest):
    rows = PackedRows(manifest, "train")
    batches = [original_rows(objective(8).training_batch(step)) for step in range(13)]
    read = np.concatenate(batches)
    first, second = read[:50], read[50:100]
    everything = sorted(map(tuple, rows[np.arange(50)]))
    assert sorted(map(tuple, first)) == sorted(map(tuple, second)) == everything
    assert not (first == second).all()
    epoch, sequence = objective(8).order(6)  # positions 48 to 55 of 50 rows
    assert epoch.tolist() == [0, 0, 1, 1, 1, 1, 1, 1] and (batches[6] == rows[sequence]).all()


def test_a_batch_is_a_function_of_seed_and_step_alone_whatever_the_operator(objective):
    first = objective(8).training_batch(7)
    for attention in ("pairwise", "original", "shared"):
        assert_same(objective(8, attention=attention).training_batch(7), first)
    for other in (objective(8, seed=2).training_batch(7), objective(8).training_batch(8)):
        assert not torch.equal(first["input_ids"], other["input_ids"])


def test_masks_do_not_depend_on_the_batch_size_and_those_of_validation_are_fixed(objective, manifest):
    by_ten = together([objective(10).training_batch(step) for step in range(12)])
    assert_same(by_ten, together([objective(40).training_batch(step) for step in range(3)]))
    by_three = together([objective().validation_batch(np.arange(8)[first : first + 3]) for first in (0, 3, 6)])
    by_eight = together([objective().validation_batch(np.arange(8))])
    assert_same(by_three, by_eight)
    assert (original_rows(by_eight) == PackedRows(manifest, "validation")[np.arange(8)]).all()


def test_an_unknown_word_is_neither_hidden_nor_predicted(objective, manifest):
    """As in the authors' code: docs/deviations.md, 25."""
    for shard in manifest.parent.glob("*-*.npy"):
        ids = np.load(shard)
        ids[:, 2:12:2] = SPECIAL["unk"]
        np.save(shard, ids)
    trained = objective(batch_size=50)
    for batch in (trained.training_batch(0), trained.validation_batch(np.arange(8))):
        assert SPECIAL["unk"] not in batch["targets"] and (batch["targets"] != IGNORED).any()
        assert (batch["input_ids"].numpy()[:, 2:12:2] == SPECIAL["unk"]).all()


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
def test_padded_micro_batches_add_up_to_the_loss_and_gradients_of_the_batch(objective, attention, monkeypatch):
    model = MaskedModel(configured("tiny", attention, 60, dropout=0.0))
    initialize(model, 1)
    model.double()
    whole = objective(8).training_batch(3)
    assert tasks.slots_of(1, 32, 0.15) == 32  # no more masked tokens than tokens
    loss, gradients = loss_and_gradients(model, [objective(8).inputs(whole, False)])
    for size, slots in ((8, 64), (8, 7), (3, 16)):
        monkeypatch.setattr(tasks, "slots_of", lambda *_, slots=slots: slots)
        parts = [{name: rows[first : first + size] for name, rows in whole.items()} for first in range(0, 8, size)]
        parts = [objective(8).inputs(part, True) for part in parts]
        assert all(len(part["positions"]) % slots == 0 for part in parts)
        added_loss, added_gradients = loss_and_gradients(model, parts)
        torch.testing.assert_close(added_loss, loss, rtol=1e-12, atol=0)
        for one, other in zip(gradients, added_gradients, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)
