import shutil
from dataclasses import dataclass

import pytest

from workflow.checkout import Checkout, Outcome, check_out

STAGES = {
    "paper_tables": ("paper_tables",),
    "corpus": ("--until", "pack"),
    "pretrain": ("--until", "pretrain"),
    "glue": ("--until", "score"),
    "all": (),
}


@pytest.fixture(scope="session")
def checkout(root, tmp_path_factory):
    """A fresh copy of the project under a path with a space and a letter outside ASCII; nothing is run in it."""
    return check_out(root, tmp_path_factory.mktemp("fresh") / "a copy of symbért")


@dataclass(frozen=True)
class Chain:
    """A checkout in which the tiny chain ran to its end, one command per stage, and how each command ended."""

    checkout: Checkout
    outcomes: dict[str, Outcome]


@pytest.fixture(scope="session")
def chain(root, tmp_path_factory) -> Chain:
    """The tiny chain, run once for all tests, stage by stage."""
    copy = check_out(root, tmp_path_factory.mktemp("run") / "a copy of symbért")
    outcomes = {}
    for stage, arguments in STAGES.items():
        outcomes[stage] = copy.tiny(*arguments)
        assert outcomes[stage].code == 0, outcomes[stage].output[-5000:]
    return Chain(copy, outcomes)


@pytest.fixture(scope="session")
def finished(chain) -> Checkout:
    """The checkout of the chain: to be read only."""
    return chain.checkout


@pytest.fixture
def copy(finished, tmp_path) -> Checkout:
    """A copy of the finished checkout to change, with its file times."""
    copy = finished.copy(tmp_path / "a copy of symbért")
    yield copy
    shutil.rmtree(copy.directory)
