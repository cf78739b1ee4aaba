# SPDX-License-Identifier: Apache-2.0
# The gate's rules are compiled when Lychgate is built: lych-vessel links Vectorscan's
# runtime only, the compiler of expressions (libhs) stays here.

GATE_COMPILER := $(B)/vessel/gate/compile/compile
$(GATE_COMPILER): $(B)/vessel/gate/compile/compile.o $(B)/vessel/gate/rules/rules.o $(B)/vessel/gate/rules/words.o \
		$(B)/vessel/gate/valid/form.o $(OBJ_common)
	$(call say,LD $@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lhs -lpcre2-8
$(B)/gen/gate_db.inc: $(GATE_COMPILER)
	@mkdir -p $(@D)
	$(call say,RULES $@)
	$(Q)$(GATE_COMPILER) > $@
$(B)/vessel/gate/rules/anchors.o: $(B)/gen/gate_db.inc

.PHONY: bench-gate
bench-gate: $(B)/tests/support/gate_measure ## the gate's CPU time for 64 KiB, on a machine that does nothing else
	@python3 tests/support/python/gate_corpus.py --program $< --time

# Other people's data: npm's and Debian's packages, which are fetched for it and kept in build/corpora.
.PHONY: gate-corpora gate-corpora-inner
gate-corpora: ## the gate on public rule sets, personal data, texts and pictures (docs/GATE.md; OPTIONS="--write docs/GATE.md")
	@tests/support/install-deps corpora
	@$(AS_USER) OPTIONS="$(OPTIONS)" gate-corpora-inner
gate-corpora-inner:
	@$(MAKE) -s -j2 $(addprefix $(B)/tests/,support/gate_measure support/gate/gate_talk unit/vessel/broker/gate/test_gate_issued)
	@tests/real/gate/run $(OPTIONS)
