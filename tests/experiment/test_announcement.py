from pathlib import Path

import pytest
from symbert.pretrain.state import run_state

from symbert.errors import ConfigError, InputOutputError
from symbert.experiment import disk
from symbert.experiment.announcement import announce, changed_runs, files_to_write
from symbert.experiment.plan import files_of
from symbert.paths import Run
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


def test_the_banner_names_the_experiment_and_what_is_trained(experiment, traces):
    traces.done(Run("tiny", "original", 1))
    lines = list(announce(experiment, [TRAINING, *CORPUS]))
    assert lines[0].startswith("symbert: experiment demo-embedded (scale demo, corpus embedded, ")
    assert lines[1] == "  trains         tiny-pairwise seed 1; 4 jobs in all"
    assert lines[2] == "  there already  1 of 4 pre-trainings"


def test_results_that_cannot_be_written_to_are_refused_by_name(experiment, monkeypatch):
    """Snakemake would end in a traceback."""
    Path("results").mkdir()
    monkeypatch.setattr("os.access", lambda place, _: Path(place).name != "results")
    with pytest.raises(InputOutputError, match="^results: cannot be written to|/results: cannot be written to"):
        list(announce(experiment, [TRAINING]))


def test_a_job_that_writes_nothing_large_needs_no_room(experiment, monkeypatch):
    """Tables of the paper are made on any disk."""
    monkeypatch.setattr(disk, "free_space", lambda path: (10, Path("/")))
    assert not [line for line in announce(experiment, [Job("tabulate_table3_published", {})]) if "disk" in line]


def test_storage_that_is_too_small_is_refused_after_the_plan_was_said(experiment, monkeypatch):
    monkeypatch.setattr(disk, "free_space", lambda path: (10**6, Path("/small")))
    said = []
    with pytest.raises(InputOutputError, match=r"18\.8 MB are still to be written on /small, where 1 MB are free"):
        for line in announce(experiment, [TRAINING, *CORPUS]):
            said.append(line)
    assert "to come on /small, 1 MB free (storage.checkpoints" in said[-1]


def test_only_what_the_starting_jobs_write_needs_room(experiment, monkeypatch):
    """A run of four, a checkpoint of twelve; a whole stage was asked room for once."""
    monkeypatch.setattr(disk, "free_space", lambda path: (30 * 10**6, Path("/small")))
    extracting = Job("extract_checkpoint", {**RUN, "step": "300"})
    told = [line for line in announce(experiment, [TRAINING, extracting]) if "disk  " in line]
    assert told == ["  disk           12.8 MB to come on /small, 30 MB free (storage.checkpoints, results/)"]


def test_on_a_cluster_storage_that_is_small_here_is_said_and_refused_by_none(experiment, monkeypatch):
    monkeypatch.setattr(disk, "free_space", lambda path: (10, Path("/small")))
    last = list(announce(experiment, [TRAINING], on_cluster=True))[-1]
    assert last.startswith("  warning        config: storage.checkpoints: ") and "/small" in last


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
        list(announce(refusing, [TRAINING]))
    said = str(refused.value)
    assert said.startswith(f"{state}: holds a run with other settings (warmup_steps: 7 → 200); name a new 'experiment'")
    assert refused.value.exit_code == 64
    list(announce(refusing, JOBS))  # trains nothing
    list(announce(refusing, [Job("pretrain_model", {**RUN, "attention": "shared"})]))  # nor does this train that run


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
        assert len(list(announce(experiment, [TRAINING, *JOBS]))) > 2, path
        path.write_text(before)


def test_a_mirror_that_lacks_a_part_is_left_to_the_rule_that_needs_it(changed, tmp_path):
    mirrored = changed({"source": "mirror", "mirror": str(tmp_path)})
    (line,) = [line for line in announce(mirrored, JOBS) if line.startswith("  disk")]
    assert "en_meta_part_1.jsonl.zst: file not found" in line


def test_jobs_write_their_own_files_and_any_of_the_corpus_all_of_it(experiment):
    files = files_of(experiment, [run_state(experiment, run) for run in experiment.pretrainings()])
    wildcards = {"size": "tiny", "attention": "shared", "seed": "1"}
    jobs = [
        Job("pretrain_model", wildcards),
        Job("extract_checkpoint", {**wildcards, "step": "300"}),
        Job("draw_figure2", {}),
    ]
    chosen = files_to_write(experiment, files, jobs)
    assert [(one.kind, one.folder.parts[-3:]) for one in chosen] == [
        ("states of runs", ("tiny-shared", "seed-1", "state")),
        ("checkpoints", ("tiny-shared", "seed-1", "step-300")),
    ]
    corpus = files_to_write(experiment, files, [Job("filter_part", {"part": "en_meta_part_1"})])
    assert [one for one in files if one.stage == "corpus" and one.to_come] == corpus
