#!/usr/bin/env bash
# Numbers in Snakemake's --config.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile snakemake==9.27.1

cat > Snakefile <<'EOF'
values = [config["steps"], *config["train"].values()]
print(*(type(value).__name__ for value in values), file=open("types", "w"))
rule all:
EOF
venv/bin/snakemake --dry-run --config steps=10 'train={steps: 10, resume: false}' &> log
types=$(cat types)
echo "snakemake $(venv/bin/snakemake --version): --config steps=10 'train={steps: 10, resume: false}'"
echo "expected: both numbers are int, and resume is a bool, as in a configuration file"
echo "seen: $types: within a mapping every value is text, and the text false is true"
[ "$types" = "int str str" ]
