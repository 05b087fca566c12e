from pathlib import Path

import pytest

from experiment.traces import Traces
from symbert.config import merge
from symbert.experiment.layout import Experiment
from symbert.project import read_config


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty project folder, in which the test runs: paths of an experiment begin there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def experiment(config, folder) -> Experiment:
    """The demo: four operators of the size tiny, eight tasks, two seeds, checkpoints 300, 1200 and 2400."""
    return Experiment(config)


@pytest.fixture
def paper(root, folder) -> Experiment:
    """The paper's scale, from the hub."""
    return Experiment(read_config(root, {"scale": "paper", "source": "hub"}))


@pytest.fixture
def single_gpu(root, folder) -> Experiment:
    """The scale for one GPU, from the hub."""
    return Experiment(read_config(root, {"scale": "single-gpu", "source": "hub"}))


@pytest.fixture
def traces(experiment) -> Traces:
    """Of the demo."""
    return Traces(experiment)


@pytest.fixture
def changed(experiment):
    """The demo with changes."""
    return lambda changes: Experiment(merge(experiment.config, changes))
