# The front door: `make reproduce` (demo, three minutes on two cores) and `make test`.
# Options: PYTHON=python3.12, CORES=4, TORCH_INDEX=https://… (an extra package index with the build of torch you want).
PYTHON ?= python3
CORES ?= all
TORCH_INDEX ?=
# The address of the project, when it has one: `make docs` links to it, and writes it where pages say REPOSITORY.
REPOSITORY ?=
BIN := .venv/bin
INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -c envs/constraints.txt
PROCESSES := -n auto --maxprocesses 4 --dist loadscope --no-loadscope-reorder

.PHONY: env reproduce paper test test-studies test-campaigns test-tools test-slurm check bench-corpus bench-pretrain bench-glue bench-graph bench-demo gpu-check chaos docs pictures first-hour clean-env

env: .venv/complete

.venv/complete: pyproject.toml envs/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "symbert: $(PYTHON) is older than 3.11; run make PYTHON=python3.11 …" >&2; exit 64; }
	$(PYTHON) -m venv .venv
	$(INSTALL) -e '.[test]'
	@if command -v g++ > /dev/null; then $(INSTALL) -e '.[kenlm]'; else echo "symbert: no g++, so kenlm is left out; corpora with 'annotations: computed' and the filter perplexity need it: pip install kenlm" >&2; fi
	touch $@

reproduce: env
	@$(BIN)/snakemake --cores $(CORES)
	@fold -s -w 120 results/demo-embedded/report/texts/summary.txt

# The paper's tables, figures and claims from its authors' results, in seconds: results/paper/report/report.html. With
# PAPER_FILES=… from those in a folder, as a clone of the authors' repository: results/paper-files.
paper: env
ifeq ($(PAPER_FILES),)
	@$(BIN)/symbert paper
else
	@rm -rf results/paper-files && mkdir -p results/paper-files
	@$(BIN)/python tools/convert_trainer.py '$(PAPER_FILES)' > results/paper-files/scores.csv
	@find '$(PAPER_FILES)' -name 'validation_loss_*.csv' -exec $(BIN)/python tools/convert_losses.py {} + > results/paper-files/losses.csv
	@$(BIN)/symbert import-scores results/paper-files/scores.csv --losses results/paper-files/losses.csv --escape-loss 5.8 --name paper-files
endif

test: check
	$(BIN)/python -m pytest $(PROCESSES)

# The pages of findings against their runs.
test-studies: env
	$(BIN)/python -m pytest $(PROCESSES) -m study

# The long tests: chains on real rows and in any batches, faults of downloads, kills at any point of the whole chain.
test-campaigns: env
	$(BIN)/python -m pytest $(PROCESSES) -m campaign

# Others' tools, installed beside the environment, read exports, archives and tables; outside CI.
test-tools: env
	$(BIN)/python -m pytest -m tools tests/campaigns/test_tools_of_others.py

# The tiny chain on a Slurm of one node that is started here and stopped again; as root, on Debian with its packages:
# apt-get install --no-install-recommends slurm-wlm munge
test-slurm: env
	PYTHONPATH=tests $(BIN)/python -m campaigns.slurm.cluster run $(BIN)/python -m pytest tests/campaigns/slurm/on_slurm.py
	PYTHONPATH=tests $(BIN)/python -m campaigns.slurm.cluster run $(BIN)/python -m pytest tests/campaigns/slurm/two_nodes_on_slurm.py
	PYTHONPATH=tests $(BIN)/python -m campaigns.slurm.cluster run $(BIN)/python -m pytest tests/campaigns/slurm/signals_on_slurm.py

check: env
	$(BIN)/ruff check src tests benchmarks tools studies
	$(BIN)/ruff format --check src tests benchmarks tools studies
	$(BIN)/snakefmt --check --compact-diff Snakefile workflow
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

# Benchmarks: docs/measurements/README.md; BENCH='--help' lists options. The corpus stage beside its peers.
bench-corpus: env
	PYTHONPATH=. $(BIN)/python -m benchmarks.corpus $(BENCH) $(if $(OUT),--output $(OUT)) \
		$(if $(WORK),--work $(WORK))

# Pre-training beside Hugging Face's Trainer.
bench-pretrain: env
	PYTHONPATH=. $(BIN)/python -m benchmarks.pretrain $(BENCH) \
		$(if $(OUT),--output $(OUT)) $(if $(WORK),--work $(WORK))

# Fine-tuning beside Hugging Face's Trainer, on the GLUE rows of MIRROR where it is given.
bench-glue: env
	PYTHONPATH=. $(BIN)/python -m benchmarks.glue $(BENCH) \
		$(if $(MIRROR),--mirror $(MIRROR)) $(if $(OUT),--output $(OUT)) $(if $(WORK),--work $(WORK))

# What Snakemake needs to know all jobs of the paper's experiment.
bench-graph: env
	PYTHONPATH=.:tests $(BIN)/python -m benchmarks.graph $(BENCH) $(if $(OUT),--output $(OUT))

# What a whole demo takes, three times, and each of its rules.
bench-demo: env
	PYTHONPATH=.:tests $(BIN)/python -m benchmarks.demo $(BENCH) $(if $(OUT),--output $(OUT)) $(if $(WORK),--work $(WORK))

# Whether the GPU here trains as the CPU does, and how fast.
gpu-check: env
	PYTHONPATH=. $(BIN)/python -m benchmarks.gpu_check $(BENCH) $(if $(OUT),--output $(OUT))

# Faults of the whole chain: kills, full and failing disks, damage, reboots; 5 s of CPU time each; CHAOS='--help'.
chaos: env
	PYTHONPATH=tests $(BIN)/python -m campaigns.chaos.campaign $(CHAOS) $(if $(WORK),--work $(WORK)) $(if $(OUT),--output $(OUT))

# The documentation as a site, in site/; without a REPOSITORY its links to other files of the project are plain text.
docs: .venv/docs/complete
	NO_MKDOCS_2_WARNING=1 REPOSITORY=$(REPOSITORY) .venv/docs/bin/mkdocs build --strict
	@echo site/index.html

.venv/docs/complete: docs/requirements.txt
	$(PYTHON) -m venv .venv/docs
	.venv/docs/bin/pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	touch $@

# The pictures of README.md, from the page of a finished demo; needs chromium.
pictures: env
	PYTHONPATH=tests $(BIN)/python -m campaigns.screens results/demo-embedded/report/report.html docs/pictures

# All that README.md shows, in a fresh clone; about an hour on two cores. FOLDER=… keeps it there.
first-hour:
	tests/campaigns/first_hour.sh $(FOLDER)

clean-env:
	rm -rf .venv
