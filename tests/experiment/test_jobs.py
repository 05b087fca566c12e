"""`tests/workflow/test_experiment.py` compares the numbers with Snakemake's."""

from symbert.experiment.jobs import SETTINGS_OF, count_by_stage, jobs_of
from symbert.settings import SECTIONS


def test_every_section_of_the_settings_is_read_by_just_one_stage():
    assert sorted(section for read in SETTINGS_OF.values() for section in read) == sorted(SECTIONS)


def test_jobs_are_counted_by_the_stage_that_needs_them(experiment):
    jobs = [("write_settings", {"section": "task"}), *((rule, {}) for rule in ("extract_checkpoint", "download_part"))]
    assert count_by_stage(experiment, [*jobs, ("draw_figure2", {}), ("all", {})]) == {
        "glue": 2,
        "corpus": 1,
        "report": 2,
    }


def test_what_is_not_asked_for_has_no_job(changed):
    bare = changed({"glue": {"robustness": {"noise": []}}, "sweep": {"curve": {"sizes": []}, "tasks": ["rte"]}})
    rules = {rule for jobs in jobs_of(bare).values() for rule in jobs}
    assert not rules & {"measure_robustness", "draw_robustness", "draw_figure3_checkpoints", "download_harmful_model"}
    assert jobs_of(bare)["glue"]["finetune"] == 4
