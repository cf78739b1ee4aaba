# SPDX-License-Identifier: Apache-2.0
# What must be on the machine. `make demo` and `make check` see to it themselves.

.PHONY: deps
deps: ## install the Debian packages that are missing to build and run it
	@tests/support/install-deps run

.PHONY: deps-check
deps-check: ## the same, and what `make check` needs
	@tests/support/install-deps check

.PHONY: deps-ci
deps-ci: ## the same, and what analysis, fuzzing and CI need
	@tests/support/install-deps ci
