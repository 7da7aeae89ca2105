# make demo | test | test-minimal | test-integrations | lint | core | core-test | stubs | sanitize | fuzz | fuzz-core
#      | bench | bench-quick | tutorials | docs | wheel | clean
PYTHON ?= python3
VENV ?= .venv
# Two workers: the suite is mostly CPU-bound and the smallest machine it runs on has two cores.
WORKERS ?= 2
# How long `make fuzz` and `make fuzz-core` look, and from which seed on.
MINUTES ?= 10
SEED ?= 0
PYTEST_ARGS ?=
# The compiled core is built here, and only what changed is built again.
BUILD ?= build/core

PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check install --quiet -c constraints.txt
CMAKE := $(VENV)/bin/cmake
CTEST := $(VENV)/bin/ctest --output-on-failure
GDPNET := $(PY) -m gdpnet.cli
# gdpnet and what the demo needs; what the tests need besides; the core as its sources are now.
DEMO := $(VENV)/.demo
STAMP := $(VENV)/.installed
CORE := $(VENV)/.core
SOURCES := core/CMakeLists.txt $(shell find core -name '*.[ch]pp')

# Without isolation: the folder of the build has to find nanobind again the next time.
INSTALL = SKBUILD_BUILD_DIR=$(BUILD) SKBUILD_CMAKE_FRESH=1 SKBUILD_CMAKE_DEFINE=GDPNET_TESTS=OFF \
  core/tools/with_compiler $(VENV) $(PIP) --no-build-isolation --no-deps -e .

# Figures are written to files, also where there is no screen.
export MPLBACKEND := Agg

.DEFAULT_GOAL := help
.PHONY: help install demo test test-minimal test-integrations lint core core-test stubs sanitize fuzz fuzz-core bench
.PHONY: bench-quick tutorials docs wheel clean

help:
	@echo "make demo         the cooling model: relaxations compared, all methods trained, two reports"
	@echo "make test         lint, types and tests, of C++ and Python"
	@echo "make test-minimal saved rules without Pyomo, a model without extras, on each Python found"
	@echo "make test-integrations  Lightning, Hugging Face, skorch, Ray, FastAPI, ONNX, in an environment of their own"
	@echo "make lint         ruff, mypy and import-linter only"
	@echo "make core         the compiled core, where its sources have changed"
	@echo "make core-test    its C++ tests"
	@echo "make stubs        names and types of the core for Python, after they have changed"
	@echo "make sanitize     C++ tests and the bank of problems under address and undefined-behaviour checks"
	@echo "make fuzz         odd rules against exact arithmetic, $(MINUTES) minutes (MINUTES=, SEED=)"
	@echo "make fuzz-core    the core's search against enumeration, by libFuzzer (MINUTES=); needs clang++"
	@echo "make bench        benchmarks/*.py; PUBLISH=1 stores results and fills the pages"
	@echo "make bench-quick  what became slower, by stored ratios"
	@echo "make tutorials    execute tutorials/*.py (GDPNET_SMOKE=1 for small sizes)"
	@echo "make docs         the site, into build/site"
	@echo "make wheel        sdist and wheel, into dist"
	@echo "make clean        remove caches and build/ (the environment $(VENV) stays)"

install: $(STAMP) $(CORE)

$(DEMO): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "gdpnet needs Python 3.11 or later, but '$(PYTHON)' is" \
	       "$$($(PYTHON) --version 2>&1 | head -n 1). Try: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@mkdir -p $(VENV) && date +%s > $(VENV)/.began
	$(PYTHON) -m venv $(VENV)
	$(PIP) scikit-build-core nanobind cmake ninja
	$(INSTALL)
	$(PIP) "gdpnet[demo]"
	@touch $@ $(CORE)
	@echo "Installed in $$(( $$(date +%s) - $$(cat $(VENV)/.began) )) seconds."

$(STAMP): $(DEMO)
	$(PIP) "gdpnet[test]"
	@touch $@

core: $(CORE)

# The folder was configured when gdpnet was installed; `make clean` removes it.
$(CORE): $(SOURCES) | $(DEMO)
	@if [ -f $(BUILD)/CMakeCache.txt ]; then \
	  $(CMAKE) --build $(BUILD) --target _native_up_to_date; else $(INSTALL); fi
	@touch $@

core-test: $(CORE)
	@[ -f $(BUILD)/CMakeCache.txt ] || $(INSTALL)
	$(CMAKE) -S core -B $(BUILD) -DGDPNET_TESTS=ON > $(BUILD)/configured.log
	$(CMAKE) --build $(BUILD)
	$(CTEST) --test-dir $(BUILD)

stubs: $(STAMP) $(CORE)
	$(PY) core/tools/stubs.py

