"""Shared by all tests: where real input lies, and the demo's configuration."""

import gc
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, settings
from msgspec import to_builtins

from symbert.configuration import merge, resolve
from symbert.experiment.layout import Experiment
from symbert.experiment.project import read_config

ROOT = Path(__file__).parents[1]
STEADY = yaml.safe_load("""  # of the experiment that tests count jobs and files of, however the demo is tuned
pretrain:
  {steps: 2400, schedule_steps: null, save_every: 300, evaluate_every: 25, learning_rate: 1.0e-3, warmup_steps: 200}
glue: {epochs: 5, max_examples: 1000}
sweep:
  attention: [original, symmetric, pairwise, shared]
  pretrain_seeds: [1]
  finetuned_pretrain_seeds: null
  finetune_seeds: [1, 2, 3]
  untrained: false
  suites: [glue]
  tasks: [mrpc, cola, mnli, qqp, rte, stsb, qnli, sst2]
  curve: {steps: {tiny: [300, 1200, 2400]}}
""")
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")  # no test is timed
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the many processes of tests import what one of them has compiled
sys.dont_write_bytecode = False
os.environ["PYTHONPATH"] = str(ROOT / "src")  # processes of tests run the package under test, not the installed one
os.environ.pop("SLURM_JOB_ID", None)  # a run that is told of a time limit must not requeue the job of the tests


# What begins first: a scope, files and folders; then comes all else.
LONGEST = ("shared in workflow", "test_one_place.py", "workflow", "benchmarks", "pretrain", "glue")
ALONE = ("corpus", "graph", "places", "signals")  # in tests/workflow; the others share one run of the chain


def scope_of(nodeid: str) -> str:
    """What one process runs: the tests of a file, or of files that share something costly."""
    file = Path(nodeid.partition("::")[0])
    shares = file.parent.name == "workflow" and file.stem.removeprefix("test_") not in ALONE
    return "shared in workflow" if shares else str(file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no process is left alone with it at the end."""

    def rank(item: pytest.Item) -> int:
        own = (scope_of(item.nodeid), item.path.name, item.path.parent.name)
        return next((number for number, name in enumerate(LONGEST) if name in own), len(LONGEST))

    items.sort(key=rank)


def pytest_collection_finish() -> None:
    """Spare the collector all that was imported, which stays: looking through it takes a tenth of the time.

    Processors are shared with other processes of the tests: a second thread for small matrices would wait for one.
    """
    gc.collect()
    gc.freeze()
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Each scope to one process."""
    from xdist.scheduler import LoadScopeScheduling

    class ByScope(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return ByScope(config, log)


@pytest.fixture(scope="session", autouse=True)
def no_power_fails() -> Iterator[None]:
    """Nothing in this process waits for the disk; tests of what a full or failing disk does have calls of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda descriptor: None)
        yield


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
def kenlm() -> None:
    """The package that g++ compiles; without it the test is skipped."""
    pytest.importorskip("kenlm", reason="kenlm is not installed, which g++ compiles: pip install kenlm")


@pytest.fixture
def config() -> dict:
    """The keys of the configuration at demo scale, but for what tests count: operators, seeds, steps."""
    return merge(yaml.safe_load((ROOT / "workflow/defaults.yaml").read_text()), steady_demo())


def steady_demo() -> dict:
    """The demo's scale with what tests count."""
    return merge(yaml.safe_load((ROOT / "workflow/scales/demo.yaml").read_text()), STEADY)


@pytest.fixture
def project(folder, monkeypatch) -> Path:
    """A project folder without results, in which the test runs, and commands read it; its demo is that of `config`."""
    monkeypatch.setattr("symbert.experiment.project.PROJECT", folder)
    shutil.copy(ROOT / "config.yaml", folder)
    shutil.copytree(ROOT / "workflow", folder / "workflow")
    (folder / "workflow/scales/demo.yaml").write_text(yaml.safe_dump(steady_demo()))
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty project folder, in which the test runs: paths of an experiment begin there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def experiment(config, folder) -> Experiment:
    """Four operators of the size tiny, eight tasks, two seeds, checkpoints 300, 1200 and 2400."""
    return Experiment(resolve(config))


@pytest.fixture
def paper(root, folder) -> Experiment:
    """The paper's scale, from the hub."""
    return Experiment(read_config(root, {"scale": "paper", "source": "hub"}))


@pytest.fixture
def changed(experiment):
    """The demo with changes."""
    return lambda changes: Experiment(resolve(merge(to_builtins(experiment.config), changes)))
