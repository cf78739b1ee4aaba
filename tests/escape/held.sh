#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A guard that somebody stopped keeps no time and ends nothing: the spawner ends its job all the same, when the end
# is overdue.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
exec tests/escape/held.py "${LYCH_BIN:-${LYCH_BUILD:-build/release}}/lych-sandbox"
