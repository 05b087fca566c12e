from collections import Counter
from pathlib import Path

import pytest

from symbert.errors import ConfigError, DataError, InputOutputError
from symbert.experiment import announcement, disk
from symbert.experiment.announcement import announce, files_to_write
from symbert.experiment.plan import plan_experiment
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


@pytest.fixture
def demo(root) -> Path:
    """The scale's file."""
    return root / "workflow/scales/demo.yaml"


def test_the_banner_says_what_the_scale_overrides(experiment, demo):
    lines = list(announce(experiment, demo, JOBS))
    assert lines[0] == (
        "symbert: experiment demo-embedded (scale demo, corpus embedded, GLUE embedded, recipe faithful)"
    )
    assert ", 8 keys of pretrain, " in lines[1] and "  results        results/demo-embedded" in lines


def test_the_papers_scale_overrides_nothing(experiment, root):
    assert (
        "nothing: every value is the paper’s" in list(announce(experiment, root / "workflow/scales/paper.yaml", []))[1]
    )


def test_stages_that_have_jobs_are_planned_in_a_line_each(experiment, demo):
    lines = list(announce(experiment, demo, JOBS))
    stages = {line.split()[0]: line for line in lines if " job" in line}
    assert list(stages) == ["settings", "corpus", "glue", "report"]
    assert stages["corpus"].startswith("  corpus         2 jobs, <0.01 core-hours, 8.62 MB to write")
    assert stages["glue"].startswith("  glue           1 job, ") and "9.76 MB to write" in stages["glue"]


def test_a_stage_without_jobs_needs_no_room(experiment, demo, monkeypatch):
    """Tables of the paper are made on any disk."""
    monkeypatch.setattr(disk, "free_space", lambda path: (10, Path("/")))
    assert not [
        line for line in announce(experiment, demo, [Job("tabulate_table3_published", {})]) if "storage" in line
    ]


def test_storage_that_is_too_small_is_refused_after_the_plan_was_said(experiment, demo, monkeypatch):
    monkeypatch.setattr(disk, "free_space", lambda path: (10**6, Path("/small")))
    said = []
    with pytest.raises(InputOutputError, match=r"18\.8 MB are still to be written on /small, where 1 MB are free"):
        for line in announce(experiment, demo, [TRAINING, *CORPUS]):
            said.append(line)
    assert "to come on /small, 1 MB free (storage.checkpoints" in said[-1]


def test_only_what_the_starting_jobs_write_needs_room(experiment, demo, monkeypatch):
    """A run of four, a checkpoint of twelve; a whole stage was asked room for once."""
    monkeypatch.setattr(disk, "free_space", lambda path: (30 * 10**6, Path("/small")))
    extracting = Job("extract_checkpoint", {**RUN, "step": "300"})
    told = [line for line in announce(experiment, demo, [TRAINING, extracting]) if "storage  " in line]
    assert told == ["  storage        12.8 MB to come on /small, 30 MB free (storage.checkpoints, results/)"]


def test_a_refusal_names_the_way_around_it(experiment, demo, monkeypatch):
    """Quotas may leave more, or less, than the file system says."""
    monkeypatch.setattr(disk, "free_space", lambda path: (10, Path("/small")))
    with pytest.raises(InputOutputError, match="or start with --no-hooks, which skips this check"):
        list(announce(experiment, demo, [TRAINING]))


def test_on_a_cluster_storage_that_is_small_here_is_said_and_refused_by_none(experiment, demo, monkeypatch):
    monkeypatch.setattr(disk, "free_space", lambda path: (10, Path("/small")))
    last = list(announce(experiment, demo, [TRAINING], on_cluster=True))[-1]
    assert last.startswith("  warning        config: storage.checkpoints: ") and "/small" in last


