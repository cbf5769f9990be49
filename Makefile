# Two commands do everything on a machine with python3 (3.11 or newer) and make:
#   make demo   installs, takes in examples/, builds the warehouse, prints what drifted first
#   make test   installs, then lint, types and tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test lint types unit install install-dev lock clean test-slow test-browser test-clients test-trackers test-bi docs generated scoreboard

demo: install
	$(BIN)/firstdrift demo

test: install-dev lint types unit

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/sqlfluff lint --processes 0 -q models sql/schema sql/macros sql/checks sql/analyst bi
	$(BIN)/sqlfluff lint --processes 0 -q --templater placeholder sql/queries

types:
	$(BIN)/pyright

unit:
	$(BIN)/pytest -q -m "not browser and not slow"

# What takes long: the lab's known answers in every setting, kills at every point, a thousand logs, a search for secrets.
test-slow: install-dev
	$(BIN)/pytest -q -m "slow and not browser"

# Opens the pages in headless Chromium, and Dagster on an instance that really runs; Debian and Ubuntu get the browser
# and its driver here where they are absent.
test-browser: install-dev
	command -v chromedriver || { apt-get update -qq && apt-get install -y -qq chromium chromium-driver fonts-noto-cjk; }
	$(BIN)/pytest -q -m browser

# Asks every question of sql/queries with DuckDB 1.4, in an environment of its own.
test-clients: install-dev .venv-client/.installed
	$(BIN)/pytest -q tests/queries -k duckdb_1_4

.venv-client/.installed:
	$(PYTHON) -m venv .venv-client
	.venv-client/bin/python -m pip install --quiet "duckdb>=1.4,<1.5"
	touch $@

# Measures the verdicts on simulated runs, beside other rules; Apache Otava pins another numpy and gets its own environment.
scoreboard: install-dev .venv-otava/.installed
	$(BIN)/python -m benchmarks.scoreboard --otava .venv-otava/bin/python

.venv-otava/.installed:
	$(PYTHON) -m venv .venv-otava
	.venv-otava/bin/python -m pip install --quiet "apache-otava==0.8.0"
	touch $@

# Exports to a real Postgres, and lets a real Superset ask every chart of its dashboard; both are installed where absent.
test-bi: install-dev .venv-superset/.installed
	command -v chromium || command -v chromium-browser || command -v google-chrome || \
		{ apt-get update -qq && apt-get install -y -qq chromium; }
	ls /usr/lib/postgresql/*/bin/initdb || command -v initdb || \
		{ apt-get update -qq && apt-get install -y -qq postgresql; }
	$(BIN)/pytest -q -m bi tests/bi

.venv-superset/.installed: bi/superset/requirements.txt
	@echo "Installing Superset into .venv-superset; this takes some minutes the first time."
	$(PYTHON) -m venv .venv-superset
	.venv-superset/bin/python -m pip install --quiet -r bi/superset/requirements.txt
	touch $@

# Renews what docs/ holds of the code: data dictionary, list of questions, metrics.
generated: install-dev
	$(BIN)/firstdrift dictionary --output docs/data_dictionary.md
	$(BIN)/python -m pipelines.questions > docs/questions.md
	$(BIN)/python -m warehouse.metrics_page

# Builds the site of docs/ into dist/site; a broken link is an error.
docs: install-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Lets each tracker's own writer write runs and reads them back; installs the trackers into environments of their own.
test-trackers: install-dev
	$(BIN)/pytest -q -m trackers tests/trackers

install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("firstdrift needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo "Installing what firstdrift needs into $(VENV); this takes a minute the first time."
	$(BIN)/python -m pip install --quiet -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@

$(VENV)/.installed-dev: requirements-dev.lock $(VENV)/.installed
	@echo "Installing the tools of the tests into $(VENV)."
	$(BIN)/python -m pip install --quiet -r requirements-dev.lock
	touch $@

# Renews both lock files; needs uv on the PATH.
lock:
	uv pip compile --quiet --universal --no-emit-index-url --no-annotate --no-header pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --no-emit-index-url --no-annotate --no-header -c requirements.lock --group dev pyproject.toml -o requirements-dev.lock

clean:
	rm -rf $(VENV) .venv-client .venv-otava data dist build
