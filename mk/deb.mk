# SPDX-License-Identifier: Apache-2.0
# Debian packages; debian/make-package says what is in them.

DEB := build/deb
.PHONY: deb
deb: ## the Debian package of this release and its source package, in build/deb (needs dpkg-dev; VARIANT is release)
	@$(MAKE) --no-print-directory VARIANT=release all
	@rm -rf $(DEB) && mkdir -p $(DEB)
	@debian/make-package source $(DEB)
	+@debian/make-package binary $(DEB)
