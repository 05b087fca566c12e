import shutil
from pathlib import Path

import pytest

from glue.laboratory import Laboratory
from symbert.glue import finetuning
from symbert.sources import DEMO, VOCABULARY


@pytest.fixture(scope="session")
def vocabulary(tmp_path_factory) -> Path:
    """The demo's word pieces."""
    return Path(shutil.copy(DEMO / VOCABULARY.location, tmp_path_factory.mktemp("vocabulary")))


@pytest.fixture
def laboratory(folder, vocabulary) -> Laboratory:
    """Empty results."""
    return Laboratory(folder, vocabulary)


@pytest.fixture
def prepared(laboratory):
    """Prepares a stand-in task, with changes of the settings; gives the file."""
    return laboratory.prepare


@pytest.fixture
def checkpoint(laboratory):
    """A Hugging Face directory of a randomly initialised encoder of one layer."""
    return laboratory.checkpoint


@pytest.fixture
def counted(monkeypatch):
    """The seeds that were really fine-tuned."""
    seen, train = [], finetuning.train
    monkeypatch.setattr(finetuning, "train", lambda *given: seen.append(given[3]) or train(*given))
    return seen
