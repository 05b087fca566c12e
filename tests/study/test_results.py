"""The table of runs, and what the contrasts of a study's file show in it."""

import math
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from study.test_design import study_file
from symbert.errors import DivergedError, IntegrityError, MissingInputError
from symbert.files import write_json
from symbert.pretrain.train import StepResult, Trainer
from symbert.pretrain.world import World
from symbert.report.inference import holm
from symbert.report.statistics import plateau_exit
from symbert.study.design import Study, read_study, seeds_by_cell
from symbert.study.page import draw_grid, write_study
from symbert.study.results import answers_of, collect_runs, complete_grids, read_runs, runs_of
from symbert.study.texts import write_study_text
from symbert.study.train import train_runs

pytestmark = pytest.mark.usefixtures("nothing_of_ones_own")

STEPS = list(range(50, 1050, 50))


def curve(exit_step: int) -> list[float]:
    """A plateau at 3 nats until a step, and a straight fall after it."""
    return [3.0 if step < exit_step else 3.0 - 0.002 * (step - exit_step + 50) for step in STEPS]


EXITS = {"original": (600, 700), "pairwise": (300, 350)}  # by operator, of seeds 1 and 2


@pytest.fixture
def study(tmp_path) -> Study:
    """The tiny study."""
    return read_study(study_file(tmp_path))


@pytest.fixture
def runs(study, tmp_path) -> Path:
    """runs.csv of curves whose exits are known."""
    files = []
    for cell, seeds in seeds_by_cell(study).items():
        files.append(tmp_path / f"{cell.name}.json")
        curves = [
            {
                **{"seed": seed, "corpus_hash": "c0ffee", "commit": "abc", "cpu_seconds": 1.5, "steps": STEPS},
                **{"losses": curve(EXITS[cell.attention][seed - 1])},
                "initial": {"logit_std": [0.25, 0.35], "attention_entropy": [2.0, 3.0]},
                "machine": {"processor": "AMD EPYC", "versions": {"torch": "2.13.0+cpu"}},
            }
            for seed in seeds
        ]
        definition = {**cell.definition, "pretrain": {**cell.definition["pretrain"], "evaluate_every": 50}}
        write_json(files[-1], {"text": cell.text_name, "cell": definition, "curves": curves})
    collect_runs(files, tmp_path / "runs.csv")
    return tmp_path / "runs.csv"


@pytest.fixture
def longer(tmp_path) -> Study:
    """The tiny study with an evaluation every 50 steps, as the runs have."""
    from study.test_design import TINY

    pretrain = {**TINY["pretrain"], "evaluate_every": 50}
    return read_study(study_file(tmp_path, pretrain=pretrain))


def test_exits_follow_from_the_curves_by_the_reports_rule(runs):
    frame = read_runs(runs)
    for attention, exits in EXITS.items():
        chosen = frame[frame["attention"] == attention]
        assert chosen["exit"].tolist() == [*exits, *exits]  # at two rates
    assert set(frame["logit_std"]) == {0.3} and set(frame["attention_entropy"]) == {2.5}


def test_a_changed_exit_is_refused(runs):
    runs.write_text(runs.read_text().replace(",600,", ",650,", 1))
    with pytest.raises(IntegrityError, match=r"runs\.csv:2: exit expected 600, found 650"):
        read_runs(runs)


def test_contrasts_are_answered_at_every_point_of_their_grid_and_corrected_together(runs, longer):
    answers = answers_of(longer, read_runs(runs))
    assert [answer.place["learning_rate"] for answer in answers] == [1e-3, 2e-3]
    for answer in answers:
        assert (answer.first.median, answer.second.median) == (300, 600)
        assert answer.result.ratio == 0.5
    assert [answer.corrected for answer in answers] == holm([answer.result.p_value for answer in answers]).tolist()
    assert not any(math.isclose(answer.corrected, answer.result.p_value) for answer in answers)


def test_a_grid_that_lacks_a_run_is_not_complete_and_answers_nothing(runs, longer):
    frame = read_runs(runs)
    assert complete_grids(longer, frame) == ["both"]
    fewer = frame.drop(index=frame.index[3])
    assert complete_grids(longer, fewer) == [] and answers_of(longer, fewer) == []


def test_a_seed_that_was_not_trained_is_named(runs, longer):
    frame = read_runs(runs)
    with pytest.raises(MissingInputError, match="no run of seed 2; run the study"):
        draw_grid(longer, longer.grids["both"], frame[frame["seed"] == 1])


