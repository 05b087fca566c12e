"""The jobs that Snakemake plans, in dry runs."""

import re

import pytest

from workflow.checkout import check_out, dry_run

PAPER = ("scale=paper", "source=hub")


def test_lint_finds_nothing(checkout):
    outcome = checkout.snakemake("--lint")
    assert outcome.code == 0 and "your workflow is in a good condition" in outcome.output, outcome.output


def test_the_demo_has_three_runs_per_operator_and_scores_each_checkpoint_of_the_first_once(checkout):
    jobs = dry_run(checkout).jobs
    assert jobs["pretrain"] == 4 * 3  # the paper's operators and `original-gain`, three seeds of each
    assert (
        jobs["extract"] == 4 * 3 and jobs["score"] == 4 * 3 and jobs["score_robustness"] == 4
    )  # four operators at three steps
    assert jobs["prepare_task"] == 2 * 8 and jobs["prepare_part"] == 4
    assert not {"download_file", "download_part"} & jobs.keys(), (
        "published files of the package are read where they lie"
    )


def test_the_papers_scale_is_the_authors_matrix_and_not_the_full_product(checkout):
    """6 runs; 6 final checkpoints and 3 base models at 18 steps, of which the last is final: 57 checkpoints."""
    jobs = dry_run(checkout, "--config", *PAPER).jobs
    assert jobs["pretrain"] == 6
    assert jobs["extract"] == jobs["score"] == 6 + 3 * 17
    assert jobs["prepare_part"] == jobs["download_part"] == 300


@pytest.mark.campaign
@pytest.mark.parametrize("options", [[], ["--profile", "profiles/slurm", "--cores", "64"]], ids=["here", "cluster"])
def test_ten_thousand_parts_are_planned(checkout, options):
    words = ("--dry-run", "--quiet", "rules", *options, "--config", *PAPER, "corpus={parts: 10000}")
    plan = checkout.snakemake(*words)
    assert plan.code == 0, plan.output[-3000:]
    assert plan.jobs["prepare_part"] == plan.jobs["download_part"] == 10_000 and plan.jobs["pack"] == 1


def test_operators_and_sizes_of_ones_own_are_planned_by_their_names(root, tmp_path):
    """A class in the folder where Snakemake runs, by its path and with an argument; a size by its shape."""
    copy = check_out(root, tmp_path / "copy")
    module = "from symbert.model.attention import SharedAttention\n\n\nclass Gated(SharedAttention):\n    pass\n"
    (copy.directory / "my_operators.py").write_text(module)
    shape = "num_hidden_layers: 4, hidden_size: 256, num_attention_heads: 4, intermediate_size: 1024"
    own = [f"sizes={{mini: {{{shape}}}}}", "operators={ranked: {class: my_operators:Gated, rank: 8}}"]
    sweep = "sweep={sizes: [tiny, mini], attention: ['my_operators:Gated', ranked], pretrain_seeds: [1]}"
    outcome = copy.snakemake("--dry-run", "--cores", "8", "--config", *own, sweep)
    assert outcome.code == 0 and outcome.jobs["pretrain"] == 4, outcome.output
    model = r"model=(mini|tiny)-(\S+)-[0-9a-f]{8}, seed=1\n"
    job = rf"{model}    priority: 3\n(?:    threads: (\d+)\n)?    resources: .*gpu=(\d)"
    asked = set(re.findall(job, outcome.output))
    assert {("mini", "gated", "3", "1"), ("tiny", "ranked", "", "0")} <= asked, asked


def test_hosts_and_suites_are_wildcards_of_the_same_rules(checkout):
    sweep = (
        "sweep={hosts: [encoder, decoder, encoder-decoder], attention: [original, shared], suites: [glue, superglue]}"
    )
    outcome = checkout.snakemake("--dry-run", "--config", sweep)
    assert outcome.code == 0, outcome.output
    assert (outcome.jobs["pretrain"], outcome.jobs["pack_pairs"], outcome.jobs["pack"]) == (18, 1, 1)
    assert outcome.jobs["extract"] == 6 + 12 and outcome.jobs["score"] == 6 + 6
    assert outcome.jobs["prepare_task"] == 8 + 8 + 8
    alone = checkout.snakemake("--dry-run", "--until", "pretrain", "--config", "sweep={hosts: [encoder-decoder]}").jobs
    assert alone["pretrain"] == 12 and "prepare_part" not in alone


