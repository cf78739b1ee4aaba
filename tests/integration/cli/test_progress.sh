#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# How far a transfer is, on a terminal and nowhere else. The cases are in progress.py.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin progress
mkdir -m 0700 "$XDG_RUNTIME_DIR/lychgate" "$XDG_RUNTIME_DIR/lychgate/api"
python3 -B tests/integration/cli/progress.py "$LYCH_BIN/lych" "$XDG_RUNTIME_DIR/lychgate/api/vessel.sock" "$LYCH_TMP" ||
	fail "progress.py"
