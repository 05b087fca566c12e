"""The archive of a real chain, which tests/report/test_bundle.py makes of a small one written by hand."""

import base64
import re

from rocrate.rocrate import ROCrate

from symbert.files import read_json
from symbert.report.bundle import contents_of


def test_a_finished_experiment_is_bundled_whole_and_without_its_place(finished, tmp_path):
    folder = finished.directory / "results/demo-embedded"
    contents = contents_of(folder)
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
        held = [base64.b64decode(data) for data in re.findall(rb"data:text/[^,]*;base64,([^\"]+)", content)]
        assert not [text for text in (content, *held) if str(finished.directory).encode() in text], name
    assert ROCrate(tmp_path).mainEntity.id == "Snakefile"
    report = {file.relative_to(folder / "report") for file in (folder / "report").rglob("*") if file.is_file()}
    assert all((tmp_path / file).is_file() for file in report if not file.name.startswith("experiment-"))
    scores = {str(file.relative_to(folder.parent)) for file in folder.parent.glob("scores/glue-*/encoder/*/*/*/*.json")}
    assert scores and scores <= contents.keys()
    timings = list(tmp_path.glob("runs/*/*/seed-*/timing.json"))
    assert timings and not any("host" in read_json(file) for file in timings)
    addresses = re.findall(r'(?:href|src)="([^"]*)"', contents["report.html"].decode())
    assert not [address for address in addresses if not address.startswith(("#", "data:", "https://"))]
