"""Results of lm-evaluation-harness 0.4, results_<date>.json files, to a csv of scores.

    python tools/convert_harness.py FILE.json … > scores.csv
    symbert import-scores scores.csv --name theirs

It scores models as they are, without fine-tuning: all rows have fine-tuning seed 1. Tasks beside GLUE are left out, and
the harness has no STS-B. What is left out is named on stderr, as is BERT's tokenizer: version 0.4.13 scores a masked
model as if it were causal, and any model without the first piece of an answer, unless add_bos_token=False.
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
read = 0
for path in sys.argv[1:]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        sys.exit(f"{path}: no JSON, or cut ({error}); get it again")
    name = content.get("model_name") or sys.exit(f"{path}: no 'model_name'; add it, as newer versions write it")
    if "[PAD]" in (content.get("tokenizer_pad_token") or ()):
        lost = "a masked model is scored as a causal one, and answers lose a piece without add_bos_token=False"
        print(f"warning: {path}: of BERT's tokenizer, by its [PAD]: {lost}", file=sys.stderr)
    model = {"attention": Path(name).name, "finetune_seed": 1}  # of a folder's path, too
    for task, results in sorted(content["results"].items()):
        rows = content.get("n-samples", {}).get(task, {}).get("effective")
        values = {metric: results[key] for key, metric in METRICS.items() if key in results and task in TASKS}
        for metric, value in values.items():
            table.writerow(model | {"task": TASKS[task], "metric": metric, "value": value, "rows": rows})
        if not values:
            print(f"{path}: left out {task}, with {', '.join(results)}", file=sys.stderr)
        read += len(values)
if not read:
    sys.exit(f"{' '.join(sys.argv[1:])}: no score was read; change TASKS and METRICS for the names in these files")
