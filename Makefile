# One entry for everything; `make` alone lists it. Python 3.11 and Node 20 are all that has to be there.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
BIN := .venv/bin
export WEB_PORT ?= 8000
export DYNAMO_PORT ?= 8001
export PYTHONUNBUFFERED := 1
# Where the environment forbids bytecode, every process of the tests would compile Django anew.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/pytest -q -n 2 --dist worksteal

# The tests keep both cores busy, and the checks one: beside each other they take less time than after each other.
# Tests that do what the checks do leave it to them (TEST_BESIDE_CHECKS).
define beside_checks
	@said=$$(mktemp); \
	{ $(MAKE) --no-print-directory check > $$said 2>&1 || { echo; cat $$said; exit 1; }; } & checks=$$!; \
	status=0; export TEST_BESIDE_CHECKS=1; $(1) || status=$$?; \
	wait $$checks || { echo "The checks have failed: see above, or run make check."; status=1; }; \
	rm $$said; exit $$status
endef

.PHONY: help run test test-long test-fast test-browser test-deep test-migrations test-transports test-versions test-wheel test-packages test-helpdesk test-django screenshots docs site bench bench-full bench-partition bench-shards bench-walks bench-tests bench-backfill bench-cpu check lint format messages install install-dev

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

run: install ## start the demo: engine, table, data, a superuser and the web server (WEB_PORT, DYNAMO_PORT)
	@exec $(BIN)/python manage.py demo

# Most of their time goes to processes that they start, or that race and are killed: projects, servers, benchmarks.
LONG := tests/benchmarks/test_benchmarks.py tests/helpdesk tests/upstream tests/protocol tests/contract/isolation \
	tests/contract/robustness tests/contract/adoption/test_companion_killed.py \
	tests/contract/adoption/test_companion_processes.py tests/contract/adoption/test_inspected_classes.py \
	tests/contract/adoption/test_inspected_designs.py tests/contract/adoption/test_inspected_random.py \
	tests/contract/demo tests/contract/table/test_deadlines.py tests/contract/table/test_engines.py \
	tests/contract/table/test_stopped_processes.py \
	tests/contract/accounts/test_accounts_own_app.py tests/contract/admin/test_admin_mixed.py \
	tests/contract/backend/test_backend_commands.py tests/contract/commands/test_demo.py \
	tests/contract/commands/test_startproject.py tests/contract/commands/test_startup_models.py \
	tests/contract/item_migrations/test_killed.py tests/contract/item_migrations/test_stopped_code.py \
	tests/contract/sql_import/test_interrupted.py

# A worker waits for the engine a sixth of the time, so that two do not keep two cores busy.
test: install-dev ## everything that has to hold before a change is handed in, but for test-long
	$(call beside_checks,$(PYTEST) -n 3 $(LONG:%=--ignore=%))

test-long: install-dev ## the tests that take longest: whole projects, processes that race or are killed, migrations' protocol, benchmarks, Django's own
	@$(PYTEST) -n 3 $(LONG)

test-fast: install-dev ## the tests that need no engine (half a minute)
	@$(PYTEST) tests/unit tests/docs/test_reference*.py

test-browser: .venv/installed-browser node_modules/installed ## run the demo in headless Chromium (ARGS="-k lists"); Chromium is installed where that can be done
	@$(BIN)/python -m tests.browser.run $(ARGS)

screenshots: .venv/installed-browser node_modules/installed ## make the pictures of the docs again (docs/images), with the same tests
	@TEST_SCREENSHOTS=1 $(BIN)/python -m tests.browser.run

test-deep: install-dev ## all tests with their long cases and large numbers of examples, before a release (docs/reference/tests.md)
	$(call beside_checks,TEST_DEEP=1 $(PYTEST))
	@for names in other untyped; do \
		TEST_NAMES=$$names $(PYTEST) tests/contract/reading tests/contract/writing tests/contract/model; \
	done

test-migrations: install-dev ## each operation on 100,000 items, killed three times, with writers of old and new code (hours; ARGS="-k move")
	@TEST_DEEP=1 TEST_PATIENCE=300 MIGRATION_ITEMS=100000 MIGRATION_KILLS=3 MIGRATION_KILLED_WITHIN=8000 MIGRATION_PAGE=1000 \
		$(PYTEST) -n 0 tests/contract/item_migrations/test_killed.py::test_processes_that_are_killed_while_old_and_new_code_writes $(ARGS)

test-transports: install-dev ## run the tests on botocore's request path, as `make test` runs them on our own (a quarter of an hour)
	@TEST_TRANSPORT=botocore $(PYTEST) tests/contract tests/docs
	@for path in direct botocore; do \
		TEST_STRICT=1 TEST_TRANSPORT=$$path $(PYTEST) tests/contract/table tests/contract/reading tests/contract/writing; \
	done

test-versions: node_modules/installed ## run the tests on every supported Python and Django that is here (ONLY=3.12-django6.1, ARGS=tests/unit)
	@$(PYTHON) tests/versions.py $(ARGS)

