"""The rerun matrix: which jobs a change runs, and which results stay. docs/errors-and-reruns.md names these tests."""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from symbert.files import read_json
from workflow.checkout import HANG, Checkout, check_out, wait_for

SHOWN = ("all", "report", "measure_speeds")  # of which nothing else is made
SCORES = {"score": 4, "score_robustness": 2}  # two operators, two checkpoints each, of which the last under noise, too
RUNS = {"pretrain": 2, "extract": 4, **SCORES}
ONE_RUN = {rule: count // 2 for rule, count in RUNS.items()}
ORIGINAL = "results/runs/encoder/tiny-original-*/seed-1"


def dry(*changes: str, targets: tuple[str, ...] = ()) -> list[str]:
    """The words of a dry run under changes of the configuration."""
    return [*targets, "--dry-run", "--quiet", "rules", *(["--config", *changes] if changes else [])]


def made(checkout: Checkout, *commands: Sequence[str]) -> list[dict[str, int]]:
    """The jobs of commands that succeed, all in one process."""
    outcomes = checkout.tinies(*commands)
    for outcome in outcomes:
        assert outcome.code == 0, outcome.output[-5000:]
    return [outcome.jobs for outcome in outcomes]


def planned(checkout: Checkout, *changes: str, targets: tuple[str, ...] = ()) -> dict[str, int]:
    """The jobs that a dry run lists under changes of the configuration."""
    return made(checkout, dry(*changes, targets=targets))[0]


def computed(jobs: dict[str, int]) -> dict[str, int]:
    """The jobs of which the report is made."""
    return {rule: count for rule, count in jobs.items() if rule not in SHOWN}


def only(checkout: Checkout, pattern: str) -> Path:
    """The one file or folder that matches."""
    (path,) = checkout.directory.glob(pattern)
    return path


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file below a folder, but for logs, locks and what tells times."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and file.suffix not in (".log", ".txt"))
    told = ("lock", "timing.json", "provenance.json", "status.json", "digests.json", "experiment.json", "config.yaml")
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.name not in told and {"measured", "report", "finished"}.isdisjoint(file.parts)
    }


