"""The page as a reader opens it, offline, in a browser without a screen; and in Snakemake's own report."""

import zipfile
from pathlib import PurePosixPath

import pytest

from campaigns.browser import find_browser, see


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


@pytest.mark.campaign
@pytest.mark.skipif(find_browser() is None, reason="no browser: no chromium or google-chrome on the path")
def test_the_page_shows_every_figure_and_table_and_asks_nothing_of_the_network(finished, page):
    made = finished.directory / "results/demo-embedded/report"
    tables, figures = (list(made.glob(pattern)) for pattern in ("tables/*.html", "figures/*.png"))
    assert page["tables"] >= len(tables) > 10 and len(page["pictures"]) == len(figures) + 1 > 3
    assert min(page["pictures"]) > 300 and page["color"] == "rgb(89, 89, 89)"
    assert [name for name in page["asked"] if not name.startswith(("file:", "data:", "blob:"))] == []


def test_snakemakes_own_report_holds_the_page(finished, tmp_path):
    outcome = finished.tiny("--report", str(tmp_path / "report.zip"))
    assert outcome.code == 0, outcome.output[-3000:]
    page = finished.directory / "results/demo-embedded/report/report.html"
    with zipfile.ZipFile(tmp_path / "report.zip") as packed:
        names = packed.namelist()
        assert not [name for name in names if ".." in PurePosixPath(name).parts or name.startswith("/")]
        assert page.read_bytes() in [packed.read(name) for name in names if name.endswith(".html")]
