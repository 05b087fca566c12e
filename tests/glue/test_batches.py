import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from symbert.glue.batches import read_rows, shuffled_batches, sorted_batches
from symbert.glue.classifier import load_classifier
from symbert.glue.tasks import GLUE

CPU = torch.device("cpu")


@pytest.fixture
def rows(prepared):
    return read_rows(prepared("mrpc"), GLUE["mrpc"], CPU)["train"]


def unpadded(batch):
    lengths = batch.attention_mask.sum(1) if batch.attention_mask is not None else [batch.input_ids.shape[1]] * 99
    return [row[:n].tolist() for row, n in zip(batch.input_ids, lengths, strict=False)]


def test_batches_give_back_every_row_with_its_label_once(prepared):
    table = pq.read_table(prepared("mrpc"))
    rows = read_rows(prepared("mrpc"), GLUE["mrpc"], CPU)
    expected = [(*row,) for row in zip(table["input_ids"].to_pylist(), table["label"].to_pylist(), strict=True)]
    for split, part in (("train", expected[:64]), ("validation", expected[64:])):
        found = []
        for batch in shuffled_batches(rows[split], 16, seed=3, epoch=0):
            found += zip(unpadded(batch), batch.labels.tolist(), strict=True)
        assert sorted(found) == sorted(part) and found != part


def test_the_order_follows_from_seed_and_epoch_alone(rows):
    def order(seed, epoch):
        return torch.cat([batch.labels for batch in shuffled_batches(rows, 16, seed, epoch)]).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({str(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1)}) == 4


def test_a_batch_is_as_long_as_its_longest_row(rows):
    lengths = []
    for index, batch in sorted_batches(rows, 10):
        assert batch.input_ids.shape == (len(index), rows.lengths[index].max())
        lengths += rows.lengths[index].tolist()
    assert lengths == sorted(rows.lengths.tolist())


def test_padding_does_not_change_logits(rows, checkpoint):
    model = load_classifier(checkpoint(), 2, dropout=0.0).double().eval()
    batch = rows.batch(np.arange(16))
    padded = [torch.nn.functional.pad(t, (0, 64 - t.shape[1])) for t in vars(batch).values() if t.ndim == 2]
    ids, types, mask = padded
    with torch.no_grad():
        short = model(batch.input_ids, batch.attention_mask, batch.token_type_ids).logits
        long = model(ids, mask, types).logits
        alone = model(rows.batch(np.array([3])).input_ids, None, rows.batch(np.array([3])).token_type_ids).logits
    assert torch.allclose(short, long, rtol=0, atol=1e-12)
    assert torch.allclose(short[3], alone[0], rtol=0, atol=1e-12)


def test_grades_are_floats_and_classes_integers(prepared):
    assert read_rows(prepared("stsb"), GLUE["stsb"], CPU)["train"].labels.dtype == torch.float32
    assert read_rows(prepared("mnli"), GLUE["mnli"], CPU)["train"].labels.dtype == torch.int64
