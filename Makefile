# Two commands on a fresh machine:  make demo   make test
PYTHON ?= python3
PY := .venv/bin/python
# setuptools warns of the editable install that is asked for here
PIP := PYTHONWARNINGS=ignore $(PY) -m pip
SOURCES := $(wildcard api/*.py api/*/*.py engine/*.py engine/*/*.py engine/*/*/*.py sql/*.py sql/*/*.py sql/*/*/*.py api/server/page/*)
EDITABLE := --config-settings editable_mode=strict -e

.PHONY: browser demo demo-server fuzz-server test fuzz audit paper peers docs check lowest format lint types links

demo: .venv/demo links  ## answer a batch over a generated clinic and show what it costs
	@$(PY) -m tacit demo

demo-server: .venv/server links  ## serve the clinic, print a token and an address, answer one query, keep running
	@$(PY) examples/serve_clinic.py $(DEMO)

fuzz-server: .venv/dev links  ## 10,000 random requests by the server's own description
	@TACIT_FUZZ_SERVER=10000 $(PY) -m pytest -q tests/server/test_openapi.py

test: .venv/dev links browser  ## the whole test suite, doctests and README blocks included
	@$(PY) -m pytest -n 2 --dist loadgroup

audit: .venv/dev links  ## the long form of tests/audit: more draws, more neighbours, 200 kills, every claim broken once
	@TACIT_AUDIT=long $(PY) -m pytest -n 2 tests/audit tests/engine/test_ledger_log.py tests/server/test_examples_served.py

fuzz: .venv/dev links  ## 51,000 random queries against DuckDB and 440 random workloads, many times what the suite asks
	@TACIT_FUZZ=17 $(PY) -m pytest -n 2 tests/sql/test_against_duckdb.py tests/sql/test_computed_axes.py \
		tests/audit/test_random_batches.py tests/engine/test_strategies.py tests/api/test_never_worse.py

docs: .venv/dev links  ## the documentation as a site, in build/site, with the reference made from the code
	@$(PY) docs/make_reference.py && .venv/bin/zensical build --strict

peers: .venv/paper links  ## tacit beside SmartNoise SQL, OpenDP and histograms, each in an environment of its own
	@$(PY) benchmarks/peers.py $(PEERS)

check: .venv/dev links format lint types test  ## everything that must hold before a commit

# A virtual environment of its own, with a wheel as users get it. Not part of `make check`: it needs other versions.
lowest: .venv/bin/python  ## the tests of the surface, with the lowest versions that pyproject.toml allows
	@rm -rf build/lowest && $(PYTHON) -m venv build/lowest
	@build/lowest/bin/python -m pip install --quiet -c tests/lowest.txt '.[arrow,polars,sqlalchemy]' pytest hypothesis
	@build/lowest/bin/python -m pytest -q -p no:cacheprovider tests/api/test_dbapi.py tests/api/test_answers.py \
		tests/api/test_arrow_tables.py tests/api/test_sqlalchemy.py tests/api/test_budget.py tests/api/test_sources.py \
		tests/api/test_log.py tests/sql/test_golden.py tests/sql/test_refusals.py tests/engine/test_ledger.py \
		tests/engine/test_noise.py tests/engine/test_measurement.py tests/engine/test_lattice.py

# One BLAS thread per process: two processes measure at a time, and small matrices are slower on more.
paper: .venv/paper links  ## both papers' experiments into build/paper, in minutes; FULL=1 at the papers' sizes (days; it can be stopped and resumed, see docs/papers.md)
	@OMP_NUM_THREADS=1 $(PY) -m benchmarks.paper --size $(if $(FULL),full,quick) $(PAPER)

# The page is tested in the system's Chromium. Where it is missing and cannot be had, those tests are skipped and say so.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  [ -n "$$CHROMIUM" ] || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -qq update && \
	    apt-get -qq install -y --no-install-recommends chromium >/dev/null; } || true

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

# What an older install left beside the sources would be found first, with its entry points.
.venv/demo .venv/dev .venv/paper .venv/server: .venv/%: pyproject.toml | .venv/bin/python
	@rm -rf tacit.egg-info
	@$(PIP) install --quiet $(EDITABLE) '.[$*]'
	@touch $@

# A strict editable install links the files that were there; a new file needs the links made again.
links:
	@printf '%s\n' $(SOURCES) | cmp -s - .venv/files || { \
	  $(PIP) install --quiet --no-deps --no-build-isolation $(EDITABLE) . && \
	  printf '%s\n' $(SOURCES) > .venv/files; }
