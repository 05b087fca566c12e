"""Several runs trained as one model, beside each of them alone."""

import itertools
import json
from pathlib import Path

import pytest
import torch
from msgspec import to_builtins
from safetensors.torch import load_file

import pretrain.corpora as corpora
from pretrain.corpora import own, planned
from symbert.cli import main
from symbert.files import read_json, write_json
from symbert.pretrain.run import Pretraining, PretrainTogether, StopRequest
from symbert.pretrain.together import Stack
from symbert.pretrain.train import Trainer

SEEDS, RATES = (1, 2, 3, 4), (1e-3, 3e-3)
PAD = 0


def brief(**changes):
    """Settings of a run of 12 steps. With a smaller epsilon AdamW makes whole steps of the rounding errors that the
    biases of keys have as a gradient."""
    few = {"steps": 12, "dropout": 0.0, "evaluate_every": 5, "save_every": 6, "adam_epsilon": 1e-6}
    return corpora.brief(**few | changes)


def sweep(manifest, *operators, architecture="encoder", **changes) -> list[Pretraining]:
    """A run of each seed at each rate of each operator."""
    return [
        planned(manifest, brief(learning_rate=rate, **changes), operator, seed, architecture)
        for operator, rate, seed in itertools.product(operators or ["pairwise"], RATES, SEEDS)
    ]


@pytest.mark.parametrize(
    ("names", "architecture", "micro_batch_size", "kind", "tolerance"),
    [
        (["pairwise"], "encoder", None, torch.float64, 1e-10),
        (["original", "wide"], "encoder", 2, torch.float32, 1e-5),
        (["symmetric-others"], "decoder", None, torch.float64, 1e-10),
    ],
)
def test_models_as_one_take_the_steps_that_each_takes_alone(
    manifest, monkeypatch, names, architecture, micro_batch_size, kind, tolerance
):
    """Seeds, rates and starts are their own, and micro-batches may have no hidden token."""
    wide = {"wide": own("wide", **{"class": "original", "init_scale": "wide"})}
    changes = {"gradient_clip": 0.5, "mask_probability": 0.05 if micro_batch_size else 0.15}
    runs = sweep(manifest, *(wide.get(name, name) for name in names), architecture=architecture, **changes)
    runs = runs[::3]
    alone, together = ([Trainer(run, None, micro_batch_size) for run in runs] for _ in range(2))
    if kind == torch.float64:
        monkeypatch.setattr(torch.Tensor, "float", lambda tensor: tensor)  # the loss is computed in float32 otherwise
        for trainer in (*alone, *together):
            trainer.model.double()
    stack = Stack(together, [0] * len(together))
    for step in range(5):
        expected, results = [trainer.step(step) for trainer in alone], stack.step()
        for one, other in zip(expected, results, strict=True):
            assert other.learning_rate == one.learning_rate
            assert other.loss == pytest.approx(one.loss, rel=tolerance)
            assert other.gradient_norm == pytest.approx(one.gradient_norm, rel=10 * tolerance)
    for one, other in zip(alone, together, strict=True):
        for weight, stacked in zip(one.model.parameters(), other.model.parameters(), strict=True):
            torch.testing.assert_close(stacked, weight, rtol=tolerance, atol=tolerance)
    chosen = [0, len(runs) - 1]
    for number, sums in zip(chosen, stack.evaluate(chosen), strict=True):
        assert together[number].measured(*sums) == pytest.approx(alone[number].evaluate(), rel=tolerance)
    batches = [trainer.task.training_batch(step) for trainer in alone for step in range(5)]
    if names == ["pairwise"]:  # a random token may be the padding piece, which has no gradient as an input
        assert any((batch["input_ids"] == PAD).any() for batch in batches)
    if micro_batch_size:
        assert not all((part >= 0).any() for batch in batches for part in batch["targets"].split(micro_batch_size))


