# SPDX-License-Identifier: Apache-2.0
# PREFIX (/usr/local) and DESTDIR: any paths, with blanks too. Whatever the umask, everybody may read what is installed.
# lych finds the rest beside its own bin/: programs in ../libexec/lychgate, files in ../lib/lychgate (cli/base/paths.c). Not in
# ../share/lychgate: with PREFIX=~/.local that is the user's data directory.

BINDIR = $(DESTDIR)$(PREFIX)/bin
LIBEXECDIR = $(DESTDIR)$(PREFIX)/libexec/lychgate
LIBDIR = $(DESTDIR)$(PREFIX)/lib/lychgate
MANDIR = $(DESTDIR)$(PREFIX)/share/man
# Where bash, zsh and fish look for what a package brings.
BASHDIR = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSHDIR = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISHDIR = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
# Where the systemd manager of a user looks with each PREFIX that it knows: ~/.local, /usr/local, /usr.
USERUNITDIR = $(DESTDIR)$(PREFIX)/share/systemd/user
PROFILES := $(filter-out cli/profiles/agents,$(wildcard cli/profiles/*))
AGENTS := $(wildcard cli/profiles/agents/*.yaml)
PORTALS := $(wildcard examples/portals/*.yaml)
QUADLETS := $(wildcard quadlet/*/*.in quadlet/tomb/*.container)
MAN_PAGES := $(wildcard docs/man/*.1 docs/man/*.5 docs/man/*.8)
BIN_PROGRAMS := lych lych-sandbox lych-audit
LIBEXEC_PROGRAMS := $(filter-out $(BIN_PROGRAMS),$(PROGRAMS))
# What an older release put into PREFIX/share/lychgate, by name: the same files as in LIBDIR now.
FORMERDIR = $(DESTDIR)$(PREFIX)/share/lychgate
FORMER_FILES := $(addprefix profiles/,$(notdir $(PROFILES))) apparmor/lychgate $(QUADLETS)
FORMER_DIRS := profiles apparmor $(sort $(patsubst %/,%,$(dir $(QUADLETS)))) quadlet
LIB_FILES := $(FORMER_FILES) $(addprefix portals/,$(notdir $(PORTALS))) $(addprefix agents/,$(notdir $(AGENTS)))
LIB_DIRS := $(FORMER_DIRS) portals agents

# In directory 1, if it is there: removes the files 2, and of the directories 3 what is empty then.
remove_files = [ ! -d "$(1)" ] || { cd "$(1)" && rm -f $(2) && { [ -z '$(3)' ] || rmdir --ignore-fail-on-non-empty $(3) 2>/dev/null || :; }; }

.PHONY: install uninstall
install: all ## PREFIX=/usr/local DESTDIR=
	cli/apparmor/make-profile "$(PREFIX)" >/dev/null # refuses a path that is not absolute, before anything is written
	install -d "$(BINDIR)" "$(LIBEXECDIR)/tools" $(foreach d,$(LIB_DIRS),"$(LIBDIR)/$(d)") $(foreach n,1 5 8,"$(MANDIR)/man$(n)") "$(BASHDIR)" "$(ZSHDIR)" "$(FISHDIR)" "$(USERUNITDIR)"
	install -m 0755 $(addprefix $(B)/,$(BIN_PROGRAMS)) "$(BINDIR)"
	install -m 0755 $(addprefix $(B)/,$(LIBEXEC_PROGRAMS)) "$(LIBEXECDIR)"
	install -m 0755 $(addprefix $(B)/,$(TOOLS)) "$(LIBEXECDIR)/tools"
	ln -sf ../../bin/lych-sandbox "$(LIBEXECDIR)/lych-sandbox"
	install -m 0644 $(PROFILES) "$(LIBDIR)/profiles"
	install -m 0644 $(PORTALS) "$(LIBDIR)/portals"
	install -m 0644 $(AGENTS) "$(LIBDIR)/agents"
	for unit in $(QUADLETS); do install -m 0644 $$unit "$(LIBDIR)/$$unit"; done
	for page in $(MAN_PAGES); do install -m 0644 $$page "$(MANDIR)/man$${page##*.}"; done
	install -m 0644 $(B)/completions/bash/lych "$(BASHDIR)"
	install -m 0644 $(B)/completions/zsh/_lych "$(ZSHDIR)"
	install -m 0644 $(B)/completions/fish/lych.fish "$(FISHDIR)"
	(umask 022; rm -f "$(LIBDIR)/apparmor/lychgate"; cli/apparmor/make-profile "$(PREFIX)" >"$(LIBDIR)/apparmor/lychgate")
	(umask 022; rm -f "$(USERUNITDIR)/lychgate.service"; cli/systemd/make-unit "$(PREFIX)" >"$(USERUNITDIR)/lychgate.service")
	$(call remove_files,$(FORMERDIR),$(FORMER_FILES),$(FORMER_DIRS) "$(FORMERDIR)")

uninstall: ## remove what install put there, and nothing else
	$(call remove_files,$(BINDIR),$(BIN_PROGRAMS),)
	$(call remove_files,$(LIBEXECDIR),lych-sandbox $(LIBEXEC_PROGRAMS) $(TOOLS),tools "$(LIBEXECDIR)")
	$(call remove_files,$(LIBDIR),$(LIB_FILES),$(LIB_DIRS) "$(LIBDIR)")
	$(call remove_files,$(FORMERDIR),$(FORMER_FILES),$(FORMER_DIRS) "$(FORMERDIR)")
	$(call remove_files,$(MANDIR),$(foreach p,$(MAN_PAGES),man$(subst .,,$(suffix $(p)))/$(notdir $(p))),)
	$(call remove_files,$(BASHDIR),lych,)
	$(call remove_files,$(ZSHDIR),_lych,)
	$(call remove_files,$(FISHDIR),lych.fish,)
	$(call remove_files,$(USERUNITDIR),lychgate.service,)
