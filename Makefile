# Works with GNU make 3.81 and newer. The first target that needs it sets up a virtual environment; later ones find it ready.
PYTHON   ?= python3
VENV     ?= .venv
EXP      ?= sepsis
ARGS     ?=
JOBS     ?= 2
BRANCHES ?= 93
INPUTS   ?= 300
MODULES  ?= spaces/inequalities.py objectives/guard.py data/problem_file/case_bounds.py graphs/separation.py
PIP_ARGS ?=
CONSTRAINTS ?= constraints.txt

PY    := $(VENV)/bin/python
READY := $(VENV)/.ready
LINT  := $(VENV)/.ready-lint
DOCS  := $(VENV)/.ready-docs
OTHERS := $(VENV)/.ready-strangers
FIND_PIP = if $(PY) -m pip --version >/dev/null 2>&1; then install="$(PY) -m pip"; else install="$(PYTHON) -m pip --python $(PY)"; fi;

.PHONY: help train test test-slow test-bench test-slurm test-gpu strangers coverage mutation fuzz lint docs bench bench-scale bench-all bench-calibration soak clean

help:
	@echo "make train       sets up $(VENV) on first use, then trains and decides: scripts/train.py +experiment=$(EXP)"
	@echo "make test        the fast tests, in some two minutes"
	@echo "make test-slow   whole commands, studies, claims of the papers, golden runs, the command lines of the pages"
	@echo "make fuzz        mutated input to everything that reads it"
	@echo "make test-bench  small benchmarks, endurance, and the longest of the slow tests"
	@echo "make lint        style, formatting, types, and the layers of imports"
	@echo "make docs        the documentation into site/; a warning or a broken link fails it"
	@echo
	@echo "ARGS='...' is passed on: make train ARGS='seed=1', make test ARGS='tests/search -x'. JOBS=4 processes run tests,"
	@echo "PYTHON=python3.12 takes another Python (3.11 or newer), PIP_ARGS='...' is passed on to pip. The other targets, with"
	@echo "what they measure, stand in CONTRIBUTING.md."

train: $(READY)
	$(PY) scripts/train.py +experiment=$(EXP) $(ARGS)

# One thread each: the tests' tensors are small, and processes do not take each other's cores away. A process that has
# finished takes over tests of another, so that all are busy to the end.
# With the bytecode of the tests kept, the lanes after the first one collect in half the time.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(PY) -m pytest -n $(JOBS) --dist worksteal

# What no marker of another lane keeps out (pyproject.toml says what they stand for).
test: $(READY)
	$(PYTEST) $(ARGS)

test-slow: $(READY)
	$(PYTEST) -m "slow and not bench" $(ARGS)

# The fast tests, and the corpus that holds refusals; what every process has taken is joined. Fails below BRANCHES per cent.
coverage: $(READY)
	$(PY) -m coverage erase
	OMP_NUM_THREADS=1 $(PY) -m coverage run -m pytest -n $(JOBS) --dist worksteal -q tests $(ARGS)
	OMP_NUM_THREADS=1 $(PY) -m coverage run -m pytest -n $(JOBS) -q -m slow tests/golden/snapshots
	$(PY) -m coverage combine --quiet
	$(PY) -m coverage json --quiet -o .coverage.json
	$(PY) -c 'import json, sys; t = json.load(open(".coverage.json"))["totals"]; share = 100 * t["covered_branches"] / t["num_branches"]; print("branches taken, per cent:", round(share, 2)); sys.exit(share < $(BRANCHES))'

# Small faults that tests notice or not; a run that was interrupted goes on. Of other modules of [tool.mutmut]:
# make mutation MODULES='spaces/inequalities.py', or MODULES= for all of them.
mutation: $(READY) $(LINT)
	OMP_NUM_THREADS=1 $(VENV)/bin/mutmut run --max-children $(JOBS) $(foreach module,$(MODULES),'rehearsal_torch.$(subst /,.,$(module:.py=)).*')
	$(VENV)/bin/mutmut results

test-bench: $(READY)
	$(PYTEST) -m bench $(ARGS)

# So many inputs a family; other ones: make fuzz ARGS='--hypothesis-seed=1'
fuzz: $(READY)
	FUZZ_INPUTS=$(INPUTS) $(PYTEST) -m fuzz --hypothesis-seed=0 tests/fuzz $(ARGS)

# On a machine with SLURM; .github/slurm.sh starts a cluster of one node on one that is thrown away.
test-slurm: $(READY)
	$(PYTEST) -m slurm -n 1 tests/slurm $(ARGS)

# Without a CUDA device all of it is skipped, or stays on the CPU.
test-gpu: $(READY)
	$(PYTEST) -m gpu -n 1 tests/gpu $(ARGS)
	$(PYTEST) --device cuda -m "not bench" tests/contracts $(ARGS)

# Simulators that others made, which nothing else needs; icu-sepsis without the packages that only its environment needs.
strangers: $(OTHERS)
	@$(FIND_PIP) $$install install --quiet --disable-pip-version-check --no-deps -c $(CONSTRAINTS) icu-sepsis $(PIP_ARGS)
	$(PYTEST) -m slow tests/reproduction/strangers tests/problems/sequences/test_icu_sepsis.py $(ARGS)

lint: $(LINT)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-cache

# From a copy: the generator walks through all folders beside the pages, environments too.
PAGES = README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md zensical.toml docs notebooks rehearsal_torch

docs: $(DOCS)
	rm -rf build/docs && mkdir -p build/docs/tests/golden build/docs/reproduction
	cp -R $(PAGES) build/docs && cp tests/golden/README.md build/docs/tests/golden
	cp reproduction/notation.md build/docs/reproduction && $(PY) docs/generated.py keys >> build/docs/docs/keys.md
	$(PY) docs/generated.py api >> build/docs/docs/api.md
	cd build/docs && $(abspath $(PY)) -m zensical build --clean --strict
	rm -rf site && mv build/docs/site site

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
# make soak ARGS='--decisions 200 --rounds 40 --campaign 40 --kills 4 --met 1 --out runs/endurance/small'
soak: $(READY)
	OMP_NUM_THREADS=1 $(PY) -m benchmarks.endurance $(ARGS)

reproduce-%: $(READY)
	$(PY) -m reproduction.$* $(ARGS)

clean:
	rm -rf $(VENV) build site .pytest_cache .mypy_cache .ruff_cache .hypothesis mutants

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

# What lint, docs and strangers need besides, each installed on first use.
$(LINT) $(DOCS) $(OTHERS): $(READY)
	@$(FIND_PIP) \
	echo "$$install install -c $(CONSTRAINTS) -e '.[$(@:$(VENV)/.ready-%=%)]' $(PIP_ARGS)"; \
	$$install install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[$(@:$(VENV)/.ready-%=%)]' $(PIP_ARGS)
	@touch $@