def edit(path: Path, old: str, new: str) -> None:
    """Replace text in a file."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


CHANGES = {
    "experiment=another": {},
    "sweep={finetune_seeds: [1, 2, 3]}": {"score": 2, "score_robustness": 2},
    "sweep={curve: {finetune_seeds: [1, 2]}}": {"score": 2},
    "sweep={curve: {steps: {tiny: [5, 10, 20]}}}": {"extract": 2, "score": 2},
    "sweep={untrained: true}": {"extract": 2, "score": 2},
    "sweep={tasks: [mrpc, cola, mnli, qqp, rte, stsb, qnli, sst2, wnli]}": {"prepare_task": 2, **SCORES},
    "sweep={suites: [glue, blimp]}": {"prepare_task": 1, "score": 4},
    "sweep={attention: [original, pairwise, symmetric]}": ONE_RUN,
    "sweep={pretrain_seeds: [1, 2], finetuned_pretrain_seeds: [1]}": {"pretrain": 2},
    "sweep={architectures: [encoder, decoder]}": {"pretrain": 2, "extract": 2},
    "glue={epochs: 2}": SCORES,
    "glue={max_length: 24}": {"prepare_task": 16, **SCORES},
    "glue={robustness: {noise: [0.1]}}": {"prepare_task": 8, "score_robustness": 2},
    "pretrain={learning_rate: 0.002}": RUNS,
    "corpus={pack: {sequence_length: 16}}": {"pack": 1, **RUNS},
    "corpus={parts: 3}": {"pack": 1, **RUNS},
    "corpus={filter: {max_harmful_perplexity: 50000.0}}": {"prepare_part": 4, "pack": 1, **RUNS},
    "pretrain={micro_batch_size: 4, together: 8}": {},
    "glue={keep_finetuned: false, allow_partial: true}": {},
}


@pytest.fixture(scope="module")
def changed(finished) -> dict[str, dict[str, int]]:
    """The jobs of each change, and then those of none."""
    return dict(zip([*CHANGES, "none"], made(finished, *map(dry, CHANGES), dry()), strict=True))


def test_a_change_runs_its_descendants_and_nothing_else(changed):
    assert {change: computed(changed[change]) for change in CHANGES} == CHANGES


def test_nothing_changed_runs_nothing(changed):
    assert changed["none"] == {}


def test_going_back_to_earlier_settings_runs_the_report_alone(copy):
    """Results of other settings lie in other folders, and stay."""
    before = digests(copy.directory / "results")
    other, back, _, nothing = made(copy, ["--config", "glue={epochs: 2}"], dry(), [], dry())
    assert computed(other) == SCORES and computed(back) == {} and back["report"] == 1 and nothing == {}
    assert before.items() <= digests(copy.directory / "results").items()


def test_more_seeds_are_trained_as_one_model_and_in_no_job_of_their_own(copy):
    """One that is done is left alone, and another number of them at a time runs nothing again."""
    words = ["sweep={attention: [original], pretrain_seeds: [1, 2, 3], finetuned_pretrain_seeds: [1]}"]
    before = digests(copy.directory / "results")
    asked, again = made(
        copy,
        ["--until", "pretrain", "--config", *words, "pretrain={together: 8}"],
        dry(*words, "pretrain={together: 2}"),
    )
    assert asked == {"pretrain_together": 1, "pretrain": 2} and "pretrain" not in again
    (ended,) = copy.directory.glob("results/together/tiny-original-*/ended.json")
    assert [*read_json(ended).values()] == ["done"] * 3
    assert before.items() <= digests(copy.directory / "results").items()
    session = only(copy, "results/runs/encoder/tiny-original-*/seed-3/state/provenance.json")
    assert read_json(session)["sessions"][0]["together"] == 2


def test_one_more_seed_and_task_compute_what_is_new_and_copy_the_rest(copy):
    """The old records stand in the new file as they are."""
    pattern = "results/scores/glue-*/encoder/tiny-original-*/seed-1/step-20/*.json"
    (old_file,) = copy.directory.glob(pattern)
    old = read_json(old_file)
    change = "sweep={finetune_seeds: [1, 2, 3], tasks: [mrpc, cola, mnli, qqp, rte, stsb, qnli, sst2, wnli]}"
    made(copy, ["--until", "score", "--config", change])
    (file,) = {*copy.directory.glob(pattern)} - {old_file}
    new = read_json(file)
    assert [record for record in new if record in old] == old
    assert len(new) == 9 * 3 and {record["finetune_seed"] for record in new if record["task"] == "wnli"} == {1, 2, 3}
    log = file.with_suffix(".log").read_text()
    assert "mrpc seed 3" in log and "mrpc seed 1" not in log


OPERATOR = '''"""An operator of the user's own."""
from symbert.model.attention import SharedAttention


class Gated(SharedAttention):
    """q·k: gated."""

    def logits(self, hidden):
        import my_scale

        return my_scale.SCALE * super().logits(hidden)
