"""The benchmark of the demo reads Snakemake's log, and judges the median by the five minutes."""

import csv

from benchmarks.demo import FIGURES, Demo, Ran, by_rule, jobs_of, write_record
from benchmarks.tables import figure_table

TRAINED = Ran(0, 31, "pretrain_model", "size=tiny attention=pairwise seed=1")
SET = Ran(0, 1, "write_settings", "section=glue")
PAGE = Ran(31, 32, "write_page", "")
LOG = """\
Job stats:
job                           count
total                             4

[Mon Nov 23 23:59:40 2026]
localrule write_settings:
    output: results/demo-embedded/settings/glue.json
    jobid: 30
    reason: Missing output files
    wildcards: section=glue
    resources: tmpdir=<TBD>
[Mon Nov 23 23:59:40 2026]
rule pretrain_model:
    input: results/demo-embedded/settings/pretrain.json
    jobid: 3
    wildcards: size=tiny, attention=pairwise, seed=1
    priority: 9
[Mon Nov 23 23:59:41 2026]
Finished jobid: 30 (Rule: write_settings)
1 of 4 steps (25%) done
[Tue Nov 24 00:00:11 2026]
Finished jobid: 3 (Rule: pretrain_model)
2 of 4 steps (50%) done
[Tue Nov 24 00:00:11 2026]
rule write_page:
    jobid: 1
    reason: Forced execution
[Tue Nov 24 00:00:12 2026]
Finished jobid: 1 (Rule: write_page)
[Tue Nov 24 00:00:12 2026]
localrule all:
    jobid: 0
[Tue Nov 24 00:00:12 2026]
Finished jobid: 0 (Rule: all)
4 of 4 steps (100%) done
"""


def test_a_log_tells_when_each_job_started_and_ended():
    assert jobs_of(LOG) == [SET, TRAINED, PAGE]


def test_a_job_that_did_not_end_is_not_counted():
    assert jobs_of(LOG.partition("[Tue Nov 24 00:00:12")[0]) == [SET, TRAINED]


def test_the_median_of_the_rounds_has_five_minutes():
    met, missed = (
        figure_table(FIGURES, [Demo(seconds, [SET]) for seconds in (1, middle, 900)]) for middle in (299.9, 301)
    )
    assert "| 299.90 s | 1.00–900.00 | ≤ 300 s | met |" in met and "| 301.00 s " in missed and "**missed**" in missed


def test_seconds_of_a_rule_are_those_of_its_jobs_together():
    again = Ran(31, 100, TRAINED.rule, "size=tiny attention=pairwise seed=2")
    demo = Demo(101, [SET, TRAINED, again, Ran(99, 100, "download_part", "part=1"), Ran(100, 100, "copy", "")])
    assert by_rule(demo) == ["| pretrain_model | 2 | 100 |", "| 3 others | 3 | 2 |"]
    assert demo.core_seconds == 102


def test_the_record_has_a_row_per_job(tmp_path):
    write_record(Demo(32, [SET, TRAINED]), tmp_path / "demo.csv")
    with open(tmp_path / "demo.csv", newline="") as file:
        assert [*csv.DictReader(file)] == [
            {"start": "0", "end": "1", "rule": "write_settings", "wildcards": "section=glue"},
            {"start": "0", "end": "31", "rule": TRAINED.rule, "wildcards": TRAINED.wildcards},
        ]
