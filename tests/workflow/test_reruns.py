"""The rerun matrix: what a change runs again, and what stays. docs/reruns.md names these tests."""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from symbert import cli
from symbert.report.exhibits import EXHIBITS
from workflow.checkout import HANG, Checkout, check_out, wait_for

RESULTS = Path("results/demo-embedded")
RUN = RESULTS / "pretrain/tiny-original/seed-1"
SCORES = RESULTS / "glue/tiny-original/seed-1/step-20"
TRAINED = {"pretrain_model": 2, "extract_checkpoint": 4, "finetune": 4, "measure_robustness": 2}
CHECKSUMMED = 1_000_000  # bytes: Snakemake compares the content of inputs up to this size when their times are new


def planned(checkout: Checkout, *changes: str, targets: tuple[str, ...] = ("all",)) -> dict[str, int]:
    """The jobs that a dry run lists under changes of the configuration."""
    outcome = checkout.tiny(*targets, "--dry-run", "--quiet", "rules", *(["--config", *changes] if changes else []))
    assert outcome.code == 0, outcome.output[-3000:]
    return outcome.jobs


def made(checkout: Checkout, *arguments: str) -> dict[str, int]:
    """The jobs of a run that succeeds."""
    outcome = checkout.tiny(*arguments)
    assert outcome.code == 0, outcome.output[-5000:]
    return outcome.jobs


def computed(jobs: dict[str, int]) -> dict[str, int]:
    """Those jobs that are neither of the report nor settings."""
    shown = ("tabulate_", "draw_", "measure_speeds", "write_page", "write_summary", "write_settings", "all")
    return {rule: count for rule, count in jobs.items() if not rule.startswith(shown)}


def reported(jobs: dict[str, int]) -> set[str]:
    """The rules of the report among jobs."""
    return {rule for rule in jobs if rule.startswith(("tabulate_", "draw_", "write_page", "write_summary"))}


def contents(*folders: Path) -> dict[str, tuple[str, int]]:
    """Checksum and time of every file below folders."""
    files = [file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()]
    return {str(file): (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns) for file in files}


def learned(checkout: Checkout) -> dict[str, tuple[str, int]]:
    """Checksum and time of every file that training or fine-tuning wrote into a state."""
    results = checkout.directory / RESULTS
    folders = [*results.glob("pretrain/*/*/state/weights"), *results.glob("pretrain/*/*/state/resume")]
    folders += [folder for folder in results.glob("glue/*/*/*/state/*") if folder.is_dir()]
    found = contents(*folders)
    assert len(found) > 100
    return found


def difference(checkout: Checkout, other: Checkout, folder: Path) -> set[str]:
    """The files below a folder of the results whose bytes two checkouts do not share; no state and no lock."""

    def files(directory: Path) -> dict[str, bytes]:
        found = (file for file in (directory / folder).rglob("*") if file.is_file() and file.name != "lock")
        return {str(file.relative_to(directory)): file.read_bytes() for file in found if "state" not in file.parts}

    mine, others = files(checkout.directory), files(other.directory)
    return {file for file in mine.keys() | others.keys() if mine.get(file) != others.get(file)}


def age_backwards(paths: list[Path]) -> None:
    """New times for files, the oldest becoming the newest, as a copy without times may leave them."""
    first = time.time() - len(paths)
    for number, path in enumerate(sorted(paths, key=lambda path: path.stat().st_mtime_ns, reverse=True)):
        os.utime(path, (first + number, first + number))


