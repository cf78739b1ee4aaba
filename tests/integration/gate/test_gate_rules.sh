#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compiled rules that do not load here, as on a system with another Vectorscan: nothing starts, and lych up says why.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/support/lych.sh
built=$LYCH_BIN
lych_begin gate-rules
LYCH_BIN=$LYCH_TMP/bin
mkdir "$LYCH_BIN"
for f in "$built"/lych* "$built"/tools; do
	if [ -x "$f" ]; then cp -r "$f" "$LYCH_BIN/"; fi
done
# the release of Vectorscan, behind the magic number of each compiled set
python3 -ISc '
import sys
name = sys.argv[1]
with open(name, "rb") as f:
    old = f.read()
new = old.replace(b"\xdb\xdb\xdb\xdb\x00", b"\xdb\xdb\xdb\xdb\x01")
assert new != old
with open(name, "wb") as f:
    f.write(new)' "$LYCH_BIN/lych-vessel"
rc=0
lych up --detach <&- >&- 2>"$LYCH_TMP/err" || rc=$?
[ $rc -ne 0 ] || fail "it started"
grep -q 'LYCH-GATE-005' "$LYCH_TMP/err" || fail "not told: $(cat "$LYCH_TMP/err")"
grep -q 'rebuild Lychgate on this system' "$LYCH_TMP/err" || fail "no hint: $(cat "$LYCH_TMP/err")"
! lych status >/dev/null 2>&1 || fail "something is up"
cp "$built/lych-vessel" "$LYCH_BIN/"
lych up --detach <&- >&- || fail "the right one does not start"
echo "refused by the rules, started with the right ones"
