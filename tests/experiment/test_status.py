import os
import platform
import shutil
from pathlib import Path

import pytest

from symbert.cli import main
from symbert.experiment import plan
from symbert.experiment.layout import Experiment
from symbert.experiment.project import read_config
from symbert.experiment.status import announcement_of, begin, state_of, status_of
from symbert.files import single_writer, write_json
from symbert.paths import Run
from symbert.pretrain.run import branch_step

ORIGINAL, SHARED = Run("tiny", "original", 1), Run("tiny", "shared", 1)


def ended(experiment, run: Run, **state) -> None:
    write_json(Path(experiment.runs[run], "state/status.json"), state)


def test_each_run_says_its_path_and_how_it_stands(experiment):
    symmetric, pairwise = (Run("tiny", name, 1) for name in ("symmetric", "pairwise"))
    write_json(Path(experiment.runs[ORIGINAL], "done.json"), {})
    ended(experiment, symmetric, state="preempted", step=1200, reason="SIGTERM: saved at step 1200")
    ended(experiment, pairwise, state="running", step=77)
    states = {run.attention: state_of(experiment, run) for run in experiment.encoders}
    assert states == {
        "original": "done",
        "symmetric": "step 1,200 of 2,400, preempted: SIGTERM: saved at step 1200",
        "pairwise": "step 77 of 2,400, stopped",
        "shared": "missing",
    }
    lines = status_of(experiment)
    assert "1 of 4 pre-trainings done" in lines[0]
    assert f"{ORIGINAL}: {experiment.runs[ORIGINAL]}: done" in lines


def test_a_run_is_running_while_the_process_of_its_lease_is(experiment):
    ended(experiment, ORIGINAL, state="running", step=5)
    with single_writer(Path(experiment.runs[ORIGINAL])):
        assert state_of(experiment, ORIGINAL).endswith(f"running by process {os.getpid()} on {platform.node()}")
    assert state_of(experiment, ORIGINAL).endswith("stopped")


def test_the_scores_of_each_checkpoint_exist_or_do_not(experiment):
    files = {(score.run, score.step, score.scoring.folder): file for file, score in experiment.scores.items()}
    folders = [scoring.folder for scoring, _ in experiment.scorings]
    glue, noisy = (Path(folder).name for folder in folders)
    write_json(Path(files[ORIGINAL, 2400, folders[0]]), [])
    write_json(Path(experiment.checkpoint(ORIGINAL, 2400), "model.safetensors"), 0)
    rows = [line.split() for line in status_of(experiment)]
    assert ["checkpoint", "step", "extracted", glue, "noise:", noisy] in rows
    assert ["tiny-original", "seed", "1", "2,400", "yes", "yes", "no"] in rows
    assert ["tiny-original", "seed", "1", "300", "no", "no", "."] in rows


def test_a_model_that_is_needed_and_has_no_weights_left_is_told_by_status_plan_and_start(experiment):
    """All three said that nothing was wrong, and its extraction failed."""
    folder = Path(experiment.runs[ORIGINAL])
    write_json(folder / "done.json", {})
    for step in (1200, 2400):
        write_json(folder / f"state/weights/step-{step:08d}.safetensors", 0)
    status = status_of(experiment)
    rows = [line.split() for line in status]
    assert ["tiny-original", "seed", "1", "300", "lost", "no", "."] in rows
    assert ["tiny-original", "seed", "1", "2,400", "no", "no", "no"] in rows
    for lines in (status, announcement_of(experiment), plan.lines_of(experiment, plan.outputs_of(experiment))):
        (line,) = (line for line in lines if "no weights of step" in line)
        assert "step 300 are left" in line and f"delete {folder / 'done.json'}" in line
    for file in experiment.scores:
        write_json(Path(file), [])
    assert experiment.lost_steps == {}, "of which all scores are there"


def test_steps_without_a_hidden_token_are_told_before_they_are_taken_where_they_are_to_be_expected(changed):
    """0.85 to the power of 4 x 16 tokens, 10,000 times: 0.3 steps."""
    few = {"pretrain": {"batch_size": 4, "steps": 10_000, "mask_probability": 0.15, "save_every": 300}}
    short = changed({**few, "corpus": {"pack": {"sequence_length": 16}}})
    (line,) = (line for line in said(short)["warning"] if "hide no token" in line)
    assert "about 0.3 of 10,000 steps" in line
    assert all(words in line for words in ("batch_size 4", "16 tokens", "mask_probability 0.15"))
    assert sum("hide no token" in line for line in plan.lines_of(short, [])) == 1
    assert "warning" not in said(changed({**few, "corpus": {"pack": {"sequence_length": 64}}}))


