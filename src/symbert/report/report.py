"""The command `report`: one process reads the files of an experiment, and writes its tables, figures and page."""

from dataclasses import replace
from pathlib import Path

from symbert.configuration import define_own
from symbert.files import copy_file, write_text
from symbert.report import published
from symbert.report.collect import Collection, collect, counted, read_record
from symbert.report.exhibits import EXHIBITS, OF_PAPER, OF_SWEEP, Exhibit, Made
from symbert.report.formats import Table, write_table
from symbert.report.page import Written, write_page
from symbert.report.style import house_style, write_plot
from symbert.report.tidy import tables_of, write_csv

FORMATS = {  # of the files of each kind; the first is on the page
    "tables": ("html", "csv", "md", "tex"),
    "figures": ("png", "pdf", "txt", "tex"),
    "texts": ("txt",),
}


def report(folder: Path, /, paper: bool = False) -> None:
    """Write every table, figure and text of an experiment, and one page with all of them, into its folder report/.

    `folder` is results/<experiment>, whose experiment.json names what is read. With `paper`, only the tables that need
    no experiment are written, into `folder`. DataError names a file that is missing, damaged or of another experiment.
    """
    if paper:
        write_exhibits(Collection(parameters=counted((), published.OPERATORS)), folder)
        return
    folder, record = read_record(folder)
    if "origin" not in record["inputs"]:
        define_own(record["configuration"])
    data, output = collect(record), folder / "report"
    written = write_exhibits(data, output)
    tables = [file for name, rows in tables_of(data).items() for file in write_csv(output / f"data/{name}.csv", rows)]
    surplus = {file for kind in (*FORMATS, "data") for file in output.glob(f"{kind}/*")}
    surplus |= {*output.glob("experiment-*.json")}
    for file in surplus.difference(tables, *(exhibit.files for exhibit in written)):
        file.unlink()  # of an earlier configuration
    write_page(output, data.settings, written)
    copy_file(folder / "experiment.json", output / f"experiment-{record['key']}.json")


def write_exhibits(data: Collection, folder: Path) -> list[Written]:
    """Write every exhibit that there are data for, in all formats, in the order of the page.

    Without settings these are the tables of the paper, and of a sweep of other keys its exits.
    """
    chosen = OF_PAPER if data.settings is None else OF_SWEEP if data.grids else None
    written = []
    with house_style():
        for chapter, exhibits in EXHIBITS.items():
            for exhibit in exhibits:
                made = exhibit.function(data) if chosen is None or exhibit.name in chosen else None
                if isinstance(made, dict):
                    for size, part in made.items():
                        of_size = replace(exhibit, name=f"{exhibit.name}_{size}", heading=f"{exhibit.heading}, {size}")
                        written.append(Written(chapter, of_size, write_exhibit(of_size, part, folder)))
                elif made is not None:
                    written.append(Written(chapter, exhibit, write_exhibit(exhibit, made, folder)))
    return written


def write_exhibit(exhibit: Exhibit, made: Made, folder: Path) -> list[Path]:
    """Write a table, figure or text in all formats of its kind; returns its files, that of the page first."""
    if isinstance(made, Path):
        return [made]
    kind = "tables" if isinstance(made, Table) else "texts" if isinstance(made, list) else "figures"
    files = [folder / kind / f"{exhibit.name}.{suffix}" for suffix in FORMATS[kind]]
    if isinstance(made, Table):
        write_table(made, files)
    elif isinstance(made, list):
        write_text(files[0], "\n".join(made) + "\n")
    else:
        write_plot(made, exhibit.caption, files)
    return files
