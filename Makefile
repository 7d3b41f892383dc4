# Everything a clone needs, on a machine that has only Python and make.
#
#   make demo         the main job on real input: one kernel at every stage, then the examples
#   make test         all tests; make test-quick leaves the slow ones out
#   make test-level   the tests whose code differs most from CPU to CPU, built for LEVEL=x86-64-v2
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

.PHONY: help demo demo-stages demo-examples test test-quick test-level lint docs docs-check wheel clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   //p' Makefile

# The environment, made once. A half-made one (no stamp) is made anew.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "blocklang needs Python 3.11 or later; name one: make PYTHON=python3.13 ...")'
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) install --quiet --upgrade pip
	@touch $@

# For every editable install setuptools warns at length of folders named like packages; nobody can act on it.
INSTALL := PYTHONWARNINGS=ignore $(PIP) install --quiet -c constraints.txt

$(VENV)/.examples: $(VENV)/.made pyproject.toml setup.py constraints.txt
	$(INSTALL) -e '.[examples]'
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml setup.py constraints.txt
	$(INSTALL) -e '.[test]'
	@touch $@

demo: demo-stages demo-examples

# Of LLVM IR and assembly: the block between two labels that holds the first fused multiply-add of whole vectors
# (the loop that computes exp), at most 40 lines of it; the start, if this CPU has none.
VECTOR_FMA := call.*llvm[.]fma[.]v|vfn?m(add|sub).*[yz]mm|fml[as]
HOT_BLOCK := /^[^ \t\#;].*:/ { if (found) exit; block = "" } \
    { block = block $$0 "\n"; if (NR <= 40) start = start $$0 "\n" } $$0 ~ fma { found = 1 } \
    END { count = split(found ? block : start, line, "\n"); for (i = 1; i < count && i <= 40; i++) print line[i] }

demo-stages: $(VENV)/.examples
	@printf '\n=== %s: the kernel\n\n' $(DEMO_KERNEL)
	@sed -n '/^@bl.jit/,/^$$/p' $(DEMO_KERNEL)
	@for level in block tile placed; do \
	    printf '\n=== %s: %s IR\n\n' $(DEMO_KERNEL) $$level; \
	    $(BIN)/blocklang ir $(DEMO_KERNEL) --from-run --level $$level || exit 1; \
	done
	@for stage in llvm asm; do \
	    printf '\n=== %s: %s, a vector loop (all of it: blocklang %s %s --from-run)\n\n' \
	        $(DEMO_KERNEL) $$stage $$stage $(DEMO_KERNEL); \
	    $(BIN)/blocklang $$stage $(DEMO_KERNEL) --from-run >$(VENV)/demo.txt || exit 1; \
	    awk -v fma='$(VECTOR_FMA)' '$(HOT_BLOCK)' $(VENV)/demo.txt; \
	done

demo-examples: $(VENV)/.examples
	@for name in $(EXAMPLES); do \
	    printf '\n=== examples/%s.py\n\n' $$name; \
	    $(BIN)/python examples/$$name.py || exit 1; \
	done

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal $(PYTEST_ARGS)

test-quick: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not slow' $(PYTEST_ARGS)

# Arithmetic, conversions, mathematical functions and products, and programs made of them: every launch compares
# the interpreter's bits with those of code for an older CPU.
LEVEL ?= x86-64-v2
LEVEL_NUMERICS := arithmetic casts dot fp_fusion libdevice maths reduction remainder
LEVEL_PROGRAMS := cross_entropy layer_norm matmul softmax
LEVEL_TESTS := $(LEVEL_NUMERICS:%=tests/numerics/test_%.py) $(LEVEL_PROGRAMS:%=tests/programs/test_%.py) \
    tests/codegen/test_fused.py tests/codegen/test_levels.py

test-level: $(VENV)/.test
	BLOCKLANG_CPU=$(LEVEL) $(BIN)/python -m pytest -n auto --dist worksteal -m 'not slow' \
	    $(PYTEST_ARGS) $(LEVEL_TESTS)

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
