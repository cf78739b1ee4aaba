#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# A job that its parent ends for its first byte of output has begun: it is told as started and as ended, never as
# one in which nothing ran.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
exec tests/escape/early_end.py "${LYCH_BIN:-${LYCH_BUILD:-build/release}}/lych-sandbox"
