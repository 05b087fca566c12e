"""One archive to cite: of a small finished experiment, written by hand, it has all that repeats it and no place."""

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest
import yaml
from rocrate.rocrate import ROCrate

from report.conftest import write
from symbert.errors import MissingInputError, UsageError
from symbert.report.bundle import bundle, contents_of

MACHINES = {"original": "gpu-node-07.cluster", "symmetric": "login", "decoder": "secret-node"}
MIRROR = "/somewhere/private/mirror"
RUNS = {
    "original": "runs/encoder/tiny-original-0a1b2c3d/seed-1",
    "symmetric": "runs/encoder/tiny-symmetric-4e5f6a7b/seed-1",
    "decoder": "runs/decoder/tiny-original-8c9d0e1f/seed-1",
}
SCORES = "scores/glue-89abcdef/encoder/tiny-original-0a1b2c3d/seed-1/step-1800/1x2-01234567.json"
PARTS, PUBLISHED = "corpus/parts-fedcba98", "published/oscar-corpus--OSCAR-2301-76543210"
SETTINGS = {
    f"results/{RUNS['original']}/run.json": {"size": "tiny", "architecture": "encoder"},
    f"results/{PARTS}/settings.json": {"vocabulary": f"{MIRROR}/google-bert/bert-base-uncased/vocab.txt"},
    f"results/{PUBLISHED}/settings.json": {"repo_type": "dataset", "revision": "main"},
}
INPUTS = {
    "runs": [f"results/{RUNS['original']}", f"results/{RUNS['symmetric']}"],
    "runs_of_others": [f"results/{RUNS['decoder']}"],
    "scores": {"glue": [f"results/{SCORES}"]},
    "curve": {"glue": []},
    "parts": [f"results/{PARTS}/part_1.json"],
    "manifest": "results/corpus/shards-00112233/manifest.json",
}
SESSION = {
    "device": "cpu",
    "processor": "Abacus, AVX2",
    "processes": 1,
    "threads": 2,
    "precision": "fp32",
    "versions": {"torch": "2.13.0"},
    "commit": "c0ffee",
    "commits": ["c0ffee"],
    "started": "2026-01-02T00:00:00Z",
    "until": "2026-01-02T01:30:00Z",
}


def record(seed: int) -> dict:
    run = {"size": "tiny", "attention": "original", "pretrain_seed": 1, "step": 1800, "task": "rte"}
    facts = {"partial": False, "stand_in": False, "settings_hash": "abc", "rows": {"train": 2490, "validation": 277}}
    return {**run, "finetune_seed": seed, "metrics": {"rte": 0.5 + seed / 100}, "majority": {"rte": 0.527}, **facts}


def make(folder: Path) -> Path:
    """Write an experiment into a folder of results, its runs and scores beside it; the folder is returned."""
    results = folder.parent
    write(folder / "report/report.html", "<p>Two operators</p>")
    write(folder / "report/experiment-deadbeef.json", {})
    write(folder / "report/tables/provenance.csv", "what,value\nwritten,2026-01-03 04:05:06 UTC\n")
    write(folder / "report/texts/summary.txt", "Two operators were compared.\nNothing was shown.\n")
    configuration = {"mirror": MIRROR, "source": "mirror"}
    told = {"experiment": "small-mirror", "key": "deadbeef", "configuration": configuration, "report": {}}
    write(folder / "experiment.json", {**told, "inputs": INPUTS, "settings": SETTINGS})
    write(results / PUBLISHED / "commit.json", {"commit": "0123456789abcdef"})
    write(results / PARTS / "part_1.json", {"counts": {"read": 1200, "kept": 700}, "record": {}})
    write(results / PARTS / "part_1.npy", "token ids")
    manifest = {"rows": {"train": 3000, "validation": 50}, "tokens": 195_200}
    write(results / "corpus/shards-00112233/manifest.json", manifest)
    for name, machine in MACHINES.items():
        home, run = results / RUNS[name], {"size": "tiny", "attention": name}
        if name == "decoder":
            run = {"size": "tiny", "attention": "original", "architecture": "decoder"}
        facts = {**run, "pretrain_seed": 1, "parameters": 156_780, "validation_loss": 3.25, "steps": 1800}
        write(home / "done.json", facts)
        write(home / "timing.json", {**run, "pretrain_seed": 1, **SESSION, "host": machine, "sessions": 1})
        write(home / "metrics.jsonl", '{"split": "validation", "step": 1800, "loss": 3.25}\n')
        write(home / "state/weights/model.safetensors", "weights")
        write(home / "log.txt", "a log")
    write(results / SCORES, [record(2), record(1)])
    return folder


