#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 1200
# Budgets are hard, at length: twenty storms of fifty who ask, the budget used up in each, the vessel killed in the middle
# of all but the first. tests/integration/broker/budget_hard.py; SEED=N repeats it.
set -euo pipefail
cd "$(dirname "$0")/../.."
ROUNDS=${ROUNDS:-20} T=fifty exec tests/support/rig tests/integration/broker/budget_hard.py
