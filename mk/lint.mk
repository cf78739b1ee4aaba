# SPDX-License-Identifier: Apache-2.0
# Borders, form, static analysis, generated documents.

ALL_C = $(SRC_common) $(SRC_net) $(SRC_sandbox) $(SRC_vessel) $(SRC_tomb) $(SRC_cli) $(SRC_secrets) $(SRC_job)
ALL_CH = $(shell find common sandbox vessel tomb cli secrets job tests -name '*.[ch]')
# Each prints one document of docs/, or the table in one.
DOC_WRITERS := $(addprefix $(B)/tests/support/docs/,errors_md inputs_md quarantine_md terminal_md) $(B)/tests/escape/try_probe $(B)/tests/escape/try_objects

.PHONY: check-layers check-links check-format check-docs check-sql check-size check-shell check-spelling lint
check-layers: ## includes stay inside the rooms' borders
	@tests/lint/layers
check-links: $(BIN) ## what the programs link, and their hardening
	@tests/lint/links
check-format:
	@tests/lint/format
check-docs: $(DOC_WRITERS)
	@tests/lint/generated-docs
	@tests/lint/probes-doc
check-sql:
	@tests/lint/sql
check-size:
	@tests/lint/size
check-shell:
	@tests/lint/shell
check-spelling:
	@tests/lint/spelling
lint: $(BIN) $(DOC_WRITERS) ## all of the border and form checks
	@$(CHECK) lint

.PHONY: rooms
rooms: ## what includes what, as text; with graphviz docs/rooms.svg is drawn anew
	@tests/support/rooms
	@if command -v dot >/dev/null; then tests/support/rooms --dot | dot -Tsvg -o docs/rooms.svg && echo "docs/rooms.svg is drawn"; \
		else echo "docs/rooms.svg is not drawn: install graphviz for its dot"; fi

.PHONY: format
format: ## clang-format every file in place
	clang-format-19 -i $(ALL_CH)

.PHONY: docs
docs: $(DOC_WRITERS) ## write the generated documents (docs/ERRORS.md, docs/INPUTS.md, docs/QUARANTINE.md, docs/TERMINAL.md, docs/TUNNEL_CASES.md, the table in docs/SANDBOX.md)
	$(B)/tests/support/docs/errors_md > docs/ERRORS.md
	$(B)/tests/support/docs/inputs_md > docs/INPUTS.md
	$(B)/tests/support/docs/quarantine_md > docs/QUARANTINE.md
	$(B)/tests/support/docs/terminal_md > docs/TERMINAL.md
	python3 -B tests/support/python/tunnel_cases.py > docs/TUNNEL_CASES.md
	tests/support/probe-table $(B)/tests/escape/try_probe $(B)/tests/escape/try_objects > $(B)/SANDBOX.md
	cp $(B)/SANDBOX.md docs/SANDBOX.md

# ---- static analysis ----------------------------------------------------------
# -fanalyzer where a mistake costs most and where gcc 12's C analysis is sound;
# its leak checks know no cleanup attribute's TAKE_PTR, hence the two exceptions.
ANALYZE_C = $(SRC_sandbox) $(SRC_common) $(wildcard common/confine/*.c common/json/json*.c) common/net/httpd_gate.c
ANALYZE_FLAGS := -fanalyzer -DLYCH_ANALYZER=1 -Wno-analyzer-malloc-leak -Wno-analyzer-fd-leak -Wno-analyzer-too-complex

.PHONY: check-static check-static-inner
check-static: deps-ci ## gcc -fanalyzer, cppcheck, clang-tidy (SOAK=1: on longer paths)
	@$(AS_USER) SOAK='$(SOAK)' check-static-inner
check-static-inner: compile_commands.json $(B)/gen/schema.inc $(B)/gen/gate_db.inc
	@SOAK='$(SOAK)' tests/support/static $(B) "$(CC) $(CPPFLAGS) -std=gnu17 -O2 $(ANALYZE_FLAGS) -Werror" \
		"$(ANALYZE_C)" "$(ALL_C)"

# ---- editors --------------------------------------------------------------------
.PHONY: compile_commands.json
compile_commands.json: ## for clangd and clang-tidy
	@{ echo '['; sep=; for f in $(ALL_C) $(call sources,tests); do \
		printf '%s{"directory":"%s","file":"%s","arguments":[' "$$sep" "$(CURDIR)" "$$f"; \
		printf '"%s",' $(CC) $(CPPFLAGS) $(filter-out -W% -f%,$(CFLAGS)); \
		printf '"-c","%s"]}' "$$f"; sep=,$$'\n'; \
	done; echo ']'; } > $@
