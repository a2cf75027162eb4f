# Two commands do everything: `make up` runs the product, `make test` installs what tests need and
# runs them all.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PROGRAM := target/release/urr
.PHONY: help up build web test servers bench lint fmt clean

help: ## Show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

up: build ## Build and run URR with demo data; the address is printed
	$(PROGRAM) up $(ARGS)

# Line tables and symbols go into a file beside the program, where backtraces find them; without objcopy they
# stay in the program.
build: web ## Build the program into target/release/urr
	cargo build --release --locked --bin urr
	if command -v objcopy > /dev/null && objdump --section-headers $(PROGRAM) | grep '\.debug_line' > /dev/null; then \
		objcopy --only-keep-debug $(PROGRAM) $(PROGRAM).debug; \
		objcopy --strip-all --add-gnu-debuglink=$(PROGRAM).debug $(PROGRAM); \
	fi

# What pages are made from: everything below web that is not made itself.
web_sources := $(shell find web \( -name node_modules -o -name build -o -name .svelte-kit \
	-o -name test-results -o -path web/src/lib/text/messages -o -path web/src/lib/styles/fonts \) \
	-prune -o -type f ! -name schema.d.ts -print) docs/openapi.json scripts/build-web.sh scripts/node.sh

web: web/build/routes.json ## Build the pages that the program carries, if their sources changed

web/build/routes.json: $(web_sources)
	scripts/build-web.sh

servers: ## Install what tests need (PostgreSQL, Redis, Kafka, SQS, Schemathesis, Chromium, promtool)
	scripts/install-test-servers.sh

test: web ## Run all tests, on the embedded engines, on the real servers and in a browser
	scripts/install-test-servers.sh || test "$${CI:-}" != true
	scripts/test-rust.sh
	scripts/test-deploy.sh
	scripts/test-web.sh

bench: build ## Print all speeds in one table; BENCH=full adds the long ones
	scripts/install-test-servers.sh
	scripts/bench.sh
	test "$${BENCH:-}" != full || scripts/bench-web.sh

lint: ## Check format and lints; warnings fail
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

fmt: ## Format the code
	cargo fmt --all

clean: ## Remove what was built; data stay
	cargo clean
