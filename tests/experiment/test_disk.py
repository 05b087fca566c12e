from collections import Counter
from pathlib import Path

import pytest

from symbert.cost import Files, size_of
from symbert.errors import InputOutputError
from symbert.experiment import disk
from symbert.experiment.disk import by_mount, refuse_small
from symbert.experiment.plan import plan_experiment
from symbert.model.parameters import counts_of
from symbert.paths import Run
from symbert.pretrain.storage import parameters_of, storage_of
from symbert.suites import SUITES
from traces import write

ORIGINAL = Run("tiny", "original", 1)
GIGABYTE = 10**9


@pytest.fixture
def mounts(monkeypatch):
    """File systems with so many bytes free: /scratch, /fast and all the rest."""

    def leave(scratch: float = 1e15, fast: float = 1e15, rest: float = 1e15) -> None:
        free = {"scratch": scratch, "fast": fast}

        def look(path: Path) -> tuple[int, Path]:
            name = path.parts[1] if path.is_absolute() and path.parts[1] in free else ""
            return int(free.get(name, rest)), Path("/", name)

        monkeypatch.setattr(disk, "free_space", look)

    return leave


def files_of(experiment) -> list[Files]:
    """All that its stages write."""
    return plan_experiment(experiment, Counter(), Counter()).files


def bytes_of(experiment, kind: str) -> tuple[float, float]:
    """Of all files of a kind: planned and to come."""
    found = [one for one in files_of(experiment) if one.kind == kind]
    return sum(one.planned for one in found), sum(one.to_come for one in found)


def test_the_papers_disk_is_that_of_its_corpus_its_checkpoints_and_its_models(paper):
    """Six runs: 200 kept steps and four checkpoints of three copies each, in float32; 57 extracted models."""
    operators = ["original", "symmetric", "pairwise"]
    small, base = (4 * sum(counts_of(size, operators)["parameters"].values()) for size in ("small", "base"))
    assert bytes_of(paper, "states of runs")[0] == (200 + 4 * 3) * (small + base)
    assert bytes_of(paper, "checkpoints")[0] == small + (1 + 17) * base
    assert bytes_of(paper, "shards")[0] == pytest.approx(140 * GIGABYTE, rel=0.01), "70e9 tokens of two bytes"
    assert bytes_of(paper, "tasks")[0] == pytest.approx(SUITES["glue"].bytes, rel=0.01), "all but WNLI"


def test_what_lies_there_is_not_written_again(experiment, traces):
    planned, to_come = bytes_of(experiment, "states of runs")
    assert planned == to_come
    state = traces.run(ORIGINAL, "preempted", 600)
    (state / "weights/step-00000300.safetensors").write_bytes(bytes(5000))
    assert bytes_of(experiment, "states of runs") == (planned, planned - size_of(state))
    traces.run(ORIGINAL, "done")
    one = storage_of(parameters_of(ORIGINAL, 300), experiment.pretraining)
    left = planned - one.weights_bytes - one.resume_bytes
    assert bytes_of(experiment, "states of runs") == (planned, left), "three of four runs are to come"


def test_a_packed_corpus_needs_no_room(experiment, traces):
    assert bytes_of(experiment, "raw parts")[1] > 0
    traces.corpus()
    kinds = {one.kind: one.to_come for one in files_of(experiment) if one.stage == "corpus"}
    assert set(kinds.values()) == {0}


def test_fine_tuned_weights_are_those_of_the_last_step_where_they_are_kept(experiment, changed):
    weights = bytes_of(experiment, "checkpoints")[0] / 12  # four runs at three steps
    assert bytes_of(experiment, "fine-tuned weights")[0] == pytest.approx(4 * 8 * 2 * weights), "eight tasks, two seeds"
    assert bytes_of(changed({"glue": {"keep_finetuned": False}}), "fine-tuned weights") == (0, 0)


def test_weights_of_fine_tunings_are_to_come_by_their_seeds(experiment, traces):
    planned, before = bytes_of(experiment, "fine-tuned weights")
    assert planned == before
    traces.run(ORIGINAL)
    traces.scores(ORIGINAL, 2400, "rte", [1])
    assert bytes_of(experiment, "fine-tuned weights")[1] == pytest.approx(planned * 63 / 64, rel=1e-3)


def test_of_glue_the_wanted_tasks_are_downloaded_and_each_only_once(changed, folder):
    few = changed({"glue": {"source": "hub"}, "sweep": {"tasks": ["rte", "mnli"]}})
    planned, to_come = bytes_of(few, "tasks")
    assert planned == to_come and 0.4 * SUITES["glue"].bytes < planned < 0.5 * SUITES["glue"].bytes
    write(folder / few.results / "glue/raw/mnli.parquet", 0)
    assert 0 < bytes_of(few, "tasks")[1] < 0.02 * planned


def test_a_run_that_comes_back_brings_what_it_has_written(changed, traces):
    superseding = changed({"on_settings_change": "supersede"})
    planned, _ = bytes_of(superseding, "states of runs")
    aside = traces.aside(ORIGINAL, 1200)
    (aside / "weights/step-00000300.safetensors").write_bytes(bytes(5000))
    assert bytes_of(superseding, "states of runs")[1] == planned - size_of(aside)


def test_roots_on_one_file_system_are_added_up(changed, mounts):
    mounts()
    elsewhere = changed({"storage": {"raw": "/scratch/a", "shards": "/scratch/b", "checkpoints": "/fast"}})
    found = by_mount(files_of(elsewhere))
    raw, shards, index = (bytes_of(elsewhere, kind)[1] for kind in ("raw parts", "shards", "index of documents"))
    needed, _, keys = found[Path("/scratch")]
    assert needed == max(raw, shards) + index, "raw parts are gone when shards are written"
    assert set(keys) == {"storage.raw", "storage.shards"}
    assert found[Path("/fast")][0] == bytes_of(elsewhere, "states of runs")[1]
    assert found[Path("/fast")][2] == ["storage.checkpoints"]


def test_raw_parts_that_are_kept_and_shards_are_both_there(changed, mounts):
    mounts()
    roots = {"storage": {"raw": "/scratch", "shards": "/scratch"}, "corpus": {"keep_raw": True}}
    kept = changed(roots)
    raw, shards, index = (bytes_of(kept, kind)[1] for kind in ("raw parts", "shards", "index of documents"))
    assert by_mount(files_of(kept))[Path("/scratch")][0] == pytest.approx(raw + shards + index)


def test_a_small_file_system_is_refused_with_its_key_and_its_mount(changed, mounts):
    elsewhere = changed({"storage": {"checkpoints": "/fast/states"}})
    mounts(fast=bytes_of(elsewhere, "states of runs")[1])
    refuse_small(files_of(elsewhere))
    mounts(fast=1_000_000)
    with pytest.raises(InputOutputError) as refused:
        refuse_small(files_of(elsewhere))
    said = str(refused.value)
    assert said.startswith("config: storage.checkpoints: 47.9 MB are still to be written on /fast, where 1 MB are free")
    assert said.endswith("set 'storage.checkpoints' to a folder on a larger file system") and "\n" not in said
    assert refused.value.exit_code == 65


def test_where_no_key_moves_the_files_the_remedy_is_a_link(mounts):
    mounts(rest=10)
    with pytest.raises(InputOutputError, match="make results/ a link to a folder on a larger file system"):
        refuse_small([Files("glue", "checkpoints", "results/", Path("here"), 20, 20)])
