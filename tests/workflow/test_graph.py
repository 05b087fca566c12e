"""The jobs that Snakemake plans: dry runs of many settings in one process."""

import json
import re
from collections.abc import Callable

import pytest

from corpus.hub_site import served_hub
from corpus.test_dataset import FILES, NAME
from foreign import make_model
from symbert.experiment.layout import Experiment
from symbert.experiment.project import read_config
from symbert.operators import OPERATORS
from symbert.sources import DEMO
from workflow.checkout import check_out

ONE = "attention: [original], pretrain_seeds: [1], suites: [glue]"
STEADY = "untrained: false, curve: {steps: {tiny: [200]}}, tasks: [mrpc, cola, mnli, qqp, rte, stsb, qnli, sst2]"
SETTINGS = {
    "demo": [],
    "paper": ["scale=paper", "source=hub"],
    "architectures": [
        f"sweep={{architectures: [encoder, decoder], attention: [original, shared], suites: [glue, superglue], "
        f"{STEADY}}}"
    ],
    "swept": ["sweep={attention: [original, shared], learning_rate: [1.0e-3, 2.0e-3], sequence_length: [8, 16]}"],
    "together": [
        "sweep={attention: [original, pairwise], pretrain_seeds: [1, 2, 3], learning_rate: [1.0e-3, 2.0e-3]}",
        *("pretrain={together: 4}", "--printshellcmds"),
    ],
    "one": [f"sweep={{{ONE}, {STEADY}}}"],
    "more": [
        f"sweep={{{ONE}, finetune_seeds: [1, 2, 3, 4, 5, 6, 7], untrained: true, anatomy: true}}",
        "glue={robustness: {noise: []}}",
    ],
    "every operator": [f"sweep={{attention: [{', '.join(OPERATORS)}], pretrain_seeds: [1]}}"],
    "gpus": [
        f"sweep={{sizes: [small], {ONE}, untrained: false, curve: {{sizes: []}}}}",
        "--printshellcmds",
        "--resources",
        "gpu=2",
    ],
    "models": [
        "models={mine: {path: mine}, tuned: {path: ./mine, learning_rate: [1.0e-4, 1.0e-3]}}",
        "sweep={attention: [], tasks: [mrpc, cola], suites: [glue, superglue]}",
    ],
    "wrong key": ["sorce=hub"],
    "no mirror": ["source=mirror", "mirror=/no/such/place"],
    "stand-ins": ["scale=paper"],
    "section twice": ["experiment=x", "--configfile", "twice.yaml"],
    "study": ["experiment=x", "--configfile", "studies/search.yaml"],
}


@pytest.fixture(scope="module")
def planned(root, tmp_path_factory):
    """How each dry run ended, in a checkout that nothing was run in."""
    copy = check_out(root, tmp_path_factory.mktemp("fresh") / "a copy of symbért")
    (copy.directory / "studies").symlink_to(root / "studies")
    make_model(copy.directory / "mine", "bert")
    (copy.directory / "twice.yaml").write_text("title: one\ntitle: two\n")
    commands = (["--dry-run", *(words and ["--config", *words])] for words in SETTINGS.values())
    outcomes = copy.commands(["--lint"], *commands)
    assert not (copy.directory / "results").exists()
    return dict(zip(["lint", *SETTINGS], outcomes, strict=True))


@pytest.fixture(scope="module")
def jobs(planned) -> Callable[[str], dict[str, int]]:
    def jobs(name: str) -> dict[str, int]:
        assert planned[name].code == 0, planned[name].output[-3000:]
        return planned[name].jobs

    return jobs


def test_runs_of_one_operator_are_trained_as_many_at_a_time_as_are_asked_for(planned, jobs):
    """The six runs of each: four, then two."""
    assert jobs("together")["pretrain_together"] == 4 and jobs("together")["pretrain"] == 2 * 6
    assert planned["together"].output.count(" pretrain-together results/together/tiny-") == 4