def edit(path: Path, old: str, new: str) -> None:
    """Replace text in a file."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


# By the next issue: what lies under a key never changes its meaning.


@pytest.mark.xfail(strict=True, reason="solved by keyed paths")
def test_an_experiments_name_alone_is_its_recipe(finished):
    """It was made with a configuration file: by its name 104 jobs of another sweep were planned into its folder."""
    outcome = finished.snakemake("--dry-run", "--quiet", "rules", "--config", "experiment=demo-embedded")
    assert outcome.code == 0 and outcome.jobs == {}


@pytest.mark.xfail(strict=True, reason="solved by keyed paths")
def test_status_knows_an_experiment_by_its_name_alone(finished, monkeypatch, capsys):
    """A finished run was "0 of 12"."""
    monkeypatch.chdir(finished.directory)
    assert cli.main(["status", "--config", "experiment=demo-embedded"]) == 0
    assert "2 of 2 pre-trainings done" in capsys.readouterr().out


@pytest.mark.xfail(strict=True, reason="solved by keyed paths")
def test_a_rule_of_ones_own_runs_again_when_its_shell_is_edited(copy):
    """The profile leaves `code` out of the triggers for the sake of this project's own rules."""
    snakefile = copy.directory / "Snakefile"
    rule = '\n\nrule mine:\n    output:\n        "mine.txt",\n    shell:\n        "echo one > {output}"\n'
    snakefile.write_text(snakefile.read_text() + rule)
    assert made(copy, "mine.txt") == {"mine": 1}
    edit(snakefile, "echo one", "echo two")
    assert planned(copy, targets=("mine.txt",)) == {"mine": 1}


# Nothing that counts has changed.


def test_nothing_changed_runs_nothing(finished):
    assert planned(finished) == {}


def test_each_stage_alone_makes_its_own_and_then_has_nothing_to_do(chain):
    jobs = {stage: outcome.jobs for stage, outcome in chain.outcomes.items()}
    assert computed(jobs["paper_tables"]) == {"count_parameters": 1, "paper_tables": 1}
    assert jobs["corpus"]["filter_part"] == 4 and not TRAINED.keys() & jobs["corpus"].keys()
    assert jobs["pretrain"] == {"write_settings": 3, "pretrain_model": 2, "pretrain": 1}
    assert jobs["glue"]["finetune"] == 4 and not {"pretrain_model", "filter_part"} & jobs["glue"].keys()
    assert computed(jobs["tables"]) == {"tables": 1} and computed(jobs["figures"]) == {"figures": 1}
    assert jobs["all"] == {"write_summary": 1, "write_page": 1, "all": 1}
    assert planned(chain.checkout, targets=tuple(chain.outcomes)) == {}


def test_edited_rules_stage_code_and_captions_run_nothing(copy):
    edit(copy.directory / "workflow/rules/pretrain.smk", " extract-checkpoint", "  extract-checkpoint")
    edit(copy.directory / "config.yaml", "# Every choice", "# Each choice")
    for path in ("pretrain/train", "glue/train", "corpus/parts", "model/attention", "files", "cli"):
        with open(copy.directory / f"src/symbert/{path}.py", "a") as file:
            file.write("# edited\n")
    for path in [*(copy.directory / "workflow/report").rglob("*.rst"), *(copy.directory / "envs").iterdir()]:
        with open(path, "a") as file:
            file.write("\n")
    assert planned(copy) == {}


def test_edited_report_code_makes_every_table_and_figure_and_nothing_else(copy):
    with open(copy.directory / "src/symbert/report/style.py", "a") as file:
        file.write("# edited\n")
    jobs = planned(copy)
    assert computed(jobs) == {}
    absent = {"anatomy", "blimp", "hosts", "courses", "probes", "pretrain_seeds"}
    of_glue = [exhibit for exhibit in EXHIBITS.values() if exhibit.suite == "glue"]
    asked_for = [exhibit for exhibit in of_glue if not absent & {*exhibit.reads}]
    assert reported(jobs) == {*(exhibit.rule for exhibit in asked_for), "write_page"}


def test_results_with_new_times_run_nothing_but_what_reads_large_files(copy):
    """Token streams are the only inputs of the tiny chain above Snakemake's limit."""
    files = [path for path in (copy.directory / RESULTS).rglob("*") if path.is_file() and "state" not in path.parts]
    large = {path for path in files if path.stat().st_size > CHECKSUMMED}
    for path in large:  # however fast this machine made them, the new times of the others are later
        os.utime(path, (time.time() - 3600,) * 2)
    age_backwards([path for path in files if path not in large])
    assert planned(copy) == {}
    age_backwards(files)
    assert computed(planned(copy)) == {"pack_shards": 1, **TRAINED}


def test_a_lost_snakemake_folder_runs_nothing(copy):
    shutil.rmtree(copy.directory / ".snakemake")
    assert planned(copy) == {}


