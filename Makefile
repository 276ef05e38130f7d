# Needs Python 3.11 or newer and make. Everything else is set up by the targets themselves.
PYTHON ?= python3
VENV ?= .venv
GROUP ?= dev
RESOLUTION ?= highest
WORKERS ?= 2
BIN = $(VENV)/bin
# `uv` lives in the environment too, so that nothing has to be there before.
UV_INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python

# Kept whatever the machine's habit is: without bytecode each process compiles all of LangChain before it starts.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-fast test-floor lint types check clean

help:
	@echo "make demo        the three-turn scenario, offline"
	@echo "make demo-mcp    over 200 tools of real MCP servers (installs them)"
	@echo "make test        all tests at the latest versions"
	@echo "make test-fast   those that need no process, no database and no minute"
	@echo "make test-floor  all tests at the oldest versions that pyproject.toml allows"
	@echo "make test-floor-deepagents  the tests of deep agents at the oldest deepagents"
	@echo "make test-upstream  LangChain's own agent tests with this middleware in every agent (from PyPI)"
	@echo "make test-clients  what real clients of all providers report, offline (installs them)"
	@echo "make check       lint and types"
	@echo "make audit       known advisories about any package of the environment (asks PyPI)"

$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(UV_INSTALL) --resolution $(RESOLUTION) --editable '.[cli,mcp,openai]' --group $(GROUP)
	@touch $@

.PHONY: setup demo-mcp notebooks test-floor-deepagents
setup: $(VENV)/.ready

demo: setup
	@$(BIN)/python -m langchain_tool_selection demo

demo-mcp: setup
	@# The servers log to standard error; it is shown when something failed.
	@$(BIN)/python -m langchain_tool_selection demo --mcp 2>$(VENV)/mcp-servers.log || { cat $(VENV)/mcp-servers.log; exit 1; }

# `tests/conftest.py` says which tests go to one worker; each other one goes to whichever is free.
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadscope

test: setup
	$(PYTEST) $(ARGS)

# What each marker leaves out is said in pyproject.toml.
test-fast: setup
	$(PYTEST) -m "not (process or database or mcp or notebook or slow or twin)" $(ARGS)

test-floor:
	@$(MAKE) test VENV=.venv-floor GROUP=test RESOLUTION=lowest-direct ARGS="$(ARGS)"

test-floor-deepagents:
	@$(MAKE) test VENV=.venv-floor-deepagents GROUP=test-deepagents RESOLUTION=lowest-direct \
	  ARGS="$(shell echo tests/integration_tests/test_deepagents*.py) tests/integration_tests/test_harness_tools.py"

.PHONY: test-clients
test-clients:
	@$(MAKE) setup VENV=.venv-clients GROUP=test-clients
	@.venv-clients/bin/python -m pytest -q -n0 -p no:cacheprovider --confcutdir tests/clients tests/clients

.PHONY: test-upstream
test-upstream:
	@$(MAKE) setup VENV=.venv-upstream GROUP=test-upstream
	@.venv-upstream/bin/python tests/upstream/conformance.py $(WORKERS)

notebooks: setup
	$(BIN)/jupyter execute --inplace notebooks/*.ipynb

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

check: lint types

# In an environment of its own, and over exactly the versions that are installed here.
AUDIT = $(BIN)/uv tool run --quiet pip-audit@2.10.1 --disable-pip --no-deps --progress-spinner off --strict

.PHONY: audit audit-data
audit: audit-data
	$(BIN)/uv pip freeze --python $(BIN)/python --exclude-editable >$(VENV)/installed.txt
	$(AUDIT) --requirement $(VENV)/installed.txt

# A mirror of PyPI may have the packages and no advisories, and then nothing is ever found. This version has some.
audit-data: setup
	@echo 'jinja2==2.10' >$(VENV)/known.txt
	@$(AUDIT) --requirement $(VENV)/known.txt 2>&1 | grep -Eq 'Found [0-9]+ known' || \
		{ echo "The advisories cannot be reached from here: nothing was audited."; exit 1; }

clean:
	rm -rf .venv* .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
