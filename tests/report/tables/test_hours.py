"""Hours of the stages: every measured job counts once, interrupted training with all its sessions."""

import json
import re

import pytest

from symbert.report.data import Data
from symbert.report.tables.hours import hours_table

HEAD = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"


@pytest.fixture
def benchmark(tmp_path):
    """Writes the benchmark file of a job, of so many seconds; returns the folder of all."""

    def make(name, wall, cpu):
        path = tmp_path / f"benchmarks/{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{HEAD}{wall}\t0:00:01\t10.3\t17.9\t1.9\t2.6\t0.00\t0.00\t0.00\t{cpu}\n")
        return tmp_path / "benchmarks"

    return make


def table_rows(folder, files=(), sessions=()):
    """Jobs and hours by stage and rule."""
    rows = hours_table(Data(benchmarks=folder, provenance=list(files), sessions=list(sessions))).frame.to_dict(
        "records"
    )
    return {(row.pop("stage"), row.pop("rule")): [str(value) for value in row.values()] for row in rows}


def test_jobs_are_added_up_by_rule_stage_and_in_all(benchmark):
    benchmark("pack_shards", 1800, 900)
    benchmark("filter_part/en_meta_part_1", 3600, 3600)
    assert table_rows(benchmark("filter_part/en_meta_part_2", 7200, 3600)) == {
        ("corpus", "all"): ["3", "3.500", "2.250", "0.000"],
        ("corpus", "filter_part"): ["2", "3.000", "2.000", "0.000"],
        ("corpus", "pack_shards"): ["1", "0.500", "0.250", "0.000"],
        ("all", "all"): ["3", "3.500", "2.250", "0.000"],
    }


def test_gpu_hours_are_those_of_the_runs_devices(benchmark, pretrained):
    """Trained on two GPUs for two hours, fine-tuned for one on one; another run has a CPU."""
    files = [*pretrained("original", device="A card", processes=2), *pretrained("shared")]
    benchmark("pretrain_model/tiny-original-seed-1", 7200, 7200)
    benchmark("pretrain_model/tiny-shared-seed-1", 7200, 7200)
    benchmark("finetune/tiny-original-seed-1-step-20", 3600, 3600)
    rows = table_rows(benchmark("finetune/tiny-shared-seed-1-step-20", 3600, 3600), files)
    assert rows["pretrain", "pretrain_model"] == ["2", "4.000", "4.000", "4.000"]
    assert rows["glue", "finetune"] == ["2", "2.000", "2.000", "1.000"]
    assert rows["all", "all"] == ["4", "6.000", "6.000", "5.000"]


def test_the_hours_of_another_host_are_not_taken_for_those_of_the_encoder(benchmark, pretrained):
    """The decoder of the same size, operator and seed took half an hour; the encoder two, on two GPUs."""
    files = pretrained("original", device="A card", processes=2)
    benchmark("pretrain_decoder/decoder-tiny-original-seed-1", 1800, 1800)
    rows = table_rows(benchmark("pretrain_model/tiny-original-seed-1", 7200, 7200), files)
    assert rows["pretrain", "pretrain_model"] == ["1", "2.000", "2.000", "4.000"]
    assert rows["pretrain", "pretrain_decoder"] == ["1", "0.500", "0.500", "None"], "which GPUs, no file says"


def test_the_gpus_of_another_host_are_those_that_its_run_told(benchmark, pretrained, tmp_path):
    """With its files; and where its benchmark is lost, its sessions stand under its rule."""
    files = []
    for file in pretrained("original", device="A card", processes=2):
        files.append(tmp_path / f"decoder-{file.name}")
        files[-1].write_text(json.dumps({**json.loads(file.read_text()), "model_host": "decoder"}))
    rows = table_rows(tmp_path / "none", files)
    assert rows["pretrain", "pretrain_decoder"] == ["1", "0.010", "None", "0.020"]
    rows = table_rows(benchmark("pretrain_decoder/decoder-tiny-original-seed-1", 1800, 1800), files)
    assert rows["pretrain", "pretrain_decoder"] == ["1", "0.500", "0.500", "1.000"]


def test_interrupted_training_counts_its_earlier_sessions_and_the_whole_last_job(benchmark, pretrained, write_sessions):
    """An hour before, and a last session of 30 minutes in a job of 36, start included."""
    files = pretrained("original", device="A card", sessions=2)
    sessions = write_sessions(files[0], ("a", "A card", 4, 60), ("b", "A card", 2, 30))
    rows = table_rows(benchmark("pretrain_model/tiny-original-seed-1", 2160, 720), files, [sessions])
    assert rows["pretrain", "all"] == ["1", "1.600", "0.200", "5.200"]  # 4 · 1 + 2 · 0.6


def test_a_lost_benchmark_of_training_leaves_its_sessions(benchmark, pretrained, write_sessions, tmp_path):
    files = pretrained("original", device="A card", sessions=2)
    sessions = write_sessions(files[0], ("a", "A card", 4, 60), ("b", "A card", 2, 30))
    (tmp_path / "benchmarks").mkdir()
    assert table_rows(tmp_path / "benchmarks", files, [sessions]) == {
        ("pretrain", "all"): ["1", "1.500", "None", "5.000"],
        ("pretrain", "pretrain_model"): ["1", "1.500", "None", "5.000"],
        ("all", "all"): ["1", "1.500", "None", "5.000"],
    }


def test_seed_1_is_not_seed_10(benchmark, pretrained):
    files = [*pretrained("original", seed=1), *pretrained("original", seed=10, device="A card")]
    rows = table_rows(benchmark("finetune/tiny-original-seed-10-step-20", 3600, 3600), files)
    assert rows["glue", "finetune"][-1] == "1.000"


def test_what_was_not_sampled_is_nothing_and_what_is_illegible_no_job(benchmark, tmp_path):
    benchmark("pack_shards", 3.6, "NA")
    benchmark("filter_part/half", "", "").joinpath("filter_part/empty.tsv").touch()
    rows = table_rows(tmp_path / "benchmarks")
    assert rows["corpus", "all"] == ["1", "0.001", "0.000", "0.000"] and ("corpus", "filter_part") not in rows


def test_without_any_file_there_is_a_table_all_the_same(tmp_path):
    assert table_rows(tmp_path / "none") == {("all", "all"): ["0", "0.000", "None", "None"]}


def test_every_rule_with_a_benchmark_stands_under_the_stage_of_its_file(root, benchmark):
    """The rules of a stage stand in the files that begin with its name."""
    expected = set()
    for path in (root / "workflow/rules").glob("*.smk"):
        for rule in re.split(r"(?m)^rule ", path.read_text())[1:]:
            if "    benchmark:" in rule:
                name = rule.partition(":")[0]
                folder = benchmark(name, 3600, 3600)
                expected.add((path.stem.partition("_")[0], name))
    assert {row for row in table_rows(folder) if row[1] != "all"} == expected
