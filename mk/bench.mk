# SPDX-License-Identifier: Apache-2.0
# Side by side with other sandboxes (tests/bench). bench_*.c and try_*.c are programs (try_*
# run inside), the rest are their parts.

BENCH_C := $(wildcard tests/bench/*.c)
BENCH_MAINS := $(filter tests/bench/bench_%.c tests/bench/try_%.c,$(BENCH_C))
BENCH_OBJ := $(call obj,$(filter-out $(BENCH_MAINS),$(BENCH_C)))
BENCH_BIN := $(BENCH_MAINS:%.c=$(B)/%)
BENCH_FILTER := $(B)/tests/bench/bench_filter

$(BENCH_FILTER): $(B)/%: $(B)/%.o $(call obj,$(filter-out sandbox/main.c,$(SRC_sandbox))) $(OBJ_common)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_sandbox)
$(filter-out $(BENCH_FILTER),$(BENCH_BIN)): $(B)/%: $(B)/%.o $(BENCH_OBJ) $(OBJ_common)
	$(CC) $(LDFLAGS) -o $@ $^

.PHONY: bench-programs
bench-programs: all $(BENCH_BIN)
test-programs: $(BENCH_BIN) # so that they keep up with what they measure

RUNS ?= 3
.PHONY: bench bench-quick
bench: ## beside other sandboxes, RUNS times (3); writes docs/bench, fails when a must is missed
	@tests/support/install-deps bench
	@tests/bench/run $(RUNS)
bench-quick: ## start-up only, few rounds, on the terminal
	@tests/support/install-deps bench
	@tests/bench/run --quick
