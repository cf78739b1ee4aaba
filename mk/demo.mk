# SPDX-License-Identifier: Apache-2.0
.PHONY: demo demo-inner
demo: deps-check ## three jobs on real input: honest, hostile, runaway; then the walls that stood
	@tests/support/as-user make --no-print-directory VARIANT=$(VARIANT) demo-inner
demo-inner:
	@$(MAKE) -s -j2 all
	@VARIANT=$(VARIANT) demo/run.sh