def test_changed_settings_and_seeds_are_noticed_without_the_snakemake_folder(copy):
    changes = (
        "pretrain={learning_rate: 0.002}",
        "corpus={filter: {match: suffix}}",
        "sweep={finetune_seeds: [1, 2, 3]}",
    )
    remembered = [planned(copy, change) for change in changes]
    shutil.rmtree(copy.directory / ".snakemake")
    assert [planned(copy, change) for change in changes] == remembered


@pytest.mark.xfail(strict=True, reason="solved by keyed paths")
def test_a_copy_of_complete_results_without_times_and_records_runs_nothing(root, finished, tmp_path):
    """As `cp -r` to another machine leaves them, and in the worst order. A change is noticed as ever."""
    other = check_out(root, tmp_path / "other")
    shutil.copytree(finished.directory / "results", other.directory / "results", copy_function=shutil.copyfile)
    age_backwards([path for path in other.directory.rglob("*") if path.is_file()])
    assert planned(other) == {}
    assert computed(planned(other, "glue={learning_rate: 0.002}")) == {"finetune": 4, "measure_robustness": 2}
    assert made(other, "-R", "draw_figure2") == {"draw_figure2": 1, "write_page": 1, "all": 1}
    assert planned(other) == {}


def test_a_fresh_clone_over_kept_results_runs_nothing_once_touched(copy):
    """With times in the worst order; without `--touch` nearly everything runs."""
    shutil.rmtree(copy.directory / ".snakemake")
    age_backwards([path for path in copy.directory.rglob("*") if path.is_file()])
    jobs, before = planned(copy), learned(copy)
    assert {"filter_part": 4, **TRAINED}.items() <= jobs.items()
    made(copy, "--touch")
    assert planned(copy) == {}
    assert learned(copy) == before


@pytest.mark.campaign
def test_what_is_lost_or_has_new_times_is_published_again_from_its_state(copy, finished):
    """Without `.snakemake` and with times in the worst order, too; no step is trained, no seed fine-tuned."""
    shutil.rmtree(copy.directory / ".snakemake")
    age_backwards([path for path in (copy.directory / RUN.parent).rglob("*") if path.is_file()])
    (copy.directory / RUN / "done.json").unlink()
    shutil.rmtree(copy.directory / RUN / "step-20")
    (copy.directory / SCORES / "mrpc.json").unlink()
    before = learned(copy)
    jobs = made(copy, str(SCORES / "mrpc.json"))
    assert jobs == {"pretrain_model": 1, "extract_checkpoint": 1, "finetune": 1}
    assert learned(copy) == before
    assert difference(copy, finished, RUN) == {str(RUN / "timing.json")}, "a session more"
    assert difference(copy, finished, SCORES) == set()


def test_how_it_is_computed_and_what_is_kept_runs_nothing(finished):
    execution = "pretrain={micro_batch_size: 4, recompute_activations: true, processes: 2, "
    execution += "shard_parameters: true}"
    changes = (execution, "on_settings_change=refuse")
    assert planned(finished, *changes, "glue={keep_finetuned: false}") == {}


# More is wanted.


def test_one_more_finetuning_seed_computes_that_seed_only(copy):
    change = "sweep={finetune_seeds: [1, 2, 3]}"
    jobs = planned(copy, change)
    assert computed(jobs) == {"finetune": 2, "measure_robustness": 2}
    before, scores = learned(copy), json.loads((copy.directory / SCORES / "mrpc.json").read_text())
    made(copy, str(SCORES / "mrpc.json"), "--config", change)
    after = learned(copy)
    assert before.items() <= after.items()
    new = [Path(path) for path in after.keys() - before.keys()]
    assert len([path for path in new if path.match("seed-3-*.json")]) == 8 == len({path.parent for path in new})
    records = json.loads((copy.directory / SCORES / "mrpc.json").read_text())
    assert records[:2] == scores and [record["finetune_seed"] for record in records] == [1, 2, 3]