test-wheel: node_modules/installed ## build the sdist and the wheel, and test the installed wheel on each installed Python (ONLY=3.12-django6.1, ONLY=here)
	@$(PYTHON) -m tests.wheel $(ARGS)

test-packages: .venv-packages/installed node_modules/installed ## run the tests with the packages that projects add, in an environment of its own (tests/packages)
	@DJANGO_SETTINGS_MODULE=tests.packages.settings .venv-packages/bin/pytest -q -n 0 -o python_files="package_*.py" -W default tests/packages $(ARGS)

test-helpdesk: install-dev ## test the help desk, a project built from the documentation (tests/helpdesk)
	@$(BIN)/pytest -q tests/helpdesk $(ARGS)

test-django: node_modules/installed ## run Django's own tests against our models, on every supported Django (ARGS="--write lookup")
	@$(PYTHON) -m tests.upstream.releases $(ARGS)

docs: install-dev ## run every example of README and docs/, and compare the reference with the code
	@$(BIN)/pytest -q -n 2 tests/docs

messages: install-dev ## update the catalogs of translations from the sources and compile them (needs gettext)
	@cd dynamo_single && ../$(BIN)/django-admin makemessages --all --no-location --no-obsolete && ../$(BIN)/django-admin compilemessages

site: .venv-docs/installed ## build the documentation as a site, with links checked (var/site/html)
	@.venv-docs/bin/python docs/site/build.py

bench: .venv/installed-bench ## measure the app against other clients, the floor and SQLite (ten minutes)
	@$(BIN)/python -m benchmarks.all

bench-full: .venv/installed-bench ## the same with more rounds, written to docs/benchmarks (half an hour)
	@$(BIN)/python -m benchmarks.all --size full --to docs/benchmarks

bench-partition: install-dev ## measure what reading costs in a partition of 100,000 items (two minutes)
	@$(BIN)/python -m benchmarks.large_partition.run

bench-shards: install-dev ## measure how long one waits for a list over shards (half a minute)
	@$(BIN)/python -m benchmarks.shards.run

bench-walks: install-dev ## count the calls, modules and moves of single operations (ten seconds)
	@$(BIN)/python -m benchmarks.walks.run

bench-tests: install-dev ## measure what a test pays for its test table (half a minute)
	@$(BIN)/python -m benchmarks.test_isolation.run

bench-backfill: install-dev ## measure writing a key into every item, against PynamoDB (ten minutes; ITEMS="10000 200000")
	@$(BIN)/python -m benchmarks.backfill.run $(ITEMS)

bench-cpu: install-dev ## measure the client CPU of single operations against PynamoDB (a minute)
	@$(BIN)/python -m benchmarks.client_cpu.run

check: lint ## lint, import contract and types, without tests
	@said=$$($(BIN)/lint-imports --no-cache 2>&1) || { echo "$$said"; exit 1; }
	@$(BIN)/mypy

lint: install-dev ## ruff's rules, its formatting, and the prose (python -m tests.prose)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/python -m tests.prose

format: install-dev ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

install: .venv/installed node_modules/installed ## .venv, and the local engine

# pip and npm beside each other: neither needs what the other one brings.
install-dev:
	@$(MAKE) --silent --no-print-directory -j2 .venv/installed-dev node_modules/installed

.venv/bin/python:
	@echo "Making .venv"
	@$(PYTHON) -m venv .venv

# The stamps make a second run instant; a changed requirement makes them stale.
.venv/installed: requirements.txt | .venv/bin/python
	@echo "Installing the requirements"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

# The tools' list has the requirements in it: one run of pip installs both. It compiles nothing: the first run of the tests
# compiles what it imports, on all cores, which is a third of what there is.
.venv/installed-dev: tests/requirements.txt requirements.txt | .venv/bin/python
	@echo "Installing the requirements and the tools"
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -r tests/requirements.txt
	@touch .venv/installed $@

.venv/installed-browser: tests/requirements-browser.txt .venv/installed-dev | .venv/bin/python
	@echo "Installing the browser's driver"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r tests/requirements-browser.txt
	@touch $@

# Peers are compared where they install; their pins must not move what the tests run on.
.venv/installed-bench: benchmarks/requirements.txt | install-dev
	@echo "Installing the peers"
	@grep -oE '^[a-z0-9-]+==[^ ]+' $< | while read -r peer; do \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.txt "$$peer" \
			|| echo "Left out: $$peer does not install here."; \
	done
	@touch $@

.venv-docs/installed: docs/site/requirements.txt tests/requirements.txt requirements.txt
	@echo "Installing Sphinx"
	@$(PYTHON) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -r $<
	@touch $@

.venv-packages/installed: tests/packages/requirements.txt tests/requirements.txt requirements.txt
	@echo "Installing the packages"
	@$(PYTHON) -m venv .venv-packages
	@.venv-packages/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -r $<
	@touch $@

node_modules/installed: package.json package-lock.json
	@echo "Installing the engine and pyright"
	@npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error > /dev/null
	@touch $@
