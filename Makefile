# Everything a clone needs, on a machine that has only Python and make.
#
#   make demo         the main job on real input: one kernel at every stage, then the examples
#   make test         all tests; make test-quick leaves the slow ones out
#   make lint         ruff and the strict type checker
#   make docs         rewrite the generated references
#   make wheel        build dist/*.whl
#   make clean        remove the environment and everything built
#
# Another Python: make PYTHON=python3.13 demo. Another place for the environment: make VENV=/tmp/env test.

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
DEMO_KERNEL := examples/softmax.py
EXAMPLES := vector_add softmax matmul layer_norm blur

.PHONY: help demo demo-stages demo-examples test test-quick lint docs docs-check wheel clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   //p' Makefile

# The environment, made once. A half-made one (no stamp) is made anew.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "blocklang needs Python 3.11 or later; name one: make PYTHON=python3.13 ...")'
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) install --quiet --upgrade pip
	@touch $@

$(VENV)/.examples: $(VENV)/.made pyproject.toml setup.py constraints.txt
	$(PIP) install --quiet -c constraints.txt -e '.[examples]'
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml setup.py constraints.txt
	$(PIP) install --quiet -c constraints.txt -e '.[test]'
	@touch $@

demo: demo-stages demo-examples

demo-stages: $(VENV)/.examples
	@for level in block tile placed; do \
	    printf '\n=== %s: %s IR\n\n' $(DEMO_KERNEL) $$level; \
	    $(BIN)/blocklang ir $(DEMO_KERNEL) --from-run --level $$level || exit 1; \
	done
	@for stage in llvm asm; do \
	    printf '\n=== %s: %s, the first 40 lines\n\n' $(DEMO_KERNEL) $$stage; \
	    $(BIN)/blocklang $$stage $(DEMO_KERNEL) --from-run >$(VENV)/demo.txt || exit 1; \
	    sed -n 1,40p $(VENV)/demo.txt; \
	done

demo-examples: $(VENV)/.examples
	@for name in $(EXAMPLES); do \
	    printf '\n=== examples/%s.py\n\n' $$name; \
	    $(BIN)/python examples/$$name.py || exit 1; \
	done

test: $(VENV)/.test
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-quick: $(VENV)/.test
	$(BIN)/python -m pytest -m 'not slow' $(PYTEST_ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

docs: $(VENV)/.test
	$(BIN)/python -m docs.generate

docs-check: $(VENV)/.test
	$(BIN)/python -m docs.generate --check

# A stale build/ would put deleted modules into the wheel.
wheel: $(VENV)/.made
	rm -rf build
	$(PIP) wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
