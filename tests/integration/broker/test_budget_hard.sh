#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Budgets are hard: what a provider that counts would bill for, beside what was allowed. A real PostgreSQL, scribe,
# vessel and egress workers, tests/support/python/provider.py, and many who ask as rudely as they can. The cases are in
# budget_hard.py; tests/soak/budget_hard.sh is more of the same, with the vessel killed.
exec "$(dirname "$0")/../../support/rig" tests/integration/broker/budget_hard.py