def test_lint_finds_nothing(planned):
    assert planned["lint"].code == 0 and "in a good condition" in planned["lint"].output, planned["lint"].output


def test_the_demo_and_the_papers_scale_ask_for_their_matrix_and_not_for_the_full_product(jobs):
    """The demo: the paper's operators and `original-wide`, five runs each, the first scored at two steps, and without
    pre-training.

    The paper: 6 runs; 6 final checkpoints and 3 base models at 18 steps, of which the last is final: 57 checkpoints.
    """
    demo, paper = jobs("demo"), jobs("paper")
    assert demo["pretrain"] == 4 * 5 and demo["extract"] == demo["score"] == 4 * 3
    assert demo["prepare_task"] == 2 * 3 and demo["prepare_part"] == 4
    assert not {"download_file", "download_part"} & demo.keys()
    assert paper["pretrain"] == 6 and paper["extract"] == paper["score"] == 6 + 3 * 17
    assert paper["prepare_part"] == paper["download_part"] == 300


def test_architectures_suites_and_operators_are_wildcards_of_the_same_rules(jobs):
    architectures = jobs("architectures")
    assert (architectures["pretrain"], architectures["pack"]) == (20, 1)
    assert (
        architectures["extract"] == 4 + 10
        and architectures["score"] == 4 + 4
        and architectures["prepare_task"] == 8 + 8 + 8
    )
    assert jobs("every operator")["pretrain"] == len(OPERATORS)


def test_a_swept_key_is_trained_at_each_value_and_nothing_is_fine_tuned(jobs):
    packed = {"build_blocklist": 1, "prepare_part": 4, "pack": 2}
    assert jobs("swept") == {**packed, "pretrain": 40, "report": 1, "all": 1}
    assert jobs("study") == {"write_text": 6, "pretrain": 8, "report": 1, "all": 1}


def test_the_sweep_asks_for_more_beside_the_comparison_on_request(jobs):
    one, more = jobs("one"), jobs("more")
    assert (one["pretrain"], one["extract"], one["score"]) == (1, 2, 2) and "measure_anatomy" not in one
    assert (more["pretrain"], more["extract"], more["score"], more["measure_anatomy"]) == (1, 3, 3, 1)
    assert "score_robustness" in one and "score_robustness" not in more


def test_models_from_elsewhere_are_scored_and_nothing_is_pretrained(jobs):
    """Two of one tokenizer share the rows of the two tasks of GLUE and the eight of SuperGLUE; GLUE's have noise."""
    tasks = 2 + 8
    expected = {"prepare_task": tasks + 2, "score_model": 2 * 2, "score_robustness_model": 2, "report": 1, "all": 1}
    assert jobs("models") == expected


def test_a_mistake_stops_before_any_job_with_one_line(planned):
    mistakes = {"wrong key": (64, ["'sorce'", "'source'"]), "no mirror": (65, ["/no/such/place"])}
    mistakes["stand-ins"] = (64, ["'source'", "embedded"])
    mistakes["section twice"] = (64, ["twice.yaml", "line 2", "'title'"])
    for name, (code, words) in mistakes.items():
        outcome = planned[name]
        lines = [line for line in outcome.output.splitlines() if line.startswith("symbert: ")]
        assert outcome.code == code and len(lines) == 1, outcome.output
        assert all(word in lines[0] for word in words), lines
        assert "Job stats" not in outcome.output and "Traceback" not in outcome.output


def test_every_job_that_computes_with_a_model_is_told_of_the_gpu_that_it_was_given(planned):
    for command in ("pretrain", "score", "measure-speeds"):
        told = rf"SYMBERT_GPUS=1 exec python -m symbert {command} "
        assert re.search(told, planned["gpus"].output), command


