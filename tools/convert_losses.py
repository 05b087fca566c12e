"""Csv exports of validation losses from Weights & Biases, a column for each run, to a csv of losses.

    python tools/convert_losses.py FILE.csv … > losses.csv
    symbert import-scores scores.csv --losses losses.csv --name theirs

The export's Step is an index of the log. So an evaluation is at its number times EVERY, up to STEPS, and NAME reads a
run from the name of its column: change them for yours. They are those of the paper's authors here, whose last
evaluation follows the training and is left out.
"""

import csv
import re
import sys
from itertools import pairwise

NAME = re.compile(r"bert_(?P<size>[^_]+)_(?P<attention>[^_]+)_\d{8}-\d{6} - eval/loss")
ATTENTION = {"vanilla": "original"}  # operators that are called otherwise here
EVERY, STEPS = 250, 200_000

table = csv.DictWriter(sys.stdout, ("size", "attention", "step", "loss"), lineterminator="\n")
table.writeheader()
for path in sys.argv[1:]:
    with open(path, encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.DictReader(lines))
    for column, name in ((column, NAME.fullmatch(column)) for column in rows[0]):
        points = [(int(row["Step"]), row[column]) for row in rows if name and row[column]][: STEPS // EVERY]
        if len({later - earlier for (earlier, _), (later, _) in pairwise(points)}) > 1:
            sys.exit(f"{path}: the evaluations in '{column}' are not evenly spaced; export all of them")
        for number, (_, loss) in enumerate(points, start=1):
            run = {"size": name["size"], "attention": ATTENTION.get(name["attention"], name["attention"])}
            table.writerow(run | {"step": EVERY * number, "loss": loss})
