# Everything a newcomer needs: `make demo` and `make test` set up whatever the machine lacks.
# A fresh Debian 12 with Python 3.11 and make is enough; Slurm's packages are installed by the stack itself.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
JOBS ?= 200
LINES ?= 1000000

# Where Python is told to keep no bytecode, every process of ours and every test worker would compile all it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-fast lint soak bench lock clean
.DEFAULT_GOAL := help

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv from the lock file (instant when nothing changed)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; name it: make setup PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || $(MAKE) --no-print-directory venv-package
	@test -x $(BIN)/python || { echo "making .venv"; $(PYTHON) -m venv .venv; }
	@echo "installing the locked packages (600 MB on disk, a minute or so the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: venv-package
venv-package: # Debian keeps the part of Python that makes virtual environments in a package of its own
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing python3-venv"; \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get install -y -qq --no-install-recommends python3-venv >/dev/null \
	    || { apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv >/dev/null; }; \
	else echo "Python's venv module is incomplete; as root run: apt-get install python3-venv" >&2; exit 1; fi

demo: setup ## recover a failing training job on a real local stack (SCENARIO=observe, KEEP=1)
	$(BIN)/recovery demo $(SCENARIO)

test: setup lint ## everything: lint, types, import rules, all tests on real parts
	$(BIN)/pytest

test-fast: setup ## the pure tests alone, no stack
	$(BIN)/pytest -n 2 -m "not stack and not slurm"

lint: setup ## ruff, mypy and the import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

soak: setup ## hostile input, then a long chaos run on real parts (LINES=1000000 JOBS=200 SEED=..., random unless given)
	$(BIN)/python -m tests.fuzz --lines $(LINES) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.chaos --jobs $(JOBS) $(if $(SEED),--seed $(SEED))

bench: setup ## measure, each figure beside what one would pick instead; bench/results.json (WHAT="reading deciding")
	$(BIN)/python -W ignore -m bench $(WHAT)

lock: setup ## choose the newest allowed versions again and write requirements.lock
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --generate-hashes --extra local --extra dev --no-emit-index-url --no-header --upgrade \
	  pyproject.toml -o requirements.lock

clean: ## remove .venv and caches; the stack's data (.local) stays, `recovery down` comes first
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build *.egg-info
