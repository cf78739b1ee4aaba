#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 150
# lych against a vessel that lies, or says nothing: what it prints has no control characters of the vessel's, what is
# no acceptable answer is none (and not the user's mistake), and who says nothing is not waited for without end.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin lying
mkdir -m 0700 "$XDG_RUNTIME_DIR/lychgate" "$XDG_RUNTIME_DIR/lychgate/api"
echo "a text" >"$LYCH_TMP/file"
python3 -B tests/integration/cli/lying_vessel.py "$LYCH_BIN/lych" "$XDG_RUNTIME_DIR/lychgate/api/vessel.sock" "$LYCH_TMP/file" ||
	fail "lying_vessel.py"
