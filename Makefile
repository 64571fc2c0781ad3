# Works with GNU make 3.81 and newer. The first target that needs it sets up a virtual environment; later ones find it ready.
PYTHON   ?= python3
VENV     ?= .venv
EXP      ?= sepsis
ARGS     ?=
JOBS     ?= 2
BRANCHES ?= 91
MODULES  ?= spaces/inequalities.py objectives/guard.py data/problem_file/cases.py graphs/separation.py
PIP_ARGS ?=
CONSTRAINTS ?= constraints.txt

PY    := $(VENV)/bin/python
READY := $(VENV)/.ready
LINT  := $(VENV)/.ready-lint
DOCS  := $(VENV)/.ready-docs

.PHONY: help train test test-slow test-nightly test-slurm test-gpu coverage mutation fuzz pages test-all lint docs bench bench-scale bench-all bench-calibration soak reproduce-sepsis reproduce-auf reproduce-online reproduce-cbo reproduce-calibration clean

help:
	@echo "make train               sets up $(VENV) on first use, then trains and decides: scripts/train.py +experiment=$(EXP)"
	@echo "make test                sets up $(VENV) on first use, then runs the fast tests, in some three minutes"
	@echo "make test-slow           runs the slow tests: whole commands, a notebook, tables of papers, and the claims of the papers"
	@echo "make coverage            measures which branches of the package the fast tests take; below BRANCHES per cent fails"
	@echo "make mutation            puts small faults into MODULES and counts those that their own tests notice"
	@echo "make test-nightly        runs the small benchmarks, endurance, trainings of two processes and the longest of the others, in some 26 minutes"
	@echo "make test-slurm          runs sweeps on SLURM itself, where it is installed, in some ten minutes"
	@echo "make test-gpu            runs trainings and decisions on a CUDA GPU, where torch sees one, and the contracts of all models"
	@echo "make fuzz                feeds mutated tasks, tables, graphs, folders, checkpoints, trials and frames to everything that reads them, in some eight minutes"
	@echo "make pages               runs the command lines of README and docs, shortened, in some five minutes"
	@echo "make test-all            runs all five: test, test-slow, test-nightly, fuzz and pages"
	@echo "make lint                checks style, formatting and types"
	@echo "make docs                builds the documentation into site/; a warning or a broken link fails it"
	@echo "make bench               measures speed beside plain references and peers, under docs/results/bench"
	@echo "make bench-scale         measures what each engine costs on this machine, under docs/results/scale, in some fifteen minutes"
	@echo "make bench-all           runs the other benchmarks one after the other, each of which prints its own table"
	@echo "make bench-calibration   compares the claims of a small study with their thresholds, in some two minutes"
	@echo "make soak                repeats decisions and rounds for long, and kills commands; results under docs/results/endurance"
	@echo "make reproduce-sepsis    draws the paper's figures on the simulated cohort, under docs/results/sepsis"
	@echo "make reproduce-auf       makes the tables on avoiding undesired futures, under docs/results/auf"
	@echo "make reproduce-online    makes the tables and figures on structural rehearsal models, under docs/results/online"
	@echo "make reproduce-cbo       makes the tables and figures on causal Bayesian optimisation, under docs/results/cbo"
	@echo "make reproduce-calibration  compares claims with truths in every world that knows them, under docs/results/calibration"
	@echo "make clean               removes $(VENV), caches and the built documentation; runs/ stays"
	@echo
	@echo "PYTHON=python3.12        another Python (3.11 or newer)"
	@echo "ARGS='seed=1'            passed on to the command, as in: make train ARGS='seed=1 trainer.max_epochs=5'"
	@echo "JOBS=4                   how many processes run the tests and the fuzz lane"
	@echo "BRANCHES=91              the least per cent of branches for make coverage"
	@echo "MODULES='FILE ...'       modules below rehearsal_torch for make mutation, as in: spaces/inequalities.py"
	@echo "CONSTRAINTS=FILE         the versions to install, instead of those in constraints.txt"
	@echo "PIP_ARGS='...'           passed on to pip, such as an index with CPU wheels of torch"

train: $(READY)
	$(PY) scripts/train.py +experiment=$(EXP) $(ARGS)

# One thread each: the tests' tensors are small, and processes do not take each other's cores away. A process that has
# finished takes over tests of another, so that all are busy to the end.
# With the bytecode of the tests kept, the lanes after the first one collect in half the time.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(PY) -m pytest -n $(JOBS) --dist worksteal

# What the markers slow, papers, fuzz and pages leave (pyproject.toml says what they stand for).
test: $(READY)
	$(PYTEST) $(ARGS)

test-slow: $(READY)
	$(PYTEST) -m "(slow or papers) and not nightly and not alone" $(ARGS)

# What every process of the tests has taken is joined. Fails below BRANCHES per cent.
coverage: $(READY)
	$(PY) -m coverage erase
	OMP_NUM_THREADS=1 $(PY) -m coverage run -m pytest -n $(JOBS) --dist worksteal -q tests $(ARGS)
	$(PY) -m coverage combine --quiet
	$(PY) -m coverage json --quiet -o .coverage.json
	$(PY) -c 'import json, sys; t = json.load(open(".coverage.json"))["totals"]; share = 100 * t["covered_branches"] / t["num_branches"]; print("branches taken, per cent:", round(share, 2)); sys.exit(share < $(BRANCHES))'

