# The files of tables and figures, and those that they are made of.
from symbert.files import sha256_of
from symbert.report.braces import braced
from symbert.report.exhibits import EXHIBITS, options_of
from symbert.settings import hash_of
from symbert.sizes import SIZES
from symbert.operators import operator_code

PAGE = f"{RESULTS}/report/report.html"
PARAMETERS = f"{RESULTS}/report/parameters.json"
INPUTS["parameters"] = [PARAMETERS]
# On a cluster, which has --jobs, all of the report is one job; here each table is a job of its own.
GROUP = "report" if is_on_cluster(workflow) else None
# A parameter of every report rule: editing the report's code, or what it imports from the stages, makes tables and
# figures anew, and nothing else.
PACKAGE = Path(workflow.basedir) / "src/symbert"
ITS_IMPORTS = ["corpus/counts.py", "filters.py", "glue/tasks.py", "draws.py", "sizes.py"]
ITS_IMPORTS += ["operators.py", "model/attention.py"]  # whose classes say how operators look
ITS_CODE = [*sorted(PACKAGE.glob("report/**/*.py")), *sorted(PACKAGE.glob("report/templates/*"))]
CODE = hash_of([sha256_of(PACKAGE / path) for path in [*ITS_CODE, *ITS_IMPORTS]])


def read_by(exhibit):
    """What an exhibit reads, of what there is."""
    return [read for read in (*exhibit.reads, *exhibit.may_read) if all(files_of(read).values())]


def files_of(read):
    """The files of what an exhibit reads, by the options of its command."""
    return {option: INPUTS[option] for option in options_of(read) if option in INPUTS}


REPORTED = [
    exhibit
    for exhibit in EXHIBITS.values()
    if set(exhibit.reads) <= set(read_by(exhibit)) and (exhibit.of_imported or not config["imported"])
]


def made_of(exhibit):
    """The inputs of an exhibit by the options of its command; of one drawn per size, the runs of that size."""
    files = {option: found for read in read_by(exhibit) for option, found in files_of(read).items()}
    of_size = {option: OF_SIZE[option] for option in files.keys() & OF_SIZE.keys() if exhibit.per_size}
    return files | of_size


def given(option):
    """A command's option with the files of an input, as one short word; nothing where there are none."""

    def words(wildcards, input):
        files = WORDS.get(option) or input[option]
        files = [files] if isinstance(files, str) else files
        return f"--{option.replace('_', '-')} {braced(files)}" if files else ""

    return words


def options(exhibit):
    """All options of an exhibit's command."""

    def words(wildcards, input):
        names = [option for read in read_by(exhibit) for option in options_of(read)]
        size = [f"--size {wildcards.size}"] if exhibit.per_size else []
        return " ".join([*(given(name)(wildcards, input) for name in names), *size])

    return words


def outputs(exhibit):
    """The files of an exhibit; Snakemake's report has the first."""
    shown, *others = [f"{RESULTS}/report/{exhibit.stem}.{suffix}" for suffix in exhibit.formats]
    labels = {"shows": exhibit.heading}
    return [report(shown, caption="../report/exhibit.rst", category=exhibit.chapter, labels=labels), *others]


def pages(exhibits, formats=slice(None)):
    """The files of exhibits, in all formats or the first. A target asks for all of them: Snakemake makes no lost file
    that nobody asks for, though its rule has made it before."""
    stems = {exhibit: expand(exhibit.stem, size=MEASURED_SIZES) for exhibit in exhibits}
    return [
        f"{RESULTS}/report/{stem}.{suffix}"
        for each in exhibits
        for stem in stems[each]
        for suffix in each.formats[formats]
    ]


def wanted():
    """The runs and scores that were asked for: inputs of the report's targets themselves. A table that lacks an input
    which no rule makes counts as finished where an old one lies there; a target, which has no file, is an error."""
    return [file for option in ("scores", "curve", "robustness", "provenance", "origin") for file in INPUTS[option]]