def test_a_swept_key_is_trained_at_each_value_and_nothing_is_fine_tuned(checkout):
    sweep = "sweep={attention: [original, shared], learning_rate: [1.0e-3, 2.0e-3], sequence_length: [8, 16]}"
    outcome = checkout.snakemake("--dry-run", "--config", sweep)
    assert outcome.code == 0, outcome.output
    assert outcome.jobs == {"build_blocklist": 1, "prepare_part": 4, "pack": 2, "pretrain": 24, "report": 1, "all": 1}


def test_the_studies_are_experiments(checkout, root):
    outcome = checkout.snakemake("--dry-run", "--configfile", str(root / "studies/search.yaml"))
    assert outcome.code == 0, outcome.output
    assert outcome.jobs == {"write_text": 6, "pretrain": 8, "report": 1, "all": 1}


def test_the_sweep_asks_for_more_beside_the_comparison_on_request(checkout):
    plain = "attention: [original], pretrain_seeds: [1], probes: []"
    jobs = checkout.snakemake("--dry-run", "--config", f"sweep={{{plain}}}").jobs
    more = f"sweep={{{plain}, finetune_seeds: [1, 2, 3, 4, 5, 6, 7], untrained: true, anatomy: true, probes: [shared]}}"
    asked = checkout.snakemake("--dry-run", "--config", more, "glue={robustness: {noise: []}}").jobs
    assert (jobs["pretrain"], jobs["extract"], jobs["score"]) == (1, 3, 3)
    assert (asked["pretrain"], asked["extract"], asked["score"]) == (1, 4, 4)
    assert "measure_operators" not in jobs and asked["measure_operators"] == 2


def test_the_users_file_wins_over_the_scale_and_the_command_line_over_both(root, tmp_path):
    """An edit of pretrain.steps in config.yaml did nothing at the scale demo."""
    copy = check_out(root, tmp_path / "copy")
    with open(copy.directory / "config.yaml", "a") as file:
        file.write("sweep: {pretrain_seeds: [1, 2]}\n")
    assert copy.snakemake("--dry-run").jobs["pretrain"] == 4 * 2
    assert copy.snakemake("--dry-run", "--config", "sweep={pretrain_seeds: [5]}", "scale=laptop", "source=hub").jobs[
        "pretrain"
    ]
    words = ("sweep={pretrain_seeds: [5], finetuned_pretrain_seeds: [5]}",)
    assert copy.snakemake("--dry-run", "--config", *words).jobs["pretrain"] == 4


def test_a_file_of_any_name_is_a_part_that_a_command_takes(checkout, tmp_path):
    for number, name in enumerate(("(1) x.jsonl", "-v.jsonl", "日本 語.jsonl")):
        (tmp_path / name).write_text(f"{number}\n")
    words = ("--config", "source=hub", f'corpus={{source: files, files: "{tmp_path}/*"}}')
    outcome = checkout.snakemake("--dry-run", "--printshellcmds", "--until", "prepare_part", *words)
    assert outcome.jobs["prepare_part"] == 3, outcome.output
    commands = re.findall(r"prepare-part (.*)", outcome.output)
    assert len(set(commands)) == 3 and any("'" in command for command in commands)


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        (["sorce=hub"], 64, ["'sorce'", "did you mean 'source'"]),
        (["source=mirror", "mirror=/no/such/place"], 65, ["/no/such/place"]),
        (["scale=paper"], 64, ["'source' is embedded"]),
    ],
)
def test_a_mistake_stops_before_any_job_with_one_line(checkout, settings, code, words):
    outcome = checkout.snakemake("--dry-run", "--config", *settings)
    lines = [line for line in outcome.output.splitlines() if line.startswith("symbert: ")]
    assert outcome.code == code and len(lines) == 1, outcome.output
    assert all(word in lines[0] for word in words), lines
    assert "Job stats" not in outcome.output and "Traceback" not in outcome.output
    assert not (checkout.directory / "results").exists()


def test_every_job_that_computes_with_a_model_is_told_of_the_gpu_that_it_was_given(checkout):
    small = "sweep={sizes: [small], attention: [original], pretrain_seeds: [1], curve: {sizes: []}}"
    outcome = checkout.snakemake("--dry-run", "--printshellcmds", "--resources", "gpu=2", "--config", small)
    for command in ("pretrain", "score", "measure-speeds"):
        assert re.search(rf"SYMBERT_GPUS=1 exec python -m symbert --log \S+ {command} ", outcome.output), command