@pytest.fixture
def folder(tmp_path) -> Path:
    """The results of a small experiment."""
    return make(tmp_path / "results/small-mirror")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A small experiment and, in `unpacked`, what its archive has: to be read only."""
    place = tmp_path_factory.mktemp("small")
    bundle(make(place / "results/small-mirror"), place / "small.zip")
    with zipfile.ZipFile(place / "small.zip") as packed:
        for name in packed.namelist():
            packed.extract(name, place / "unpacked")
    return place


@pytest.fixture
def archive(made) -> Path:
    """The unpacked archive."""
    return made / "unpacked"


def test_the_same_results_give_the_same_bytes_wherever_they_lie(folder, tmp_path, capsys):
    bundle(folder, tmp_path / "first.zip")
    shutil.copytree(folder.parent, tmp_path / "elsewhere/results")
    bundle(tmp_path / "elsewhere/results/small-mirror", tmp_path / "second.zip")
    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "second.zip").read_bytes()
    files = len(zipfile.ZipFile(tmp_path / "first.zip").namelist())
    size = (tmp_path / "first.zip").stat().st_size / 1e6
    assert capsys.readouterr().out.splitlines()[0] == f"{tmp_path / 'first.zip'}: {files} files, {size:.1f} MB"


def test_rocrate_reads_a_workflow_crate_with_what_its_profile_requires(archive):
    crate = ROCrate(archive)
    profiles = [each if isinstance(each, str) else each.id for each in crate.metadata["conformsTo"]]
    assert [profile.rstrip("/") for profile in profiles] == [
        "https://w3id.org/ro/crate/1.1",
        "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
    ]
    main = crate.mainEntity
    assert main.id == "Snakefile" and {"File", "SoftwareSourceCode", "ComputationalWorkflow"} == set(main.type)
    assert main["programmingLanguage"].id.endswith("#snakemake") and main["programmingLanguage"]["version"]
    assert crate.root_dataset["license"].id == "https://spdx.org/licenses/MIT"
    assert crate.root_dataset["datePublished"] == "2026-01-03"
    assert crate.name == "Results of small-mirror"
    assert crate.description == "Two operators were compared. Nothing was shown."
    assert crate.get("README.md")["about"] == crate.root_dataset
    kinds = {each.id: each.get("encodingFormat") for each in crate.data_entities if "File" in each.type}
    assert kinds["README.md"] == "text/markdown" and kinds["report.html"] == "text/html" and all(kinds.values())


def test_the_table_of_contents_has_what_the_archive_has(archive, folder):
    """Of imported scores it named runs and a corpus, and not the imported files."""
    told = (archive / "README.md").read_text()
    assert "| `runs/` |" in told and "small-mirror/" not in told
    imported = json.loads((folder / "experiment.json").read_text()) | {"settings": []}
    write(folder / "scores.csv", "attention,task\n")
    imported["inputs"] = {"scores": {"glue": ["results/small-mirror/scores.csv"]}, "origin": {"name": "small-mirror"}}
    write(folder / "experiment.json", imported)
    told = contents_of(folder)["README.md"].decode()
    assert "| `small-mirror/` |" in told and "`runs/`" not in told and "`corpus/`" not in told


def test_the_archive_has_results_and_code_but_no_weights_logs_or_bytecode(archive):
    names = {file.relative_to(archive).as_posix() for file in archive.rglob("*") if file.is_file()}
    assert {"report.html", "tables/provenance.csv", "experiment.json", "LICENSE", "CITATION.cff"} <= names
    assert {f"{RUNS['original']}/metrics.jsonl", "src/symbert/cli.py", "envs/constraints.txt"} <= names
    assert {SCORES, f"{PARTS}/part_1.json", f"{PUBLISHED}/commit.json", "corpus/shards-00112233/manifest.json"} <= names
    inside = {name.rpartition("/")[2] for name in names if name.startswith(RUNS["decoder"])}
    assert inside == {"done.json", "timing.json", "metrics.jsonl"}, "of every architecture"
    assert not [
        name for name in names if re.search(r"safetensors|npy$|log\.txt$|pycache|egg-info|/state/|experiment-", name)
    ]


def test_no_name_of_a_machine_and_no_absolute_path_is_inside(archive, made):
    canaries = [*MACHINES.values(), MIRROR, str(made), str(Path.home())]
    for file in archive.rglob("*.*"):
        if file.is_file() and not file.is_relative_to(archive / "src") and file.suffix in (".json", ".csv", ".md"):
            assert [canary for canary in canaries if canary in file.read_text()] == [], file
    experiment = json.loads((archive / "experiment.json").read_text())
    assert experiment["configuration"]["mirror"] == "mirror"
    assert experiment["settings"][f"results/{PARTS}/settings.json"]["vocabulary"] == "vocab.txt"
    assert experiment["settings"][f"results/{RUNS['original']}/run.json"]["architecture"] == "encoder", "no machine"


def test_the_mirror_of_the_configuration_is_inside_without_its_place(folder, tmp_path, root):
    shutil.copy(root / "CITATION.cff", tmp_path)
    write(tmp_path / "Snakefile", "rule all:\n")
    write(tmp_path / "config.yaml", f"source: mirror\nmirror: {MIRROR}  # mine\nglue:\n  files: '{MIRROR}'\n")
    read = yaml.safe_load(contents_of(folder, tmp_path)["config.yaml"])
    assert read == {"source": "mirror", "mirror": "mirror", "glue": {"files": "mirror"}}


def test_a_page_of_other_settings_is_not_bundled(folder, tmp_path):
    """The old page lay beside the experiment.json of a start that did not reach its report."""
    started = json.loads((folder / "experiment.json").read_text()) | {"key": "0ddba115"}
    write(folder / "experiment.json", started)
    with pytest.raises(MissingInputError, match=r"report\.html: .*other settings.*; run the workflow to its end first"):
        bundle(folder, tmp_path / "small.zip")
    assert not (tmp_path / "small.zip").exists()
    write(folder / "report/experiment-0ddba115.json", started)
    bundle(folder, tmp_path / "small.zip")


def test_what_is_not_finished_or_no_zip_is_refused(folder, tmp_path):
    with pytest.raises(UsageError, match=r"small\.tar; name a \.zip file"):
        bundle(folder, tmp_path / "small.tar")
    (folder / "report/report.html").unlink()
    with pytest.raises(MissingInputError, match="report.html: no such file; run the workflow to its end first"):
        bundle(folder, tmp_path / "small.zip")
    (folder / "experiment.json").unlink()
    with pytest.raises(MissingInputError, match=r"experiment\.json: file not found"):
        bundle(folder, tmp_path / "small.zip")
    assert not (tmp_path / "small.zip").exists()
