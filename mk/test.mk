# SPDX-License-Identifier: Apache-2.0
# Tests. A test program is linked with archives: of common/, of the
# helpers tests/support/*.c that have no main(), and of the objects (but main.o) of
# the directories whose headers it includes. So it has what it calls, and no more
# shared libraries than that needs: Criterion forks for each of its tests, and each
# fork pays for all that is mapped.

TEST_LIBS := $(sort $(LIBS_vessel) $(LIBS_cli))
# link_test: the objects among what it depends on, then its archives, then of these libraries those that it needs.
link_test = $(CC) $(LDFLAGS) $(2) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -Wl,--as-needed $(1)
# .c files that are programs by themselves / that are helpers to link
paren := (
main_in = $(shell grep -l '^int main[$(paren)]' /dev/null $(1))
SUPPORT_C := $(wildcard tests/support/*.c tests/support/gate/*.c tests/support/git/*.c)
SUPPORT_PROGRAMS := $(call main_in,$(SUPPORT_C))
SUPPORT_OBJ := $(call obj,$(filter-out $(SUPPORT_PROGRAMS) $(addprefix tests/support/,seeded_leak.c fetch_call.c),$(SUPPORT_C)))

UNIT_C := $(call sources,tests/unit)
INTEGRATION_C := $(foreach f,$(call sources,tests/integration),$(if $(filter test_%,$(notdir $(f))),$(f)))
ESCAPE_TEST_C := $(wildcard tests/escape/test_*.c)
ESCAPE_TRY_C := $(wildcard tests/escape/try_*.c)
FUZZ_C := $(wildcard tests/fuzz/fuzz_*.c)
CRITERION_C := $(UNIT_C) $(INTEGRATION_C) $(ESCAPE_TEST_C)

# The directories that each of these (and the helpers) includes from.
ROOMS := sandbox vessel tomb cli secrets job
room_users = $(shell grep -l '^\#include "$(1)/' /dev/null $(CRITERION_C) $(FUZZ_C) $(SUPPORT_C))
$(foreach r,$(ROOMS),$(eval USERS_$(r) := $(call room_users,$(r))))
room_obj = $(call obj,$(filter-out $(MAINS),$(SRC_$(1))) $(if $(filter cli,$(1)),$(MANIFEST)))
archive = $(patsubst %,$(B)/lib/%.a,$(1))
rooms_of = $(call archive,$(foreach r,$(ROOMS),$(if $(filter $(1),$(USERS_$(r))),$(r))) net common)
OBJ_net := $(call obj,$(SRC_net))

# Thin: lists of the objects where they lie. All of them anew, so that none stays whose source is gone.
$(foreach r,$(ROOMS),$(eval $(call archive,$(r)): $(call room_obj,$(r))))
$(call archive,net): $(OBJ_net)
$(call archive,common): $(OBJ_common)
$(call archive,support): $(SUPPORT_OBJ)
$(B)/lib/%.a:
	@mkdir -p $(@D)
	@rm -f $@
	ar qcsD --thin $@ $^

UNIT_BIN := $(UNIT_C:%.c=$(B)/%)
INTEGRATION_BIN := $(INTEGRATION_C:%.c=$(B)/%)
ESCAPE_BIN := $(ESCAPE_TEST_C:%.c=$(B)/%) $(ESCAPE_TRY_C:%.c=$(B)/%)
SUPPORT_BIN := $(SUPPORT_PROGRAMS:%.c=$(B)/%)
FUZZ_BIN := $(FUZZ_C:%.c=$(B)/%)

define criterion_rule
$(B)/$(1:%.c=%): $(B)/$(1:%.c=%.o) $(call archive,support) $(call rooms_of,$(1))
	$$(call link_test,-lcriterion $$(TEST_LIBS))
endef
$(foreach t,$(CRITERION_C),$(eval $(call criterion_rule,$(t))))
# Criterion's macros shadow and cast as they like.
$(CRITERION_C:%.c=$(B)/%.o) $(B)/tests/support/seeded_leak.o: CFLAGS += -Wno-conversion -Wno-sign-conversion -Wno-shadow -Wno-cast-qual

# What runs inside a sandbox needs nothing of the host.
$(ESCAPE_TRY_C:%.c=$(B)/%): $(B)/%: $(B)/%.o $(OBJ_common)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)
# A section of the threats a file, the victims, and the program that holds them.
PROBE_OBJ := $(call obj,$(wildcard tests/escape/probe/*.c))
$(B)/tests/escape/try_probe: $(PROBE_OBJ)
# The kinds of objects, a file for each part of the kernel.
OBJECTS_OBJ := $(call obj,$(wildcard tests/escape/objects/*.c))
$(B)/tests/escape/try_objects: $(OBJECTS_OBJ)
$(B)/tests/escape/try_unruly: $(call obj,$(wildcard tests/escape/unruly/*.c))
$(B)/tests/escape/try_metadata: $(call obj,$(wildcard tests/escape/metadata/*.c))
# It compares the kernel's answers with the table's.
$(B)/tests/escape/try_syscalls: $(addprefix $(B)/,sandbox/walls/seccomp_table.o sandbox/walls/seccomp_bpf.o sandbox/walls/seccomp_shrink.o)
$(B)/tests/escape/try_syscalls: LDLIBS := -lseccomp
# A row says only what it has.
$(PROBE_OBJ): CFLAGS += -Wno-missing-field-initializers
$(B)/tests/support/docs/errors_md $(B)/tests/support/lie: %: %.o $(OBJ_common)
	$(CC) $(LDFLAGS) -o $@ $^
$(B)/tests/support/docs/inputs_md $(B)/tests/support/docs/terminal_md: %: %.o $(OBJ_common)
	$(CC) $(LDFLAGS) -o $@ $^
$(B)/tests/support/docs/quarantine_md: $(B)/tests/support/docs/quarantine_md.o $(B)/common/text/hazard.o $(B)/common/text/hazard_table.o $(B)/common/text/ignorable.o $(OBJ_common)
	$(CC) $(LDFLAGS) -o $@ $^
# Our URL grammar beside libcurl's.
$(B)/tests/support/url_read: $(addprefix $(B)/vessel/egress/,url.o addr.o reason.o)
# A fetch without the vessel around it.
$(B)/tests/support/fetch_drive: $(B)/tests/support/fetch_call.o $(call archive,vessel)
# The vessel's second door alone, and who goes through it.
$(B)/tests/support/door: $(call archive,vessel)
$(B)/tests/support/gate_measure $(B)/tests/support/gate/gate_talk $(B)/tests/support/git/pack_read: $(call archive,vessel)
$(B)/tests/support/chaos_queue: $(addprefix $(B)/tests/support/,door_client.o chaos/chaos_verdict.o)
$(filter-out %/lie,$(SUPPORT_BIN)): $(B)/%: $(B)/%.o $(call archive,net common)
	$(call link_test,$(TEST_LIBS))

# The programs of a release with one migration more: what is not changed by it is this one's.
NEXT := $(B)/next
NEXT_C := $(filter %/migrate.c,$(SRC_vessel)) $(shell grep -l 'content\.h"' /dev/null $(SRC_cli))
NEXT_REST := $(filter-out lych lych-vessel,$(PROGRAMS)) $(TOOLS)
next_obj = $(foreach c,$(1),$(if $(filter $(c),$(NEXT_C)),$(NEXT)/$(c:.c=.o),$(B)/$(c:.c=.o)))
$(NEXT)/src/schema.inc: tests/support/next-release tests/support/next.sql $(B)/gen/schema.inc $(NEXT_C) $(filter %/content.h,$(wildcard $(NEXT_C:.c=.h)))
	tests/support/next-release $(@D) $(MIGRATIONS)
$(NEXT_C:%.c=$(NEXT)/%.o): $(NEXT)/%.o: %.c $(NEXT)/src/schema.inc
	@mkdir -p $(@D)
	$(call say,CC $@)
	$(Q)c=$(NEXT)/src/$<; [ -e "$$c" ] || c=$<; $(CC) -I$(NEXT)/src $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ "$$c"
$(eval $(call linked,$(NEXT),lych-vessel,next_obj,vessel))
$(eval $(call linked,$(NEXT),lych,next_obj,cli))
$(NEXT)/complete: $(NEXT)/lych $(NEXT)/lych-vessel $(addprefix $(B)/,$(NEXT_REST))
	@mkdir -p $(NEXT)/tools
	for p in $(NEXT_REST); do ln -f $(B)/$$p $(NEXT)/$$p; done
	@touch $@

# Test builds of the daemons, in test-build/: they try their own walls, and lie when they are told to (LYCH_TEST_BUILD).
# What is not changed by that is the release's.
TEST_BUILD := $(B)/test-build
TEST_BUILD_BIN := $(addprefix $(TEST_BUILD)/,lych-tomb lych-vessel lych-scribe)
# All of the tomb, whose struct tomb is another then. A variant that is a test build itself has no other.
TEST_BUILD_C := $(if $(findstring LYCH_TEST_BUILD,$(CFLAGS_$(VARIANT))),,$(SRC_tomb) \
	$(shell grep -l LYCH_TEST_BUILD /dev/null $(SRC_vessel) $(SRC_net)))
test_build_obj = $(foreach c,$(1),$(if $(filter $(c),$(TEST_BUILD_C)),$(TEST_BUILD)/$(c:.c=.o),$(B)/$(c:.c=.o)))
$(TEST_BUILD_C:%.c=$(TEST_BUILD)/%.o): $(TEST_BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC $@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -DLYCH_TEST_BUILD=1 -MMD -MP -c -o $@ $<
$(foreach p,vessel scribe tomb,$(eval $(call linked,$(TEST_BUILD),lych-$(p),test_build_obj,$(p))))

# Fuzz targets: libFuzzer's main in the fuzz variant, elsewhere one that replays files.
ifeq ($(VARIANT),fuzz)
FUZZ_MAIN := -fsanitize=fuzzer
else
FUZZ_MAIN := $(B)/tests/fuzz/replay.o
endif
define fuzz_rule
$(B)/$(1:%.c=%): $(B)/$(1:%.c=%.o) $(filter %.o,$(FUZZ_MAIN)) $(call rooms_of,$(1))
	$$(call link_test,$$(TEST_LIBS),$(filter -f%,$(FUZZ_MAIN)))
endef
$(foreach t,$(FUZZ_C),$(eval $(call fuzz_rule,$(t))))

.PHONY: unit-programs escape-programs test-builds test-programs
test-builds: $(TEST_BUILD_BIN)
unit-programs: $(UNIT_BIN) $(FUZZ_BIN)
escape-programs: $(ESCAPE_BIN) $(SUPPORT_BIN) $(DOC_WRITERS)
test-programs: unit-programs escape-programs $(INTEGRATION_BIN) $(NEXT)/complete $(TEST_BUILD_BIN)

CHECK := VARIANT=$(VARIANT) tests/support/check
AS_USER := tests/support/as-user make --no-print-directory VARIANT=$(VARIANT)

.PHONY: check check-inner
check: deps-check ## everything that must pass before a commit (ONLY=name, MUST_RUN=1)
	@$(AS_USER) check-inner
check-inner:
	@$(MAKE) -s -j2 all test-programs
	@$(CHECK) all

.PHONY: check-unit check-escape check-integration check-replay
check-unit: deps-check ## unit tests only
	@$(AS_USER) check-inner-unit
check-replay: deps-check ## the fuzz corpora through the gcc build
	@$(AS_USER) check-inner-replay
check-escape: deps-check ## the attempts to get out of the sandbox
	@$(AS_USER) check-inner-escape
check-integration: deps-check ## real daemons, a throwaway PostgreSQL
	@$(AS_USER) check-inner-integration
check-inner-unit check-inner-replay: check-inner-%:
	@$(MAKE) -s -j2 unit-programs
	@$(CHECK) $*
check-inner-escape check-inner-integration: check-inner-%:
	@$(MAKE) -s -j2 all test-programs
	@$(CHECK) $*

# Real work, with heavy packages: not part of check.
.PHONY: check-real check-real-inner
check-real: ## 64 kinds of real work and more, bare, in full, in floor (NAMES="git npm"); SDKs and coding agents of npm (RUNS=1), llama.cpp, screens
	@tests/support/install-deps real
	@tests/support/as-user make --no-print-directory NAMES="$(NAMES)" RUNS="$(RUNS)" check-real-inner
# root searches the memory of the tomb; all else is the user's
	@if [ "$$(id -u)" -eq 0 ]; then \
		"$$(tests/support/as-user --tree)/tests/real/broker/run" --user "$${LYCH_TEST_USER:-lychgate-test}"; \
	else tests/real/broker/run; fi
check-real-inner:
	@$(MAKE) -s -j2 all
	@tests/real/run $(NAMES)
	@tests/real/broker/tomb
	@tests/real/broker/llama
	@tests/real/clients/run
	@RUNS=$(or $(RUNS),1) tests/real/agents/run
	@tests/real/packages/run
	@tests/real/packages/clients
	@tests/real/terminal/run

# A workstation is booted for it, which takes root: this machine's, or by sudo.
.PHONY: e2e e2e-inner
e2e: ## the pod in both profiles, the escape tests in a container, lych bind, and embedded mode as a unit, on a workstation booted for it (root; VM=1: its limits too)
	@tests/support/install-deps $(if $(VM),vm,e2e)
	@$(AS_USER) VARIANT=release e2e-inner
	@as_root=(); [ "$$(id -u)" -eq 0 ] || as_root=(sudo -n); \
		"$${as_root[@]}" env VM="$(VM)" LYCH_BIN="$$(tests/support/as-user --tree)/build/release" tests/e2e/all
e2e-inner:
	@$(MAKE) -s -j2 VARIANT=release all escape-programs
.PHONY: e2e-bases
e2e-bases: ## the roots that e2e boots and builds on, kept in build/e2e (root)
	@tests/support/install-deps e2e
	@tests/e2e/all --bases

# Sanitizers: unit tests, the corpora, and the daemons' own flows. Escape tests
# judge the release build: a sanitizer's runtime is not what is shipped.
.PHONY: build-asan build-inner-asan check-asan check-inner-asan
ASAN_SUITES := $(or $(SUITES),unit replay integration)
ASAN_NEEDS := $(if $(filter-out unit replay,$(ASAN_SUITES)),all test-programs,unit-programs) build/asan/tests/support/seeded_leak
build-asan: deps-check ## what check-asan runs
	@tests/support/as-user make --no-print-directory VARIANT=asan SUITES="$(SUITES)" build-inner-asan
build-inner-asan:
	@$(MAKE) -s -j2 VARIANT=asan $(ASAN_NEEDS)
check-asan: deps-check ## unit, replay and integration with ASan and UBSan (SUITES="unit replay": some)
	@tests/support/as-user make --no-print-directory VARIANT=asan SUITES="$(SUITES)" check-inner-asan
check-inner-asan:
	@$(MAKE) -s -j2 VARIANT=asan $(ASAN_NEEDS)
	@tests/support/leak-is-seen build/asan/tests/support/seeded_leak
	@VARIANT=asan tests/support/check $(ASAN_SUITES)
$(B)/tests/support/seeded_leak: $(B)/tests/support/seeded_leak.o
	$(CC) $(LDFLAGS) -o $@ $^ -lcriterion

# Many jobs, and jobs that misbehave, through one tomb: some minutes.
JOBS ?= 10000
.PHONY: check-soak check-inner-soak
check-soak: deps-check ## unruly jobs, and JOBS (10000) of all kinds, through one tomb
	@$(AS_USER) JOBS=$(JOBS) check-inner-soak
check-inner-soak:
	@$(MAKE) -s -j2 all test-programs
	@JOBS=$(JOBS) tests/support/check soak

FUZZ_SECONDS ?= 60
.PHONY: fuzz fuzz-inner
fuzz: deps-ci ## libFuzzer on each target, FUZZ_SECONDS each (60), ONLY=name
	@tests/support/as-user make --no-print-directory VARIANT=fuzz FUZZ_SECONDS=$(FUZZ_SECONDS) fuzz-inner
fuzz-inner:
	@$(MAKE) -s -j2 VARIANT=fuzz $(FUZZ_BIN)
	@tests/support/fuzz $(FUZZ_SECONDS) $(FUZZ_BIN)
