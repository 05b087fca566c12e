import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from symbert.errors import DataError
from symbert.glue.tasks import GLUE
from symbert.glue.train import read_rows, shuffled_batches

CPU = torch.device("cpu")


@pytest.fixture
def rows(prepared):
    return read_rows(prepared("mrpc"), GLUE["mrpc"], CPU)["train"]


def separated(tokens, batch):
    """The tokens of each row of a batch."""
    return [part.tolist() for part in torch.tensor_split(tokens, batch.packing.first[1:])]


def test_batches_give_back_every_row_with_its_label_once(prepared):
    table = pq.read_table(prepared("mrpc"))
    rows = read_rows(prepared("mrpc"), GLUE["mrpc"], CPU)
    columns = (table[name].to_pylist() for name in ("input_ids", "token_type_ids", "label"))
    expected = list(zip(*columns, strict=True))
    for split, part in (("train", expected[:64]), ("validation", expected[64:])):
        found = []
        for batch in shuffled_batches(rows[split], 16, seed=3, epoch=0):
            tokens = (separated(tokens, batch) for tokens in (batch.input_ids, batch.token_type_ids))
            found += zip(*tokens, batch.labels.tolist(), strict=True)
        assert sorted(found) == sorted(part) and found != part


def test_the_order_follows_from_seed_and_epoch_alone(rows):
    def order(seed, epoch):
        return torch.cat([batch.labels for batch in shuffled_batches(rows, 16, seed, epoch)]).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({str(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1)}) == 4


def test_sets_are_read_by_their_names(tmp_path):
    columns = {"set": ["hans", "ax", "hans"], "input_ids": [[2, 5, 3], [2, 3], [2, 9, 3]]}
    table = pa.table({**columns, "token_type_ids": [[0, 0, 1], [0, 0], [0, 0, 0]], "label": [0, 2, 1]})
    pq.write_table(table, tmp_path / "sets.parquet")
    sets = read_rows(tmp_path / "sets.parquet", GLUE["mnli"], CPU)
    assert sets["hans"].labels.tolist() == [0, 1] and sets["ax"].labels.tolist() == [2]
    batch = sets["hans"].batch(np.array([1, 0]))
    assert separated(batch.input_ids, batch) == [[2, 9, 3], [2, 5, 3]]
    assert separated(batch.token_type_ids, batch) == [[0, 0, 0], [0, 0, 1]]


def test_a_flipped_bit_among_prepared_rows_is_not_another_row(prepared):
    """Parquet says nothing of its content unless its pages have checksums, and they are compared."""
    file = prepared("mrpc")
    intact = file.read_bytes()
    for place in range(4, len(intact) - 4000, 997):  # of the columns; the footer with all names is at the end
        content = bytearray(intact)
        content[place] ^= 1
        file.write_bytes(content)
        try:
            read_rows(file, GLUE["mrpc"], CPU)
        except DataError as error:
            assert "mrpc.parquet: not a parquet file, or damaged" in str(error)
            assert str(error).endswith("delete it and run again")
        else:
            pytest.fail(f"the flipped bit of byte {place} was read")
