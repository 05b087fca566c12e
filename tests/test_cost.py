import pytest

from symbert.cost import Work, configured_speed, size_of
from symbert.sizes import SIZES


def test_hours_are_arithmetic_and_what_is_beside_it(experiment):
    rates = experiment.config["rates"]
    speed = configured_speed(rates, SIZES["tiny"])
    expected = 7e12 / rates["core_flops"] + 100 * rates["core_layer_seconds"]
    assert speed.hours(Work(7e12, 100)).core * 3600 == pytest.approx(expected)
    assert not speed.on_gpu and configured_speed(rates, SIZES["base"]).on_gpu and speed.measured is None


def test_the_size_of_a_folder_is_that_of_its_own_files(tmp_path):
    (tmp_path / "outside").write_bytes(bytes(999))
    inside = tmp_path / "inside/deep"
    inside.mkdir(parents=True)
    (inside / "a").write_bytes(bytes(10))
    link = inside / "link"
    link.symlink_to(tmp_path / "outside")
    assert size_of(tmp_path / "inside") == 10 + link.lstat().st_size and size_of(tmp_path / "none") == 0
