# The commands people use. `make` alone lists them; CONTRIBUTING.md says when to use which.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# What survives a clean checkout: compiled dependencies and installed tools.
export BERTH_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/berth
export CARGO_TARGET_DIR ?= $(BERTH_CACHE)/target
# Where scripts/setup puts a Rust or a Node it had to install.
export PATH := $(BERTH_CACHE)/node/node_modules/.bin:$(HOME)/.cargo/bin:$(PATH)

binary = $(CARGO_TARGET_DIR)/release/berth
# The one place that names its version is scripts/setup.
schemathesis_home = $(BERTH_CACHE)/schemathesis-$(shell sed -n 's/^schemathesis_version=//p' scripts/setup)

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## build Berth and serve the living demo on http://localhost:8080
	@scripts/setup run
	@$(MAKE) --no-print-directory web/dist
	cargo build --release --locked --package berth
	@echo "The binary is $(binary)"
	@$(binary) env prepare jupyterlab || echo "Without it, notebooks cannot be started."
	@exec $(binary) demo

.PHONY: test
test: ## everything CI checks, on both databases
	@scripts/setup test
	@$(MAKE) --no-print-directory web/dist
	@$(MAKE) --no-print-directory tidy
	scripts/with-postgres $(MAKE) --no-print-directory suite
	@scripts/advisories

.PHONY: advisories
advisories: ## look known vulnerabilities of dependencies up; fails where that cannot be done
	@scripts/advisories --or-fail

.PHONY: quotas
quotas: ## the tests of project quotas, in a kernel that has them (Debian on x86-64, as root)
	@scripts/check-quotas

.PHONY: check
check: tidy ## the quick loop: format, lint, unit tests
	cargo test --workspace --locked --quiet --lib --bins

# The pages as files, from which the binary is built. Made again when something they are made of has changed.
web/dist: web/node_modules docs/openapi.json $(shell find web/src web/public web/index.html web/*.ts web/*.js -type f 2>/dev/null)
	npm --prefix web run --silent build
	@touch $@

web/node_modules: web/package.json web/package-lock.json
	npm --prefix web ci --silent --no-audit --no-fund
	@touch $@

.PHONY: dev
dev: web/node_modules ## the pages with hot reload, on a server at $BERTH_URL (http://127.0.0.1:8080)
	npm --prefix web run dev

.PHONY: screenshots
screenshots: web/dist ## a picture of every page, light, dark and on a phone, in web/screenshots/
	@scripts/setup test
	cargo build --locked --quiet --package berth
	BERTH_BINARY=$(CARGO_TARGET_DIR)/debug/berth npm --prefix web run screenshots

.PHONY: bench
bench: web/dist ## measure; one group with ONLY=booking
	@scripts/setup bench
	cargo build --release --locked --package berth --package berth-bench
	$(CARGO_TARGET_DIR)/release/berth-bench $(ONLY)

.PHONY: openapi
openapi: ## write docs/openapi.json from the code
	cargo run --locked --quiet --package berth -- openapi > docs/openapi.json.new
	mv docs/openapi.json.new docs/openapi.json

.PHONY: fmt
fmt: ## format the code
	cargo fmt --all

# The parts of the above; not for people.

.PHONY: tidy
tidy:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- --deny warnings

.PHONY: suite
suite:
	npm --prefix web run --silent check
	cargo test --workspace --locked --no-fail-fast
	cargo build --locked --quiet --package berth
	for app in jupyterlab tensorboard mlflow; do $(CARGO_TARGET_DIR)/debug/berth env prepare $$app; done
	for store in sqlite postgres; do \
		BERTH_E2E_STORE=$$store BERTH_BINARY=$(CARGO_TARGET_DIR)/debug/berth npm --prefix web run --silent e2e; \
	done
	@if [ -n "$$(find tests -name 'test_*.py' -print -quit 2>/dev/null)" ]; then \
		BERTH_BINARY=$(CARGO_TARGET_DIR)/debug/berth $(schemathesis_home)/bin/python -m pytest -q tests; \
	fi