def test_what_is_ones_own_is_planned_by_its_name_and_config_yaml_wins_over_the_scale(root, tmp_path):
    """An operator by its path and with an argument, a size by its shape, files of any name."""
    copy = check_out(root, tmp_path / "copy")
    module = "from symbert.model.attention import SharedAttention\n\n\nclass Gated(SharedAttention):\n"
    module += "    def __init__(self, config, rank=1):\n        super().__init__(config)\n"
    (copy.directory / "my_operators.py").write_text(module)
    with open(copy.directory / "config.yaml", "a") as file:
        file.write("sweep: {pretrain_seeds: [1, 2]}\n")
    for number, name in enumerate(("(1) x.jsonl", "-v.jsonl", "日本 語.jsonl")):
        (tmp_path / name).write_text(f"{number}\n")
    shape = "num_hidden_layers: 4, hidden_size: 256, num_attention_heads: 4, intermediate_size: 1024"
    own = [f"sizes={{mini: {{{shape}}}}}", "operators={ranked: {class: my_operators:Gated, rank: 8}}"]
    sweep = "sweep={sizes: [tiny, mini], attention: ['my_operators:Gated', ranked], pretrain_seeds: [1]}"
    text = ("--config", "source=hub", f'corpus={{source: files, files: "{tmp_path}/*.jsonl"}}')
    two, five, parts, mine = copy.commands(
        ("--dry-run",),
        ("--dry-run", "--config", "sweep={pretrain_seeds: [5], finetuned_pretrain_seeds: [5]}"),
        ("--dry-run", "--printshellcmds", "--until", "prepare_part", *text),
        ("--dry-run", "--cores", "8", "--config", *own, sweep),
    )
    assert (two.jobs["pretrain"], five.jobs["pretrain"]) == (4 * 2, 4), "the command line wins over both"
    assert parts.jobs["prepare_part"] == len(set(re.findall(r"prepare-part (.*)", parts.output))) == 3, parts.output
    assert mine.code == 0 and mine.jobs["pretrain"] == 4, mine.output
    model = r"model=(mini|tiny)-(\S+)-[0-9a-f]{8}, seed=1\n"
    job = rf"{model}    priority: 3\n(?:    threads: (\d+)\n)?    resources: .*gpu=(\d)"
    asked = set(re.findall(job, mine.output))
    assert {("mini", "gated", "3", "1"), ("tiny", "ranked", "", "0")} <= asked, asked


def test_files_that_were_downloaded_beforehand_are_asked_of_no_host(root, tmp_path):
    """So that only two rules need a network (docs/cluster.md)."""
    copy = check_out(root, tmp_path / "copy")
    sweep = f"sweep={{suites: [glue, blimp], {STEADY}}}"
    words = ("--dry-run", "--config", "source=hub", "corpus={parts: 2, keep_raw: true}", sweep)
    before = copy.snakemake(*words)
    for name in re.findall(r"^ +output: (results/published/\S+)$", before.output, re.M):
        file = copy.directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    after = copy.snakemake(*words)
    assert before.jobs["download_file"] == 21 + 67 and before.jobs["download_part"] == 2
    assert after.jobs == {rule: count for rule, count in before.jobs.items() if not rule.startswith("download")}


def test_each_file_of_a_dataset_of_the_hub_is_downloaded_and_prepared(root, tmp_path, monkeypatch):
    copy, dataset = check_out(root, tmp_path / "copy"), {"path": NAME, "name": "pages", "column": "body"}
    corpus = {"source": "dataset", "dataset": dataset}
    monkeypatch.chdir(copy.directory)
    with served_hub(monkeypatch) as hub:
        hub.add_dataset(NAME, FILES)
        Experiment(read_config(root, {"mirror": str(DEMO), "corpus": corpus}))  # which asks; from then on nothing does
    words = [f"mirror={DEMO}", f"corpus={json.dumps(corpus)}", "sweep={pretrain_seeds: [1]}"]
    outcome = copy.snakemake("--dry-run", "--config", *words)
    assert outcome.code == 0, outcome.output[-3000:]
    jobs = outcome.jobs
    assert (
        jobs["download_dataset"] == jobs["prepare_part"] == 2 and not {"download_file", "download_part"} & jobs.keys()
    )
