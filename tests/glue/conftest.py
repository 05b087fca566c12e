import shutil
from pathlib import Path

import pytest
import torch

from symbert import tasks
from symbert.glue.prepare import prepare_task
from symbert.glue.sources import download_task, resolve_glue
from symbert.layout import Experiment
from symbert.model.bert import SymBertConfig, SymBertForMaskedLM
from symbert.model.network import initialize
from symbert.sources import DEMO, VOCABULARY


@pytest.fixture(scope="session")
def vocabulary(tmp_path_factory):
    """The demo's word pieces."""
    return Path(shutil.copy(DEMO / VOCABULARY.location, tmp_path_factory.mktemp("vocabulary")))


@pytest.fixture(scope="session")
def downloaded(tmp_path_factory):
    """The folder of the tasks that were downloaded."""
    return tmp_path_factory.mktemp("downloaded")


@pytest.fixture
def prepared(tmp_path, write_section, vocabulary, downloaded):
    """Downloads and prepares a stand-in task, with changes of the task settings; gives the file."""

    def prepare(task, **changes):
        raw, output = downloaded / f"{task}.parquet", tmp_path / f"{task}.parquet"
        if not raw.exists():
            source = write_section("glue_source")
            resolve_glue(source, downloaded / "sources.json")
            download_task(source, downloaded / "sources.json", task, raw)
        shutil.copy(raw, tmp_path / "raw.parquet")
        small = {"max_examples": 64, "max_evaluation_examples": 40, **changes}
        prepare_task(tmp_path / "raw.parquet", task, vocabulary, write_section("task", **small), output)
        return output

    return prepare


@pytest.fixture
def checkpoint(tmp_path, vocabulary):
    """A Hugging Face directory of a randomly initialised encoder of one layer."""

    def write(attention="pairwise", seed=1):
        config = SymBertConfig(
            attention=attention,
            vocab_size=len(vocabulary.read_text().splitlines()),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
        )
        model = SymBertForMaskedLM(config)
        initialize(model, seed)
        directory = tmp_path / f"checkpoint-{attention}-{seed}"
        model.save_pretrained(directory)
        return directory

    return write


@pytest.fixture(autouse=True)
def one_thread():
    """Timing and bits do not depend on the machine's cores."""
    torch.set_num_threads(1)


@pytest.fixture
def with_own_task(changed, folder, monkeypatch):
    """The demo with a task of the user's own, of as many rows as said; its rows have 100 bytes."""
    monkeypatch.setattr(tasks, "OWN", {})

    def experiment_of(count: int) -> Experiment:
        for name, letter in (("rows.jsonl", "a"), ("others.jsonl", "b")):
            (folder / name).write_text(f'{{"a": "{letter * 90}"}}\n' * count)
        definition = {"train": "rows.jsonl", "validation": "others.jsonl", "columns": ["a"], "labels": ["b", "c"]}
        tasks.define("own", {**definition, "label": "d", "kind": "classification", "metric": "accuracy"})
        return changed({"sweep": {"tasks": ["rte", "own"]}})

    return experiment_of
