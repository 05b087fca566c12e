"""The command `report`: one process reads the files of an experiment, and writes its tables, figures and page."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from symbert.configuration import (
    GlueSettings,
    MinimalPairSettings,
    ReportSettings,
    TaskSettings,
    annotations_of,
    define_own,
    filter_of,
    protocol_of,
    settings_from,
    training_of,
    values_of,
)
from symbert.experiment.sweep import grids_of
from symbert.files import copy_file, write_text
from symbert.glue.tasks import SUITES, tasks_of_suite
from symbert.hosts import ENCODER
from symbert.operators import OPERATORS
from symbert.report import published
from symbert.report.data import Data, read_record
from symbert.report.exhibits import EXHIBITS, Exhibit
from symbert.report.formats import write_table
from symbert.report.grids import has_answers
from symbert.report.page import write_page
from symbert.sizes import SIZES

Record = dict[str, Any]
PAPERS_SIZES = ("small", "base")
FEWEST_SEEDS = 3  # of pre-training, over which exits from the plateau are compared


def report(folder: Path, /, paper: bool = False) -> None:
    """Write every table, figure and text of an experiment, and one page with all of them, into its folder report/.

    `folder` is results/<experiment>, whose experiment.json names what is read. With `paper`, only the tables that need
    no experiment are written, into `folder`. DataError names a file that is missing, damaged or of another experiment.
    """
    if paper:
        write_exhibits(Data(parameters=counted((), published.OPERATORS)), folder)
        return
    folder, record = read_record(folder)
    if "origin" not in record["inputs"]:
        define_own(record["configuration"])
    data, output = data_of(record), folder / "report"
    written = write_exhibits(data, output)
    surplus = [file for kind in ("tables", "figures", "texts") for file in output.glob(f"{kind}/*")]
    for file in {*surplus, *output.glob("experiment-*.json")} - {*written}:  # of an earlier configuration
        file.unlink()
    write_page(output, data.settings)
    copy_file(folder / "experiment.json", output / f"experiment-{record['key']}.json")


def data_of(record: Record) -> Data:
    """The data of an experiment, by its experiment.json as `read_record` gives it."""
    settings = settings_from(record["report"], ReportSettings, "experiment.json: 'report'")
    inputs, sweep = record["inputs"], record["configuration"]["sweep"]
    of_suites = {
        suite: {"scores": files, "curve": inputs["curve"].get(suite)} for suite, files in inputs["scores"].items()
    }
    swept = grids_of(record["configuration"]) if "grids" in inputs else []
    grids = [(grid, inputs["grids"][grid.name]) for grid in swept]
    known = [name for name in sweep["attention"] if name in OPERATORS]  # others' operators have no code here
    return Data(
        settings=settings,
        sections=sections_of(record),
        parameters=counted(sweep["sizes"], known or ["original"]),
        origin=inputs.get("origin"),
        **of_suites.pop("glue"),
        suites=of_suites,
        finetune_seeds=sweep["finetune_seeds"],
        curve_seeds=sweep["curve"]["finetune_seeds"],
        pretrain_seeds=sweep["pretrain_seeds"] if len(sweep["pretrain_seeds"]) >= FEWEST_SEEDS else [],
        runs=inputs["runs"],
        grids=grids,
        contrasts=[grid for grid, _ in grids if has_answers(grid)],
        hosts=inputs.get("runs_of_others"),
        manifest=inputs.get("manifest"),
        **{name: inputs.get(name) for name in ("robustness", "blimp", "speeds", "parts")},
        **{name: next(iter(inputs.get(name, [])), None) for name in ("anatomy", "probes")},
    )


def sections_of(record: Record) -> Record:
    """The settings of each stage by name, for the table of provenance; of imported scores only the report's."""
    config, of_report = record["configuration"], {"report": record["report"]}
    if "origin" in record["inputs"]:
        return of_report
    sections = {
        "filter": {**filter_of(config), "annotations": annotations_of(config)},
        "pack": config["corpus"]["pack"],
        "pretrain": values_of(training_of(config, ENCODER)),
        "task": values_of(protocol_of(config, "glue", TaskSettings)),
        "glue": values_of(protocol_of(config, "glue", GlueSettings)),
        **of_report,
    }
    for suite in SUITES.values():
        if suite.name != "glue" and tasks_of_suite(suite.name, config["sweep"]["tasks"]):
            sections[suite.rows_section] = values_of(protocol_of(config, suite.name, TaskSettings))
            sections[suite.name] = values_of(protocol_of(config, suite.name, GlueSettings))
    if "blimp" in config["sweep"]["suites"]:
        sections["blimp"] = values_of(protocol_of(config, "blimp", MinimalPairSettings))
    return sections


def counted(sizes: Iterable[str], attention: Iterable[str]) -> Record:
    """Parameters of each of these operators, in these sizes and those of the paper."""
    from symbert.model.parameters import counts_of  # imports torch

    chosen = {*PAPERS_SIZES, *sizes}
    return {size: counts_of(size, list(attention)) for size in SIZES if size in chosen}


def exhibits_of(data: Data) -> list[Exhibit]:
    """Those that there are data for, in the order of the page."""
    known = [exhibit for exhibit in EXHIBITS.values() if exhibit.suite in data.by_suite]
    made = [exhibit for exhibit in known if all(map(data.by_suite[exhibit.suite].has, exhibit.reads))]
    if data.has("grids"):
        return [exhibit for exhibit in made if exhibit.of_grids]
    return [exhibit for exhibit in made if data.origin is None or exhibit.of_imported]


def write_exhibits(data: Data, folder: Path) -> list[Path]:
    """Write every exhibit that there are data for, in all formats; returns its files."""
    written = []
    for exhibit in exhibits_of(data):
        shown = data.by_suite[exhibit.suite]
        for size in dict.fromkeys(data.runs["size"]) if exhibit.per_size else [""]:
            stem = folder / exhibit.stem.format(size=size)
            files = [stem.with_name(f"{stem.name}.{suffix}") for suffix in exhibit.formats]
            write_exhibit(exhibit, shown.of_size(size) if size else shown, files)
            written += files
    return written


def write_exhibit(exhibit: Exhibit, data: Data, output: list[Path]) -> None:
    """Write an exhibit; the suffix of each file decides its format."""
    make = exhibit.load()
    if exhibit.kind == "text":
        for path in output:
            write_text(path, "\n".join(make(data)) + "\n")
    elif exhibit.kind == "table":
        write_table(make(data), output)
    else:
        from symbert.report.plots import write_plot
        from symbert.report.style import house_style

        with house_style():
            write_plot(make(data), exhibit.caption, output)