# Small faults in a module that its own tests notice or not: make mutation MODULES='spaces/inequalities.py'
mutation: $(READY)
	OMP_NUM_THREADS=1 $(PY) -m tests.mutation $(MODULES) $(ARGS)

test-nightly: $(READY)
	$(PYTEST) -m nightly $(ARGS)
	$(PYTEST) -m alone -n 1 $(ARGS)

# One input alone: make fuzz ARGS='-k "tasks[137]"'
fuzz: $(READY)
	$(PYTEST) -m fuzz tests/fuzz $(ARGS)

# Each command line is shortened by overrides that tests/house/test_page_commands.py lists.
pages: $(READY)
	$(PYTEST) -m pages tests/house $(ARGS)

# On a machine with SLURM; .github/slurm.sh starts a cluster of one node on one that is thrown away.
test-slurm: $(READY)
	$(PYTEST) -m slurm -n 1 tests/slurm $(ARGS)

# Without a CUDA device all of it is skipped, or stays on the CPU.
test-gpu: $(READY)
	$(PYTEST) -m gpu -n 1 tests/gpu $(ARGS)
	$(PYTEST) --device cuda -m "not nightly" tests/contracts $(ARGS)

test-all: test test-slow test-nightly fuzz pages

lint: $(LINT)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

docs: $(DOCS)
	$(PY) -m website
	$(PY) -m zensical build --clean --strict --config-file build/website/zensical.toml
	rm -rf site && mv build/website/site site

# From a clean commit; to try it from any other: make bench ARGS='--out runs/bench'
bench: $(READY)
	OMP_NUM_THREADS=1 $(PY) benchmarks/beside.py $(ARGS)

# As above; it starts processes of its own.
bench-scale: $(READY)
	$(PY) benchmarks/engines.py $(ARGS)

bench-all: $(READY)
	@for file in $(filter-out benchmarks/beside.py benchmarks/engines.py,$(wildcard benchmarks/*.py)); do echo "$(PY) $$file $(ARGS)"; $(PY) "$$file" $(ARGS) || exit 1; done

# Fails if a claim breaks a threshold of reproduction/calibration/thresholds.yaml.
bench-calibration: $(READY)
	$(PY) -m reproduction.calibration.thresholds workers=$(JOBS) $(ARGS)

# Takes up what an interrupted one has left. Fewer of everything, in some six minutes, elsewhere:
# make soak ARGS='--decisions 200 --rounds 40 --kills 4 --met 1 --out runs/endurance/small'
soak: $(READY)
	OMP_NUM_THREADS=1 $(PY) -m benchmarks.endurance $(ARGS)

reproduce-sepsis: $(READY)
	$(PY) -m reproduction.sepsis $(ARGS)

reproduce-auf: $(READY)
	$(PY) -m reproduction.auf $(ARGS)

reproduce-online: $(READY)
	$(PY) -m reproduction.online $(ARGS)

reproduce-cbo: $(READY)
	$(PY) -m reproduction.cbo $(ARGS)

reproduce-calibration: $(READY)
	$(PY) -m reproduction.calibration $(ARGS)

clean:
	rm -rf $(VENV) site build/website .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The environment is made again when what it is made from has changed. Where Python comes without ensurepip (Debian
# without python3-venv), the system's pip fills the environment from outside, which pip can do from 22.3 on.
$(READY): pyproject.toml $(CONSTRAINTS)
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "There is no $(PYTHON) on this machine. Install Python 3.11 or newer, or name it: make PYTHON=/path/to/python $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version 2>&1). Name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version 2>&1); this takes some minutes, once."
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || $(PYTHON) -m venv --clear --without-pip $(VENV) >/dev/null 2>&1 || { \
	  echo "Python's venv module is missing. Install it (Debian and Ubuntu: apt install python3-venv), then type make $(MAKECMDGOALS) again." >&2; exit 1; }
	@if $(PY) -m pip --version >/dev/null 2>&1; then \
	  install="$(PY) -m pip"; \
	elif $(PYTHON) -c 'import pip, sys; sys.exit(tuple(map(int, pip.__version__.split(".")[:2])) < (22, 3))' >/dev/null 2>&1; then \
	  install="$(PYTHON) -m pip --python $(PY)"; \
	else \
	  echo "There is no pip to fill $(VENV) with. Install pip 22.3 or newer, or venv with pip (Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; \
	fi; \
	echo "$$install install -c $(CONSTRAINTS) -e '.[test]' $(PIP_ARGS)"; \
	$$install install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[test]' $(PIP_ARGS) || { \
	  echo "The packages could not be installed; pip says why above." >&2; exit 1; }
	@touch $@

# What lint and docs need besides, each installed on first use.
$(LINT) $(DOCS): $(READY)
	@if $(PY) -m pip --version >/dev/null 2>&1; then install="$(PY) -m pip"; else install="$(PYTHON) -m pip --python $(PY)"; fi; \
	echo "$$install install -c $(CONSTRAINTS) -e '.[$(@:$(VENV)/.ready-%=%)]' $(PIP_ARGS)"; \
	$$install install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[$(@:$(VENV)/.ready-%=%)]' $(PIP_ARGS)
	@touch $@