def test_one_more_seed_of_the_curve_finetunes_the_steps_before_the_last(finished):
    jobs = planned(finished, "sweep={curve: {finetune_seeds: [1, 2]}}")
    assert computed(jobs) == {"finetune": 2}
    assert {"draw_figure3_checkpoints", "tabulate_milestones", "tabulate_claims", "write_page"} <= reported(jobs)
    assert not {"tabulate_table3_glue", "tabulate_statistics", "draw_figure2", "draw_corpus"} & reported(jobs)


def test_one_more_step_is_extracted_and_finetuned_and_nothing_is_trained(copy):
    assert computed(planned(copy, "sweep={curve: {steps: {tiny: [5, 10, 20]}}}")) == {
        "extract_checkpoint": 2,
        "finetune": 2,
    }
    before = learned(copy)
    assert made(copy, str(RUN / "step-5/model.safetensors")) == {"extract_checkpoint": 1}
    assert learned(copy) == before
    kept = copy.directory / RUN / "state/weights/step-00000005.safetensors"
    assert (copy.directory / RUN / "step-5/model.safetensors").read_bytes() == kept.read_bytes()


def test_a_deleted_file_of_a_checkpoint_is_made_by_the_command_that_the_error_names(copy):
    weights = RUN / "step-20/model.safetensors"
    before = (copy.directory / weights).read_bytes()
    (copy.directory / weights).unlink()
    assert planned(copy) == {}, "scores are there: Snakemake misses nothing"
    words = [sys.executable, "-m", "symbert", "export", "--checkpoint", weights.parent, "--to", "bert", "--output", "x"]
    said = subprocess.run(words, cwd=copy.directory, capture_output=True, text=True).stderr
    assert said.strip().endswith(f"run: snakemake --cores 1 {weights}")
    assert made(copy, str(weights)) == {"extract_checkpoint": 1}
    assert (copy.directory / weights).read_bytes() == before


def test_a_step_that_was_not_kept_is_an_error_that_names_the_nearest(copy):
    outcome = copy.tiny("--dry-run", "--config", "sweep={curve: {steps: {tiny: [7, 20]}}}")
    assert outcome.code == 64 and "'sweep.curve.steps' has 7 of size tiny" in outcome.output
    outcome = copy.tiny(str(RUN / "step-7/README.md"))
    assert outcome.code == 1
    assert "step 7 was not kept; the nearest kept steps: 5, 10, 15" in outcome.output


def test_one_more_operator_is_one_pretraining_and_its_finetunings(finished):
    jobs = planned(finished, "sweep={attention: [original, pairwise, symmetric]}")
    assert computed(jobs) == {
        "count_parameters": 1,
        "pretrain_model": 1,
        "extract_checkpoint": 2,
        "finetune": 2,
        "measure_robustness": 1,
    }


