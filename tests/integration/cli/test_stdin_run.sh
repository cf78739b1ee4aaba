#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A stdin that does not end at once: jobs that do not wait for it, an MCP server that answers line by line, a job that
# does not read, and what becomes of it when client, vessel or tomb are killed. The cases are in stdin_run.py.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
here=$PWD/tests/integration/cli
lych_begin stdin
lych up --detach <&- >&- || fail "up"
cd "$LYCH_TMP" || exit 1
python3 -I "$here/stdin_run.py" || fail "a case of stdin_run.py"
