"""Whether models fit a GPU: what a plan says, and what it refuses."""

from collections import Counter

import pytest

from symbert import cli
from symbert.errors import MemoryExhaustedError
from symbert.experiment import memory, plan
from symbert.experiment.memory import memory_lines, memory_needs, memory_of_gpu, refuse_too_large
from symbert.pretrain.state import RunState


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setattr(memory, "smallest_memory", lambda: None)


def needs_of(experiment, state: str = "missing"):
    return memory_needs(experiment, [RunState(run, state, 0) for run in experiment.pretrainings()])


def test_each_size_that_is_to_be_trained_on_a_gpu_is_predicted_once(paper, experiment):
    needs = needs_of(paper)
    assert list(needs) == ["small", "base"] and needs["small"].total < needs["base"].total
    assert needs["base"].parameters == max(109_514_298, needs["base"].parameters), "of the operator with most"
    assert needs_of(paper, "done") == needs_of(experiment) == {}, "the size tiny is trained on a core"
    paper.config["sweep"]["hosts"] = ["encoder", "decoder"]
    assert list(needs_of(paper)) == ["small", "base", "decoder small", "decoder base"]
    assert needs_of(paper)["decoder small"].total > 3 * needs["small"].total, "it has logits of all tokens"


def test_the_scale_for_24_gb_needs_5_of_them_and_its_page_says_so(single_gpu, root):
    needs, known = needs_of(single_gpu), memory_of_gpu(single_gpu)
    assert known == 24e9 and 5.2e9 < needs["small"].total < 5.3e9
    refuse_too_large(needs, known, single_gpu.config)
    (title, line, empty) = memory_lines(needs, known, "faithful")
    assert title and not empty and line.startswith("  small: 5.22 GB of 24 GB: 461 MB weights, gradients, moments; ")
    assert line.endswith(" activations of 64 sequences")
    assert "need 5.2 GB of the 24" in (root / "docs/scales.md").read_text("utf-8")
    single_gpu.config["pretrain"]["micro_batch_size"] = None
    assert 19e9 < needs_of(single_gpu)["small"].total < 19.5e9


def test_what_does_not_fit_is_refused_with_the_keys_with_which_it_does(paper):
    needs = needs_of(paper)
    refuse_too_large(needs, 80e9, paper.config)
    refuse_too_large(needs, None, paper.config)
    with pytest.raises(MemoryExhaustedError) as refused:
        refuse_too_large(needs, 40e9, paper.config)
    assert str(refused.value).startswith("config: base needs 60")
    assert str(refused.value).endswith("256 sequences at a time, and one has 40 GB; set pretrain.micro_batch_size: 128")
    paper.config["pretrain"]["micro_batch_size"] = 128
    refuse_too_large(needs_of(paper), 40e9, paper.config)


def test_the_longest_line_fits_120_columns_and_is_the_example_of_the_page(paper, root):
    ways = {"processes": 8, "shard_parameters": True, "recompute_activations": True}
    paper.config["pretrain"] |= ways
    paper.config["sweep"] |= {"sizes": ["xlarge"], "attention": ["original"]}
    lines = memory_lines(needs_of(paper), 24e9, "faithful")
    assert lines[1] in (root / "docs/pretraining.md").read_text("utf-8").splitlines() and len(lines[1]) <= 120


@pytest.mark.parametrize(
    ("room", "remedy"),
    [
        (24e9, "set pretrain.recompute_activations: true, pretrain.micro_batch_size: 4"),
        (12e9, "set pretrain.processes: 4, pretrain.shard_parameters: true, pretrain.micro_batch_size: 2"),
        (1e9, "take larger GPUs, or leave it out of the sweep"),
    ],
)
def test_a_model_of_a_billion_fits_small_gpus_in_parts_alone(paper, room, remedy):
    paper.config["sweep"] |= {"sizes": ["xlarge"]}
    with pytest.raises(MemoryExhaustedError, match=remedy):
        refuse_too_large(needs_of(paper), room, paper.config)


def test_of_compiled_models_only_what_they_hold_is_counted_on(paper):
    needs = needs_of(paper)
    paper.config["recipe"] = "fast"
    refuse_too_large(needs, 2e9, paper.config)
    assert "base: at most 60" in memory_lines(needs, None, "fast")[2]
    with pytest.raises(MemoryExhaustedError, match="base needs 1.7"):
        refuse_too_large(needs, 1e9, paper.config)


@pytest.mark.parametrize(
    ("recipe", "hosts", "remedy"),
    [
        ("faithful", {}, "set pretrain.processes: 4, pretrain.shard_parameters: true, pretrain.micro_batch_size: 2"),
        (
            "fast",
            {},
            "set recipe: faithful, pretrain.processes: 4, pretrain.shard_parameters: true, "
            "pretrain.micro_batch_size: 2",
        ),
        ("faithful", {"translation": {}}, "take larger GPUs, or leave it out of the sweep"),
        ("fast", {"translation": {}}, "take larger GPUs, or leave it out of the sweep"),
        ("faithful", {"vision": {"batch_size": 2}}, "take larger GPUs, or leave it out of the sweep"),
    ],
)
def test_a_remedy_is_one_that_the_check_of_the_configuration_takes(paper, recipe, hosts, remedy):
    """`shard_parameters: true` was told to whoever compiles or translates, and was then refused with 78."""
    paper.config["sweep"]["sizes"] = ["xlarge"]
    needs = needs_of(paper)
    paper.config["sweep"]["hosts"] += hosts
    paper.config |= {"recipe": recipe, "hosts": hosts}
    with pytest.raises(MemoryExhaustedError) as refused:
        refuse_too_large(needs, 12e9, paper.config)
    assert str(refused.value).endswith(f"one has 12 GB; {remedy}")


def test_the_memory_is_that_of_the_configuration_or_else_of_a_visible_gpu(paper, monkeypatch):
    assert memory_of_gpu(paper) is None
    monkeypatch.setattr(memory, "smallest_memory", lambda: 85e9)
    assert memory_of_gpu(paper) == 85e9
    paper.config["rates"]["gpu_memory"] = 24
    assert memory_of_gpu(paper) == 24e9


def test_the_command_ends_with_71_after_its_plan_where_a_model_does_not_fit(project, capsys, monkeypatch):
    monkeypatch.setattr(plan, "count_jobs", lambda *options: (Counter(), Counter()))
    options = ["--config", "sweep={sizes: [large], curve: {sizes: []}}", "rates={gpu_memory: 4}"]
    monkeypatch.setattr(plan, "refuse_small", lambda files: None)
    assert cli.main(["plan", *options]) == 65
    said = capsys.readouterr()
    assert "\nmemory of a GPU, predicted\n  large: " in said.out and said.err.count("\n") == 1
    assert said.err.startswith("symbert plan: config: large needs 5.")