def test_batches_that_are_made_at_once_are_those_of_each_step(build):
    for architecture in ("encoder", "decoder"):
        task = build(architecture=architecture).task
        for made, step in zip(task.training_batches(5, 4), range(5, 9), strict=True):  # 50 rows: two passes over them
            one = task.training_batch(step)
            assert made.keys() == one.keys() and all(torch.equal(made[name], one[name]) for name in one)


# --- whole runs -------------------------------------------------------------------------------------------------------


@pytest.fixture
def alone(tmp_path_factory):
    """Gives the folder of a run that is trained by itself, once for each of all tests."""
    place = tmp_path_factory.getbasetemp() / "alone"

    def train(run: Pretraining) -> Path:
        seed, rate = run.pretrain_seed, run.training.learning_rate
        folder = place / f"{run.attention}-{rate}/seed-{seed}"
        if not (folder / "done.json").exists():
            write_json(folder / "run.json", to_builtins(run))
            assert main(["pretrain", str(folder), "--threads", "1"]) == 0
        return folder

    return train


@pytest.fixture
def together(tmp_path, monkeypatch, capsys):
    """Trains runs in a folder with results/; gives the exit code, how each ended, and what was said."""
    monkeypatch.chdir(tmp_path)

    def train(runs: list[Pretraining], *options: str) -> tuple[int, dict, str]:
        step = PretrainTogether(runs=runs)
        for file, settings in {step.settings_file: step, **{run.settings_file: run for run in runs}}.items():
            write_json(Path(file), to_builtins(settings))
        ended = Path(step.paths()["ended"])
        code = main(["pretrain-together", str(ended), "--threads", "1", *options])
        return code, read_json(ended) if ended.is_file() else {}, capsys.readouterr().err

    return train


def lines(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def assert_equal_to_rounding(one: Path, other: Path, tolerance: float = 1e-5) -> None:
    """Files, lines and weights of two runs."""
    names = [
        sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) for folder in (one, other)
    ]
    assert names[0] == names[1]
    for line, expected in zip(lines(other), lines(one), strict=True):
        assert {key: line[key] for key in ("split", "step")} == {key: expected[key] for key in ("split", "step")}
        for key in expected.keys() - {"split", "step"}:
            assert line[key] == pytest.approx(expected[key], rel=10 * tolerance)
    done, expected = (read_json(folder / "done.json") for folder in (other, one))
    assert done.pop("validation_loss") == pytest.approx(expected.pop("validation_loss"), rel=tolerance)
    del done["metrics_sha256"], expected["metrics_sha256"]
    assert done == expected
    for file in sorted(one.glob("state/weights/*.safetensors")):
        weights = load_file(other / file.relative_to(one))
        for name, expected in load_file(file).items():
            torch.testing.assert_close(weights[name], expected, rtol=tolerance, atol=tolerance)


def test_a_sweep_that_is_trained_together_leaves_what_each_run_leaves_alone(manifest, together, alone):
    """Two operators: their models are not one, and are trained one kind after the other."""
    runs = [*sweep(manifest), *sweep(manifest, "symmetric")[:1]]
    code, ended, _ = together(runs)
    assert code == 0 and ended == {run.folder: "done" for run in runs}
    for run, count in zip(runs, [8] * 8 + [1], strict=True):
        folder = Path(run.folder)
        timing = read_json(folder / "timing.json")
        assert (timing["together"], timing["steps_timed"], timing["sessions"]) == (count, 11, 1)
        assert_equal_to_rounding(alone(run), folder)
    again = read_json(Path(runs[0].folder, "timing.json"))
    assert together(runs)[0] == 0 and read_json(Path(runs[0].folder, "timing.json")) == again  # nothing is left to do


def stopped_after(monkeypatch, steps: int) -> None:
    """Every training is asked to stop at its step of that number."""
    asked = itertools.count(1)
    monkeypatch.setattr(StopRequest, "flags", lambda self: (float(next(asked) == steps), 0.0))


