import signal
from collections.abc import Iterator

import pytest

import pretrain.corpora as corpora
from symbert.cli import main
from symbert.pretrain.train import Trainer


@pytest.fixture
def manifest(tmp_path):
    """A packed corpus of 50 training and 8 validation rows."""
    return corpora.write_corpus(tmp_path / "shards")


@pytest.fixture
def brief():
    """Gives settings of a run of 30 steps, with changes."""
    return corpora.brief


@pytest.fixture
def build(manifest, brief):
    """Gives a trainer of a tiny model and the rows of `manifest`, with changed settings; no dropout unless asked."""

    def make(
        attention="pairwise", seed=1, architecture="encoder", world=None, micro_batch_size=None, **changes
    ) -> Trainer:
        settings = brief(**{"dropout": 0.0, **changes})
        return Trainer(corpora.planned(manifest, settings, attention, seed, architecture), world, micro_batch_size)

    return make


@pytest.fixture
def signals_kept() -> Iterator[None]:
    """Give the signals of a request to stop their handlers back, which a run in this process takes."""
    handlers = {
        number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
    }
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The folder of one uninterrupted run, which only `finished` fills; tests copy it before they change it."""
    return tmp_path_factory.mktemp("whole")


@pytest.fixture
def finished(whole, manifest, brief):
    """That folder, once the run is done: made by the first test that needs it."""
    if not (whole / "done.json").exists():
        assert main(corpora.options(manifest, brief(), whole)) == 0
    return whole


@pytest.fixture(scope="session")
def last_saved(tmp_path_factory):
    """The folder of a run that was killed between its last checkpoint and the end; only `unpublished` fills it."""
    return tmp_path_factory.mktemp("last-saved")


@pytest.fixture
def unpublished(last_saved, manifest, brief, monkeypatch):
    """That folder, with the checkpoints to resume from and nothing published: made by the first test that needs it."""
    if not last_saved.joinpath("state").exists():
        with monkeypatch.context() as patch:
            patch.setattr("symbert.pretrain.run.Records.publish", corpora.killed)
            assert main(corpora.options(manifest, brief(), last_saved)) == 75
    return last_saved
