# SPDX-License-Identifier: Apache-2.0
# PREFIX (/usr/local) and DESTDIR. lych finds its daemons in ../libexec/lychgate beside its own bin/.

BINDIR = $(DESTDIR)$(PREFIX)/bin
LIBEXECDIR = $(DESTDIR)$(PREFIX)/libexec/lychgate
MANDIR = $(DESTDIR)$(PREFIX)/share/man
PROFILEDIR = $(DESTDIR)$(PREFIX)/share/lychgate/profiles
PROFILES := $(wildcard cli/profiles/*)
APPARMORDIR = $(DESTDIR)$(PREFIX)/share/lychgate/apparmor
QUADLETDIR = $(DESTDIR)$(PREFIX)/share/lychgate/quadlet
QUADLETS := $(wildcard quadlet/*/*.in quadlet/tomb/*.container)
MAN_PAGES := $(wildcard docs/man/*.1 docs/man/*.5 docs/man/*.8)
LIBEXEC_PROGRAMS := $(filter-out lych lych-sandbox lych-audit,$(PROGRAMS))

.PHONY: install uninstall
install: all ## PREFIX=/usr/local DESTDIR=
	install -d $(BINDIR) $(LIBEXECDIR)
	install -m 0755 $(B)/lych $(B)/lych-sandbox $(B)/lych-audit $(BINDIR)
	install -m 0755 $(addprefix $(B)/,$(LIBEXEC_PROGRAMS)) $(LIBEXECDIR)
	install -d $(LIBEXECDIR)/tools
	install -m 0755 $(addprefix $(B)/,$(TOOLS)) $(LIBEXECDIR)/tools
	ln -sf ../../bin/lych-sandbox $(LIBEXECDIR)/lych-sandbox
	install -d $(PROFILEDIR)
	install -m 0644 $(PROFILES) $(PROFILEDIR)
	install -D -m 0644 cli/apparmor/lychgate $(APPARMORDIR)/lychgate
	set -e; for unit in $(QUADLETS); do install -D -m 0644 $$unit $(QUADLETDIR)/$${unit#quadlet/}; done
	set -e; for page in $(MAN_PAGES); do install -D -m 0644 $$page $(MANDIR)/man$${page##*.}/$${page##*/}; done

uninstall: ## remove what install put there
	rm -f $(addprefix $(BINDIR)/,lych lych-sandbox lych-audit) $(foreach p,$(MAN_PAGES),$(MANDIR)/man$(subst .,,$(suffix $(p)))/$(notdir $(p)))
	rm -f $(addprefix $(PROFILEDIR)/,$(notdir $(PROFILES)))
	rm -rf $(LIBEXECDIR) $(QUADLETDIR) $(APPARMORDIR)
