import pytest

from campaigns.download_faults import FAULTS, run_campaign
from symbert.corpus.digests import Digest

FINAL = {"login page", "redirect to another host"}  # once is enough where the hub was to announce the digest
pytestmark = pytest.mark.campaign


def test_faults_of_downloads_lose_nothing():
    trials = list(run_campaign(100))
    assert [flaw for trial in trials for flaw in trial.flaws] == []
    assert len(trials) == 100 * len(FAULTS)
    given_up = {trial.kind for trial in trials if trial.is_bearable and trial.error}
    assert given_up <= FINAL, "what happens once does not end a download"


@pytest.mark.parametrize("kind", ["flipped", "lying 206"])
def test_the_campaign_sees_wrong_bytes_when_digests_are_not_checked(monkeypatch, kind):
    monkeypatch.setattr(Digest, "check", lambda *_: None)
    assert "wrong bytes" in {flaw for trial in run_campaign(8, (kind,)) for flaw in trial.flaws}