def test_a_run_goes_on_together_or_alone_from_wherever_it_was_stopped(manifest, together, alone, monkeypatch):
    one, two, *_ = runs = sweep(manifest)[:3]
    with monkeypatch.context() as patch:
        stopped_after(patch, 4)
        code, ended, said = together(runs)
        assert code == 75 and not ended and "saved at step 4" in said
        for run in runs:
            status = read_json(Path(run.folder, "state/status.json"))
            assert (status["state"], status["step"], status["exit_code"]) == ("preempted", 4, 75)
        stopped_after(patch, 3)
        assert main(["pretrain", two.folder, "--threads", "1"]) == 75  # at step 7
    assert main(["pretrain", one.folder, "--threads", "1"]) == 0
    code, ended, said = together(runs)
    assert code == 0 and ended == {run.folder: "done" for run in runs}
    for run in runs:
        assert_equal_to_rounding(alone(run), Path(run.folder))


def test_a_run_that_diverges_stops_no_other_and_ends_as_it_ends_alone(manifest, together, alone):
    runs = sweep(manifest)[:3]
    runs.insert(1, planned(manifest, brief(learning_rate=1e30), "pairwise", 5))
    code, ended, said = together(runs)
    assert code == 0 and said.count("the others go on") == 1
    assert [how.startswith("tiny-pairwise seed 5: loss") for how in ended.values()] == [False, True, False, False]
    folder = Path(runs[1].folder)
    status = read_json(folder / "state/status.json")
    assert (status["state"], status["exit_code"]) == ("diverged", 65)
    assert main(["pretrain", str(folder), "--threads", "1"]) == 65  # from step 0, alone
    assert read_json(folder / "state/status.json") == status
    for run in (runs[0], *runs[2:]):
        assert_equal_to_rounding(alone(run), Path(run.folder))


def test_a_run_that_cannot_be_one_of_several_is_refused_and_the_others_go_on(manifest, together):
    runs = [planned(manifest, brief(**changes)) for changes in ({}, {"dropout": 0.1}, {"compile": True})]
    code, ended, _ = together(runs)
    assert code == 0 and [how == "done" for how in ended.values()] == [True, False, False]
    assert "'dropout' 0.1" in ended[runs[1].folder] and "'compile'" in ended[runs[2].folder]


IDLE = """
import torch
from symbert.model.attention import OriginalAttention


class Frozen(OriginalAttention):
    def __init__(self, config):
        super().__init__(config)
        self.query.weight.requires_grad_(False)


class Unused(OriginalAttention):
    def __init__(self, config):
        super().__init__(config)
        self.spare = torch.nn.Parameter(torch.ones(4, 4))
"""


@pytest.mark.parametrize("kind", ["Frozen", "Unused"])
def test_a_run_with_a_parameter_that_gets_no_gradient_is_left_alone(kind, tmp_path, manifest, together, monkeypatch):
    """As a row among others it was decayed, and moved; AdamW passes it over in a run alone."""
    (tmp_path / "idle.py").write_text(IDLE)
    monkeypatch.syspath_prepend(tmp_path)
    runs = [planned(manifest, brief(), own(kind.lower(), **{"class": f"idle:{kind}"})), planned(manifest, brief())]
    code, ended, _ = together(runs)
    assert code == 0 and ended[runs[1].folder] == "done" and "is frozen or not used" in ended[runs[0].folder]


OPERATOR = """
from symbert.model.attention import OriginalAttention


class Branching(OriginalAttention):
    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return (query if self.query.weight.norm() < 1e9 else 2 * query), key, value
"""


def test_an_operator_that_looks_at_numbers_is_refused(tmp_path, manifest, together, monkeypatch):
    (tmp_path / "branching.py").write_text(OPERATOR)
    monkeypatch.syspath_prepend(tmp_path)
    run = planned(manifest, brief(), own("branching", **{"class": "branching:Branching"}))
    code, _, said = together([run])
    assert code == 64 and "'pretrain.together'" in said
    assert read_json(Path(run.folder, "state/status.json"))["state"] == "failed"
