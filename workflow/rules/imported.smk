# Scores that others measured: what their report is made of, `symbert import-scores` wrote beside them.
RESULTS = f"results/imported-{config['imported']}"
LOGS = f"{RESULTS}/logs"

with one_line_errors():
    IMPORTED = imported(Path(RESULTS))

SWEEP, INPUTS, OF_SIZE = IMPORTED["sweep"], IMPORTED["inputs"], IMPORTED["inputs_of_size"]
WORDS = {"finetune_seeds": SWEEP["finetune_seeds"], "curve_seeds": SWEEP["curve"]["finetune_seeds"]}
FILES_RECORD, OF_SUITE = [], {}


wildcard_constraints:
    size="|".join(OF_SIZE),
