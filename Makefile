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
test: ## everything CI checks, stage by stage, on both databases
	@scripts/stages setup pages lint build tests environments browser-sqlite browser-postgres vulnerabilities

.PHONY: advisories
advisories: ## look known vulnerabilities of dependencies up; fails where that cannot be done
	@scripts/advisories --or-fail

.PHONY: quotas
quotas: ## the tests of project quotas, in a kernel that has them (Debian on x86-64, as root)
	@scripts/check-quotas

.PHONY: check
check: lint ## the quick loop: format, lint, unit tests
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

# The stages of `make test`; not for people.

built = $(CARGO_TARGET_DIR)/debug

.PHONY: setup
setup:
	@scripts/setup test

.PHONY: pages
pages: web/dist
	npm --prefix web run --silent check

.PHONY: lint
lint: web/dist
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- --deny warnings

# All that the later stages start is built here, and once: another set of packages would have other features.
.PHONY: build
build: web/dist
	cargo test --workspace --locked --no-run

.PHONY: tests
tests:
	$(built)/with-postgres cargo test --workspace --locked --no-fail-fast

.PHONY: environments
environments:
	for app in jupyterlab tensorboard mlflow; do $(built)/berth env prepare $$app || exit; done

.PHONY: browser-sqlite
browser-sqlite:
	BERTH_E2E_STORE=sqlite BERTH_BINARY=$(built)/berth npm --prefix web run --silent e2e

# The tests that the list in web/playwright.config.ts names.
.PHONY: browser-postgres
browser-postgres:
	BERTH_E2E_STORE=postgres BERTH_BINARY=$(built)/berth $(built)/with-postgres npm --prefix web run --silent e2e

# 77 says that nothing could be looked up; scripts/stages then writes NOT CHECKED for the stage.
.PHONY: vulnerabilities
vulnerabilities:
	@scripts/advisories || { [ $$? -eq 77 ] && touch "$${STAGE_NOT_CHECKED:-/dev/null}"; }
