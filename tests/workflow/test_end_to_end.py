"""The whole chain at a tiny scale through Snakemake, and what a second look at it runs again."""

import csv
import json

import pytest

from workflow.checkout import Checkout, check_out

TABLES = (
    "corpus",
    "corpus_categories",
    "table1_operators",
    "table2_parameters",
    "table2_training",
    "table3_glue",
    "table3_published",
    "scores",
    "statistics",
    "milestones",
    "claims",
    "robustness",
)
FIGURES = ("corpus", "figure1_operators", "figure2_tiny", "figure3_checkpoints", "robustness")


@pytest.fixture(scope="session")
def finished(root, tmp_path_factory) -> Checkout:
    """A checkout in which the tiny chain ran to its end."""
    copy = check_out(root, tmp_path_factory.mktemp("run") / "a copy of symbért")
    outcome = copy.tiny()
    assert outcome.code == 0, outcome.output[-5000:]
    assert "tables in results/demo-embedded/report/tables" in outcome.output
    assert "steps, " in outcome.output and " left" in outcome.output, "no progress was shown"
    return copy


@pytest.fixture
def results(finished):
    return finished.directory / "results" / "demo-embedded"


def test_every_table_and_figure_is_there(results):
    for table in TABLES:
        for suffix in ("csv", "md", "tex", "html"):
            assert (results / f"report/tables/{table}.{suffix}").stat().st_size > 100
    for figure in FIGURES:
        assert (results / f"report/figures/{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert (results / f"report/figures/{figure}.pdf").read_bytes().startswith(b"%PDF")
    page = (results / "report/report.html").read_text()
    assert page.count("<table") >= len(TABLES) and page.count("data:image/png") == len(FIGURES)


def test_every_document_is_accounted_for_and_every_filter_acts(results):
    """The embedded corpus has documents for each drop reason, among its parts."""
    dropped = {}
    for path in (results / "corpus/filtered").glob("*.counts.json"):
        counts = json.loads(path.read_text())
        assert counts["read"] == counts["kept"] + counts["bad"] + sum(counts["dropped"].values())
        for reason, number in counts["dropped"].items():
            dropped[reason] = dropped.get(reason, 0) + number
    assert len(dropped) == 6 and all(dropped.values()), dropped


def test_scores_are_there_once_for_each_seed(results):
    for attention in ("original", "pairwise"):
        for step, seeds in ((10, [1]), (20, [1, 2])):
            for task in ("mrpc", "mnli", "sst2"):
                path = results / f"glue/tiny-{attention}/seed-1/step-{step}/{task}.json"
                assert [score["finetune_seed"] for score in json.loads(path.read_text())] == seeds


def test_stand_ins_are_called_so_wherever_their_scores_are(results):
    for suffix in ("csv", "md", "tex"):
        assert "stand-in" in (results / f"report/tables/table3_glue.{suffix}").read_text()


def test_the_papers_numbers_do_not_stand_beside_stand_in_scores(results):
    assert "78.74" not in (results / "report/tables/table3_glue.md").read_text()
    assert "78.74" in (results / "report/tables/table3_published.md").read_text()


def test_table_2_has_the_papers_counts_at_every_scale(results):
    with open(results / "report/tables/table2_parameters.csv", newline="") as file:
        text = " ".join(cell for row in csv.reader(file) for cell in row).replace(",", "")
    for count in ("28795194", "27875642", "109514298", "103017018"):
        assert count in text


def test_nothing_changed_is_nothing_to_do(finished):
    assert finished.tiny("--dry-run").jobs == {}


def test_touched_sources_and_a_lost_snakemake_folder_rerun_nothing(finished):
    metadata = finished.directory / ".snakemake"
    metadata.rename(finished.directory / "set-aside")
    try:
        (finished.directory / "src/symbert/pretrain/loop.py").touch()
        (finished.directory / "workflow/rules/pretrain.smk").touch()
        assert finished.tiny("--dry-run").jobs == {}
    finally:
        if metadata.exists():
            import shutil

            shutil.rmtree(metadata)
        (finished.directory / "set-aside").rename(metadata)


@pytest.mark.parametrize(
    ("change", "jobs"),
    [
        ("sweep={finetune_seeds: [1, 2, 3]}", {"finetune": 2, "tabulate_glue": 1}),
        ("sweep={curve: {finetune_seeds: [1, 2]}}", {"finetune": 2, "draw_checkpoints": 1}),
        (
            "glue={robustness: {noise: [0.1, 0.3]}}",
            {"prepare_robustness": 8, "measure_robustness": 2, "finetune": None},
        ),
        ("sweep={untrained: true}", {"extract_checkpoint": 2, "finetune": 2, "tabulate_glue": 1}),
        ("glue={learning_rate: 0.002}", {"finetune": 4, "tabulate_glue": 1, "draw_checkpoints": 1}),
        ("sweep={attention: [original, pairwise, symmetric]}", {"pretrain_model": 1, "finetune": 2}),
        ("pretrain={learning_rate: 0.002}", {"pretrain_model": 2, "extract_checkpoint": 4, "finetune": 4}),
        ("corpus={filter: {match: suffix}}", {"filter_part": 4, "tokenize_part": 4, "pack_shards": 1}),
    ],
)
def test_a_change_reruns_its_descendants_only(finished, change, jobs):
    planned = finished.tiny("--dry-run", "--config", change).jobs
    assert {rule: planned.get(rule) for rule in jobs} == jobs
    if "pretrain_model" not in jobs and "filter_part" not in jobs:
        assert "pretrain_model" not in planned and "pack_shards" not in planned
    assert "write_embedded_corpus" not in planned


def test_how_it_is_computed_and_what_is_kept_reruns_nothing(finished):
    changes = ("pretrain={micro_batch_size: 4, tensorboard: true}", "on_settings_change=refuse")
    changes += ("glue={keep_finetuned: false}",)
    outcome = finished.tiny("--dry-run", "--config", *changes)
    assert outcome.code == 0 and outcome.jobs == {}, outcome.output


def test_a_run_says_beforehand_what_it_will_write(finished):
    log = (finished.directory / "results/demo-embedded/logs/pretrain_model/tiny-original-seed-1.log").read_text()
    assert "kept weights 2 × " in log and " free on " in log


def test_a_deleted_table_is_made_again_and_nothing_else(finished, results):
    table = results / "report/tables/table3_glue.csv"
    before = table.read_bytes()
    table.unlink()
    outcome = finished.tiny("tables")
    assert outcome.code == 0 and set(outcome.jobs) == {"tabulate_glue", "tables"}
    assert table.read_bytes() == before


def test_a_step_added_later_is_extracted_without_training(finished, results):
    wanted = "results/demo-embedded/pretrain/tiny-original/seed-1/step-10/README.md"
    (finished.directory / wanted).unlink()
    outcome = finished.tiny(wanted)
    assert outcome.code == 0 and set(outcome.jobs) == {"extract_checkpoint"}
