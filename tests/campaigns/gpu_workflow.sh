#!/usr/bin/env bash
# The workflow on a GPU: BERT-small with two operators, few steps, on the demo's text; two tasks, two seeds. It is asked to
# end in pre-training and in fine-tuning (SIGTERM) and started again each time, makes the page, and prints speeds of trainings
# and times by rule. Without a GPU it says so and ends with 0. About five minutes.
#
#   tests/campaigns/gpu_workflow.sh [FOLDER]  a new folder to work in; a temporary one where none is given
#   PYTHON=python3                            one with the packages of pyproject.toml and a torch that sees the GPU
#   COMPILE=true                              false spares two minutes of compiling
set -euo pipefail
export LC_ALL=C.UTF-8

origin=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-$origin/.venv/bin/python}
[ -x "$(command -v "$python")" ] || python=python3
fail() { echo "gpu_workflow: $1" >&2; exit 1; }

if ! "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  echo "gpu_workflow: no GPU is visible to torch; skipped"
  exit 0
fi
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
[ ! -e "$folder/symbert" ] || fail "$folder/symbert is there already; name another folder"
mkdir "$folder/symbert"
tar -C "$origin" --exclude ./results --exclude ./.venv --exclude ./.git --exclude ./.snakemake -c . | tar -C "$folder/symbert" -x
cd "$folder/symbert"
export PYTHONPATH=$PWD/src${PYTHONPATH:+:$PYTHONPATH} PATH=$folder/bin:$PATH
mkdir -p "$folder/bin"
printf '#!/bin/sh\nexec %s -m symbert "$@"\n' "$(command -v "$python")" > "$folder/bin/symbert"
chmod +x "$folder/bin/symbert"

workflow=(
  "$python" -m snakemake --cores all --resources gpu=1 --scheduler greedy --config
  scale=demo source=embedded experiment=gpu "compile=${COMPILE:-true}"
  'pretrain={steps: 2000, schedule_steps: 10000, batch_size: 128, learning_rate: 5.0e-4, evaluate_every: 200, save_every: 200, dropout: 0.1}'
  'glue={epochs: 20, learning_rate: 1.0e-4, dropout: 0.1, robustness: {noise: []}}'
  'sweep={sizes: [small], attention: [original, pairwise], pretrain_seeds: [1], tasks: [rte, mrpc], finetune_seeds: [1, 2], suites: [glue], curve: {sizes: [small], steps: {small: [1000]}}}'
)

# interrupted NAME PATTERN: start, ask to end once a file of the pattern is there, and wait for the end
interrupted() {
  "${workflow[@]}" > "$folder/$1.txt" 2>&1 & pid=$!
  for _ in $(seq 300); do
    compgen -G "$2" > /dev/null && break
    kill -0 "$pid" 2>/dev/null || { tail -n 40 "$folder/$1.txt"; fail "the workflow ended before $2 was there"; }
    sleep 1
  done
  compgen -G "$2" > /dev/null || fail "no $2 in five minutes"
  kill -TERM "$pid"
  begun=$SECONDS
  code=0
  wait "$pid" || code=$?
  [ "$code" != 0 ] || fail "$1: the workflow ended with 0 though it was interrupted"
  ! grep -n 'Traceback (most recent call last)' "$folder/$1.txt" || fail "$1: a traceback"
  echo "gpu_workflow: interrupted in $1, ended $((SECONDS - begun)) s later with $code"
}

interrupted pre-training 'results/runs/encoder/small-*/seed-1/state/*'
interrupted fine-tuning 'results/scores/*/encoder/small-*/seed-1/step-*/finetuned/*/seed-1.json'
kept=$(find results/scores -path '*finetuned*' -name 'seed-*.json' | xargs -r stat -c '%n %Y' | sort)
"${workflow[@]}" > "$folder/rest.txt" 2>&1 || { tail -n 40 "$folder/rest.txt"; fail "the workflow ended with an error"; }
[ -s results/gpu/report/report.html ] || fail "no page"
while read -r file time; do
  [ "$(stat -c %Y "$file")" = "$time" ] || fail "$file was there when the workflow was interrupted, and was made again"
done <<< "$kept"
grep -h 'without CUDA graphs' "$folder"/*.txt logs/*/* 2>/dev/null && fail "a training replayed no graph" || true

"$python" - <<'END'
"""Speeds of the trainings by their own records, and seconds of each rule's jobs by Snakemake's logs."""
import json
import re
from collections import defaultdict
from datetime import datetime
from pathlib import Path

from symbert.pretrain.pace import MFU

print(MFU)
taken = defaultdict(list)
for log in Path(".snakemake/log").glob("*.log"):
    now, name, begun = None, "", {}
    for line in log.read_text().splitlines():
        if found := re.match(r"\[(\w{3} \w{3} +\d+ [\d:]+ \d{4})\]", line):
            now = datetime.strptime(found[1], "%a %b %d %H:%M:%S %Y")
        elif found := re.match(r"(?:local)?(?:rule|checkpoint) (\w+):", line):
            name = found[1]
        elif found := re.match(r"    jobid: (\d+)", line):
            begun[found[1]] = name, now
        elif (found := re.match(r"Finished jobid: (\d+)", line)) and found[1] in begun:
            name, since = begun.pop(found[1])
            taken[name].append((now - since).total_seconds())
for file in sorted(Path("results/runs").rglob("timing.json")):
    run = json.loads(file.read_text())
    print(
        f"{run['size']}-{run['attention']}: {run['tokens_per_second']:,.0f} tokens/s, MFU {100 * (run['mfu'] or 0):.1f} %, "
        f"{run['micro_batch_size']} sequences at a time, {run['steps_timed']} steps timed, on {run['device']}"
    )
print("rule | jobs | seconds, together | longest")
for name, seconds in sorted(taken.items(), key=lambda pair: -sum(pair[1])):
    print(f"{name} | {len(seconds)} | {sum(seconds):.0f} | {max(seconds):.0f}")
END
echo "gpu_workflow: all outputs are there, in $folder"
