# Scores that others measured, as `symbert import-scores` left them: the report reads them as it reads our own.
EXPERIMENT = f"imported-{config['imported']}"
RESULTS = f"results/{EXPERIMENT}"
LOGS = f"{RESULTS}/logs"

with one_line_errors():
    IMPORTED = configuration.imported(Path(RESULTS))

SWEEP = IMPORTED["sweep"]
CURVE = SWEEP["curve"]
OWN_TABLES, OWN_FIGURES, FILES_RECORD = [], [], []
MEASURED_SIZES = list(dict.fromkeys(size for size, *_ in IMPORTED["losses"]))  # of figure 2


wildcard_constraints:
    size="|".join(SWEEP["sizes"]),


def settings(section):
    """The settings of the report, which came with the scores."""
    return f"{RESULTS}/settings/{section}.json"


def final_scores():
    """The scores of the comparison, all in one file."""
    return [f"{RESULTS}/glue/final.json"]


def curve_scores():
    """The scores of Figure 3, all in one file; none where no checkpoint was scored."""
    return [f"{RESULTS}/glue/curve.json"] if CURVE["sizes"] else []


def losses(file, sizes=MEASURED_SIZES):
    """A file of every run that has validation losses."""
    found = [run for run in IMPORTED["losses"] if run[0] in sizes]
    return [f"{RESULTS}/pretrain/{size}-{attention}/seed-{seed}/{file}" for size, attention, seed in found]


def timings():
    """Imported results say nothing of speed."""
    return []


def robustness():
    """Imported results say nothing of noise and out-of-domain sets."""
    return []


def provenance():
    """What says where the scores came from."""
    return [f"{RESULTS}/import.json"]
