"""Both reports as a reader opens them, offline: Snakemake's archive and our page, in a browser without a screen."""

import zipfile
from pathlib import Path, PurePosixPath

import pytest

from workflow.browser import find_browser, see

# Presses what a reader presses: each category, and in it the eye and the letter i of each result.
READER = """
const press = async name => {
  const link = () => [...document.querySelectorAll("nav a")].find(link => link.innerText.trim() === name);
  (await until(link)).click();
  await pause();
};
const rows = () => [...document.querySelectorAll("nav tbody tr")];
const shown = async () => {
  const frame = document.querySelector("iframe"), image = document.querySelector("#app div.p-3 > img");
  const width = () => image.complete && image.naturalWidth;
  if (image) return {tables: 0, pictures: [await until(width)], text: "", asked: []};
  const view = frame.contentWindow;
  await until(() => view.document.readyState === "complete" && view.document.querySelector("figcaption"));
  return look(view);
};
await press("Workflow");
const seen = {workflow: document.querySelector("#app .prose").innerText, categories: [], results: {}};
for (const category of Object.keys(categories)) {
  app.setView({navbarMode: "menu"});
  await press(category);
  seen.categories.push(category);
  const count = rows().length;
  for (let at = 0; at < count; at++) {
    const title = rows()[at].innerText.trim();
    rows()[at].querySelectorAll("a")[0].click();
    await pause();
    const result = await shown();
    rows()[at].querySelectorAll("a")[1].click();
    await pause();
    result.caption = document.querySelector("nav .prose").innerText;
    seen.results[app.state.resultPath] = {...result, category, title};
    app.showCategory(category);
    await pause();
  }
}
seen.asked = performance.getEntriesByType("resource").map(entry => entry.name);
tell(seen);
"""


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
def seen(archive, tmp_path_factory):
    """What a reader sees who opens every result."""
    return see(archive / "report.html", READER, tmp_path_factory.mktemp("browser"))


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


def test_every_figure_and_every_table_is_really_shown(seen):
    for path, result in seen["results"].items():
        if Path(path).stem == "report":
            continue
        if path.endswith(".png"):
            assert result["pictures"][0] > 300, path
        else:
            assert (result["tables"], result["color"]) == (1, "rgb(89, 89, 89)") and result["rows"] >= 1, path


def test_nothing_is_asked_of_the_network(seen, page):
    asked = [name for shown in (seen, page, *seen["results"].values()) for name in shown["asked"]]
    assert [name for name in asked if not name.startswith(("file:", "data:", "blob:"))] == []


def test_a_lost_benchmark_and_a_pruned_state_run_nothing_again(copy):
    """Nor does another commit, which no rule reads."""
    results = copy.directory / "results/demo-embedded"
    for path in [*results.glob("benchmarks/pretrain_model/*"), *results.glob("pretrain/*/*/state/provenance.json")]:
        path.unlink()
    assert copy.tiny("--dry-run").jobs == {}
    (results / "report/tables/runs.csv").unlink()
    outcome = copy.tiny("tables")
    assert outcome.code == 0 and set(outcome.jobs) == {"tabulate_runs", "tables"}, outcome.output
