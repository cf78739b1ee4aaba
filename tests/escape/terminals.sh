#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 60
# Terminals that a job makes in full, and those of whoever starts it: one of nobody's, and one that is
# the caller's controlling one; what another job and the host see of them. See terminals.py.
exec python3 tests/escape/terminals.py "${LYCH_BUILD:-build/release}/lych-sandbox"