@pytest.mark.usefixtures("project")
def test_an_experiment_is_known_by_its_name_alone(capsys, changed):
    """Of a run of other operators that was finished it said "0 of 4", because it left no recipe behind."""
    bounded = changed({"experiment": "bounded", "sweep": {"attention": ["original"], "pretrain_seeds": [1, 2]}})
    bounded.write()
    for run in bounded.runs:
        write_json(Path(bounded.runs[run], "done.json"), {})
    assert main(["status", "bounded"]) == 0
    assert "2 of 2 pre-trainings done" in capsys.readouterr().out
    assert main(["status", "bundled"]) == 65
    assert "did you mean 'bounded'" in capsys.readouterr().err
    assert main(["status", "bounded", "--scale", "demo"]) == 64


def test_where_nothing_was_started_no_name_is_offered(folder, capsys):
    """It said "choose from " and nothing."""
    assert main(["status", "bounded"]) == 65
    assert "choose" not in capsys.readouterr().err


# The start of Snakemake.


def said(experiment) -> dict[str, list[str]]:
    """What a start says, by the first word of each line."""
    lines = [line.split(maxsplit=1) for line in announcement_of(experiment)]
    return {word: [rest for first, rest in lines if first == word] for word, _ in lines}


def test_a_start_says_the_experiment_and_the_disk(experiment, monkeypatch):
    monkeypatch.setattr(plan, "free_space", lambda path: (10**6, Path("/disk")))
    words = said(experiment)
    assert words["symbert:"][0].startswith("demo-embedded: scale demo")
    assert words["disk"][0].endswith("to come at most, 1 MB free on /disk: too small") and "changed" not in words


def test_files_that_equal_another_are_told(changed):
    """Each counted once without a word, though docs said: every file that matches."""
    for name, text in {"a.txt": "one\n", "b.txt": "one\n", "c.txt": "two\n", "d.csv": "one\n"}.items():
        Path("own").mkdir(exist_ok=True)
        Path("own", name).write_text(text)
    for pattern, is_told in (("own/*", True), ("own/[acd]*", False)):
        chosen = changed({"corpus": {"source": "files", "files": pattern}})
        warnings = said(chosen).get("warning", [])
        assert any("1 of 4 files" in line and "own/a.txt like own/b.txt" in line for line in warnings) == is_told
        assert len(chosen.texts) == 3


def test_another_sweep_under_the_same_name_is_shown_before_it_starts(experiment, changed):
    experiment.write()
    assert "changed" not in said(changed({}))
    after = changed({"sweep": {"attention": ["original"]}, "pretrain": {"steps": 4800}})
    assert said(after)["changed"] == [
        "pretrain.steps: 2400 → 4800",
        'sweep.attention: ["original", "symmetric", "pairwise", "shared"] → ["original"]',
    ]
    assert "changed" not in said(changed({"experiment": "other"}))


def test_rows_longer_than_those_of_pre_training_are_said_at_a_start_and_in_a_plan(changed, capsys, project):
    """It was believed that a model of 48 tokens reads 64: it read 16 positions as they were drawn, in silence."""
    pack = {"pack": {"sequence_length": 32}}
    longer = {"sweep": {"suites": ["glue", "superglue", "blimp"], "tasks": ["rte", "wsc"]}}
    longer |= {"glue": {"max_length": 32}, "suites": {"superglue": {"max_length": 33}, "blimp": {"max_length": 40}}}
    (line,) = said(changed({**longer, "corpus": pack}))["warning"]
    assert "'suites.superglue.max_length' (33), 'suites.blimp.max_length' (40)" in line and "(32)" in line
    assert "glue.max_length' (32)" not in line
    assert main(["plan", "--config", "corpus={pack: {sequence_length: 32}}", "glue={max_length: 33}"]) == 0
    assert "'glue.max_length' (33): more tokens" in capsys.readouterr().out


@pytest.mark.parametrize("scale", ["demo", "laptop", "single-gpu", "paper"])
def test_no_scale_reads_positions_that_its_models_never_saw(root, folder, scale):
    whole = {"sweep": {"suites": ["glue", "superglue", "squad2", "blimp"], "curve": {"sizes": []}}}
    source = {"source": "embedded" if scale == "demo" else "hub", "scale": scale}
    assert not list(Experiment(read_config(root, source, whole)).longer_rows)


