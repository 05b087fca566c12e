"""What Snakemake would run, without running it."""

import re

import pytest

from symbert.files import read_json
from workflow.checkout import check_out, dry_run

PAPER = ("scale=paper", "source=hub")


def test_lint_finds_nothing(checkout):
    outcome = checkout.snakemake("--lint")
    assert outcome.code == 0 and "your workflow is in a good condition" in outcome.output, outcome.output


def test_operators_and_sizes_of_ones_own_are_planned_by_their_names(root, tmp_path):
    """A class in the folder where Snakemake runs, by its path and with an argument; a size by its shape."""
    copy = check_out(root, tmp_path / "copy")
    module = "from symbert.model.attention import SharedAttention\n\n\nclass Gated(SharedAttention):\n    pass\n"
    (copy.directory / "my_operators.py").write_text(module)
    shape = "num_hidden_layers: 4, hidden_size: 256, num_attention_heads: 4, intermediate_size: 1024"
    own = [f"sizes={{mini: {{{shape}}}}}", "operators={ranked: {class: my_operators:Gated, rank: 8}}"]
    sweep = "sweep={sizes: [tiny, mini], attention: ['my_operators:Gated', ranked], pretrain_seeds: [1]}"
    machine = ("--cores", "8", "--resources", "gpu=1")
    outcome = copy.snakemake("--dry-run", *machine, "--config", *own, sweep)
    assert outcome.code == 0 and outcome.jobs["pretrain_model"] == 4, outcome.output
    job = r"size=(\w+), attention=(\S+), seed=1\n    priority: 3\n(?:    threads: (\d+)\n)?    resources: .*gpu=(\d)"
    asked = set(re.findall(job, outcome.output))
    assert {("mini", "gated", "3", "1"), ("tiny", "ranked", "", "0")} <= asked, asked


def test_the_demo_has_three_runs_per_operator_and_fine_tunes_each_checkpoint_of_the_first_once(checkout):
    jobs = dry_run(checkout).jobs
    assert jobs["pretrain_model"] == 4 * 3  # the paper's operators and `original-gain`, three seeds of each
    assert jobs["extract_checkpoint"] == jobs["finetune"] == 4 * 3  # four operators at three steps
    assert jobs["tabulate_exits"] == jobs["probe"] == 1
    assert jobs["prepare_task"] == jobs["download_task"] == 8
    assert jobs["filter_part"] == jobs["tokenize_part"] == jobs["download_part"] == 4
    assert jobs["draw_figure2"] == jobs["draw_figure3_checkpoints"] == jobs["tabulate_table3_glue"] == 1


def test_the_papers_scale_is_the_authors_matrix_and_not_the_full_product(checkout):
    """6 runs; 6 final checkpoints and 3 base models at 18 steps, of which the last is final: 57 checkpoints."""
    jobs = dry_run(checkout, "--config", *PAPER).jobs
    assert jobs["pretrain_model"] == 6
    assert jobs["extract_checkpoint"] == jobs["finetune"] == 6 + 3 * 17
    assert jobs["filter_part"] == jobs["tokenize_part"] == jobs["download_part"] == 300
    assert jobs["draw_figure2"] == 2


def test_each_suite_is_fine_tuned_by_a_rule_of_its_own_under_its_own_protocol(checkout):
    """Suites were one job: another task of one published all scores of the other anew."""
    chosen = "sweep={suites: [glue, superglue], pretrain_seeds: [1]}"
    outcome = checkout.snakemake("--dry-run", "--config", chosen, "suites={superglue: {epochs: 3}}")
    assert outcome.code == 0 and outcome.jobs["finetune"] == outcome.jobs["finetune_superglue"] == 4 * 3, outcome.output
    assert outcome.jobs["prepare_task"] == 16 and outcome.jobs["tabulate_superglue"] == 1
    job = re.search(r"rule finetune_superglue:\n((?: {4}.*\n)+)", outcome.output)[1]
    run = r"tiny-[a-z-]+/seed-1/step-\d+"
    assert re.search(rf"output: results/demo-embedded/superglue/{run}/boolq.json, ", job), job
    assert "settings/superglue.json" in job and "glue/data/wsc.parquet" in job and "settings/glue.json" not in job


