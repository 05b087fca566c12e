"""The four lines of docs/hosts.md by which text of one's own is translated, run at the tiny scale."""

import json

import pandas
import pytest

from documented import own_files
from pretrain.parallel import write_text
from workflow.checkout import Checkout, check_out

KEYS = {"source": "train.de", "target": "train.en", "validation_source": "dev.de", "validation_target": "dev.en"}


@pytest.fixture
def folder(root, tmp_path) -> Checkout:
    """A copy of the project with the page's file and the text that it names."""
    copy = check_out(root, tmp_path / "a copy of symbért")
    for name, text in own_files(root, "docs/hosts.md").items():
        (copy.directory / name).write_text(text, encoding="utf-8")
    for key in write_text(copy.directory, 60, 8):
        (copy.directory / f"{key}.txt").rename(copy.directory / KEYS[key])
    return copy


def test_four_lines_translate_text_of_ones_own(folder):
    """One operator at the tiny scale, whose settings stand above the page's own steps; and a second time nothing."""
    steps = "hosts={encoder-decoder: {steps: 20, batch_size: 8, evaluate_every: 20, save_every: 20}}"
    words = ("tabulate_hosts", "--configfile", "tiny.yaml", "translate.yaml", "--config", steps)
    words = (*words, "sweep={attention: [pairwise], pretrain_seeds: [1], sizes: [tiny]}")
    folder.tiny_settings()
    outcome = folder.snakemake(*words)
    assert outcome.code == 0, outcome.output[-5000:]
    assert outcome.jobs.keys() >= {"pack_pairs", "pretrain_encoder_decoder", "tabulate_hosts"}
    results = folder.directory / "results/translate"
    packed = json.loads((results / "parallel/manifest.json").read_text())
    assert packed["rows"] == {"train": 60, "validation": 8}
    (run,) = results.glob("pretrain/encoder-decoder/tiny-pairwise/seed-1/done.json")
    done = json.loads(run.read_text())
    assert done["corpus_hash"] == packed["hash"] and done["steps"] == 20
    table = pandas.read_csv(results / "report/tables/hosts.csv")
    assert table[["host", "attention"]].values.tolist() == [["encoder-decoder", "pairwise"]]
    assert table["chrf"].item() == pytest.approx(done["validation_chrf"], abs=0.001) and "bleu" in table
    (folder.directory / "train.de").touch()
    again = folder.snakemake(*words)
    assert (again.code, again.jobs) == (0, {}), again.output[-3000:]