def test_a_start_says_how_many_runs_it_trains_anew_though_they_are_done_with_other_settings(experiment, changed):
    """340 steps became 600: twenty models were trained again, without a word."""
    experiment.write()
    for run in (ORIGINAL, SHARED):
        write_json(Path(experiment.runs[run], "done.json"), {})
    more = changed(
        {"pretrain": {"steps": 4800}, "sweep": {"attention": ["original", "pairwise", "shared", "symmetric"]}}
    )
    assert [line.split()[:3] for line in said(more)["anew"]] == [["2", "of", "4"]]
    for unchanged in (
        changed({}),
        changed({"glue": {"epochs": 1}}),
        changed({"experiment": "x", "pretrain": {"steps": 7200}}),
    ):
        assert "anew" not in said(unchanged)
    write_json(Path(more.runs[SHARED], "done.json"), {})
    assert said(more)["anew"][0].startswith("1 of 4")


def finish(experiment) -> None:
    """All runs, with the state that others go on from."""
    experiment.write()
    for step in experiment.pretrainings.values():
        write_json(Path(step.folder, "done.json"), {})
        if branch := branch_step(step.training):
            write_json(Path(step.folder, f"state/continue/step-{branch:08d}.json"), {})


def test_runs_that_go_on_to_more_steps_are_told_by_status_plan_and_start_and_cost_less(changed):
    def hours(experiment) -> dict[str, float]:
        return {each.file: each.seconds for each in plan.outputs_of(experiment) if each.stage == "pretrain"}

    stable = {"sweep": {"curve": {"sizes": []}}, "pretrain": {"steps": 1200, "decay_steps": 300}}
    finish(before := changed(stable))
    longer = {**stable, "pretrain": {"steps": 3600, "decay_steps": 600}}
    more, folder = changed(longer), before.runs[ORIGINAL]
    begun = f"{ORIGINAL} goes on from step 900 of {folder}"
    assert said(more)["steps"] == [f"{begun}, and 3 more likewise"] and "anew" not in said(more)
    assert f"{begun}, and 3 more likewise" in plan.lines_of(more, plan.outputs_of(more))
    assert f"{ORIGINAL}: {more.runs[ORIGINAL]}: missing, goes on from step 900 of {folder}" in status_of(more)
    done = f"{more.runs[ORIGINAL]}/done.json"
    shutil.rmtree(folder)
    Path(more.runs[SHARED], "state/resume").mkdir(parents=True)  # it goes on from its own
    after = changed(longer)
    assert hours(more)[done] == pytest.approx(0.75 * hours(after)[done])
    assert {*more.continuations} - {*after.continuations} == {ORIGINAL, SHARED}


def test_weights_that_a_run_of_more_steps_would_take_and_are_gone_are_told_before_it_goes_on(changed):
    """It went on for hours, and then the model of an early step could not be extracted."""
    finish(before := changed({"pretrain": {"decay_steps": 300}}))
    folder = Path(before.runs[ORIGINAL])
    write_json(folder / "state/weights/step-00000300.safetensors", 0)
    more = changed({"pretrain": {"steps": 3600, "decay_steps": 300}})
    assert more.continuations[ORIGINAL].step == 2100 and more.lost_steps[ORIGINAL] == [1200]
    (line,) = (line for line in said(more)["warning"] if line.startswith(f"{ORIGINAL}:"))
    assert "step 1,200 are left" in line and f"delete {folder / 'done.json'}" in line
    (folder / "done.json").unlink()
    assert ORIGINAL not in changed({"pretrain": {"steps": 3600, "decay_steps": 300}}).lost_steps, "from step 0"


def test_runs_that_begin_at_step_0_though_shorter_ones_are_done_say_why(changed):
    finish(before := changed({}))
    after = changed({"pretrain": {"steps": 4800}})
    (line,) = said(after)["steps"]
    assert line.startswith(f"{ORIGINAL} begins at step 0, not from {before.runs[ORIGINAL]} (2,400 steps)")
    assert "learning rate fell to 0" in line and line.endswith("and 3 more likewise")
    assert said(after)["anew"] and f"{ORIGINAL}: {after.runs[ORIGINAL]}: missing" in status_of(after)


def test_a_folder_that_cannot_be_written_to_ends_a_start_with_one_line(experiment, capsys):
    Path("results").write_text("a file")
    with pytest.raises(SystemExit) as stop:
        begin(experiment)
    assert stop.value.code == 65
    assert capsys.readouterr().err.splitlines()[-1].startswith("symbert: results/")