def test_each_host_has_a_rule_and_folders_of_its_own(checkout):
    chosen = "sweep={hosts: [encoder, decoder, encoder-decoder], attention: [original, shared]}"
    outcome = checkout.snakemake("--dry-run", "--config", chosen)
    assert outcome.code == 0, outcome.output
    training = [outcome.jobs[f"pretrain_{host}"] for host in ("model", "decoder", "encoder_decoder")]
    assert training == [6, 6, 6] and outcome.jobs["pack_pairs"] == 1
    assert outcome.jobs["tabulate_hosts"] == outcome.jobs["draw_hosts"] == 1
    assert outcome.jobs["extract_checkpoint"] == outcome.jobs["finetune"] == 6, "of the encoder alone"
    assert [outcome.jobs[f"extract_{host}"] for host in ("decoder", "encoder_decoder")] == [6, 6]
    asked_for = re.search(r"^(?:local)?rule all:\n    input: (.*)$", outcome.output, re.M)[1].split(", ")
    for host, last in {"decoder": 1000, "encoder-decoder": 200}.items():
        run = f"results/demo-embedded/pretrain/{host}/tiny-shared/seed-3"
        assert {f"{run}/done.json", f"{run}/timing.json"} <= set(asked_for), "by the report itself"
        assert f"output: {run}/done.json, " in outcome.output
        assert f"output: {run}/step-{last}/config.json, {run}/step-{last}/model.safetensors, " in outcome.output
        assert (f"{run}/step-{last}/vocab.txt" in outcome.output) == (host == "decoder")
    alone = checkout.snakemake("--dry-run", "pretrain", "--config", "sweep={hosts: [encoder-decoder]}").jobs
    assert alone["pretrain_encoder_decoder"] == 12
    assert not {"pack_shards", "download_part", "pretrain_model", "extract_encoder_decoder"} & set(alone)


def test_each_hosts_rule_trains_that_host(root, tmp_path):
    """All rules of one loop trained the last host: a dry run showed the right commands."""
    copy = check_out(root, tmp_path / "copy")
    sweep = "sweep={hosts: [decoder, encoder-decoder], attention: [shared], pretrain_seeds: [1], curve: {sizes: []}}"
    steps = (
        "pretrain={schedule_steps: null, warmup_steps: 1, evaluate_every: 2, save_every: 2, batch_size: 4}",
        "hosts={decoder: {steps: 2}, encoder-decoder: {steps: 2}}",  # the demo's are many, whatever those of encoders
    )
    folders = {
        host: f"results/demo-embedded/pretrain/{host}/tiny-shared/seed-1" for host in ("decoder", "encoder-decoder")
    }
    targets = [f"{folder}/step-2/config.json" for folder in folders.values()]
    outcome = copy.snakemake(*targets, "results/demo-embedded/report/figures/hosts.png", "--config", sweep, *steps)
    assert outcome.code == 0, outcome.output
    for host, folder in folders.items():
        assert read_json(copy.directory / folder / "done.json")["model_host"] == host
        facts = read_json(copy.directory / folder / "step-2/config.json")["pretraining"]
        assert facts["model_host"] == host and facts.get("stand_in", False) == (host == "encoder-decoder")


@pytest.mark.parametrize(
    ("target", "has", "has_not"),
    [
        ("corpus", {"pack_shards", "tabulate_corpus"}, {"pretrain_model", "finetune"}),
        ("pretrain", {"pack_shards", "pretrain_model"}, {"extract_checkpoint", "prepare_task"}),
        ("glue", {"pretrain_model", "extract_checkpoint", "finetune"}, {"tabulate_table3_glue", "draw_figure2"}),
        (
            "paper_tables",
            {"count_parameters", "tabulate_table3_published"},
            {"tabulate_table2_training", "pretrain_model", "filter_part", "finetune"},
        ),
    ],
)
def test_a_target_makes_its_stage_and_no_later_one(checkout, target, has, has_not):
    jobs = dry_run(checkout, target).jobs
    assert has <= jobs.keys() and not has_not & jobs.keys()


def test_the_command_line_overrides_the_scale_which_overrides_the_configuration(checkout):
    """demo.yaml asks for 4 parts, config.yaml for 300."""
    by_scale = checkout.snakemake("--dry-run", "corpus", "--config", "source=hub").jobs
    by_user = checkout.snakemake("--dry-run", "corpus", "--config", "source=hub", "corpus={parts: 7}").jobs
    assert (by_scale["filter_part"], by_user["filter_part"]) == (4, 7)


