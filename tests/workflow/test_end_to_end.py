"""The whole chain at a tiny scale through Snakemake."""

import re
import zipfile
from pathlib import PurePosixPath

from rocrate.rocrate import ROCrate

from symbert.files import read_json
from symbert.report.bundle import contents_of


def test_each_stage_makes_its_own_and_then_has_nothing_to_do(chain):
    assert {stage: outcome.jobs for stage, outcome in chain[1].items()} == {
        "paper": {"paper": 1},
        "corpus": {"build_blocklist": 1, "prepare_part": 4, "pack": 1},
        "pretrain": {"pretrain": 2},
        "glue": {"extract": 4, "prepare_task": 8, "score": 4},
        "all": {"measure_speeds": 1, "prepare_task": 8, "score_robustness": 2, "report": 1, "all": 1},
        "nothing": {},
    }
    page = "symbert: done; results/demo-embedded/report/report.html"
    assert [stage for stage, outcome in chain[1].items() if page in outcome.output] == ["all"]


def test_every_document_is_accounted_for_and_every_filter_acts(finished):
    """The embedded corpus has documents for each drop reason, among its parts."""
    dropped = {}
    for path in finished.directory.glob("results/corpus/parts-*/*.json"):
        if path.name != "settings.json":
            counts = read_json(path)["counts"]
            assert counts["read"] == counts["kept"] + counts["bad"] + sum(counts["dropped"].values())
            for reason, number in counts["dropped"].items():
                dropped[reason] = dropped.get(reason, 0) + number
    assert len(dropped) == 6 and all(dropped.values()), dropped


def test_scores_are_there_once_for_each_task_and_seed(finished):
    for attention in ("original", "pairwise"):
        for step, seeds in ((10, [1]), (20, [1, 2])):
            pattern = f"results/scores/glue-*/encoder/tiny-{attention}-*/seed-1/step-{step}/*.json"
            (file,) = finished.directory.glob(pattern)
            found = [(record["task"], record["finetune_seed"]) for record in read_json(file)]
            assert len(found) == len(set(found)) == 8 * len(seeds)


def test_no_path_of_this_machine_is_in_a_keyed_folder(finished):
    """Results may be copied to another machine, where a key would be another one."""
    paths = list(finished.directory.glob("results/**/settings.json"))
    assert len(paths) > 5 and [path for path in paths if str(finished.directory) in path.read_text()] == []


def test_snakemakes_own_report_holds_the_page(finished, tmp_path):
    outcome = finished.tiny("--report", str(tmp_path / "report.zip"))
    assert outcome.code == 0, outcome.output[-3000:]
    page = finished.directory / "results/demo-embedded/report/report.html"
    with zipfile.ZipFile(tmp_path / "report.zip") as packed:
        names = packed.namelist()
        assert not [name for name in names if ".." in PurePosixPath(name).parts or name.startswith("/")]
        assert page.read_bytes() in [packed.read(name) for name in names if name.endswith(".html")]


def test_a_finished_experiment_is_bundled_whole_and_without_its_place(finished, tmp_path):
    """tests/report/test_bundle.py makes an archive of a small experiment written by hand."""
    folder = finished.directory / "results/demo-embedded"
    contents = contents_of(folder)
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
        assert str(finished.directory).encode() not in content, name
    assert ROCrate(tmp_path).mainEntity.id == "Snakefile"
    report = {file.relative_to(folder / "report") for file in (folder / "report").rglob("*") if file.is_file()}
    assert all((tmp_path / file).is_file() for file in report if not file.name.startswith("experiment-"))
    scores = {str(file.relative_to(folder.parent)) for file in folder.parent.glob("scores/glue-*/encoder/*/*/*/*.json")}
    assert scores and scores <= contents.keys()
    timings = list(tmp_path.glob("runs/*/*/seed-*/timing.json"))
    assert timings and not any("host" in read_json(file) for file in timings)
    addresses = re.findall(r'(?:href|src)="([^"]*)"', contents["report.html"].decode())
    assert not [address for address in addresses if not address.startswith(("#", "data:", "https://"))]
