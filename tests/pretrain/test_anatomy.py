"""`symbert anatomy`: printed for readers, and a csv of heads."""

import shutil

import pandas as pd
import pytest
from msgspec import to_builtins
from safetensors.torch import load_file, save_file

from model.models import small_config, started, trained
from symbert import cli
from symbert.files import read_json, write_json
from symbert.glue.export import export
from symbert.model.bert import MaskedModel, initialize
from symbert.model.hf import write_model
from symbert.pretrain.anatomy import MeasureAnatomy
from symbert.pretrain.run import GivenRows


@pytest.fixture
def checkpoints(tmp_path):
    """Two steps of a run, the first of which is its start."""
    start = started("tiny", "pairwise")
    initialize(start, 7)
    for step, model in ((0, start), (20, trained("pairwise"))):
        model.config.pretraining = {"size": "tiny", "attention": "pairwise", "pretrain_seed": 7, "step": step}
        write_model(model, tmp_path / f"step-{step}")
    return [tmp_path / "step-0", tmp_path / "step-20"]


def test_a_row_per_head_and_the_start_of_a_run_follows_from_its_seed(checkpoints, tmp_path):
    given = {"kept": checkpoints, "made": [checkpoints[1], "--with-init"], "both": [*checkpoints, "--with-init"]}
    for name, words in given.items():
        assert cli.main(["anatomy", *map(str, words), "--output", str(tmp_path / name)]) == 0
    heads, made, both = (pd.read_csv(tmp_path / name).drop(columns="checkpoint") for name in given)
    assert heads["step"].tolist() == [0] * 4 + [20] * 4
    assert heads[["size", "attention", "pretrain_seed"]].drop_duplicates().values.tolist() == [["tiny", "pairwise", 7]]
    assert heads[["symmetry", "logit_std", "attention_entropy", "own_share"]].notna().all(axis=None)
    pd.testing.assert_frame_equal(heads, made)
    pd.testing.assert_frame_equal(heads, both)


def test_a_run_that_began_from_a_checkpoint_has_no_start_that_its_seed_decides(checkpoints, tmp_path):
    begun = as_run(tmp_path / "begun", checkpoints[1], settings={"begun_from": "0" * 64})
    assert cli.main(["anatomy", str(begun), "--with-init", "--output", str(tmp_path / "heads")]) == 0
    assert pd.read_csv(tmp_path / "heads")["step"].tolist() == [20] * 4


def as_run(folder, like, **facts):
    """The checkpoint as one of another run, of the same size, operator, seed and step."""
    shutil.copytree(like, folder)
    config = read_json(folder / "config.json")
    write_json(folder / "config.json", {**config, "pretraining": {**config["pretraining"], **facts}})
    return folder


def test_two_runs_of_equal_size_operator_seed_and_step_are_not_averaged(checkpoints, tmp_path, capsys):
    """Such as a run on two corpora, which one glob names."""
    one, other = (as_run(tmp_path / name, checkpoints[1], settings_hash=name) for name in ("one", "other"))
    weights = load_file(other / "model.safetensors")
    name = "bert.encoder.layer.0.attention.self.query.weight"
    save_file({**weights, name: 3 * weights[name]}, other / "model.safetensors", {"format": "pt"})
    printed = {}
    for folders in ([one], [other], [one, other], [one, other, one]):
        assert cli.main(["anatomy", *map(str, folders), "--with-init"]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
        printed[len(printed)] = [tuple(line[-5:]) for line in lines]
        assert len(lines) == 4 * len(set(folders))
    alone, beside, *both = (sorted(rows) for rows in printed.values())
    assert alone != beside and both == [sorted(alone + beside)] * 2


def test_rows_of_another_vocabulary_are_refused(checkpoints, manifest, tmp_path, capsys):
    """Their ids are of other pieces, and were read without a word."""
    other = as_run(tmp_path / "other", checkpoints[1], vocabulary_sha256="0" * 64)
    assert cli.main(["anatomy", str(checkpoints[1]), str(other), "--manifest", str(manifest)]) == 64
    assert f"{manifest}: its ids are of another vocabulary" in capsys.readouterr().err


def test_an_export_is_another_model_than_the_checkpoint_it_was_made_of(checkpoints, tmp_path, capsys):
    """It has the facts of its run, but is a plain BERT: its start was made as one of `original`."""
    export(checkpoints[1], tmp_path / "export")
    capsys.readouterr()
    assert cli.main(["anatomy", str(checkpoints[1]), str(tmp_path / "export")]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[0] for row in rows] == [str(folder) for folder in (checkpoints[1], tmp_path / "export") for _ in (1, 2)]
    assert cli.main(["anatomy", str(tmp_path / "export"), "--with-init"]) == 64
    assert f"{tmp_path / 'export'}: only a checkpoint of a run, not exported" in capsys.readouterr().err


def test_the_measurement_of_an_experiment_is_of_the_checkpoints_in_its_settings(checkpoints, manifest, folder):
    step = MeasureAnatomy(checkpoints=[str(checkpoints[1])], rows=GivenRows(str(manifest)))
    write_json(folder / step.settings_file, to_builtins(step))
    words = ["--manifest", str(manifest), "--with-init", "--output", "typed.csv"]
    assert cli.main(["anatomy", str(checkpoints[1]), *words]) == 0
    assert cli.main(["measure-anatomy", step.paths()["anatomy"]]) == 0
    assert (folder / step.paths()["anatomy"]).read_text() == (folder / "typed.csv").read_text()


def test_a_model_of_no_run_has_no_start_and_reads_no_other_corpus(manifest, tmp_path, capsys):
    write_model(MaskedModel(small_config(vocab_size=10)), tmp_path / "mine")
    assert cli.main(["anatomy", str(tmp_path / "mine")]) == 0
    for words, reason in (
        (["--with-init"], "leave out --with-init"),
        (["--manifest", str(manifest)], "ids below 10"),
    ):
        assert cli.main(["anatomy", str(tmp_path / "mine"), *words]) == 64
        assert reason in capsys.readouterr().err


def test_a_model_whose_positions_change_the_logits_is_refused(tmp_path, capsys):
    """It would be computed without them."""
    write_model(MaskedModel(small_config()), tmp_path / "mine")
    config = read_json(tmp_path / "mine/config.json")
    write_json(tmp_path / "mine/config.json", {**config, "position_embedding_type": "relative_key"})
    assert cli.main(["anatomy", str(tmp_path / "mine")]) == 64
    assert "config.json: 'position_embedding_type' is relative_key" in capsys.readouterr().err
