import re
import shutil
from pathlib import Path

import pytest

from symbert import cli
from symbert.experiment.layout import Experiment
from symbert.files import single_writer, write_json
from symbert.paths import Run

ORIGINAL, SHARED, GAIN = (Run("tiny", name, 1) for name in ("original", "shared", "original-gain"))

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def pruned(capsys):
    """Runs the command and gives what it printed."""

    def run(*options: str) -> str:
        assert cli.main(["prune", *options]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def before(changed) -> Experiment:
    """An experiment with one more operator, as it was started before `experiment` took its name."""
    before = changed({"sweep": {"attention": ["original", "symmetric", "pairwise", "shared", "original-gain"]}})
    before.write()
    return before


def files() -> set[Path]:
    return {path for path in Path("results").rglob("*") if path.is_file()}


def test_of_a_started_experiment_and_reports_nothing_may_go(pruned, experiment):
    experiment.write()
    for name in ("results/paper/table3.csv", "results/digests.json", "results/mine/report.html"):
        write_json(Path(name), {})
    for file in experiment.scores:
        write_json(Path(file), [])
    before = files()
    assert pruned("--yes") == "nothing to remove\n" and files() == before


def test_what_no_experiment_names_is_shown_first_and_removed_on_request(pruned, before, changed, experiment):
    gone = Path(before.runs[GAIN])
    (gone / "state").mkdir()
    (gone / "state/weights").write_bytes(bytes(999_000))
    other = changed(
        {"experiment": "other", "title": 'A "page"', "sweep": {"attention": ["original"], "pretrain_seeds": [7]}}
    )
    other.write()
    experiment.write()
    said = pruned()
    assert str(gone) in said and "MB may go; nothing was removed" in said and gone.is_dir()
    assert re.search(r"freed 1(\.\d+)? MB", pruned("--yes"))
    assert not gone.parent.exists(), "with the folder of its model, which is empty"
    assert all(Path(file).is_file() for file in experiment.settings)
    assert all(Path(folder).is_dir() for folder in other.runs.values()), "which another experiment names"


def test_a_damaged_record_of_an_experiment_ends_it_because_it_may_name_anything(experiment, capsys):
    experiment.write()
    Path(experiment.folder, "experiment.json").write_text("{")
    before = files()
    assert cli.main(["prune", "--yes"]) == 65
    assert "experiment.json: not JSON" in capsys.readouterr().err and files() == before


def test_weights_of_steps_that_nothing_asks_for_go_on_request_only_and_of_finished_runs(pruned, experiment):
    """The demo's curve has the steps 300, 1,200 and 2,400."""
    experiment.write()
    folders = [Path(experiment.runs[run], "state/weights") for run in (ORIGINAL, SHARED)]
    for folder in folders:
        folder.mkdir(parents=True)
        for step in (300, 600, 1200, 2400):
            (folder / f"step-{step:08d}.safetensors").write_bytes(bytes(10))
        write_json(folder.with_name("continue") / "step-00002400.json", {})  # to more steps
    write_json(folders[0].parents[1] / "done.json", {})
    assert pruned("--yes") == "nothing to remove\n"
    pruned("--yes", "--surplus-weights")
    assert [folder.with_name("continue").exists() for folder in folders] == [False, True]
    kept = [sorted(int(path.stem[5:]) for path in folder.iterdir()) for folder in folders]
    assert kept == [[300, 1200, 2400], [300, 600, 1200, 2400]]


def test_the_last_weights_of_a_finished_run_stay_though_no_experiment_asks_for_them(pruned, changed):
    """Status said done, a plan that nothing is to be trained, and another experiment found no weights to extract."""
    before = changed({"sweep": {"pretrain_seeds": [1, 2], "finetuned_pretrain_seeds": [1]}})
    before.write()
    folder = Path(before.runs[Run("tiny", "original", 2)])
    for step in (600, 2100, 2400):
        write_json(folder / f"state/weights/step-{step:08d}.safetensors", 0)
    write_json(folder / "done.json", {})
    said = pruned("--yes", "--surplus-weights")
    assert "step-00002100" in said and "step-00002400" not in said
    assert [path.stem for path in (folder / "state/weights").iterdir()] == ["step-00002400"]
    after = changed({"experiment": "after", "sweep": {"pretrain_seeds": [1, 2], "curve": {"sizes": []}}})
    assert after.lost_steps == {}


def test_a_folder_in_which_a_process_works_is_left_alone(pruned, before, experiment):
    folder = Path(before.runs[GAIN])
    experiment.write()
    with single_writer(folder):
        assert f"skipped: {folder}" in pruned("--yes")
        assert folder.is_dir()
    pruned("--yes")
    assert not folder.exists()


def test_no_link_is_followed_and_nothing_outside_of_results_goes(pruned, before, experiment, tmp_path):
    folder, unnamed, mine = Path(before.runs[GAIN]), Path("results/corpus/shards-00000000"), tmp_path / "mine"
    shutil.move(folder.parent, tmp_path / "outside")
    folder.parent.symlink_to(tmp_path / "outside")
    for path in (unnamed, mine):
        path.mkdir(parents=True)
    (mine / "file").touch()
    (unnamed / "link").symlink_to(mine)
    experiment.write()
    pruned("--yes")
    assert folder.parent.is_symlink() and (tmp_path / "outside" / folder.name).is_dir()
    assert not unnamed.exists() and (mine / "file").is_file()
