import base64
import csv
import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from rocrate.rocrate import ROCrate

from bundle import small
from bundle.small import HOSTS, MIRROR
from symbert.bundle.archive import bundle, contents_of
from symbert.bundle.results import Results
from symbert.errors import DataError, MissingInputError, UsageError

TERMS = {  # of the context of RO-Crate 1.1, where they were looked up
    *("about", "author", "conformsTo", "contentSize", "creator", "datePublished", "description", "encodingFormat"),
    *("hasPart", "identifier", "license", "mainEntity", "mentions", "name", "programmingLanguage", "publisher", "url"),
    "version",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A small experiment and, in `unpacked`, what its archive has: to be read only."""
    place = tmp_path_factory.mktemp("small")
    bundle([small.make(place / "results/small-mirror")], place / "small.zip")
    with zipfile.ZipFile(place / "small.zip") as packed:
        for name in packed.namelist():
            packed.extract(name, place / "unpacked")
    return place


@pytest.fixture
def archive(made) -> Path:
    """The unpacked archive."""
    return made / "unpacked"


def test_the_same_results_give_the_same_bytes_wherever_they_lie(folder, tmp_path, capsys):
    bundle([folder], tmp_path / "first.zip")
    moved = shutil.copytree(folder, tmp_path / "elsewhere/small-mirror")
    bundle([moved], tmp_path / "second.zip")
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


def test_every_file_is_described_by_itself_or_with_its_folder_and_exists(archive):
    graph = json.loads((archive / "ro-crate-metadata.json").read_text())["@graph"]
    parts = {each["@id"] for each in next(each for each in graph if each["@id"] == "./")["hasPart"]}
    files = {file.relative_to(archive).as_posix() for file in archive.rglob("*") if file.is_file()}
    for name in files - {"ro-crate-metadata.json"}:
        assert (name in parts) != any(name.startswith(part) for part in parts if part.endswith("/")), name
    assert {part for part in parts if not (archive / part).exists()} == set()
    for entity in graph:
        if "contentSize" in entity:
            assert int(entity["contentSize"]) == (archive / entity["@id"]).stat().st_size


def test_every_term_is_one_of_ro_crates_or_declared(archive):
    """A property that the context does not have is dropped by whoever reads the file as JSON-LD; sha256 was one."""
    described = json.loads((archive / "ro-crate-metadata.json").read_text())
    address, declared = described["@context"]
    assert address == "https://w3id.org/ro/crate/1.1/context" and declared.keys() == {"sha256"}
    terms = {term for entity in described["@graph"] for term in entity}
    assert terms <= {"@id", "@type", *TERMS, *declared} and terms >= TERMS


def test_the_archive_has_results_and_code_but_no_weights_logs_or_bytecode(archive):
    names = {file.relative_to(archive).as_posix() for file in archive.rglob("*") if file.is_file()}
    assert {"report.html", "tables/provenance.csv", "settings/report.json", "LICENSE", "CITATION.cff"} <= names
    assert {"pretrain/tiny-original/seed-1/metrics.jsonl", "src/symbert/cli.py", "envs/constraints.txt"} <= names
    assert not [name for name in names if re.search(r"safetensors|\.log$|pycache|egg-info|/state/|site\.yaml", name)]


def test_its_page_names_only_paths_that_are_there(archive):
    named = re.findall(r"^\| (.*?) \|", (archive / "README.md").read_text(), re.M)
    paths = re.findall(r"`([^`]+)`", " ".join(named))
    assert len(paths) > 12 and [path for path in paths if not (archive / path).exists()] == []


def test_scores_are_one_csv_in_one_order(archive):
    rows = list(csv.DictReader((archive / "scores.csv").open()))
    assert [(row["task"], row["finetune_seed"], row["score"]) for row in rows] == [
        ("rte", "1", "0.51"),
        ("rte", "2", "0.52"),
    ]
    assert not (archive / "robustness.csv").exists(), "nothing was measured"


def test_no_host_path_or_name_of_the_machine_is_inside(archive, made):
    canaries = [*HOSTS.values(), MIRROR, str(made), str(Path.home())]
    for file in archive.rglob("*.*"):
        if file.is_file() and not file.is_relative_to(archive / "src") and file.suffix in (".json", ".csv", ".md"):
            assert [canary for canary in canaries if canary in file.read_text()] == [], file
    page = (archive / "report.html").read_text()
    assert page.startswith("<p>a login of people</p>"), "a word is no host"
    assert page.endswith('<img src="data:image/png;base64,login">'), "a picture stays"
    held = base64.b64decode(re.search(r"data:text/csv;charset=utf-8;base64,([^\"]+)", page)[1]).decode()
    assert held.splitlines()[1:] == ["written,2026-01-03 04:05:06 UTC on host-2", "pre-training: host,host-1"]
    assert held == (archive / "tables/provenance.csv").read_text()
    assert json.loads((archive / "settings/corpus_source.json").read_text())["root"] == "…/mirror"
    assert json.loads((archive / "corpus/blacklists.json").read_text())["path"] == "…/blacklists.tar.gz"


def test_a_secret_of_the_environment_is_refused_by_its_name(results, folder, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_canary0123")
    contents_of(results)
    (folder / "report/tables/own.md").write_text("run with hf_canary0123")
    with pytest.raises(DataError, match=r"tables/own\.md: holds the value of HF_TOKEN") as error:
        contents_of(Results([folder]))
    assert "canary" not in str(error.value)


def test_runs_of_other_hosts_are_inside_without_the_name_of_their_machine(folder):
    """Only those of encoders were, though the tables have the numbers of all."""
    settings = {**small.SETTINGS, "host_runs": [["decoder", "tiny", "original", 1]]}
    small.write(folder / "settings/report.json", settings)
    home, run = folder / "pretrain/decoder/tiny-original/seed-1", {"size": "tiny", "attention": "original"}
    run |= {"pretrain_seed": 1, "model_host": "decoder"}
    small.write(home / "done.json", {**run, "parameters": 1, "validation_loss": 3.0, "steps": 1800})
    small.write(home / "timing.json", {**run, **small.SESSION, "host": "secret-node", "sessions": 1})
    small.write(home / "metrics.jsonl", "")
    contents = contents_of(Results([folder]))
    inside = {name.rpartition("/")[2] for name in contents if name.startswith("pretrain/decoder/tiny-original/seed-1/")}
    assert inside == {"done.json", "timing.json", "metrics.jsonl"}
    assert not any(b"secret-node" in content for content in contents.values())


def test_runs_of_the_experiment_that_is_extended_are_taken_from_its_folder(folder, tmp_path):
    other = tmp_path / "results/extended"
    for part in ("pretrain/tiny-symmetric", "glue/tiny-original"):
        shutil.move(folder / part, other / part)
    with pytest.raises(MissingInputError, match=r"tiny-symmetric/seed-1/done\.json: .*that it extends"):
        contents_of(Results([folder]))
    whole = contents_of(Results([folder, other]))
    assert whole["scores.csv"].count(b"\n") == 3 and "pretrain/tiny-symmetric/seed-1/done.json" in whole


def test_how_checkpoints_judged_pairs_is_in_the_archive_once(folder, tmp_path):
    place, other = Path("blimp/tiny-original/seed-1/step-1800.json"), tmp_path / "theirs"
    for results, words in ((folder, '{"step": 1800}'), (other, '{"step": 0}')):
        for name in (place, place.with_name("step-300.json")) if results is other else (place,):
            (results / name).parent.mkdir(parents=True, exist_ok=True)
            (results / name).write_text(words)
    contents = contents_of(Results([folder, other]))
    judged = {name: json.loads(text) for name, text in contents.items() if name.startswith("blimp/")}
    assert judged == {str(place): {"step": 1800}, str(place.with_name("step-300.json")): {"step": 0}}
    assert "`blimp/`" in contents["README.md"].decode()


def test_what_is_not_finished_or_no_zip_is_refused(folder, tmp_path):
    with pytest.raises(UsageError, match=r"small\.tar; name a \.zip file"):
        bundle([folder], tmp_path / "small.tar")
    (folder / "report/report.html").unlink()
    with pytest.raises(MissingInputError, match="report.html: no such file; run the workflow to its end first"):
        bundle([folder], tmp_path / "small.zip")
    assert not (tmp_path / "small.zip").exists()