def test_what_the_sweep_asks_for_beside_the_comparison_is_planned_on_request(checkout):
    """More fine-tuning seeds are no more jobs, and step 0 is one more checkpoint."""
    plain = "attention: [original], pretrain_seeds: [1], probes: []"
    jobs = checkout.snakemake("--dry-run", "--config", f"sweep={{{plain}}}").jobs
    more = f"sweep={{{plain}, finetune_seeds: [1, 2, 3, 4, 5, 6, 7], untrained: true, anatomy: true, probes: [shared]}}"
    asked = checkout.snakemake("--dry-run", "--config", more, "glue={robustness: {noise: []}}").jobs
    assert (jobs["pretrain_model"], jobs["extract_checkpoint"], jobs["finetune"]) == (1, 3, 3)
    assert (asked["pretrain_model"], asked["extract_checkpoint"], asked["finetune"]) == (1, 4, 4)
    shown = {"anatomy", "probe", "tabulate_anatomy", "draw_anatomy", "tabulate_probes"}
    measured = {"measure_robustness", "prepare_robustness", "draw_robustness", "tabulate_robustness"}
    assert shown <= asked.keys() and not shown & jobs.keys()
    assert measured <= jobs.keys() and not measured & asked.keys()
    assert (jobs["measure_robustness"], jobs["prepare_robustness"]) == (1, 8)


def test_a_file_of_any_name_is_a_part_that_a_command_takes(checkout, tmp_path):
    for name in ("(1) x.jsonl", "-v.jsonl", "日本 語.jsonl"):
        (tmp_path / name).touch()
    outcome = checkout.snakemake(
        "--dry-run", "--printshellcmds", "corpus", "--config", f'corpus={{source: files, files: "{tmp_path}/*"}}'
    )
    assert outcome.jobs["filter_part"] == outcome.jobs["tokenize_part"] == 3, outcome.output
    assert set(re.findall(r"--name '?([^ ']+)'? ", outcome.output)) == {"1-x", "v", "日本-語"}


def test_a_part_that_the_corpus_has_not_is_named(checkout):
    outcome = checkout.snakemake("--dry-run", "results/demo-embedded/corpus/tokens/en_meta_part_9.json")
    assert outcome.code == 64 and "symbert: en_meta_part_9: no part of this corpus; correct" in outcome.output


def test_the_last_of_many_batches_is_planned_by_itself(checkout):
    """Snakemake goes from batch to batch by recursion, and ended where there were 250 of them."""
    many = ["source=hub", "corpus={parts: 300, parts_per_batch: 1}"]
    outcome = checkout.snakemake("--dry-run", "results/demo-hub/corpus/tokens/en_meta_part_300.json", "--config", *many)
    assert outcome.code == 0 and outcome.jobs["count_batch"] == 298, outcome.output[-3000:]


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        (["sorce=hub"], 64, ["'sorce'", "did you mean 'source'"]),
        (["source=mirror", "mirror=/no/such/place"], 65, ["/no/such/place"]),
        (["scale=paper"], 64, ["'source' is embedded", "add source=hub"]),
    ],
)
def test_a_mistake_stops_before_any_job_with_one_line(checkout, settings, code, words):
    outcome = checkout.snakemake("--dry-run", "--config", *settings)
    lines = [line for line in outcome.output.splitlines() if line.startswith("symbert: ")]
    assert outcome.code == code and len(lines) == 1, outcome.output
    assert all(word in lines[0] for word in words), lines
    assert "Job stats" not in outcome.output and "Traceback" not in outcome.output
    assert not (checkout.directory / "results").exists()


@pytest.mark.parametrize("target", ["tables", "all"])
def test_a_target_asks_for_every_file_of_its_tables_and_figures(checkout, target):
    """What a dry run would make anew, by table and figure: all of its formats are wanted by the target itself."""
    said = dry_run(checkout, target).output
    block = re.search(rf"^(?:localrule|rule) {target}:\n    input: (.*)$", said, re.M)[1].split(", ")
    wanted = {file for file in block if re.search(r"/report/(tables|figures)/", file)}
    outputs = re.findall(r"^    output: (.*)$", said, re.M)
    made = {file for files in outputs for file in files.split(", ") if re.search(r"/report/(tables|figures)/", file)}
    assert wanted and wanted == {file for file in made if stem(file) in set(map(stem, wanted))}
    assert all(len([file for file in wanted if stem(file) == name]) > 1 for name in map(stem, wanted))


def stem(file: str) -> str:
    """A table or figure, whatever the format of its file."""
    return file.rpartition(".")[0]


def test_a_folder_with_braces_is_refused_for_the_project_and_not_taken_for_a_wildcard(root, tmp_path):
    """It was a NameError of Snakemake's, with a traceback."""
    outcome = check_out(root, tmp_path / "my {copy}").snakemake("--dry-run")
    lines = [line for line in outcome.output.splitlines() if line.startswith("symbert: ")]
    assert outcome.code == 64 and "Traceback" not in outcome.output, outcome.output
    assert lines == [
        f"symbert: {tmp_path}/my {{copy}}: has braces, which Snakemake takes for wildcards; rename the folder"
    ]
