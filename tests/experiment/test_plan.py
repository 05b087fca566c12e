"""What a plan reckons and prints."""

import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from symbert import cli
from symbert.configuration import merge, resolve
from symbert.experiment import plan
from symbert.experiment.layout import Experiment
from symbert.experiment.plan import lines_of, outputs_of, warnings_of
from symbert.experiment.project import read_config
from symbert.files import write_json
from symbert.glue.score import Finetune, finished_at
from symbert.paths import Run

STAGES = ("corpus", "pretrain", "glue")
ORIGINAL = Run("tiny", "original", 1)


def hours(experiment: Experiment, stage: str, to_come: bool = False, on_gpu: bool | None = None) -> float:
    """Of one stage, in all or to come, without the start of jobs; of GPUs alone, of cores alone, or of both."""
    chosen = [output for output in outputs_of(experiment) if output.stage == stage and on_gpu in (None, output.on_gpu)]
    return sum((output.is_missing if to_come else 1.0) * output.seconds for output in chosen) / 3600


def test_the_papers_plan_takes_more_than_its_floors_and_not_thrice_that(paper):
    """Hours of one H200 with the fastest known kernels. Pre-training: small 1.9, base 9.0, of three operators each.

    Fine-tuning, of five seeds and eight tasks: base 34 minutes, 8 hours launch by launch; small 8 minutes at least.
    """
    floor = 3 * (1.9 + 9.0)
    assert floor < hours(paper, "pretrain", on_gpu=True) < 3 * floor
    sweeps = 3 + 3 * 17 / 5  # of the base models: five seeds at the last step, one at 17 others
    assert sweeps * 34 / 60 + 3 * 8 / 60 < hours(paper, "glue", on_gpu=True) < (sweeps + 3) * 8


def test_what_is_done_is_not_to_come(experiment):
    whole = hours(experiment, "pretrain")
    assert hours(experiment, "pretrain", to_come=True) == whole > 0
    write_json(Path(experiment.runs[ORIGINAL], "done.json"), {})
    assert hours(experiment, "pretrain", to_come=True) == pytest.approx(whole * 3 / 4)
    for run in experiment.encoders:
        write_json(Path(experiment.runs[run], "done.json"), {})
    assert hours(experiment, "pretrain") == whole and hours(experiment, "pretrain", to_come=True) == 0


def test_a_corpus_is_to_come_by_its_parts_until_its_rows_are_packed(experiment):
    def coming() -> int:
        return sum(output.is_missing > 0 for output in outputs_of(experiment) if output.stage == "corpus")

    assert coming() == len(experiment.texts) + 1, "parts, rows"
    write_json(Path(experiment.parts.folder, f"{next(iter(experiment.texts))}.npy"), {})
    assert coming() == len(experiment.texts)
    write_json(Path(experiment.shards), {})
    assert coming() == 0


def test_only_the_hub_is_downloaded_from_and_only_what_is_not_there(paper, experiment):
    def download(of: Experiment, stage: str) -> float:
        return sum(output.is_missing * output.download for output in outputs_of(of) if output.stage == stage)

    assert download(paper, "corpus") == pytest.approx(187e9, rel=0.01)
    assert download(experiment, "corpus") == 0
    write_json(Path(paper.shards), {})
    assert download(paper, "corpus") == 0


def test_one_gpu_of_24_gb_finishes_its_scale_in_a_day_by_the_configured_rates(root, folder):
    """A sixth of the operations per second of an H200, and a fifth of the bytes."""
    single_gpu = Experiment(read_config(root, {"scale": "single-gpu", "source": "hub"}))
    assert 14 < sum(hours(single_gpu, stage, on_gpu=True) for stage in STAGES) < 22
    assert sum(hours(single_gpu, stage) for stage in STAGES) < 24


