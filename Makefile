# `make demo` and `make test` do all their set-up from a fresh clone; see README.md.
#
# PYTHON=...   the interpreter to make the environment with (default: the first of 3.11, 3.12, 3.13 found)
# VENV=...     where the environment goes (default: .venv)

SHELL := /bin/bash
PYTHON ?= $(shell ./.ci/find-python 3.11 3.12 3.13)
VENV ?= .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py $(shell find dyncomp -name '*.c' -o -name '*.cpp' -o -name '*.h')
TORCH := torch==2.13.0
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq install

.NOTPARALLEL:
.PHONY: help demo test test-core test-slow test-cpython sanitize lint bench docs clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       run real NumPy programs with NumPy and with dyncomp, compare, print a table"
	@echo "make test       ruff, mypy and the default test suite"
	@echo "make test-core  those tests alone that depend on the version of Python, on PYTHON"
	@echo "make test-slow  the heavier suites"
	@echo "make test-cpython  CPython's own tests, every test method compiled, on PYTHON"
	@echo "make sanitize   the C extensions' tests under -X dev, and with address and undefined-behaviour sanitizers"
	@echo "make docs       the documentation as a site, build/site; fails at broken links"
	@echo "make bench      measure against NumPy, Numba, JAX and torch.compile; writes bench/RESULTS.md"

demo: $(VENV)/.demo
	$(BIN)/python -m demo

# A process for each core, with neighbouring tests in one: they share kernels.
WORKERS = -n auto --dist worksteal

# The tests run even where the checks complain, so that the closing line is pytest's.
test: $(VENV)/.demo $(VENV)/.dev $(VENV)/.torch
	@status=0; \
	$(MAKE) --no-print-directory lint VENV=$(VENV) || status=1; \
	$(BIN)/python -m pytest $(WORKERS) || status=1; \
	exit $$status

test-core: $(VENV)/.dev
	$(BIN)/python -m pytest --core $(WORKERS)

test-slow: $(VENV)/.demo $(VENV)/.dev $(VENV)/.torch
	$(BIN)/python -m pytest -m slow

test-cpython: $(VENV)/.dev
	$(BIN)/python -m tests.cpython

# SANITIZE=... more arguments: --only dev, --only asan, or tests for pytest
sanitize: $(VENV)/.dev
	$(BIN)/python tools/sanitize.py $(SANITIZE)

lint: $(VENV)/.dev
	@status=0; \
	$(BIN)/python -m ruff check . || status=1; \
	$(BIN)/python -m ruff format --check . || status=1; \
	$(BIN)/python -m mypy || status=1; \
	exit $$status

docs: $(VENV)/.docs
	$(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

bench: $(VENV)/.bench $(VENV)/.torch
	$(BIN)/python -m bench

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "dyncomp needs CPython 3.11, 3.12 or 3.13; set PYTHON=" >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

# An editable install: builds the C extensions next to their sources. Modules are compiled as an install would.
$(VENV)/.core: $(SOURCES) | $(BIN)/python
	$(PIP) --editable .
	@$(BIN)/python -m compileall -q dyncomp || true
	@touch $@

$(VENV)/.demo: $(VENV)/.core
	$(PIP) --editable '.[demo]'
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) --editable '.[dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.core
	$(PIP) --editable '.[docs]'
	@touch $@

$(VENV)/.bench: $(VENV)/.core
	$(PIP) --editable '.[bench]'
	@touch $@

# PyTorch is the second frontend; where no wheel fits, its tests are left out, and pytest says so.
$(VENV)/.torch: $(VENV)/.core
	$(PIP) '$(TORCH)' || echo "$(TORCH) is not available here: the tests of the torch frontend are left out"
	@touch $@

clean:
	rm -rf $(VENV) .venv-3.* build dyncomp.egg-info
	find dyncomp -name '*.so' -delete
