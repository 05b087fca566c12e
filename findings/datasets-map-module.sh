#!/usr/bin/env bash
# What `datasets` takes for a changed function.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile datasets==5.2.0

cat > run.py <<'PY'
import datasets
import tokens

datasets.disable_progress_bars()
rows = datasets.load_dataset("json", data_files="rows.jsonl", split="train", cache_dir="cache")
print(*rows.map(tokens.count)["tokens"], "called:", tokens.count(rows[0])["tokens"])
PY
export PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1
echo '{"text": "one two three"}' > rows.jsonl
echo 'def count(row): return {"tokens": len(row["text"].split())}' > tokens.py
before=$(venv/bin/python run.py)
echo 'def count(row): return {"tokens": len(row["text"])}' > tokens.py
after=$(venv/bin/python run.py)
version=$(venv/bin/python -c 'import datasets; print(datasets.__version__)')
echo "datasets $version: map(function) of an imported module, which is edited between two runs"
echo "expected: the function has another hash, so the rows are computed anew: 3, then 13"
echo "seen: '$before', then '$after': the hash of an imported function is that of its name, and the cache is read"
[ "$before" = "3 called: 3" ] && [ "$after" = "3 called: 13" ]
