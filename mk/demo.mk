# SPDX-License-Identifier: Apache-2.0
.PHONY: demo demo-inner
demo: deps-check ## three jobs on real input: honest, hostile, runaway; then the walls that stood (DAEMONS=no_private_root: grade floor, by your word)
	@tests/support/as-user make --no-print-directory VARIANT=$(VARIANT) DAEMONS="$(DAEMONS)" demo-inner
demo-inner:
	@$(MAKE) -s -j2 all
	@VARIANT=$(VARIANT) DEMO_DAEMONS="$(DAEMONS)" demo/run.sh
