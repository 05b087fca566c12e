"""Results of lm-evaluation-harness 0.4, results_<date>.json files, to a csv of scores.

    python tools/convert_harness.py FILE.json … > scores.csv
    symbert import-scores scores.csv --name theirs

It scores models as they are, without fine-tuning: all rows have fine-tuning seed 1. Tasks beside GLUE are left out, and
the harness has no STS-B.
"""

import csv
import json
import sys
from pathlib import Path

TASKS = {name: name for name in ("cola", "mrpc", "qnli", "qqp", "rte", "sst2", "wnli")}
TASKS |= {"mnli": "mnli_matched", "mnli_mismatch": "mnli_mismatched"}
METRICS = {"acc,none": "accuracy", "f1,none": "f1", "mcc,none": "matthews"}

table = csv.DictWriter(
    sys.stdout, ("attention", "task", "finetune_seed", "metric", "value", "rows"), lineterminator="\n"
)
table.writeheader()
for path in sys.argv[1:]:
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    model = {"attention": content["model_name"].rpartition("/")[2], "finetune_seed": 1}
    for task in sorted(content["results"].keys() & TASKS.keys()):
        rows = content.get("n-samples", {}).get(task, {}).get("effective")
        for key, metric in METRICS.items():
            if key in content["results"][task]:
                score = {"metric": metric, "value": content["results"][task][key], "rows": rows}
                table.writerow(model | {"task": TASKS[task]} | score)
