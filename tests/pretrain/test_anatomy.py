"""`symbert anatomy`: printed for readers, and a csv of heads."""

import pandas as pd
import pytest

from model.models import small_config, started, trained
from symbert import cli
from symbert.files import write_json
from symbert.model.bert import MaskedModel, initialize
from symbert.model.hf import write_model


@pytest.fixture
def checkpoints(tmp_path):
    """Two steps of a run, the first of which is its start."""
    for step in (0, 20):
        model = trained("pairwise") if step else started("tiny", "pairwise")
        if not step:
            initialize(model, 7)
        model.config.pretraining = {"size": "tiny", "attention": "pairwise", "pretrain_seed": 7, "step": step}
        write_model(model, tmp_path / f"step-{step}")
    return [tmp_path / "step-0", tmp_path / "step-20"]


def test_a_row_per_head_says_of_which_checkpoint_it_is(checkpoints, tmp_path):
    words = [*map(str, checkpoints), "--output", str(tmp_path / "heads.csv")]
    assert cli.main(["anatomy", *words]) == 0
    heads = pd.read_csv(tmp_path / "heads.csv")
    assert len(heads) == 2 * 2 * 2 and heads["step"].tolist() == [0] * 4 + [20] * 4
    assert heads[["size", "attention", "pretrain_seed"]].drop_duplicates().values.tolist() == [["tiny", "pairwise", 7]]
    assert heads[["symmetry", "logit_std", "attention_entropy", "own_share"]].notna().all(axis=None)


def test_the_start_of_a_run_follows_from_its_seed(checkpoints, tmp_path):
    for words, name in ((checkpoints, "kept"), ([checkpoints[1], "--with-start"], "made")):
        assert cli.main(["anatomy", *map(str, words), "--output", str(tmp_path / name)]) == 0
    kept, made = (pd.read_csv(tmp_path / name).drop(columns="checkpoint") for name in ("kept", "made"))
    pd.testing.assert_frame_equal(kept, made)


def test_the_measurement_of_an_experiment_is_of_the_checkpoints_in_its_settings(checkpoints, manifest, tmp_path):
    settings = {"checkpoints": [str(checkpoints[1])], "manifest": str(manifest)}
    write_json(tmp_path / "measured/settings.json", settings)
    words = ["--manifest", str(manifest), "--with-start", "--output", str(tmp_path / "typed.csv")]
    assert cli.main(["anatomy", str(checkpoints[1]), *words]) == 0
    assert cli.main(["measure-anatomy", str(tmp_path / "measured/anatomy.csv")]) == 0
    assert (tmp_path / "measured/anatomy.csv").read_text() == (tmp_path / "typed.csv").read_text()


def test_a_model_of_no_run_is_called_by_its_directory_and_has_no_start(tmp_path, capsys):
    write_model(trained("original"), tmp_path / "mine")
    assert cli.main(["anatomy", str(tmp_path / "mine")]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[0] == (tmp_path / "mine").as_posix()
    assert cli.main(["anatomy", str(tmp_path / "mine"), "--with-start"]) == 64
    assert "says of no run that it is of; leave out --with-start" in capsys.readouterr().err


def test_rows_of_another_corpus_are_refused(manifest, tmp_path, capsys):
    write_model(MaskedModel(small_config(vocab_size=10)), tmp_path / "small")
    assert cli.main(["anatomy", str(tmp_path / "small"), "--manifest", str(manifest)]) == 64
    assert "expected at most 512 tokens and ids below 10; give the corpus of the model" in capsys.readouterr().err
