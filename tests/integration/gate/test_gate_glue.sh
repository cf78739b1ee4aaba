#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# No word that documents put in a secret's place hides one: every rule of the gate with every such
# word before, behind and within a token that was drawn for it, and in the text around; what was published is let
# go; tokens whose ends miss, and with any letters glued to them (tests/support/python/gate_glue.py).
# SEEDS: other tokens; tests/soak/gate_glue.sh has ten.
set -euo pipefail
cd "$(dirname "$0")/../../.."
for seed in ${SEEDS:-1}; do
	python3 tests/support/python/gate_glue.py --program "$LYCH_BUILD/tests/support/gate_measure" --tokens "${TOKENS:-6}" --seed "$seed"
done
