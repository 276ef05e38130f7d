# Needs Python 3.11 or newer and make. Everything else is set up by the targets themselves.
PYTHON ?= python3
VENV ?= .venv
GROUP ?= dev
RESOLUTION ?= highest
BIN = $(VENV)/bin
# `uv` lives in the environment too, so that nothing has to be there before.
UV_INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python

.PHONY: help demo test test-floor lint types check clean

help:
	@echo "make demo        the three-turn scenario, offline"
	@echo "make demo-mcp    over 200 tools of real MCP servers (installs them)"
	@echo "make test        all tests at the latest versions"
	@echo "make test-floor  all tests at the oldest versions that pyproject.toml allows"
	@echo "make check       lint and types"

$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(UV_INSTALL) --resolution $(RESOLUTION) --editable '.[cli,mcp,openai]' --group $(GROUP)
	@touch $@

.PHONY: setup demo-mcp notebooks
setup: $(VENV)/.ready

demo: setup
	@$(BIN)/python -m langchain_tool_selection demo

demo-mcp: setup
	@# The servers log to standard error; it is shown when something failed.
	@$(BIN)/python -m langchain_tool_selection demo --mcp 2>$(VENV)/mcp-servers.log || { cat $(VENV)/mcp-servers.log; exit 1; }

test: setup
	$(BIN)/python -m pytest $(ARGS)

test-floor:
	@$(MAKE) test VENV=.venv-floor GROUP=test RESOLUTION=lowest-direct ARGS="$(ARGS)"

notebooks: setup
	$(BIN)/jupyter execute --inplace notebooks/*.ipynb

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

check: lint types

clean:
	rm -rf .venv* .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
