"""The whole chain at a tiny scale through Snakemake."""

import pytest

from symbert.files import read_json

TABLES = (
    *("corpus", "table1_operators", "table2_parameters", "table2_training", "table3_glue", "table3_published"),
    *("scores", "statistics", "milestones", "claims", "robustness"),
)
FIGURES = ("corpus", "figure2_tiny", "figure3_checkpoints", "robustness")


@pytest.fixture
def report(finished):
    return finished.directory / "results/demo-embedded/report"


def test_each_stage_makes_its_own_and_then_has_nothing_to_do(chain):
    jobs = {stage: outcome.jobs for stage, outcome in chain[1].items()}
    assert jobs["paper_tables"] == {"paper_tables": 1}
    assert jobs["corpus"] == {"build_blocklist": 1, "prepare_part": 4, "pack": 1}
    assert jobs["pretrain"] == {"pretrain": 2}
    assert jobs["glue"] == {"extract": 4, "prepare_task": 8, "score": 4}
    assert jobs["all"] == {"measure_speeds": 1, "prepare_task": 8, "score_robustness": 2, "report": 1, "all": 1}
    assert jobs["nothing"] == {}


def test_every_table_and_figure_is_there(report):
    for table in TABLES:
        assert all(
            (report / f"tables/{table}.{suffix}").stat().st_size > 100 for suffix in ("csv", "md", "tex", "html")
        )
    for figure in FIGURES:
        assert (report / f"figures/{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert (report / f"figures/{figure}.pdf").read_bytes().startswith(b"%PDF")
    assert (report / "report.html").read_text().count("data:image/png") == len(FIGURES)


def test_every_document_is_accounted_for_and_every_filter_acts(finished):
    """The embedded corpus has documents for each drop reason, among its parts."""
    dropped = {}
    for path in finished.directory.glob("results/corpus/parts-*/*.json"):
        if path.name != "settings.json":
            counts = read_json(path)["counts"]
            assert counts["read"] == counts["kept"] + counts["bad"] + sum(counts["dropped"].values())
            for reason, number in counts["dropped"].items():
                dropped[reason] = dropped.get(reason, 0) + number
    assert len(dropped) == 6 and all(dropped.values()), dropped


def test_scores_are_there_once_for_each_task_and_seed(finished):
    for attention in ("original", "pairwise"):
        for step, seeds in ((10, [1]), (20, [1, 2])):
            pattern = f"results/scores/glue-*/encoder/tiny-{attention}-*/seed-1/step-{step}/*.json"
            (file,) = finished.directory.glob(pattern)
            found = [(record["task"], record["finetune_seed"]) for record in read_json(file)]
            assert len(found) == len(set(found)) == 8 * len(seeds)


def test_stand_ins_are_called_so_and_the_papers_numbers_do_not_stand_beside_them(report):
    texts = [(report / f"tables/table3_glue.{suffix}").read_text() for suffix in ("csv", "md", "tex")]
    assert all("stand-in" in text and "78.74" not in text for text in texts)
    assert "78.74" in (report / "tables/table3_published.md").read_text()


def test_no_path_of_this_machine_is_in_a_keyed_folder(finished):
    """Results may be copied to another machine, where a key would be another one."""
    paths = list(finished.directory.glob("results/**/settings.json"))
    assert len(paths) > 5 and [path for path in paths if str(finished.directory) in path.read_text()] == []
