#!/usr/bin/env bash
# What a machine with one H100 or H200 is asked to measure, in parts of at most six minutes each:
#
#   benchmarks/on_gpu.sh 1 FOLDER   steps of fine-tuning beside the CPU's, and beside Hugging Face's Trainer
#   benchmarks/on_gpu.sh 2 FOLDER   pre-training beside the CPU's, and the workflow, interrupted twice
#   benchmarks/on_gpu.sh 3 FOLDER   options of a step of pre-training beside today's, base
#   benchmarks/on_gpu.sh 4 FOLDER   the same of small
#   benchmarks/on_gpu.sh 5 FOLDER   dropout by kernel, first calls of a shape, memory, lengths, two jobs on one GPU
#   benchmarks/on_gpu.sh 6 FOLDER   compiling with and without another job's cache, runs of equal seeds
#   benchmarks/on_gpu.sh 7 FOLDER   compiled pre-training beside Hugging Face's compiled Trainer
#   benchmarks/on_gpu.sh 8 FOLDER   16 and 48 small runs as one model beside one after the other
#
# docs/measurements/gpu-check.md says what ran, and where.
#
# FOLDER gets the pages, also of what was measured before the time was over. The machine may be bare but for Python 3.12,
# PyTorch 2.11 and what usually stands beside it: accelerate, hypothesis, jinja2, matplotlib, numpy, pandas, pyarrow,
# pytest, pyyaml, regex, requests, rich, safetensors, scikit-learn, scipy, tabulate, tokenizers, transformers, wrapt. Wheels
# of the rest lie in wheels/ (or WHEELS=…), made where there is a network:
#
#   pip download --dest wheels --no-deps --python-version 3.12 --only-binary :all: $(benchmarks/on_gpu.sh wheels)
#
#   pip wheel --wheel-dir wheels --no-deps connection-pool==0.0.3      # pure Python, published without a wheel
#
# (55 files, 38 MB.)
set -euo pipefail
export LC_ALL=C.UTF-8

packages="annotated-types==0.8.0 arcp==0.2.1 argparse-dataclass==2.0.0 backports.zstd==1.8.0 can-ada==3.0.0
conda-inject==1.3.2 configargparse==1.9.0 datasets==5.2.0 dill==0.4.1 docutils==0.22.4 dpath==2.2.0
fastjsonschema==2.22.3 gitdb==4.0.12 gitpython==3.2.1 greenlet==3.5.6 httpcore2==2.16.2 httpx2==2.16.2 humanfriendly==10.0
immutables==0.21 jsonschema==4.26.0 jsonschema-specifications==2025.9.1 jupyter-core==5.9.1 marisa-trie==1.4.1
msgspec==0.22.0 multiprocess==0.70.19 nbformat==5.11.1 platformdirs==4.14.5 pulp==3.3.2 pydantic==2.14.3
pydantic-core==2.50.4 referencing==0.37.0 rocrate==0.16.0 rpds-py==2026.9.1 smart-open==7.7.1 smmap==5.0.3
snakemake==9.27.1 snakemake-executor-plugin-slurm==2.8.0 snakemake-executor-plugin-slurm-jobstep==0.6.0
snakemake-interface-common==1.23.0 snakemake-interface-executor-plugins==9.4.0 snakemake-interface-logger-plugins==2.1.0
snakemake-interface-report-plugins==1.3.0 snakemake-interface-scheduler-plugins==2.0.2
snakemake-interface-storage-plugins==4.4.1 sqlalchemy==2.0.58 sqlmodel==0.0.37 tenacity==9.2.1 throttler==1.2.3
tokie==0.1.4 traitlets==5.16.1 truststore==0.10.5 typing-inspection==0.4.5 yte==1.9.4 zstandard==0.25.0"
if [ "${1:-}" = wheels ]; then echo $packages; exit 0; fi

part=${1:?1 to 7} out=${2:?a folder for the pages}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/.."
libraries=$(mktemp -d)
python3 -m pip install --quiet --no-deps --no-index --target "$libraries" "${WHEELS:-wheels}"/*.whl
export PYTHONPATH=$PWD/src:$PWD:$PWD/tests:$libraries OMP_NUM_THREADS=${OMP_NUM_THREADS:-8}
export TORCHINDUCTOR_CACHE_DIR=${TORCHINDUCTOR_CACHE_DIR:-$libraries/inductor}
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | tee "$out/card.txt"

# within SECONDS NAME COMMAND…: its output goes to FOLDER/NAME.txt; the next one follows whatever it ends with
within() {
  local limit=$1 name=$2 begun=$SECONDS code=0
  shift 2
  timeout "$limit" "$@" > "$out/$name.txt" 2>&1 || code=$?
  tail -n 25 "$out/$name.txt"
  echo "on_gpu: $name ended with $code after $((SECONDS - begun)) s"
}

case $part in
1)
  within 90 tests python3 -m pytest -q -p no:cacheprovider tests/glue/test_graphs.py tests/pretrain/test_graphs.py -k gpu
  within 90 check python3 -m benchmarks.gpu_check --stages finetuning --sizes small base --modes eager \
    --precisions bf16 fp32 --operators original pairwise --output "$out/gpu-check.md"
  within 60 first python3 -m benchmarks.gpu_check --stages finetuning --sizes base --modes compiled \
    --precisions bf16 --operators original --output "$out/gpu-check-compiled.md"
  within 45 second python3 -m benchmarks.gpu_check --stages finetuning --sizes base --modes compiled \
    --precisions bf16 --operators original --output "$out/gpu-check-second-job.md"
  within 75 bench python3 -m benchmarks.glue_gpu --rounds 1 --sizes base small --output "$out/bench-glue.md"
  ;;
2)
  within 270 workflow env PYTHON=python3 tests/campaigns/gpu_workflow.sh "$libraries/workflow"
  within 80 pretraining python3 -m benchmarks.gpu_check --stages pretraining --sizes base --modes compiled \
    --precisions bf16 --operators original pairwise --output "$out/gpu-check-pretraining.md"
  ;;
3) within 350 options python3 -m benchmarks.gpu_options --sizes base --output "$out/gpu-options-base.md" ;;
4) within 350 options python3 -m benchmarks.gpu_options --sizes small --output "$out/gpu-options-small.md" ;;
5)
  for section in dropout plans memory; do
    within 40 "$section" python3 -m benchmarks.gpu_devices "$section" --output "$out/gpu-$section.md"
  done
  within 110 lengths python3 -m benchmarks.gpu_devices lengths --output "$out/gpu-lengths.md"
  within 110 sharing python3 -m benchmarks.gpu_devices sharing --output "$out/gpu-sharing.md"
  ;;
6)
  within 160 compiling python3 -m benchmarks.gpu_devices compiling --output "$out/gpu-compiling.md"
  within 190 repeating python3 -m benchmarks.gpu_devices repeating --output "$out/gpu-repeating.md"
  ;;
7)
  pretrain() {
    within "$2" "bench-pretrain-$1" python3 -m benchmarks.pretrain --compile --sizes "$1" --operators original pairwise \
      --batch-size 128 --micro-batch-size 128 --steps 10 --rounds 2 --threads 8 --work "$libraries/bench-$1" \
      --output "$out/bench-pretrain-$1.md"
  }
  pretrain small 120
  pretrain base 230
  ;;
8) within 350 together python3 -m benchmarks.together --output "$out/bench-together.md" ;;
*) echo "on_gpu: part $part: expected 1 to 8" >&2; exit 64 ;;
esac
