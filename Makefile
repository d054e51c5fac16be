# Two commands on a fresh machine:  make demo   make test
PYTHON ?= python3
PY := .venv/bin/python
SOURCES := $(wildcard api/*.py engine/*.py engine/*/*.py engine/*/*/*.py sql/*.py sql/*/*.py sql/*/*/*.py)
EDITABLE := --config-settings editable_mode=strict -e

.PHONY: demo test fuzz audit paper check format lint types links

demo: .venv/demo links  ## answer a batch over a generated clinic and show what it costs
	@$(PY) examples/clinic.py

test: .venv/dev links  ## the whole test suite, doctests and README blocks included
	@$(PY) -m pytest -n 2 --dist loadgroup

audit: .venv/dev links  ## the long form of tests/audit: more draws, more neighbours, 200 kills, every claim broken once
	@TACIT_AUDIT=long $(PY) -m pytest -n 2 tests/audit tests/engine/test_ledger_log.py

fuzz: .venv/dev links  ## 51,000 random queries against DuckDB and 440 random workloads, many times what the suite asks
	@TACIT_FUZZ=17 $(PY) -m pytest -n 2 tests/sql/test_against_duckdb.py tests/sql/test_computed_axes.py \
		tests/audit/test_random_batches.py tests/engine/test_strategies.py

check: .venv/dev links format lint types test  ## everything that must hold before a commit

# One BLAS thread per process: two processes measure at a time, and small matrices are slower on more.
paper: .venv/paper links  ## both papers' experiments into build/paper, in minutes; FULL=1 at the papers' sizes (days; it can be stopped and resumed, see docs/papers.md)
	@OMP_NUM_THREADS=1 $(PY) -m benchmarks.paper --size $(if $(FULL),full,quick) $(PAPER)

format:
	@$(PY) -m ruff format --check .

lint:
	@$(PY) -m ruff check .

types:
	@$(PY) -m mypy
	@MYPYPATH=.:tests:tests/sql $(PY) -m mypy --explicit-package-bases benchmarks

.venv/bin/python:
	@$(PYTHON) -m venv .venv
	@$(PY) -m pip install --quiet --upgrade pip 'setuptools>=80'

.venv/demo .venv/dev .venv/paper: .venv/%: pyproject.toml | .venv/bin/python
	@$(PY) -m pip install --quiet $(EDITABLE) '.[$*]'
	@touch $@

# A strict editable install links the files that were there; a new file needs the links made again.
links:
	@printf '%s\n' $(SOURCES) | cmp -s - .venv/files || { \
	  $(PY) -m pip install --quiet --no-deps --no-build-isolation $(EDITABLE) . && \
	  printf '%s\n' $(SOURCES) > .venv/files; }
