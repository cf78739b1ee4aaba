#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# lych run --tty: a job in a terminal of its own, at a person's, through vessel and tomb: what it shows, what is typed, the
# window's size, and how the terminal is given back, whatever ends. The cases are in tty_run.py.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
here=$PWD/tests/integration/cli
lych_begin tty
lych up --detach <&- >&- || fail "up"
cd "$LYCH_TMP" || exit 1
python3 -I -B "$here/tty_run.py" || fail "a case of tty_run.py"

cd - >/dev/null || exit 1
lych down || fail "down"
lych_config "grade: floor"
lych up --detach <&- >&- || fail "up in floor"
python3 -I -B "$here/tty_run.py" floor || fail "grade floor"
