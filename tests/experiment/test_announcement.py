from pathlib import Path

import pytest

from symbert.errors import ConfigError, InputOutputError
from symbert.experiment import disk
from symbert.experiment.announcement import announce, changed_runs, refuse_changed
from symbert.layout import Run
from symbert.snakemake_internals import Job
from traces import write

PAIRWISE = Run("tiny", "pairwise", 1)
RUN = {"size": "tiny", "attention": "pairwise", "seed": "1"}
TRAINING = Job("pretrain_model", RUN)
CORPUS = [
    Job("write_settings", {"section": "pack"}),
    *(Job("filter_part", {"part": f"en_meta_part_{n}"}) for n in (1, 2)),
]
JOBS = [*CORPUS, Job("finetune", {**RUN, "step": "2400"}), Job("draw_figure2", {}), Job("all", {})]


def test_the_banner_names_the_experiment_what_is_to_be_trained_and_what_is_there(experiment, traces):
    traces.done(Run("tiny", "original", 1))
    lines = list(announce(experiment))
    assert lines[0].startswith("symbert: experiment demo-embedded (scale demo, corpus embedded, ")
    assert lines[1].startswith("  to train       ") and "tiny-pairwise seed 1" in lines[1]
    assert "tiny-original seed 1" not in lines[1]
    assert lines[2] == "  there already  1 of 4 pre-trainings"


def test_results_that_cannot_be_written_to_are_refused_by_name(experiment, monkeypatch):
    """Snakemake would end in a traceback."""
    Path("results").mkdir()
    monkeypatch.setattr("os.access", lambda place, _: Path(place).name != "results")
    with pytest.raises(InputOutputError, match="^results: cannot be written to|/results: cannot be written to"):
        list(announce(experiment))


def test_a_disk_that_is_too_small_is_a_warning(experiment, monkeypatch):
    monkeypatch.setattr(disk, "free_space", lambda path: (10**6, Path("/small")))
    last = list(announce(experiment))[-1]
    assert "MB to come on /small (storage.checkpoints" in last and last.endswith("warning: only 1 MB free")


def test_a_run_of_other_settings_is_announced_with_what_becomes_of_it(changed, traces):
    superseding = changed({"on_settings_change": "supersede"})
    traces.run(PAIRWISE, warmup_steps=7)
    differing, then = changed_runs(superseding)
    assert "tiny-pairwise seed 1" in differing and "warmup_steps: 7 → 200" in differing and "set aside" in then


def test_a_run_that_comes_back_is_announced(changed, traces):
    superseding = changed({"on_settings_change": "supersede"})
    traces.aside(PAIRWISE, 1200)
    assert list(changed_runs(superseding)) == ["tiny-pairwise seed 1: set aside at step 1,200 of 2,400, comes back"]


def test_a_run_that_its_job_would_refuse_is_refused_at_the_start_with_the_difference(changed, traces):
    """Snakemake has deleted nothing yet, and a cluster has spent no attempt."""
    refusing = changed({"on_settings_change": "refuse"})
    state = traces.run(PAIRWISE, warmup_steps=7)
    with pytest.raises(ConfigError) as refused:
        refuse_changed(refusing, [TRAINING])
    said = str(refused.value)
    assert said.startswith(f"{state}: holds a run with other settings (warmup_steps: 7 → 200); name a new 'experiment'")
    assert refused.value.exit_code == 64
    refuse_changed(refusing, JOBS)  # trains nothing
    refuse_changed(refusing, [Job("pretrain_model", {**RUN, "attention": "shared"})])  # nor does this train that run


@pytest.mark.parametrize(
    "odd", [[], 7, {}, {"state": 3, "step": [], "sha256": 4, "settings": 1, "parts": 5, "mfu": "x"}]
)
def test_odd_files_do_not_stop_a_start(experiment, traces, odd):
    state = traces.run(PAIRWISE)
    traces.scores(PAIRWISE, 2400, "rte", [1])
    traces.kept(PAIRWISE, 2400, "rte", 2)
    traces.corpus()
    timing = experiment.place(experiment.run, PAIRWISE) / "timing.json"
    for path in (timing, *Path("results").rglob("*.json"), state.parent / "lock"):
        before = path.read_text() if path.is_file() else "{}"
        write(path, odd)
        assert len(list(announce(experiment))) > 2, path
        path.write_text(before)


def test_a_mirror_that_lacks_a_part_is_left_to_the_rule_that_needs_it(changed, tmp_path):
    mirrored = changed({"source": "mirror", "mirror": str(tmp_path)})
    (line,) = [line for line in announce(mirrored) if line.startswith("  not known")]
    assert "en_meta_part_1.jsonl.zst: file not found" in line