def test_what_finished_jobs_took_tells_what_others_of_their_size_will(paper):
    """Of base alone: a run at half the rate, and fine-tunings of a tenth of a job's steps in a third of its time."""
    before = {stage: hours(paper, stage, on_gpu=True) for stage in STAGES}
    step_hours = plan.seconds_of(paper, paper.shapes["base"], 1e18, 0, finetunes=False) / 3600
    run = Run("base", "original", 1)
    facts = dict.fromkeys(("host", "device", "processor", "commit", "precision"), "")
    timing = {
        **facts,
        "versions": {},
        "started": "2026-11-28T06:00:00Z",
        "compile": True,
        "threads": 1,
        "processes": 1,
        "micro_batch_size": 1,
        "flops_per_second": 1e18 / 3600 / step_hours / 2,
    }
    told = {"size": "base", "attention": "original", "pretrain_seed": 1, "sessions": 1, "commits": []}
    write_json(Path(paper.runs[run], "timing.json"), timing | told)
    of_base = sum(o.seconds for o in outputs_of(paper) if o.stage == "pretrain" and "base" in o.file) / 3600
    assert hours(paper, "pretrain", on_gpu=True) == pytest.approx(before["pretrain"] + of_base / 2)
    file = next(file for file, score in paper.scores.items() if score.run.size == "base")
    shape, score = paper.shapes["base"], paper.scores[file]
    flops, steps = plan._finetuning(paper, score, shape)
    whole = plan.seconds_of(paper, shape, flops, steps, finetunes=True)
    write_json(finished_at(Path(file)), {"seconds": whole / 3, "steps": int(steps) // 10})
    others = sum(o.seconds for o in outputs_of(paper) if o.stage == "glue" and "small" in o.file) / 3600
    assert hours(paper, "glue", on_gpu=True) - others == pytest.approx((before["glue"] - others) * 10 / 3, rel=1e-3)
    said = "\n".join(lines_of(paper, outputs_of(paper)))
    assert "pre-training takes 2 ×" in said and "fine-tuning takes 3.3 ×" in said


def test_the_papers_plan_is_one_screen_of_files_hours_days_disk_and_download(paper):
    lines = lines_of(paper, outputs_of(paper))
    rows = {words[0]: words[1:] for words in map(str.split, lines[2:8])}
    assert len(lines) <= 25 and [*rows] == ["to", "corpus", "pretrain", "glue", "report", "all"]
    assert rows["corpus"][:3] == ["301", "of", "301"] and rows["pretrain"][:3] == ["63", "of", "63"]
    assert 40 < float(rows["pretrain"][3]) <= float(rows["pretrain"][4]) < 90
    assert rows["corpus"][-2:] == ["187", "GB"] and rows["corpus"][3] == "-", "no GPU"


def test_every_page_has_the_hours_of_the_plan(root, paper):
    """README said 128 GPU-hours, two pages 130."""
    _, _, _, _, gpu, _, disk, *_ = next(
        line.split() for line in lines_of(paper, outputs_of(paper)) if line[:4] == "all "
    )
    rows = {}
    for page in ("README.md", "docs/cluster.md", "docs/configuration.md"):
        lines = (root / page).read_text(encoding="utf-8").splitlines()
        (rows[page],) = (line for line in lines if line.startswith(("| paper |", "| `paper` ")))
    assert all(f" {gpu} " in row for row in rows.values()), rows
    assert all(f" {disk} GB" in row for row in rows.values() if "GB" in row), rows


def test_a_plan_that_does_not_fit_the_disk_says_so_and_ends_with_0(project, capsys, monkeypatch):
    monkeypatch.setattr(plan, "free_space", lambda path: (10**6, project))
    assert cli.main(["plan"]) == 0
    said = capsys.readouterr()
    assert f" free on {project}: too small" in said.out and said.err == ""


def test_weights_that_are_wanted_after_the_scores_are_still_to_come(changed):
    """`glue.keep_finetuned: true` did nothing once scores were there, and the export of a classifier asked for it."""
    kept, scored = (changed({"glue": {"keep_finetuned": keeps}}) for keeps in (True, False))
    finals = [file for file, score in kept.scores.items() if score.step == 2400 and isinstance(score.scoring, Finetune)]
    assert kept.scores.keys() == scored.scores.keys() and len(finals) == 4
    assert not kept.lacking_weights, "the jobs that score keep them"
    for file in kept.scores:
        write_json(Path(file), [])
    (selection, *_), score = kept.lacking_weights, kept.scores[finals[0]]
    assert len(kept.lacking_weights) == 4 and not scored.lacking_weights
    assert Path(selection).parent == Path(finals[0]).parent and selection not in kept.scores
    assert {*kept.lacking_weights} <= {*kept.everything} and kept.inputs_of[selection] == kept.inputs_of[finals[0]]
    assert kept.options("{file}")({"file": selection}) == score.options
    assert sum(output.is_missing for output in outputs_of(kept) if output.file in kept.lacking_weights) == 4
    checkpoint = f"{kept.checkpoint(score.run, 2400)}/model.safetensors"
    assert checkpoint in kept.everything and checkpoint not in scored.everything
    for task, seed in itertools.product(score.tasks, score.seeds):
        assert selection in kept.lacking_weights
        write_json(Path(selection).parent / f"finetuned/{task}/seed-{seed}.safetensors", 0)
    assert len(kept.lacking_weights) == 3 and selection not in kept.lacking_weights


def test_runs_with_dropout_are_trained_alone_and_the_others_by_their_operator(config, folder):
    """A GPU is asked for where the weights of all that go together are worth one."""
    changes = {
        "pretrain": {"together": 12, "dropout": 0.0},
        "architectures": {"decoder": {"dropout": 0.1}},
        "sweep": {
            **{"pretrain_seeds": [*range(12)], "finetuned_pretrain_seeds": None},
            **{"attention": ["original", "symmetric"], "architectures": ["encoder", "decoder"]},
        },
    }
    mixed = Experiment(resolve(merge(config, changes)))
    (said,) = warnings_of(mixed)
    assert "24 of 48 runs: 'dropout' 0.1" in said
    by_batch = {name: {run.attention for run in step.runs} for name, step in mixed.together.items()}
    assert sorted(by_batch.values(), key=str) == [{"original"}, {"symmetric"}]
    assert all(run.architecture == "encoder" for step in mixed.together.values() for run in step.runs)
    gpus = {mixed.needs_together.gpus(SimpleNamespace(batch=batch)) for batch in mixed.together}
    assert gpus == {1}


def test_a_plan_says_that_kenlm_is_missing_where_perplexities_are_computed_and_nowhere_else(
    config, folder, monkeypatch
):
    monkeypatch.setitem(sys.modules, "kenlm", None)
    for changes, is_said in (({}, False), ({"annotations": "computed"}, True)):
        said = warnings_of(Experiment(resolve(merge(config, {"corpus": changes}))))
        assert any("pip install kenlm" in line for line in said) is is_said
