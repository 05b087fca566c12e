"""Csv exports of validation losses from Weights & Biases, a column for each run, to a csv of losses.

    python tools/convert_losses.py FILE.csv … > losses.csv
    symbert import-scores scores.csv --losses losses.csv --name theirs

The export's Step is an index of the log. So an evaluation is at its number times EVERY, up to STEPS, and NAME reads a
run from the name of its column: change them for yours. They are those of the paper's authors here, whose last
evaluation follows the training and is left out. What is left out is named on stderr.
"""

import csv
import re
import sys
from itertools import pairwise

NAME = re.compile(r"bert_(?P<size>[^_]+)_(?P<attention>[^_]+)_\d{8}-\d{6} - eval/loss")
ATTENTION = {"vanilla": "original"}  # operators that are called otherwise here
EVERY, STEPS = 250, 200_000

table, read = csv.DictWriter(sys.stdout, ("size", "attention", "step", "loss"), lineterminator="\n"), 0
table.writeheader()
for path in sys.argv[1:]:
    with open(path, encoding="utf-8-sig", newline="") as lines:
        export = csv.DictReader(lines)
        rows, columns = list(export), export.fieldnames or ()
    for column in columns:
        name = NAME.fullmatch(column)
        if not name:
            if column != "Step" and not column.endswith(("__MIN", "__MAX")):
                print(f"{path}: left out '{column}', not a name like NAME", file=sys.stderr)
            continue
        points = [(int(row["Step"]), row[column]) for row in rows if row[column]]
        if late := len(points[STEPS // EVERY :]):
            print(f"{path}: left out {late} of '{column}', after step {STEPS:,}", file=sys.stderr)
        points = points[: STEPS // EVERY]
        if len({later - earlier for (earlier, _), (later, _) in pairwise(points)}) > 1:
            sys.exit(f"{path}: the evaluations in '{column}' are not evenly spaced; export all of them")
        for number, (_, loss) in enumerate(points, start=1):
            run = {"size": name["size"], "attention": ATTENTION.get(name["attention"], name["attention"])}
            table.writerow(run | {"step": EVERY * number, "loss": loss})
        read += len(points)
if not read:
    sys.exit(f"{' '.join(sys.argv[1:])}: no loss was read; change NAME for the columns of these files")
