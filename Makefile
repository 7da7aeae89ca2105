# make demo | test | test-minimal | lint | fuzz | bench | bench-quick | tutorials | docs | clean
PYTHON ?= python3
VENV ?= .venv
# Two workers: the suite is mostly CPU-bound and the smallest machine it runs on has two cores.
WORKERS ?= 2
# How long `make fuzz` looks, and from which seed on.
MINUTES ?= 10
SEED ?= 0
PYTEST_ARGS ?=

PY := $(VENV)/bin/python
GDPNET := $(PY) -m gdpnet.cli
STAMP := $(VENV)/.installed

# Figures are written to files, also where there is no screen.
export MPLBACKEND := Agg

.DEFAULT_GOAL := help
.PHONY: help install demo test test-minimal lint fuzz bench bench-quick tutorials docs clean

help:
	@echo "make demo         the cooling model: relaxations compared, all methods trained, two reports"
	@echo "make test         lint, types and tests"
	@echo "make test-minimal saved rules without Pyomo, a model without extras, on each Python found"
	@echo "make lint         ruff, mypy and import-linter only"
	@echo "make fuzz         odd rules against exact arithmetic, $(MINUTES) minutes (MINUTES=, SEED=)"
	@echo "make bench        benchmarks/*.py; PUBLISH=1 stores results and fills the pages"
	@echo "make bench-quick  what became slower, by stored ratios"
	@echo "make tutorials    execute tutorials/*.py (GDPNET_SMOKE=1 for small sizes)"
	@echo "make docs         the site, into build/site"
	@echo "make clean        remove caches and build/ (the environment $(VENV) stays)"

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "gdpnet needs Python 3.11 or later, but '$(PYTHON)' is" \
	       "$$($(PYTHON) --version 2>&1 | head -n 1). Try: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet -c constraints.txt -e ".[test]"
	@touch $@

demo: $(STAMP)
	$(GDPNET) doctor
	$(GDPNET) compare models/cooling --split ood --html build/compare.html
	OMP_NUM_THREADS=1 $(GDPNET) train models/cooling --protocols quick --sizes 250 --seeds 0 --out build/cooling

lint: $(STAMP)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-logo --no-cache

# One thread a worker, or the workers' torch threads fight for the same cores.
test: lint
	OMP_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# Installs torch anew for each of them.
test-minimal:
	tests/environments/run

fuzz: $(STAMP)
	OMP_NUM_THREADS=1 $(PY) -W error -m tests.fuzz --minutes $(MINUTES) --seed $(SEED)

PEERS := $(VENV)/.peers

$(PEERS): $(STAMP)
	$(PY) -m pip install --quiet -c constraints.txt -e ".[bench]"
	$(PY) -m pip install --quiet --no-deps qpth pishield
	@touch $@

# OLD="--old PYTHON --old-tree FOLDER" lets native.py take part.
bench: $(PEERS)
	$(PY) benchmarks/run_all.py $(if $(PUBLISH),--publish) $(OLD)

bench-quick: $(STAMP)
	$(PY) benchmarks/quick.py

tutorials: $(STAMP)
	@set -e; found=; for script in tutorials/*.py; do \
	  [ -e "$$script" ] || continue; found=yes; \
	  echo "== $$script"; $(PY) "$$script"; \
	done; [ -n "$$found" ] || echo "tutorials: nothing to run"

# The theme's notice about the next major version of mkdocs is not for readers of this output.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build

clean:
	rm -rf build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find gdpnet models tests -name __pycache__ -type d -prune -exec rm -rf {} +
