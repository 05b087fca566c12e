# Scores that others measured, as `symbert import-scores` left them: the report reads them as it reads our own.
EXPERIMENT = f"imported-{config['imported']}"
RESULTS = f"results/{EXPERIMENT}"
LOGS = f"{RESULTS}/logs"

with one_line_errors():
    IMPORTED = configuration.imported(Path(RESULTS))

SWEEP = IMPORTED["sweep"]
CURVE = SWEEP["curve"]
FILES_RECORD = []
MEASURED_SIZES = list(dict.fromkeys(size for size, *_ in IMPORTED["losses"]))  # of figure 2


wildcard_constraints:
    size="|".join(SWEEP["sizes"]),


def settings(section):
    """The settings of the report, which came with the scores."""
    return f"{RESULTS}/settings/{section}.json"


def losses(file, sizes=MEASURED_SIZES):
    """A file of every run that has validation losses."""
    measured = [run for run in IMPORTED["losses"] if run[0] in sizes]
    return [f"{RESULTS}/pretrain/{size}-{attention}/seed-{seed}/{file}" for size, attention, seed in measured]


# What the report is made of; of speed, noise, other domains, the corpus and the machines imported results say nothing.
INPUTS = {
    **dict.fromkeys(("robustness", "timing", "provenance", "counts", "categories", "records", "manifest"), []),
    "settings": [settings("report")],
    "scores": [f"{RESULTS}/glue/final.json"],
    "curve": [f"{RESULTS}/glue/curve.json"] if CURVE["sizes"] else [],
    "done": losses("done.json"),
    "metrics": losses("metrics.jsonl"),
    "origin": [f"{RESULTS}/import.json"],
    "sections": [settings("report")],
}
OF_SIZE = {
    "done": lambda wildcards: losses("done.json", [wildcards.size]),
    "metrics": lambda wildcards: losses("metrics.jsonl", [wildcards.size]),
}
WORDS = {"finetune_seeds": SWEEP["finetune_seeds"], "curve_seeds": CURVE["finetune_seeds"]}
