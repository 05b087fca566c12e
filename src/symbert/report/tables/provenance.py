"""What made a report: the commit, the versions, the settings, and the machines of its runs.

The commit is noted when the table is written. It is no input of any rule, so that a commit makes nothing anew.
"""

import os
import platform
import time
from importlib import metadata

import symbert
from symbert.commit import PROJECT, commit_of
from symbert.files import read_json
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, table_of
from symbert.settings import SECTIONS, hash_of, settings_from

PACKAGES = (
    *("snakemake", "torch", "transformers", "tokenizers", "datasets", "numpy", "scipy", "pandas"),
    *("pyarrow", "matplotlib"),
)


@exhibit(
    chapter="Provenance",
    place=2,
    heading="What made this report",
    reads=("sections",),
    may_read=("machines",),
    follows=("scores", "curve", "robustness"),
)
def provenance_table(data: Data) -> Table:
    """What made this report: version and Git commit of symbert, with the word modified where files differed from the
    commit; versions of the packages; hashes of the settings that each stage read; and the machines of the runs. It is
    noted when the tables are made of new results: a commit by itself makes nothing anew.

    Settings files are called by the names of their sections.
    """
    machines = {}
    for key in ("commit", "device", "versions"):
        values = [run.facts_of(key) for run in data.machines]
        machines[key] = ", ".join(dict.fromkeys(filter(None, values)))
    facts = {
        "symbert": symbert.__version__,
        "commit": commit_of(PROJECT),
        "written": f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(moment()))} UTC",
        "system": f"{platform.platform()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {version_of(name)}" for name in PACKAGES),
    }
    if any(machines.values()):
        sessions = sum(run.facts.get("sessions", 0) for run in data.machines)
        facts |= {"pre-training: runs": f"{len(data.machines)}, in {sessions} sessions"}
        facts |= {f"pre-training: {key}": values for key, values in machines.items() if values}
    for file in data.files.get("sections", []):
        values = read_json(file, dict)
        settings_from(values, SECTIONS[file.stem], str(file))
        facts[f"settings of {file.stem}"] = f"hash {hash_of(values)}"
    caption = (
        "What made the tables and figures: versions and the commit are those of the machine that wrote this table, "
        "what trained the models stands under pre-training. The hashes are of the settings that the stages read; the "
        "same hash means the same settings."
    )
    return table_of([{"what": what, "value": value} for what, value in facts.items()], caption, "tab:provenance")


def moment() -> float:
    """Now, in seconds of the epoch, unless SOURCE_DATE_EPOCH says when: then a report that is made again from the same
    results has the same bytes (reproducible-builds.org/specs/source-date-epoch)."""
    return float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())


def version_of(package: str) -> str:
    """The installed version, without importing the package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"
