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


def test_a_flipped_bit_among_prepared_rows_is_not_another_row(prepared):
    """Parquet says nothing of its content unless its pages have checksums, and they are compared."""
    file = prepared("mrpc")
    intact = file.read_bytes()
    places = range(4, len(intact) - 4000, 397)  # of the columns; the footer with all names is at the end
    assert len(places) > 5
    for place in places:
        content = bytearray(intact)
        content[place] ^= 1
        file.write_bytes(content)
        with pytest.raises(DataError, match=r"mrpc\.parquet: not a parquet file, or damaged"):
            read_rows(file, GLUE["mrpc"], CPU)
