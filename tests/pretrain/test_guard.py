import pytest

from symbert.errors import ConfigError
from symbert.files import read_json
from symbert.pretrain.guard import guard_settings

OLD, NEW = {"learning_rate": 1e-3, "steps": 10}, {"learning_rate": 2e-3, "steps": 10}


def test_the_same_run_goes_on(tmp_path):
    state = tmp_path / "state"
    guard_settings(state, OLD, "refuse")
    (state / "weights").mkdir()
    guard_settings(state, OLD, "refuse")
    assert (state / "weights").is_dir()


def test_another_run_is_refused_with_the_difference_and_the_remedy(tmp_path):
    state = tmp_path / "state"
    guard_settings(state, OLD, "refuse")
    with pytest.raises(ConfigError, match=r"learning_rate: 0.001 → 0.002.*experiment"):
        guard_settings(state, NEW, "refuse")
    assert read_json(state / "identity.json") == OLD


def test_another_run_supersedes_without_losing_any(tmp_path):
    state = tmp_path / "state"
    for number, identity in enumerate([OLD, NEW, OLD, NEW]):
        guard_settings(state, identity, "supersede")
        (state / "mark").write_text(str(number))
    assert read_json(state / "identity.json") == NEW
    aside = sorted(path for path in tmp_path.iterdir() if path != state)
    assert len(aside) == 3
    assert sorted((path / "mark").read_text() for path in aside) == ["0", "1", "2"]