def test_a_run_of_other_settings_is_announced_before_anything_runs(changed, demo, traces):
    superseding = changed({"on_settings_change": "supersede"})
    traces.run(PAIRWISE, warmup_steps=7)
    told = [line for line in announce(superseding, demo, [TRAINING]) if "warmup_steps: 7 → 200" in line]
    assert len(told) == 1 and "tiny-pairwise seed 1" in told[0]
    assert not [line for line in announce(superseding, demo, JOBS) if "warmup_steps: 7" in line], "nothing is trained"


def test_a_run_that_comes_back_is_announced(changed, demo, traces):
    superseding = changed({"on_settings_change": "supersede"})
    traces.aside(PAIRWISE, 1200)
    assert "  tiny-pairwise seed 1: set aside at step 1,200 of 2,400, comes back" in list(
        announce(superseding, demo, [TRAINING])
    )


def test_a_run_that_its_job_would_refuse_is_refused_at_the_start_with_the_difference(changed, demo, traces):
    """Snakemake has deleted nothing yet, and a cluster has spent no attempt."""
    refusing = changed({"on_settings_change": "refuse"})
    state = traces.run(PAIRWISE, warmup_steps=7)
    with pytest.raises(ConfigError) as refused:
        list(announce(refusing, demo, [TRAINING]))
    said = str(refused.value)
    assert said.startswith(f"{state}: holds a run with other settings (warmup_steps: 7 → 200); name a new 'experiment'")
    assert refused.value.exit_code == 64
    list(announce(refusing, demo, JOBS))  # trains nothing
    list(
        announce(refusing, demo, [Job("pretrain_model", {**RUN, "attention": "shared"})])
    )  # nor does this train that run


@pytest.mark.parametrize(
    "odd", [[], 7, {}, {"state": 3, "step": [], "sha256": 4, "settings": 1, "parts": 5, "mfu": "x"}]
)
def test_odd_files_do_not_stop_a_start(experiment, demo, traces, odd):
    state = traces.run(PAIRWISE)
    traces.scores(PAIRWISE, 2400, "rte", [1])
    traces.kept(PAIRWISE, 2400, "rte", 2)
    traces.corpus()
    timing = experiment.place(experiment.run, PAIRWISE) / "timing.json"
    for path in (timing, *Path("results").rglob("*.json"), state.parent / "lock"):
        before = path.read_text() if path.is_file() else "{}"
        write(path, odd)
        assert len(list(announce(experiment, demo, [TRAINING, *JOBS]))) > 5, path
        path.write_text(before)


@pytest.mark.parametrize("error", [KeyError("device"), DataError("x.json: not JSON"), PermissionError(13, "denied")])
def test_a_plan_that_cannot_be_made_is_one_line(experiment, demo, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(announcement, "plan_experiment", fail)
    assert list(announce(experiment, demo, [TRAINING]))[-1] == f"  plan           none: {type(error).__name__}: {error}"


def test_a_mirror_that_lacks_a_part_is_left_to_the_rule_that_needs_it(changed, demo, tmp_path):
    mirrored = changed({"source": "mirror", "mirror": str(tmp_path)})
    (line,) = [line for line in announce(mirrored, demo, JOBS) if line.startswith("  plan")]
    assert "en_meta_part_1.jsonl.zst: file not found" in line


def test_jobs_write_their_own_files_and_any_of_the_corpus_all_of_it(experiment):
    files = plan_experiment(experiment, Counter(), Counter()).files
    wildcards = {"size": "tiny", "attention": "shared", "seed": "1"}
    jobs = [
        Job("pretrain_model", wildcards),
        Job("extract_checkpoint", {**wildcards, "step": "300"}),
        Job("draw_figure2", {}),
    ]
    chosen = files_to_write(experiment, files, jobs, Counter(pretrain=2))
    assert [(one.kind, one.folder.parts[-3:]) for one in chosen] == [
        ("states of runs", ("tiny-shared", "seed-1", "state")),
        ("checkpoints", ("tiny-shared", "seed-1", "step-300")),
    ]
    corpus = files_to_write(experiment, files, [Job("filter_part", {"part": "en_meta_part_1"})], Counter(corpus=1))
    assert [one for one in files if one.stage == "corpus"] == corpus