'''


def test_an_edited_operator_trains_in_a_new_folder_and_an_edited_docstring_nowhere(copy):
    """Also where the code is in a module that it imports in a function."""
    own = "sweep={attention: ['my_operator:Gated']}"
    (copy.directory / "my_operator.py").write_text(OPERATOR)
    (copy.directory / "my_scale.py").write_text("SCALE = 2.0\n")
    _, again = made(copy, ["--until", "pretrain", "--config", own], dry(own))
    edit(copy.directory / "my_operator.py", "q·k: gated", "q·k: gated, in other words")
    assert "pretrain" not in again and "pretrain" not in planned(copy, own)
    edit(copy.directory / "my_scale.py", "2.0", "3.0")
    assert planned(copy, own)["pretrain"] == 1


def test_a_text_of_ones_own_counts_by_its_content(copy, tmp_path):
    """The embedded corpus stands for the mirror, which gives UT1 and the rest."""
    own = tmp_path / "own"
    own.mkdir()
    for name in ("a", "b"):
        line = {"text": f"A line of {name}.", "url": "https://good.example/"}
        (own / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
    mirror = copy.directory / "src/symbert/demo"
    change = ("experiment=own", f"mirror={mirror}", f"corpus={{source: files, files: '{own}/*'}}")
    until = ("--until", "prepare_part")
    assert made(copy, [*until, "--config", *change])[0]["prepare_part"] == 2
    os.utime(own / "a.jsonl", (1, 1))
    (own / "b.jsonl").write_text(json.dumps({"text": "Another line.", "url": "https://good.example/"}) + "\n")
    (own / "c.jsonl").write_text(json.dumps({"text": "A new file.", "url": "https://good.example/"}) + "\n")
    assert planned(copy, *change, targets=until)["prepare_part"] == 2, "the touched one is kept"


def test_a_copy_without_times_or_records_and_a_clock_that_was_ahead_run_nothing(root, finished, tmp_path):
    """As `cp -r` to another machine leaves results, and in the worst order. A change is noticed as ever."""
    other = check_out(root, tmp_path / "other")
    shutil.copytree(finished.directory / "results", other.directory / "results", copy_function=shutil.copyfile)
    files = sorted(path for path in other.directory.rglob("*") if path.is_file())
    ahead = time.time() + 7200
    for number, path in enumerate(sorted(files, key=lambda path: path.stat().st_mtime_ns, reverse=True)):
        os.utime(path, (ahead + number, ahead + number))
    nothing, scores = made(other, dry(), dry("glue={learning_rate: 0.002}"))
    assert nothing == {} and computed(scores) == SCORES


def test_edited_rules_and_stage_code_run_nothing(copy):
    operators = copy.directory / "src/symbert/model/attention.py"
    edit(operators, "class PairwiseAttention(", "# A comment.\nclass PairwiseAttention(")
    edit(copy.directory / "workflow/rules/pretrain.smk", " extract ", "  extract ")
    for path in ("pretrain/train", "glue/train", "corpus/parts", "files", "cli"):
        with open(copy.directory / f"src/symbert/{path}.py", "a") as file:
            file.write("# edited\n")
    assert planned(copy) == {}


def test_results_of_another_user_may_be_read_only(copy):
    """Root obeys permissions without the capability to override them. A start that would write is one line."""
    limits = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
    if limits and shutil.which("setpriv") is None:
        pytest.skip("root writes everywhere, and there is no setpriv")
    words = [*limits, sys.executable, "-m", "snakemake", "--cores", "2", *copy.tiny_settings()]
    options = {"cwd": copy.directory, "env": copy.environment, "text": True}

    def run(*more: str) -> tuple[int, str]:
        done = subprocess.run([*words, *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        return done.returncode, done.stdout

    results = copy.directory / "results"
    subprocess.run(["chmod", "-R", "a-w", results], check=True)
    try:
        code, said = run()
        assert code == 0 and "othing to be done" in said, said[-3000:]
        code, said = run("--config", "experiment=another")
        assert code != 0 and "results" in said and "ermission denied" in said and "Traceback" not in said, said[-3000:]
    finally:
        subprocess.run(["chmod", "-R", "u+w", results], check=True)


def test_a_lost_result_is_made_again_to_the_same_bytes(copy):
    lost = [
        only(copy, "results/robustness/glue-*/encoder/tiny-original-*/seed-1/step-20/*.json"),
        copy.directory / "results/demo-embedded/report/report.html",
        only(copy, f"{ORIGINAL}/metrics.jsonl"),
    ]
    before = digests(copy.directory / "results"), lost[1].read_bytes()
    for file in lost:
        file.unlink()
    (jobs,) = made(copy, [])
    assert jobs["pretrain"] == jobs["score_robustness"] == jobs["report"] == 1 and "prepare_part" not in jobs
    assert digests(copy.directory / "results") == before[0] and lost[1].is_file()


def test_a_forced_training_computes_and_gives_the_same_bytes(copy, finished):
    """A finished run has no checkpoint to resume from."""
    made(copy, ["--forcerun", "pretrain", "--until", "pretrain"])
    assert "20/20 steps" in (only(copy, ORIGINAL) / "log.txt").read_text()
    assert digests(only(copy, ORIGINAL)) == digests(only(finished, ORIGINAL))


def test_a_checkpoint_whose_scores_are_there_may_be_deleted_and_is_extracted_by_its_name(copy):
    """A step that was not kept is an error that names those that were."""
    weights = only(copy, f"{ORIGINAL}/step-20/model.safetensors")
    before = weights.read_bytes()
    weights.unlink()
    run = only(copy, ORIGINAL).relative_to(copy.directory)
    one = [str(weights.relative_to(copy.directory))]
    steps = ["--dry-run", "--config", "sweep={curve: {steps: {tiny: [7, 20]}}}"]
    lost, extracted, found, asked, named = copy.tinies(dry(), one, dry(), steps, [str(run / "step-7/README.md")])
    assert (lost.code, extracted.code, found.code) == (0, 0, 0), extracted.output
    assert (lost.jobs, extracted.jobs, found.jobs) == ({}, {"extract": 1}, {})
    assert weights.read_bytes() == before
    assert "symbert: done\n" in extracted.output, "no page was made"
    assert asked.code == 64 and "'sweep.curve.steps'" in asked.output
    assert named.code == 1 and "5, 10, 15" in named.output, named.output[-2000:]


# A run is interrupted.


LATE = """
import time
_in_time = {name}
def _late(*values, **named):
    time.sleep({seconds})
    return _in_time(*values, **named)
{name} = _late
"""


def slow_down(checkout: Checkout, module: str, name: str, seconds: float) -> None:
    """Have a function take its time, so that a signal meets it however busy the machine is."""
    path = checkout.directory / "src/symbert" / module
    path.write_text(path.read_text(encoding="utf-8") + LATE.format(name=name, seconds=seconds), encoding="utf-8")


def interrupt(checkout: Checkout, pattern: str, number: int, *target: str) -> str:
    """Run until a file is there, then send a signal to Snakemake and all that it runs, as Ctrl-C does."""
    with checkout.running(*target, *checkout.tiny_settings()) as (process, output):
        wait_for(lambda: any(checkout.directory.glob(pattern)), process)
        os.killpg(process.pid, number)
        process.wait(HANG)
        return output.read_text()


def forget(copy: Checkout) -> None:
    """Leave nothing of the first operator's training; the next one takes its time."""
    shutil.rmtree(only(copy, ORIGINAL) / "state")
    for name in ("done.json", "metrics.jsonl", "timing.json"):
        (only(copy, ORIGINAL) / name).unlink()
    slow_down(copy, "pretrain/train.py", "Session._save", 0.3)


def test_a_killed_trainer_and_a_killed_snakemake_go_on_to_the_same_bytes(copy, finished):
    """The trainer is killed, then all are interrupted, then all are killed; each time after another checkpoint."""
    forget(copy)
    weights = f"{ORIGINAL}/state/weights/step-000000{{:02}}.json"
    with copy.running("--until", "pretrain", *copy.tiny_settings()) as (process, _):
        wait_for(lambda: any(copy.directory.glob(weights.format(5))), process)
        os.kill(read_json(only(copy, ORIGINAL) / "lock")["process"], signal.SIGKILL)
        assert process.wait(HANG) == 1
    interrupt(copy, weights.format(10), signal.SIGINT, "--until", "pretrain")
    interrupt(copy, weights.format(15), signal.SIGKILL, "--until", "pretrain")
    _, resumed = made(copy, ["--unlock"], ["--until", "pretrain"])
    assert resumed["pretrain"] == 1
    assert digests(only(copy, ORIGINAL)) == digests(only(finished, ORIGINAL))


@pytest.mark.campaign
def test_a_trainer_whose_snakemake_is_killed_holds_its_run_until_it_has_saved(copy, finished):
    forget(copy)
    weights = f"{ORIGINAL}/state/weights/step-00000005.json"
    with copy.running("--until", "pretrain", *copy.tiny_settings()) as (process, _):
        wait_for(lambda: any(copy.directory.glob(weights)), process)
        trainer = read_json(only(copy, ORIGINAL) / "lock")["process"]
        os.kill(trainer, signal.SIGSTOP)
        try:
            process.kill()
            process.wait(HANG)
            made(copy, ["--unlock"])
            second = copy.tiny("--until", "pretrain")
        finally:
            os.kill(trainer, signal.SIGCONT)
    assert second.code == 1 and f"in use by process {trainer} on" in second.output, second.output
    with open(only(copy, ORIGINAL) / "lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until the trainer is done
    assert read_json(only(copy, ORIGINAL) / "state/status.json")["exit_code"] == 75
    made(copy, ["--until", "pretrain"])
    assert digests(only(copy, ORIGINAL)) == digests(only(finished, ORIGINAL))


@pytest.mark.campaign
def test_an_interrupted_finetuning_keeps_the_seeds_that_are_done(copy, finished):
    pattern = "results/scores/glue-*/encoder/tiny-original-*/seed-1/step-20/*.json"
    file = only(copy, pattern)
    before = file.read_bytes()
    file.unlink()
    shutil.rmtree(file.parent / "finetuned")
    slow_down(copy, "glue/train.py", "train", 0.3)
    interrupt(copy, str(file.parent.relative_to(copy.directory) / "finetuned/mrpc/*.json"), signal.SIGINT)
    assert any(file.parent.glob("finetuned/cola/*.json"))
    interrupt(copy, str(file.parent.relative_to(copy.directory) / "finetuned/stsb/*.json"), signal.SIGKILL)
    made(copy, ["--unlock"], [])
    assert file.read_bytes() == before
