#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone
# timeout: 7200
# tests/escape/guard.sh at its full size: every act with every cause, in both grades, cold and warm.
# ROUNDS=1000 for the whole of it (an hour and a half); one turn of all cases by itself.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
tests/escape/hold.py "$LYCH_BUILD/lych-sandbox" "$LYCH_BUILD/tests/escape/try_hold" "${ROUNDS:-165}" "${SEED:-$RANDOM}"
