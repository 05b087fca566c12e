"""What a reader, a schema and a catalog expect of the workflow's files, and what Linux allows of its commands."""

import re
import shlex

import jsonschema
import pytest
import yaml

from symbert.cli import main
from workflow.checkout import check_out
from workflow.test_imported import write_results

LONGEST_COMMAND = 100_000  # characters; Linux takes arguments of 131,072 bytes, and bash gets the command as one
OPERATORS = "[original, symmetric, pairwise, shared, original-gain, pairwise-identity, pairwise-scaled]"


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def schema(root):
    return read(root / "workflow/schemas/config.schema.yaml")


@pytest.fixture(scope="module")
def experiments(root):
    """The experiments that continuous integration runs: what each changes, by its name."""
    matrix = read(root / ".github/workflows/ci.yml")["jobs"]["experiment"]["strategy"]["matrix"]["include"]
    return {entry["name"]: shlex.split(entry["config"]) for entry in matrix}


def described(schema, above=""):
    """Every key of the schema with its description."""
    for name, child in schema.get("properties", {}).items():
        yield f"{above}{name}", child.get("description")
        yield from described(child, f"{above}{name}.")


def keys(config, schema, above=""):
    """Every key of a configuration, down to where the schema lists no names."""
    for name, value in config.items():
        yield f"{above}{name}"
        child = schema.get("properties", {}).get(name, {})
        if isinstance(value, dict) and "properties" in child:
            yield from keys(value, child, f"{above}{name}.")


def test_the_schema_describes_every_key_and_the_configuration_has_every_one(root, schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    told = dict(described(schema))
    assert [key for key, text in told.items() if not text] == []
    assert list(keys(read(root / "config.yaml"), schema)) == list(told)  # in the same order, too


def test_every_key_of_a_scale_is_one_of_the_configuration(root, schema):
    told = {key for key, _ in described(schema)}
    scales = {path.stem: read(path) for path in (root / "workflow/scales").glob("*.yaml")}
    assert set(scales) == set(schema["properties"]["scale"]["enum"])
    for name, scale in scales.items():
        assert set(keys(scale, schema)) <= told, name


def test_no_object_of_the_schema_takes_unknown_keys(schema):
    def open_objects(node, above=""):
        if "properties" in node and (
            node.get("additionalProperties") or set(node["required"]) != set(node["properties"])
        ):
            yield above
        for name, child in node.get("properties", {}).items():
            yield from open_objects(child, f"{above}{name}.")

    assert list(open_objects(schema)) == []


def test_the_catalog_finds_what_it_reads(root):
    """The keys that its documentation lists, of the types that it names."""
    usage = read(root / ".snakemake-workflow-catalog.yml")["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment"}
    assert all(isinstance(usage["mandatory-flags"][key], str) for key in ("desc", "flags"))
    deployment = usage["software-stack-deployment"]
    assert deployment.keys() == {"conda", "apptainer", "apptainer+conda", "report"} and deployment["report"] is True
    assert all(isinstance(value, bool) for value in deployment.values())


def test_every_exhibit_has_a_caption_and_every_caption_an_exhibit(root):
    rules = "".join(path.read_text() for path in (root / "workflow/rules").glob("*.smk"))
    for kind in ("table", "figure"):
        named = {name.partition("_{")[0] for name in re.findall(rf' {kind}\("([^"]+)"\)', rules)}
        assert {path.stem for path in (root / f"workflow/report/{kind}s").glob("*.rst")} == named and len(named) > 4


@pytest.mark.parametrize("name", ["every operator", "no pre-training, kept classifiers, no noise"])
def test_an_experiment_of_continuous_integration_is_planned(checkout, experiments, name):
    outcome = checkout.tiny("all", "--dry-run", "--config", *experiments[name])
    models = {"every operator": 7, "no pre-training, kept classifiers, no noise": 2}[name]
    assert outcome.code == 0 and outcome.jobs["pretrain_model"] == models, outcome.output
    assert ("measure_robustness" in outcome.jobs) == (name == "every operator")


def test_the_experiment_with_ones_own_text_is_planned(finished, experiments):
    """The finished chain has made the folder that this entry prepares."""
    outcome = finished.tiny("all", "--dry-run", "--config", *experiments["one's own text, the rest from a mirror"])
    assert outcome.code == 0 and outcome.jobs["filter_part"] == 4, outcome.output
    assert outcome.jobs["download_harmful_model"] == 1 and "write_embedded_corpus" not in outcome.jobs


def test_the_experiment_with_imported_scores_is_planned(root, experiments, tmp_path):
    copy = check_out(root, tmp_path / "run")
    write_results(tmp_path / "theirs")
    results = copy.directory / "results/imported-theirs"
    assert main(["import-scores", str(tmp_path / "theirs"), "--name", "theirs", "--output", str(results)]) == 0
    outcome = copy.tiny("all", "--dry-run", "--config", *experiments["imported scores"])
    assert outcome.code == 0 and outcome.jobs["tabulate_glue"] == 1, outcome.output
    assert len(experiments) == 4, "plan the new entry of ci.yml here"


def test_no_command_of_the_largest_sweep_is_longer_than_linux_allows(checkout):
    """Seven operators, three pre-training seeds, 18 checkpoints each, 8 tasks: 3,024 score files in one table."""
    sweep = f"sweep={{sizes: [base], attention: {OPERATORS}, pretrain_seeds: [1, 2, 3]}}"
    settings = ("scale=paper", "source=hub", "corpus={parts: 300}", sweep)
    outcome = checkout.snakemake("--dry-run", "--printshellcmds", "--config", *settings)
    assert outcome.code == 0, outcome.output[-2000:]
    commands = re.findall(r"-m symbert ([a-z-]+) (.*)", outcome.output)
    longest = {}
    for name, words in commands:
        longest[name] = max(longest.get(name, 0), len(words.encode()))
    assert {"tabulate-claims", "tabulate-milestones", "pack-shards", "finetune"} <= longest.keys()
    assert max(longest.values()) < LONGEST_COMMAND, longest
    assert longest["tabulate-claims"] < 4_000, longest  # folders and tasks are written once
