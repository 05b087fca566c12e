#!/usr/bin/env bash
# Two parameters of a Snakemake rule that exchange their values.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile snakemake==9.27.1

cat > Snakefile <<'EOF'
rule train:
    output: "scores.txt"
    params: layers=config["layers"], epochs=config["epochs"]
    shell: "echo {params.layers} layers, {params.epochs} epochs > {output}"
EOF
plan() { venv/bin/snakemake --dry-run --config "$@" 2>&1; }
venv/bin/snakemake --cores 1 --quiet all --config layers=4 epochs=2 2> log
swapped=$(plan layers=2 epochs=4)
changed=$(plan layers=2 epochs=5)
echo "snakemake $(venv/bin/snakemake --version): a rule ran with layers=4, epochs=2; now layers=2, epochs=4"
echo "expected: the parameters have changed, so the rule runs again"
echo "seen: $(grep Nothing <<< "$swapped"); with layers=2, epochs=5 it runs: values are recorded without names"
grep --quiet "Nothing to be done" <<< "$swapped"
grep --quiet "Params have changed" <<< "$changed"