def test_the_page_has_its_numbers_from_the_runs(runs, longer, tmp_path):
    write_study(tmp_path / "tiny.yaml", runs, tmp_path / "README.md")
    page = (tmp_path / "README.md").read_text()
    assert re.search(r"\| original +\| 600 \(600–700\) +\| 600 \(600–700\) +\|", page)
    assert "0.50 [0.50, 0.50]" in page and "![" in page
    contrasts = (tmp_path / "contrasts.csv").read_text().splitlines()
    assert contrasts[1].startswith("operator,copies,tiny,0.001,2,300.0,600.0,0.5,0.5,0.5")
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")


def test_an_exit_is_verified_by_the_number_it_was_computed_from(study, tmp_path):
    """Exits were computed from five decimals and verified from the four of runs.csv: a false IntegrityError."""
    cell, seeds = next(iter(seeds_by_cell(study).items()))
    losses = [3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 2.94106, 2.6, 2.4, 2.2, 2.1, 2.05]
    steps = [25 * number for number in range(1, 13)]
    assert plateau_exit(steps, losses) != plateau_exit(steps, [round(loss, 4) for loss in losses])
    curve = {"seed": seeds[0], "corpus_hash": "c0ffee", "commit": "abc", "cpu_seconds": 1.5}
    curve |= {"steps": steps, "losses": losses, "initial": {"logit_std": [0.3], "attention_entropy": [2.0]}}
    curve |= {"machine": {"processor": "AMD EPYC", "versions": {"torch": "2.13.0+cpu"}}}
    definition = {**cell.definition, "pretrain": {**cell.definition["pretrain"], "evaluate_every": 25}}
    write_json(tmp_path / "cell.json", {"text": cell.text_name, "cell": definition, "curves": [curve]})
    collect_runs([tmp_path / "cell.json"], tmp_path / "runs.csv")
    (found,) = read_runs(tmp_path / "runs.csv")["exit"]
    assert found == plateau_exit(steps, [round(loss, 4) for loss in losses])


def test_the_machine_of_a_run_is_the_one_that_computed_it(study, tmp_path, monkeypatch):
    """A run on a GPU was recorded as one of the processor."""
    cell = next(iter(seeds_by_cell(study)))
    write_study_text(cell.text, tmp_path / "manifest.json")
    device = torch.device("cpu", 0)  # which is not the "cpu" of who asks for none
    monkeypatch.setattr("symbert.pretrain.train.alone", lambda: World(0, 1, device))
    monkeypatch.setattr("symbert.study.train.facts_of_machine", lambda device: {"device": str(device)})
    (curve,) = train_runs(cell, [1], tmp_path / "manifest.json", tmp_path, SimpleNamespace(signal=None))
    assert curve["machine"] == {"device": "cpu:0"}


def test_a_run_that_diverges_keeps_the_losses_from_before(study, tmp_path, monkeypatch):
    """One that diverged before its first evaluation ended the whole cell with an IndexError."""
    cell = next(iter(seeds_by_cell(study)))
    write_study_text(cell.text, tmp_path / "manifest.json")
    usual = Trainer.step

    def diverging(trainer: Trainer, step: int) -> StepResult:
        if step == {1: 3, 2: 12}[trainer.run.pretrain_seed]:
            raise DivergedError("loss nan")
        return usual(trainer, step)

    monkeypatch.setattr(Trainer, "step", diverging)
    curves = train_runs(cell, [1, 2], tmp_path / "manifest.json", tmp_path, SimpleNamespace(signal=None))
    assert [curve["steps"] for curve in curves] == [[], [5, 10]]
    write_json(tmp_path / "cell.json", {"text": cell.text_name, "cell": cell.definition, "curves": curves})
    collect_runs([tmp_path / "cell.json"], tmp_path / "runs.csv")
    runs = runs_of(read_runs(tmp_path / "runs.csv"), cell, [1, 2])
    assert runs.exits.steps.tolist() == [0, 10] and not runs.exits.left.any()


def test_a_run_that_diverges_in_an_evaluation_keeps_the_losses_from_before(study, tmp_path, monkeypatch):
    """It was believed that only a step diverges: a loss of nan ended the whole cell where its curve is written."""
    cell = next(iter(seeds_by_cell(study)))
    write_study_text(cell.text, tmp_path / "manifest.json")
    usual, evaluated = Trainer.evaluate, []

    def diverging(trainer: Trainer) -> dict[str, float]:
        evaluated.append(trainer)
        if len(evaluated) == 3:
            raise DivergedError("validation loss nan")
        return usual(trainer)

    monkeypatch.setattr(Trainer, "evaluate", diverging)
    (curve,) = train_runs(cell, [1], tmp_path / "manifest.json", tmp_path, SimpleNamespace(signal=None))
    assert curve["steps"] == [5, 10] and len(curve["losses"]) == 2
