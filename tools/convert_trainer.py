"""Folders of Hugging Face's Trainer, each with an eval_results.json as run_glue leaves it, to a csv of scores.

    python tools/convert_trainer.py FOLDER > scores.csv
    symbert import-scores scores.csv --name theirs

Seeds stand in training_args.bin alone, a pickle. So NAME reads a run from the name of its folder: change it for yours.
It is that of the paper's authors here, whose folders without a checkpoint are final, and without a seed of seed 1.

run_glue before April 2022 wrote MNLI's mismatched results over the matched ones, under their names. So of one accuracy
the number of rows tells whose it is. What lacks a score is named on stderr.
"""

import csv
import json
import re
import sys
from pathlib import Path

NAME = re.compile(
    r"bert_(?P<size>[^_]+)_(?P<attention>[^_]+)_\d{8}-\d{6}(-ckpt(?P<step>\d+))?(-seed(?P<finetune_seed>\d+))?"
    r"_(?P<task>[^_]+)_\d{8}-\d{6}"
)
ATTENTION = {"vanilla": "original"}  # operators that are called otherwise here
METRICS = {"accuracy": "accuracy", "f1": "f1", "matthews_correlation": "matthews", "pearson": "pearson"}
METRICS |= {"spearmanr": "spearman"}
OF_ROWS = {9_815: "mnli_matched", 9_832: "mnli_mismatched"}
COLUMNS = ("size", "attention", "step", "task", "finetune_seed", "metric", "value", "rows")

table, read = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n"), 0
table.writeheader()
files = sorted(Path(sys.argv[1]).rglob("eval_results.json"))
for file in files or sys.exit(f"{sys.argv[1]}: no eval_results.json below it; give the folder with those of the runs"):
    name = NAME.fullmatch(file.parent.name) or sys.exit(f"{file.parent}: not a name like NAME; change NAME")
    try:
        run, results = name.groupdict(), json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        sys.exit(f"{file}: no JSON, or cut ({error}); get it again")
    run |= {"attention": ATTENTION.get(run["attention"], run["attention"]), "finetune_seed": run["finetune_seed"] or 1}
    wanted = ["mnli_matched", "mnli_mismatched"] if run["task"] == "mnli" else [run["task"]]
    is_told = len(wanted) == 1 or "eval_accuracy_mm" in results
    columns = {"": wanted[0] if is_told else OF_ROWS.get(results.get("eval_samples")), "_mm": wanted[-1]}
    found = set()
    for ending, column in columns.items():
        for key in METRICS:
            if column and f"eval_{key}{ending}" in results:
                score = {"metric": METRICS[key], "value": results[f"eval_{key}{ending}"]}
                table.writerow(run | {"task": column, "rows": results.get(f"eval_samples{ending}")} | score)
                found.add(column)
    if lacking := [column for column in wanted if column not in found]:
        told = ", ".join(f"{key} {value}" for key, value in results.items())
        print(f"{file}: no score of {' or '.join(lacking)} in {told}", file=sys.stderr)
    read += len(found)
if not read:
    sys.exit(f"{sys.argv[1]}: no score was read; change NAME and METRICS for the names of its files")