def test_an_edited_operator_does_not_keep_its_old_results(copy, finished):
    """It was "Nothing to be done", and with `-R` done with the same weights. Its run alone is another one now."""
    done, code = str(RUN / "done.json"), copy.directory / "src/symbert/model/attention.py"
    edit(code, "self.split_heads(project(hidden)) for", "self.split_heads(2 * project(hidden)) for")
    again = {"count_parameters": 1, **{rule: count // 2 for rule, count in TRAINED.items()}}
    assert computed(planned(copy)) == again
    refused = copy.tiny("-R", "pretrain_model", "--until", "pretrain_model", "--config", "on_settings_change=refuse")
    assert refused.code == 64 and f"{RUN}/state: " in refused.output and "operator_code: " in refused.output
    assert made(copy, done)["pretrain_model"] == 1
    one, other = (json.loads((root.directory / done).read_text()) for root in (copy, finished))
    assert one["settings"]["operator_code"] != other["settings"]["operator_code"]
    assert one["validation_loss"] != other["validation_loss"]
    (aside,) = (copy.directory / RUN).glob("state.superseded-*")
    assert (aside / "published/step-20/model.safetensors").is_file()


def test_an_operator_with_digits_in_its_name_is_trained_or_an_error_and_never_left_out(copy):
    """`low-rank8` was in Table 2 and missing from Table 3, exit code 0, where the tables of before lay."""
    edit(
        copy.directory / "src/symbert/model/attention.py",
        "class SharedAttention(",
        'class LowRank8(SymmetricAttention):\n    """Another."""\n\n\nclass SharedAttention(',
    )
    change = "sweep={attention: [original, low-rank8]}"
    assert computed(planned(copy, change))["pretrain_model"] == 1
    rules = copy.directory / "workflow/rules/experiment.smk"
    edit(rules, 'attention=one_of(SWEEP["attention"])', 'attention="[a-z-]+"')
    for target in ("all", "tables", "figures"):
        outcome = copy.tiny(target, "--dry-run", "--config", change)
        assert outcome.code == 1 and "tiny-low-rank8/seed-1" in outcome.output, outcome.output[-3000:]


def test_one_more_suite_is_scored_alone(finished):
    jobs = planned(finished, "sweep={suites: [glue, blimp]}")
    assert computed(jobs) == {"download_blimp": 1, "measure_blimp": 4}
    assert {"tabulate_blimp", "draw_blimp", "write_page"} <= reported(jobs)
    squad = planned(finished, "sweep={suites: [glue, squad2]}")
    made = {"download_task": 1, "prepare_task": 1, "finetune_squad2": 4}
    assert computed(squad) == made


def test_a_model_that_is_not_pretrained_is_extracted_and_finetuned(finished):
    jobs = planned(finished, "sweep={untrained: true}")
    assert computed(jobs) == {"extract_checkpoint": 2, "finetune": 2}


def test_another_noise_is_measured_on_the_models_that_are_there(finished):
    jobs = planned(finished, "glue={robustness: {noise: [0.1, 0.3]}}")
    assert computed(jobs) == {"prepare_robustness": 8, "measure_robustness": 2}


# A setting has changed: its descendants run, and old results are set aside or refused, never mixed.


def test_glues_learning_rate_finetunes_anew_and_trains_nothing(finished):
    jobs = planned(finished, "glue={learning_rate: 0.002}")
    assert computed(jobs) == {"finetune": 4, "measure_robustness": 2}


def test_the_learning_rate_of_pretraining_runs_exactly_its_descendants(finished):
    """A dry run says what becomes of the runs that are there."""
    outcome = finished.tiny("--dry-run", "--quiet", "rules", "--config", "pretrain={learning_rate: 0.002}")
    assert computed(outcome.jobs) == TRAINED
    assert "tiny-original seed 1: its folder holds a run with other settings (learning_rate: 0.001 →" in outcome.output
    assert outcome.output.count("it will be set aside") == 2 and outcome.output.count("\n") < 100


@pytest.mark.campaign
def test_a_superseded_run_is_set_aside_and_comes_back_with_its_settings(copy, finished):
    done, before = str(RUN / "done.json"), learned(copy)
    assert made(copy, done, "--config", "pretrain={learning_rate: 0.002}")["pretrain_model"] == 1
    (aside,) = (copy.directory / RUN).glob("state.superseded-*")
    assert json.loads((aside / "identity.json").read_text())["learning_rate"] == 0.001
    assert (aside / "published/step-20/model.safetensors").is_file()
    assert json.loads((copy.directory / done).read_text())["settings"]["learning_rate"] == 0.002
    assert made(copy, done)["pretrain_model"] == 1
    assert before.items() <= learned(copy).items(), "what comes back was not trained again"
    assert (copy.directory / done).read_bytes() == (finished.directory / done).read_bytes()


def test_a_refused_change_says_64_and_what_differs_and_going_back_trains_nothing(copy, finished):
    """At the start: no job runs, and what the run has published stays."""
    done, before = str(RUN / "done.json"), learned(copy)
    outcome = copy.tiny(done, "--config", "pretrain={learning_rate: 0.002}", "on_settings_change=refuse")
    refused = outcome.output.splitlines()[-1]
    assert outcome.code == 64 and refused.startswith(f"symbert: {RUN}/state: "), outcome.output
    assert "holds a run with other settings (learning_rate: 0.001 → 0.002)" in refused
    assert learned(copy) == before and (copy.directory / done).is_file()
    assert made(copy, done) == {}
    assert learned(copy) == before
    assert (copy.directory / done).read_bytes() == (finished.directory / done).read_bytes()


def test_another_filter_runs_the_corpus_and_all_that_follows(finished):
    jobs = planned(finished, "corpus={filter: {max_harmful_perplexity: 50000.0}}")
    assert computed(jobs) == {"download_part": 4, "filter_part": 4, "tokenize_part": 4, "pack_shards": 1, **TRAINED}


@pytest.mark.campaign
def test_a_filter_that_keeps_the_same_documents_trains_nothing(copy):
    before, change = learned(copy), "corpus={filter: {max_harmful_perplexity: 100000.5}}"
    manifest = json.loads((copy.directory / RESULTS / "corpus/shards/manifest.json").read_text())
    jobs = made(copy, str(RUN / "done.json"), "--config", change)
    assert (jobs["filter_part"], jobs["pack_shards"], jobs["pretrain_model"]) == (4, 1, 1)
    assert json.loads((copy.directory / RESULTS / "corpus/shards/manifest.json").read_text()) == manifest
    assert learned(copy) == before


def test_a_changed_or_added_file_of_ones_own_is_filtered_alone(copy, tmp_path):
    """The demo stands for the mirror, which gives UT1 and the rest."""
    own = tmp_path / "own"
    own.mkdir()
    for name in ("a", "b"):
        (own / f"{name}.jsonl").write_text(
            json.dumps({"text": f"A line of {name}.", "url": "https://good.example/"}) + "\n"
        )
    change = ("experiment=own", "mirror=src/symbert/demo", f"corpus={{source: files, files: '{own}/*'}}")
    counts = [f"results/own/corpus/filtered/{name}.counts.json" for name in ("a", "b")]
    counts.append("results/own/corpus/sources.json")
    made(copy, *counts, "--config", *change)
    (own / "b.jsonl").touch()
    assert planned(copy, *change, targets=tuple(counts)) == {}, "the same bytes"
    (own / "b.jsonl").write_text(json.dumps({"text": "Another line.", "url": "https://good.example/"}) + "\n")
    assert planned(copy, *change, targets=tuple(counts)) == {"filter_part": 1, "record_files": 1}
    made(copy, *counts, "--config", *change)
    digests = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(own.iterdir())}
    assert json.loads((copy.directory / counts[-1]).read_text())["files"] == digests
    (own / "c.jsonl").write_text(json.dumps({"text": "A new file.", "url": "https://good.example/"}) + "\n")
    counts.append("results/own/corpus/filtered/c.counts.json")
    assert planned(copy, *change, targets=tuple(counts)) == {"filter_part": 1, "record_files": 1}


def test_scores_of_other_settings_are_refused_by_the_tables(copy):
    path = copy.directory / SCORES / "mrpc.json"
    records = json.loads(path.read_text())
    del records[0]["hash"]  # as older versions wrote it; with it an edited record counts as damaged
    records[0]["settings_hash"] = "0123456789abcdef"
    path.write_text(json.dumps(records))
    table = copy.directory / RESULTS / "report/tables/table3_glue.csv"
    outcome = copy.tiny(str(table.relative_to(copy.directory)))
    assert outcome.code == 1 and outcome.jobs == {"tabulate_table3_glue": 1}
    assert "stale: tiny-original/seed-1/step-20/mrpc has settings 0123456789abcdef" in outcome.output
    assert not table.exists()


# A result is lost.


def test_a_lost_table_or_figure_runs_its_rule_and_the_page(copy, finished):
    report = copy.directory / RESULTS / "report"
    for suffix in ("csv", "tex", "html", "md"):
        lost = (report / f"tables/table3_glue.{suffix}").rename(copy.directory / "lost")
        assert planned(copy) == {"tabulate_table3_glue": 1, "write_page": 1, "all": 1}, suffix
        lost.rename(report / f"tables/table3_glue.{suffix}")
    assert planned(copy) == {}
    (report / "tables/table3_glue.tex").unlink()
    (report / "figures/figure2_tiny.pdf").unlink()
    assert made(copy) == {"tabulate_table3_glue": 1, "draw_figure2": 1, "write_page": 1, "all": 1}
    assert difference(copy, finished, RESULTS / "report") == set()


def test_a_lost_file_of_a_table_is_made_again_whatever_its_format(copy):
    """Of what nobody asks for Snakemake misses nothing: a deleted .tex was "nothing to be done"."""
    tables, jobs = copy.directory / RESULTS / "report/tables", {"tabulate_table2_parameters": 1, "paper_tables": 1}
    before = {file: file.read_bytes() for file in tables.glob("table2_parameters.*")}
    assert sorted(file.suffix for file in before) == [".csv", ".html", ".md", ".tex"]
    for file, content in before.items():
        file.unlink()
        assert planned(copy, targets=("paper_tables",)) == jobs, file.suffix
        file.write_bytes(content)
    file.unlink()
    assert made(copy, "paper_tables") == jobs
    assert {file: file.read_bytes() for file in tables.glob("table2_parameters.*")} == before
    assert planned(copy, targets=("paper_tables",)) == {}


def test_what_is_lost_between_is_made_again(copy):
    """What a target asks for itself; Snakemake makes no other file whose descendants are there and newer."""
    (copy.directory / SCORES / "mrpc.json").unlink()
    shutil.rmtree(copy.directory / RUN / "step-20")
    (copy.directory / RUN / "done.json").unlink()
    assert planned(copy, targets=("corpus",)) == {}
    assert planned(copy, targets=("pretrain",)) == {"pretrain_model": 1, "pretrain": 1}
    jobs = {"pretrain_model": 1, "extract_checkpoint": 2, "finetune": 2, "measure_robustness": 1}
    assert planned(copy, targets=("glue",)) == jobs | {"glue": 1} and computed(planned(copy)) == jobs


# A run is interrupted.


def is_there(pattern: str, checkout: Checkout):
    """Whether a file of the results that matches is there, as a question to ask again."""
    return lambda: any((checkout.directory / RESULTS).glob(pattern))


def interrupt(checkout: Checkout, target: str, pattern: str, number: int) -> str:
    """Run a target until a file is there, then send a signal to Snakemake and all that it runs, as Ctrl-C does."""
    with checkout.running(target, *checkout.tiny_settings()) as (process, output):
        wait_for(is_there(pattern, checkout), process)
        os.killpg(process.pid, number)
        process.wait(HANG)
        return output.read_text()


def unlock(checkout: Checkout) -> None:
    """What Snakemake asks for after a kill that it could not heed."""
    assert made(checkout, "--unlock") == {}


@pytest.mark.campaign
def test_an_interrupted_corpus_goes_on_to_the_same_bytes(copy, finished):
    corpus = copy.directory / RESULTS / "corpus"
    slow_down(copy, "corpus/shards.py", "pack_shards", 5)
    for folder in ("filtered", "tokens", "shards"):
        shutil.rmtree(corpus / folder)
    interrupt(copy, "corpus", "corpus/filtered/*.parquet", signal.SIGINT)
    interrupt(copy, "corpus", "corpus/tokens/*.json", signal.SIGKILL)
    assert not (corpus / "shards").exists()
    unlock(copy)
    jobs = made(copy, "corpus")
    assert jobs["pack_shards"] == 1 and jobs.get("filter_part", 0) < 4
    assert difference(copy, finished, RESULTS / "corpus") == set()


LATE = """
import functools
import time

_in_time = {name}


@functools.wraps(_in_time)
def _late(*values, **named):
    time.sleep({seconds})
    return _in_time(*values, **named)


{name} = _late
"""


def slow_down(checkout: Checkout, module: str, name: str, seconds: float) -> None:
    """Have a function take its time, so that a signal meets it wherever it is meant to, however busy the machine is.

    Edited code runs nothing again.
    """
    path = checkout.directory / "src/symbert" / module
    path.write_text(path.read_text(encoding="utf-8") + LATE.format(name=name, seconds=seconds), encoding="utf-8")


def forget(checkout: Checkout) -> None:
    """Leave nothing of the first operator's training but its extracted checkpoints; the next one takes its time."""
    shutil.rmtree(checkout.directory / RUN / "state")
    for name in ("done.json", "metrics.jsonl", "timing.json"):
        (checkout.directory / RUN / name).unlink()
    slow_down(checkout, "pretrain/session.py", "Loop._save", 0.3)


@pytest.mark.campaign
def test_an_interrupted_training_goes_on_to_the_same_bytes(copy, finished):
    """The trainer killed, then all interrupted, then all killed; each time after another checkpoint."""
    forget(copy)
    with copy.running("pretrain", *copy.tiny_settings()) as (process, output):
        wait_for(is_there("pretrain/tiny-original/*/state/weights/step-00000005.json", copy), process)
        os.kill(json.loads((copy.directory / RUN / "lock").read_text())["process"], signal.SIGKILL)
        assert process.wait(HANG) == 1
        assert "symbert: a step failed" in output.read_text()
    interrupt(copy, "pretrain", "pretrain/tiny-original/*/state/weights/step-00000010.json", signal.SIGINT)
    interrupt(copy, "pretrain", "pretrain/tiny-original/*/state/weights/step-00000015.json", signal.SIGKILL)
    unlock(copy)
    assert made(copy, "pretrain")["pretrain_model"] == 1
    assert difference(copy, finished, RUN) == {str(RUN / "timing.json")}
    weights = RUN / "state/weights"
    for file in (finished.directory / weights).iterdir():
        assert (copy.directory / weights / file.name).read_bytes() == file.read_bytes()


@contextmanager
def held_up(checkout: Checkout, process: subprocess.Popen) -> Iterator[int]:
    """The trainer of the first operator, by its number, held up after step 5 as by a slow disk."""
    wait_for(is_there("pretrain/tiny-original/*/state/weights/step-00000005.json", checkout), process)
    trainer = json.loads((checkout.directory / RUN / "lock").read_text())["process"]
    os.kill(trainer, signal.SIGSTOP)
    try:
        yield trainer
    finally:
        os.kill(trainer, signal.SIGCONT)


@pytest.mark.campaign
def test_a_trainer_whose_snakemake_is_killed_holds_its_run_until_it_has_saved(copy, finished):
    forget(copy)
    with copy.running("pretrain", *copy.tiny_settings()) as (process, _), held_up(copy, process) as trainer:
        process.kill()
        process.wait(HANG)
        unlock(copy)
        second = copy.tiny("pretrain")
    assert second.code == 1 and f"in use by process {trainer} on" in second.output, second.output
    with open(copy.directory / RUN / "lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until the trainer is done
    assert json.loads((copy.directory / RUN / "state/status.json").read_text())["exit_code"] == 75
    made(copy, "pretrain")
    assert difference(copy, finished, RUN) == {str(RUN / "timing.json")}


@pytest.mark.campaign
def test_an_interrupted_finetuning_keeps_the_seeds_that_are_done(copy, finished):
    shutil.rmtree(copy.directory / SCORES)
    slow_down(copy, "glue/finetune.py", "Protocol.classifier", 0.5)
    interrupt(copy, "glue", "glue/tiny-original/*/step-20/state/mnli/seed-1-*.json", signal.SIGINT)
    before = contents(copy.directory / SCORES / "state/mrpc", copy.directory / SCORES / "state/cola")
    assert len(before) == 2 * 2 * 3, "two tasks with two seeds each: record, weights and their checksum"
    interrupt(copy, "glue", "glue/tiny-original/*/step-20/state/stsb/seed-1-*.json", signal.SIGKILL)
    unlock(copy)
    made(copy, "glue")
    assert before.items() <= contents(copy.directory / SCORES / "state").items()
    assert difference(copy, finished, SCORES) == set()


@pytest.mark.campaign
def test_an_interrupted_report_goes_on_to_the_same_bytes(copy, finished):
    for path in (copy.directory / RESULTS / "report/tables").glob("table[12]_*"):
        path.unlink()
    interrupt(copy, "tables", "report/tables/table1_operators.html", signal.SIGKILL)
    unlock(copy)
    made(copy)
    assert difference(copy, finished, RESULTS / "report") == set()


@pytest.mark.campaign
def test_a_second_snakemake_is_told_of_the_first_and_damages_nothing(copy, finished):
    forget(copy)
    with copy.running("pretrain", *copy.tiny_settings()) as (process, _):
        with held_up(copy, process):
            second = copy.tiny("pretrain")
        assert process.wait(HANG) == 0
    assert second.code == 1 and "Directory cannot be locked" in second.output, second.output
    assert difference(copy, finished, RUN) == {str(RUN / "timing.json")}
