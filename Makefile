# SPDX-License-Identifier: Apache-2.0
# One non-recursive Makefile. `make help` names the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

VARIANT ?= release
PREFIX ?= /usr/local
DESTDIR ?=
ifneq (,$(filter fuzz,$(VARIANT)))
CC := clang
else ifeq ($(origin CC),default)
CC := gcc
endif
B := build/$(VARIANT)
# V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),,@echo '  $(1)')

# ---- flags -----------------------------------------------------------------
# try: the flag itself when this compiler accepts it, else nothing.
try = $(shell $(CC) -Werror $(1) -x c -c /dev/null -o /dev/null 2>/dev/null && echo '$(1)')

WARN := -Wall -Wextra -Wformat=2 -Wshadow -Wvla -Walloca -Wstrict-prototypes \
	-Wmissing-prototypes -Wwrite-strings -Wpointer-arith -Wcast-qual -Wundef -Wconversion \
	-Wsign-conversion -Wnull-dereference -Wswitch-enum -Wimplicit-fallthrough
WARN += $(call try,-Wformat-signedness) $(call try,-Wlogical-op) $(call try,-Wduplicated-cond) $(call try,-Wduplicated-branches) $(call try,-Wjump-misses-init)
ifneq ($(CI),)
WARN += -Werror
endif
HARDEN := -fstack-protector-strong -fno-strict-aliasing -fno-strict-overflow -fno-delete-null-pointer-checks \
	$(call try,-fstack-clash-protection) $(call try,-fcf-protection=full) $(call try,-ftrivial-auto-var-init=zero) \
	$(call try,-fzero-call-used-regs=used-gpr) $(call try,-fstrict-flex-arrays=3)
LDHARDEN := -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,nodlopen,-z,separate-code

CFLAGS_release := -O2 -g -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
CFLAGS_debug := -O1 -g -DLYCH_TEST_BUILD=1 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
CFLAGS_asan := -O1 -g -DLYCH_TEST_BUILD=1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_fuzz := -O1 -g -DLYCH_TEST_BUILD=1 -DLYCH_FUZZ=1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
CFLAGS_cover := -O0 -g -DLYCH_TEST_BUILD=1 --coverage
LDFLAGS_asan := -fsanitize=address,undefined
LDFLAGS_fuzz := -fsanitize=address,undefined
LDFLAGS_cover := --coverage

CPPFLAGS := -I. -I$(B)/gen -include common/banned.h
CFLAGS := -std=gnu17 $(WARN) $(HARDEN) -fPIE $(CFLAGS_$(VARIANT))
LDFLAGS := $(LDHARDEN) $(LDFLAGS_$(VARIANT))

# The sandbox starts three processes for each job: without shared libraries a start costs some
# 0.4 ms less, and nothing outside of it can be loaded into it. A sanitizer's runtime needs them.
LDSANDBOX := $(if $(filter release debug,$(VARIANT)),$(patsubst -pie,-static-pie,$(LDFLAGS)),$(LDFLAGS))

pkg = $(shell pkg-config $(1) $(2) 2>/dev/null)
LIBS_sandbox := -lseccomp
LIBS_vessel := -lhs_runtime -lpcre2-8 -lz -lpq -levent_core -lcurl -ljson-c -lcyaml -lseccomp -lcap -lssl -lcrypto -lm
LIBS_scribe := -levent_core -ljson-c -lseccomp -lcap -lcrypto
LIBS_audit := -lcrypto
LIBS_tomb := -lpq -levent_core -lcurl -ljson-c -lseccomp -lcap -lssl -lcrypto
LIBS_secrets := -lcrypto
LIBS_cli := -ljson-c -lcyaml -lcap -lcrypto
CPPFLAGS += $(call pkg,--cflags,libpq libhs)

