# Every command sets up what it needs by itself: see `make help`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
ROOT := tools/root
JOBS ?= $(shell nproc)

.PHONY: help build serve test bench lint format fuzz clean
help: ## show this list
	@awk -F':.*## ' '/^[a-z%-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the release programs into build/release/bin
	@$(ROOT) --section serve --build
	@$(ROOT) tools/compile release

serve: build ## build and start Molly; chat from another terminal with ./molly chat
	@exec ./molly serve $(ARGS)

test: ## build and pass every test
	@$(ROOT) --section test --build
	@$(ROOT) tools/test

bench: bench-gateway bench-fault bench-engine ## run every benchmark (QUICK=1: rougher, under a minute each)

bench-%: ## run one benchmark: bench-gateway, bench-fault, bench-engine
	@$(ROOT) --section bench --build
	@$(ROOT) tools/compile release
	@$(ROOT) bench/$*/run

lint: ## check formatting, includes and clang-tidy on changed files
	@$(ROOT) --section test --build
	@$(ROOT) tools/lint

format: ## format every source file
	@$(ROOT) --section test --build
	@$(ROOT) bash -c "git ls-files '*.h' '*.cc' | xargs clang-format -i"

fuzz: ## run every fuzz target for FUZZ_SECONDS (default 60) each
	@$(ROOT) --section test --build
	@$(ROOT) tools/fuzz

clean: ## remove what was built (the package root stays in the user's cache)
	rm -rf build
