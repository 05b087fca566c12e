"""The page as a reader opens it, offline, in a browser without a screen; and in Snakemake's own report."""

import zipfile
from pathlib import Path, PurePosixPath

import pytest

from campaigns.browser import find_browser, see


@pytest.fixture(scope="module", autouse=True)
def browser():
    if find_browser() is None:
        pytest.skip("no browser: no chromium or google-chrome on the path")


@pytest.fixture(scope="module")
def archive(finished, tmp_path_factory) -> Path:
    """The folder of the unpacked report."""
    folder = tmp_path_factory.mktemp("report")
    outcome = finished.tiny("--report", str(folder / "report.zip"))
    assert outcome.code == 0, outcome.output[-3000:]
    with zipfile.ZipFile(folder / "report.zip") as packed:
        for name in packed.namelist():
            parts = PurePosixPath(name).parts
            assert ".." not in parts and not name.startswith("/"), name
            target = folder.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(packed.read(name))
    return folder / "report"


@pytest.fixture(scope="module")
def page(finished, tmp_path_factory):
    """What a reader sees of our page, which is looked at in a frame because it forbids scripts."""
    folder = tmp_path_factory.mktemp("page")
    ours = finished.directory / "results/demo-embedded/report/report.html"
    frame = folder / "frame.html"
    frame.write_text(f'<iframe src="{ours.as_uri()}" width="1200" height="900"></iframe>')
    steps = (
        "await new Promise(done => window.onload = done); tell(look(document.querySelector('iframe').contentWindow));"
    )
    return see(frame, steps, folder)


def test_the_page_shows_every_figure_and_table_and_asks_nothing_of_the_network(finished, page):
    made = finished.directory / "results/demo-embedded/report"
    tables, figures = (list(made.glob(pattern)) for pattern in ("tables/*.html", "figures/*.png"))
    assert page["tables"] >= len(tables) > 10 and len(page["pictures"]) == len(figures) + 1 > 3
    assert min(page["pictures"]) > 300 and page["color"] == "rgb(89, 89, 89)"
    assert [name for name in page["asked"] if not name.startswith(("file:", "data:", "blob:"))] == []


def test_snakemakes_own_report_holds_the_page(finished, archive):
    page = finished.directory / "results/demo-embedded/report/report.html"
    assert page.read_bytes() in [file.read_bytes() for file in (archive / "data").rglob("*.html")]