# ---- sources ---------------------------------------------------------------
# A program is its directory plus what it takes from common/. Tests link the
# objects without main.o.
sources = $(sort $(shell find $(1) -name '*.c'))
# libc only: what the sandbox and the job's own tools may use too
SRC_common := $(wildcard common/*.c common/proto/*.c common/args/*.c common/term/*.c)
SRC_rooms := $(sort $(wildcard common/*/*.c))
SRC_net := $(filter-out $(SRC_common),$(SRC_rooms))
SRC_sandbox := $(call sources,sandbox)
# four programs live in vessel/: the control plane, the log's writer, its reader, and the compiler of the gate's rules
SRC_vessel := $(filter-out vessel/gate/compile/%,$(call sources,vessel))
SRC_scribe := $(addprefix vessel/scribe/,main.c scribe.c anchors.c anchor_line.c log.c recover.c streams.c seals.c seal.c unsealed.c merkle.c line.c)
SRC_audit := $(addprefix vessel/scribe/,audit_main.c audit_read.c anchor_read.c anchor_line.c audit_proof.c receipt_file.c seal_read.c seal.c unsealed.c merkle.c line.c)
MAINS := $(addsuffix /main.c,sandbox vessel tomb cli secrets) vessel/scribe/main.c vessel/scribe/audit_main.c job/ask.c job/fetch.c
SRC_tomb := $(call sources,tomb)
# lych-ask and lych-fetch, which run inside jobs
SRC_job := $(wildcard job/*.c)
SRC_cli := $(filter-out cli/probe/%,$(call sources,cli))
# lych-secret-driver, and what lych has of it too: the manifest, and how a passphrase becomes a key
SRC_secrets := $(wildcard secrets/*.c)
MANIFEST := secrets/manifest.c secrets/seal.c
# what of common/'s rooms each program links
room = $(wildcard common/$(1)/*.c)
NET_vessel := $(SRC_net)
NET_tomb := $(filter-out $(call room,conf),$(SRC_net))
NET_cli := $(call room,conf) $(call room,json) $(addprefix common/,crypto/factor.c crypto/sha256.c crypto/tomb_secret.c text/event_stream.c text/glob.c text/hazard.c text/hazard_table.c text/ignorable.c)
NET_scribe := $(call room,confine) $(addprefix common/,json/json.c json/json_scan.c net/loop.c net/notify.c net/starter_word.c crypto/sha256.c crypto/ed25519.c crypto/locked.c)
NET_audit := $(addprefix common/crypto/,sha256.c ed25519.c)

obj = $(patsubst %.c,$(B)/%.o,$(1))
OBJ_common := $(call obj,$(SRC_common))

PROGRAMS := lych-sandbox lych-vessel lych-scribe lych-audit lych-tomb lych-probe lych-secret-driver lych
# They have a directory of their own, which jobs see as it is.
TOOLS := tools/lych-ask tools/lych-fetch
BIN := $(addprefix $(B)/,$(PROGRAMS) $(TOOLS))
# For shells, each under the name by which its shell finds it.
COMPLETIONS := $(addprefix $(B)/completions/,bash/lych zsh/_lych fish/lych.fish)

.PHONY: all
all: $(BIN) $(COMPLETIONS) ## build every program (VARIANT=release|debug|asan|fuzz|cover)

# linked: a rule for program 2 in directory 1, of the objects that function 3 makes of part 4's sources.
SOURCES_vessel := $(filter-out $(SRC_scribe) $(SRC_audit),$(SRC_vessel)) $(NET_vessel)
SOURCES_scribe := $(SRC_scribe) $(NET_scribe)
SOURCES_audit := $(SRC_audit) $(NET_audit)
SOURCES_tomb := $(SRC_tomb) $(NET_tomb)
SOURCES_secrets := $(SRC_secrets)
SOURCES_cli := $(SRC_cli) $(NET_cli) $(MANIFEST)
define linked
$(1)/$(2): $$(call $(3),$$(SOURCES_$(4))) $$(OBJ_common)
	@mkdir -p $$(@D)
	$$(call say,LD $$@)
	$$(Q)$$(CC) $$(LDFLAGS) -o $$@ $$^ $$(LIBS_$(4))
endef

$(B)/lych-sandbox: $(call obj,$(SRC_sandbox)) $(OBJ_common)
	$(call say,LD $@)
	$(Q)$(CC) $(LDSANDBOX) -o $@ $^ $(LIBS_sandbox)
$(foreach p,vessel scribe audit tomb,$(eval $(call linked,$(B),lych-$(p),obj,$(p))))
$(eval $(call linked,$(B),lych-secret-driver,obj,secrets))
$(eval $(call linked,$(B),lych,obj,cli))
$(COMPLETIONS): $(B)/completions/%: $(B)/lych
	@mkdir -p $(@D)
	$(Q)$< completions $(firstword $(subst /, ,$*)) >$@.new
	$(Q)mv $@.new $@
$(B)/lych-probe: $(B)/cli/probe/probe.o
	$(CC) $(LDFLAGS) -o $@ $^
$(B)/tools/lych-ask $(B)/tools/lych-fetch: $(B)/tools/lych-%: $(B)/job/%.o $(call obj,$(filter-out $(MAINS),$(SRC_job))) $(OBJ_common)
	@mkdir -p $(@D)
	$(call say,LD $@)
	$(Q)$(CC) $(LDSANDBOX) -o $@ $^

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC $<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
-include $(shell find $(B) -name '*.d' 2>/dev/null)

# The migrations travel inside the vessel, in order: vessel/db/schema/NNNN_name.sql, or NNNN_name/NN_what.sql.
$(B)/vessel/db/migrate.o: $(B)/gen/schema.inc
MIGRATIONS := $(sort $(wildcard vessel/db/schema/[0-9]*))
# A directory's time is new in each copy of the tree: what it holds decides. Tests run `make install` side by side.
$(B)/gen/schema.inc: $(MIGRATIONS) $(wildcard vessel/db/schema/*/*.sql) tests/support/embed-sql
	@mkdir -p $(@D)
	@new=$@.$$$$; tests/support/embed-sql $(MIGRATIONS) > $$new; if cmp -s $$new $@; then rm $$new; else mv $$new $@; fi

# ---- more targets live beside what they serve ------------------------------
include $(wildcard mk/*.mk)

.PHONY: clean
clean: ## remove build/
	rm -rf build

.PHONY: help
help: ## this list
	@grep -hE '^[a-z0-9_-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9_-]+):.*## /\1\t/' | sort | awk -F'\t' '{printf "  %-16s %s\n", $$1, $$2}'
.DEFAULT_GOAL := all