# g++ has what Python, which is not built with the sanitizers, has to load before anything else.
SANITIZED := build/sanitize
sanitize: $(STAMP)
	@command -v g++ > /dev/null || { echo "make sanitize needs g++" >&2; exit 1; }
	$(CMAKE) -S core -B $(SANITIZED) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(VENV)/bin/ninja) \
	  -DCMAKE_CXX_COMPILER=g++ -DPython_EXECUTABLE=$(abspath $(PY)) -DGDPNET_TESTS=ON \
	  -DGDPNET_SANITIZE=address,undefined -DGDPNET_OUTPUT=$(abspath $(SANITIZED)/module)
	$(CMAKE) --build $(SANITIZED)
	$(CTEST) --test-dir $(SANITIZED)
	ASAN_OPTIONS=detect_leaks=0 OMP_NUM_THREADS=1 \
	  LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
	  $(PY) -m tests.with_core $(SANITIZED)/module tests/solve/test_bank.py

FUZZED := build/fuzz
fuzz-core: $(DEMO)
	@command -v clang++ > /dev/null || { echo "make fuzz-core needs clang++ and its libFuzzer" >&2; exit 1; }
	$(CMAKE) -S core -B $(FUZZED) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(VENV)/bin/ninja) \
	  -DCMAKE_CXX_COMPILER=clang++ -DGDPNET_PYTHON=OFF -DGDPNET_FUZZ=ON
	$(CMAKE) --build $(FUZZED)
	@mkdir -p $(FUZZED)/corpus
	$(FUZZED)/fuzz_search -max_total_time=$$(( 60 * $(MINUTES) )) -timeout=20 -max_len=256 -print_final_stats=1 \
	  -artifact_prefix=$(FUZZED)/ $(FUZZED)/corpus

demo: $(DEMO) $(CORE)
	$(GDPNET) doctor
	$(GDPNET) compare cooling --split ood --html build/compare.html
	OMP_NUM_THREADS=1 $(GDPNET) train cooling --protocols quick --sizes 250 --seeds 0 --out build/cooling

lint: $(STAMP) $(CORE)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-logo --no-cache

# One thread a worker, or the workers' torch threads fight for the same cores.
test: lint core-test
	OMP_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# Installs torch anew for each of them.
test-minimal:
	tests/environments/run

# Packages that gdpnet does not need are installed apart; the core is the one that is built here.
INTEGRATIONS ?= build/integrations

$(INTEGRATIONS)/.installed: tests/integrations/requirements.txt constraints.txt
	@mkdir -p $(INTEGRATIONS) && date +%s > $(INTEGRATIONS)/.began
	$(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/python -m pip --disable-pip-version-check install --quiet -c constraints.txt \
	  -r tests/integrations/requirements.txt
	@$(INTEGRATIONS)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  | xargs -I{} sh -c 'echo $(CURDIR) > {}/gdpnet.pth'
	@touch $@
	@echo "Installed in $$(( $$(date +%s) - $$(cat $(INTEGRATIONS)/.began) )) seconds," \
	  "$$(du -sh $(INTEGRATIONS) | cut -f1)."

# There a package that is missing is a failure. Warnings of others are not ours to mend.
test-integrations: $(INTEGRATIONS)/.installed $(CORE)
	GDPNET_INTEGRATIONS=1 OMP_NUM_THREADS=1 $(INTEGRATIONS)/bin/python -m pytest -W default \
	  tests/integrations $(PYTEST_ARGS)

fuzz: $(STAMP) $(CORE)
	OMP_NUM_THREADS=1 $(PY) -W error -m tests.fuzz --minutes $(MINUTES) --seed $(SEED)

PEERS := $(VENV)/.peers

$(PEERS): $(STAMP)
	$(PIP) "gdpnet[bench]"
	$(PIP) --no-deps qpth pishield
	@touch $@

# OLD="--old PYTHON --old-tree FOLDER" lets native.py take part.
bench: $(PEERS) $(CORE)
	$(PY) benchmarks/run_all.py $(if $(PUBLISH),--publish) $(OLD)

bench-quick: $(STAMP) $(CORE)
	$(PY) benchmarks/quick.py

tutorials: $(STAMP) $(CORE)
	@set -e; found=; for script in tutorials/*.py; do \
	  [ -e "$$script" ] || continue; found=yes; \
	  echo "== $$script"; $(PY) "$$script"; \
	done; [ -n "$$found" ] || echo "tutorials: nothing to run"

# The theme's notice about the next major version of mkdocs is not for readers of this output.
docs: $(STAMP) $(CORE)
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build

wheel: $(DEMO)
	$(PIP) build
	core/tools/with_compiler $(VENV) $(PY) -m build --no-isolation

clean:
	rm -rf build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find gdpnet models tests -name __pycache__ -type d -prune -exec rm -rf {} +
