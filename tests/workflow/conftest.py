import shutil

import pytest

from workflow.checkout import Checkout, Outcome, check_out

STAGES = {
    "paper": ("paper",),
    "corpus": ("--until", "pack"),
    "pretrain": ("--until", "pretrain"),
    "glue": ("--until", "score"),
    "all": (),
    "nothing": (),
}


@pytest.fixture(scope="session")
def checkout(root, tmp_path_factory):
    """A fresh copy of the project under a path with a space and a letter outside ASCII; nothing is run in it."""
    return check_out(root, tmp_path_factory.mktemp("fresh") / "a copy of symbért")


@pytest.fixture(scope="session")
def chain(root, tmp_path_factory) -> tuple[Checkout, dict[str, Outcome]]:
    """The tiny chain, run once for all tests, a command per stage: its checkout, and how each command ended."""
    copy = check_out(root, tmp_path_factory.mktemp("run") / "a copy of symbért")
    outcomes = dict(zip(STAGES, copy.tinies(*STAGES.values()), strict=True))
    for outcome in outcomes.values():
        assert outcome.code == 0, outcome.output[-5000:]
    return copy, outcomes


@pytest.fixture(scope="session")
def finished(chain) -> Checkout:
    """The checkout of the chain: to be read only."""
    return chain[0]


@pytest.fixture
def copy(finished, tmp_path) -> Checkout:
    """A copy of the finished checkout to change, with its file times."""
    copy = finished.copy(tmp_path / "a copy of symbért")
    yield copy
    shutil.rmtree(copy.directory)
