"""Translation: its batches, its scores, and that a small model learns a text that a baseline does not."""

import json
import shutil
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from model.test_decoders import stock
from pretrain.corpora import options
from pretrain.parallel import pack, write_text
from symbert.cli import main
from symbert.errors import ConfigError, IntegrityError
from symbert.files import read_json
from symbert.paths import Run
from symbert.pretrain.compute import World
from symbert.pretrain.parallel_text import END, PADDING, START
from symbert.pretrain.tasks import IGNORED, ParallelText, count_matches, scores_of
from symbert.pretrain.train import Trainer

RUN = Run("tiny", "original", 1, "encoder-decoder")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    """400 pairs of the stand-in, and 40 that are held out."""
    folder = tmp_path_factory.mktemp("text")
    return pack(write_text(folder), folder)


@pytest.fixture
def build(build):
    """A trainer of a tiny model."""
    return partial(build, "original", host="encoder-decoder")


def lines_of(manifest, key: str) -> list[str]:
    return (manifest.parents[1] / f"{key}.txt").read_text().splitlines()


def test_a_batch_has_the_lines_of_its_pairs_and_no_more_columns_than_they_need(build, manifest):
    objective = build().task
    batch, (_, rows) = objective.training_batch(3), objective.order(3)
    epoch = np.concatenate([objective.order(step)[1] for step in range(50)])
    assert sorted(epoch) == list(range(400))
    decoded = [[objective.pieces.decode(row) for row in ids.tolist()] for ids in (batch["source"], batch["target"])]
    for side, key in zip(decoded, ("source", "target"), strict=True):
        assert side == [lines_of(manifest, key)[row] for row in rows]
    assert (batch["source"][:, -1] != PADDING).any() and (batch["target"][:, -1] != PADDING).any()
    assert torch.equal(batch["source_mask"], batch["source"] != PADDING)
    for read, followed in zip(batch["target"].tolist(), batch["targets"].tolist(), strict=True):
        end = followed.index(END)
        assert read[0] == START and read[1 : end + 1] == followed[:end]
        assert set(followed[end + 1 :]) <= {IGNORED} and set(read[end + 1 :]) <= {END, PADDING}


def test_the_loss_of_padded_pairs_equals_that_of_stock_hugging_face(build):
    """Theirs moves the labels by one token, and leaves out those of -100."""
    trainer = build()
    model, batch = trainer.model.double().eval(), trainer.task.training_batch(0)
    is_token = batch["target"] != PADDING
    theirs = stock(model)(
        input_ids=batch["source"],
        attention_mask=batch["source_mask"].long(),
        decoder_input_ids=batch["target"],
        decoder_attention_mask=is_token.long(),
    ).logits
    found = trainer.task.logits(model, batch["source"], batch["source_mask"], batch["target"])
    torch.testing.assert_close(found[is_token], theirs[is_token], rtol=0, atol=1e-10)
    expected = F.cross_entropy(theirs.flatten(0, 1), batch["targets"].flatten(), ignore_index=-100, reduction="sum")
    padded = trainer.task.inputs(batch, True)  # as compiled models take them: to the longest rows that there may be
    assert padded["source"].shape == padded["target"].shape == (8, 32)
    for rows in (batch, padded):
        assert trainer.loss(**rows).item() == pytest.approx(expected.item(), rel=1e-6)
    assert not is_token.all() and not batch["source_mask"].all()


def test_translations_do_not_depend_on_the_rows_beside_them(build):
    """The longest source of a batch decides how much is computed, not how much of a row counts."""
    trainer = build()
    task, model = trainer.task, trainer.model.double().eval()
    batches = (task.validation_batch(np.array(rows)) for rows in (range(12), *([row] for row in range(12))))
    together, *alone = (task.translate(model, batch["source"], batch["source_mask"]) for batch in batches)
    assert [[line] for line in together] == alone and len(set(together)) > 3


def test_scores_are_those_of_all_lines_however_many_are_computed_at_a_time(build, manifest):
    measured = build().evaluate()
    assert list(measured) == ["loss", "chrf", "bleu"]
    trainer = build(micro_batch_size=7)
    assert trainer.evaluate() == pytest.approx(measured, rel=1e-5)
    objective, model = trainer.task, trainer.model.eval()
    batch = objective.validation_batch(np.arange(40))
    written = objective.translate(model, batch["source"], batch["source_mask"])
    expected = scores_of(count_matches(written, lines_of(manifest, "validation_target")))
    assert {name: measured[name] for name in expected} == pytest.approx(expected)


def test_a_small_model_learns_to_translate_numbers(build, manifest):
    """In three seconds of a core. The baseline copies the source, whose signs and spaces are right."""
    steps = 120
    trainer = build(steps=steps, batch_size=32, learning_rate=2e-3, warmup_steps=40)
    before = trainer.evaluate()
    for step in range(steps):
        trainer.step(step)
    measured = trainer.evaluate()
    copied = scores_of(count_matches(lines_of(manifest, "validation_source"), lines_of(manifest, "validation_target")))
    assert max(copied["chrf"], before["chrf"]) < 30 and max(copied["bleu"], before["bleu"]) < 5, (copied, before)
    assert measured["chrf"] > 85 and measured["bleu"] > 75, measured


def test_a_run_publishes_its_scores_with_their_signatures_and_knows_its_text(brief, tmp_path, manifest):
    settings = brief(steps=4, save_every=4, evaluate_every=4)
    assert main(options(manifest, settings, tmp_path / "run", attention="original", host="encoder-decoder")) == 0
    done, identity, packed = map(
        read_json, (tmp_path / "run/done.json", tmp_path / "run/state/identity.json", manifest)
    )
    assert done["corpus_hash"] == identity["corpus_hash"] == packed["hash"]
    assert done["vocabulary_sha256"] == packed["vocabulary_sha256"] and identity["model_host"] == "encoder-decoder"
    assert done["bleu_signature"].endswith("tok:13a|smooth:exp|version:2.6.0")
    assert 0 <= done["validation_chrf"] < 100 and 0 <= done["validation_bleu"] < 100


def test_weights_in_parts_are_refused_for_a_model_that_writes(brief, manifest):
    """Each process writes as long as its own lines need, and would wait for weights that no other sends."""
    settings, world = brief(), World(0, 2, torch.device("cpu"))
    with pytest.raises(ConfigError, match="'pretrain.shard_parameters' is true, but each process translates"):
        Trainer(RUN, settings, manifest, world, shard_parameters=True)


def test_pieces_that_were_exchanged_since_the_text_was_packed_are_refused(manifest, tmp_path, brief):
    """It was believed that all that decides a score is compared with the manifest: as many other pieces went unseen."""
    copied = shutil.copytree(manifest.parent, tmp_path / "text") / manifest.name
    vocabulary = copied.parent / "vocabulary.json"
    *others, one, another = json.loads(vocabulary.read_text())
    vocabulary.write_text(json.dumps([*others, another, one]))
    with pytest.raises(IntegrityError, match=f"^{vocabulary}: sha256 expected .*; run snakemake -R pack .*pack_pairs"):
        ParallelText(RUN, brief(), copied)
