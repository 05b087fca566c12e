"""Shared by all tests: where real input lies, and the demo's configuration."""

import json
import os
from pathlib import Path

import pytest
import yaml

from symbert.config import merge

ROOT = Path(__file__).parents[1]
os.environ.pop("SLURM_JOB_ID", None)  # a run that is told of a time limit must not requeue the job of the tests


LONGEST = ("workflow", "benchmarks", "pretrain", "glue")  # folders whose tests begin first


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Several processes share the tests by file, because those of a file share what is costly to make."""
    rank = {folder: number for number, folder in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.parent.name, len(rank)))
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(ROOT))))


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's directory."""
    return ROOT


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Real data in the publishers' layout; it is not part of the project."""
    directory = ROOT.parent / "shared" / "mirror"
    if not directory.is_dir():
        pytest.skip("no ../shared/mirror beside the project: the test needs real OSCAR, UT1 and GLUE files")
    return directory


@pytest.fixture
def config() -> dict:
    """The configuration at demo scale."""
    base = yaml.safe_load((ROOT / "config.yaml").read_text())
    return merge(base, yaml.safe_load((ROOT / "workflow/scales/demo.yaml").read_text()))


@pytest.fixture
def write_section(tmp_path, config):
    """Writes one section of the demo's settings, with changes, and gives its file."""
    from symbert.config import sections

    def write(section: str, **changes) -> Path:
        path = tmp_path / f"{section}.json"
        path.write_text(json.dumps({**sections(config, str(tmp_path / "embedded"))[section], **changes}))
        return path

    return write
