import pytest

from campaigns.download_faults import KINDS, page_of, run_campaign
from symbert.corpus.digests import Digest

MANY = 100  # seeds
FINAL = {"login page", "redirect to another host"}  # once is enough where the hub was to announce the digest
pytestmark = pytest.mark.campaign


def assert_nothing_lost(trials, seeds):
    assert [flaw for trial in trials for flaw in trial.flaws] == []
    assert len(trials) == seeds * len(KINDS)
    given_up = {trial.kind for trial in trials if trial.is_bearable and trial.error}
    assert given_up <= FINAL, "what happens once does not end a download"


def test_many_faults_of_downloads_lose_nothing():
    trials = list(run_campaign(MANY))
    assert_nothing_lost(trials, MANY)
    for kind in KINDS:
        errors = {trial.error for trial in trials if trial.kind == kind.name}
        assert errors == {"", "RemoteError", *kind.kinds}, f"{kind.name}: some downloads get through, some are refused"
    rows = page_of(trials, MANY).splitlines()[-len(KINDS) :]
    assert [row.split(" | ")[1] for row in rows] == [str(MANY)] * len(KINDS)
    assert all(row.endswith("| 0 |") for row in rows)


@pytest.mark.parametrize("name", ["flipped", "lying 206"])
def test_the_campaign_sees_wrong_bytes_when_digests_are_not_checked(monkeypatch, name):
    monkeypatch.setattr(Digest, "check", lambda *_: None)
    (kind,) = (kind for kind in KINDS if kind.name == name)
    assert "wrong bytes" in {flaw for trial in run_campaign(5, (kind,)) for flaw in trial.flaws}
