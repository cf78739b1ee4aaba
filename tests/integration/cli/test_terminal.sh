#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# Names that a job chose, on terminals of several widths: none begins a line of the screen, where its end
# could look like a line of ours. Into a pipe goes all of each.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin terminal
on() { tests/integration/cli/screen.py "$@" || fail "$*"; } # columns, command...

# Each name ends in what would be a row of "lych artifacts" or "lych show" where it stood first; the
# blanks before it fill a line of 40, 80 or 200 columns, as letters of one and of two columns do.
cat >"$LYCH_TMP/names.py" <<'PY'
import os
os.mkdir("o")
row, key = "7  9 MiB  file   o.verified", "result.walls.grade  full"
def name(text):
    open("o/" + text[:250].encode()[:250].decode(errors="ignore"), "w").write("x")
for columns in 40, 80, 200:
    for at in range(columns - 40, columns + 1, 1 if columns < 200 else 4):
        name("a" + " " * max(at, 0) + (row if at % 2 else key))
for at in 10, 11, 30, 31, 60:
    name("\u5b57" * at + row)
    name("e\u0301" * at + " " * at + key)
name("\U0001f600" * 40 + row)
PY
lych up --detach || fail up
id=$(lych run -n --detach --file "$LYCH_TMP/names.py=names.py" --artifact 'o/**' -- python3 names.py) || fail run
lych logs -f "$id" || fail "the job"

lych artifacts "$id" >"$LYCH_TMP/artifacts"
lych show "$id" >"$LYCH_TMP/show"
n=$(lych artifacts "$id" --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["artifacts"]))')
[ "$n" -gt 80 ] || fail "only $n artifacts"
is "a row each in a pipe" "$((n + 1))" "$(wc -l <"$LYCH_TMP/artifacts")"
is "the whole of a value in a pipe" 0 "$(grep -c … "$LYCH_TMP/show")"
is "the end of a name in a pipe" True "$(grep -cE '^result\.artifacts\.[0-9]+\.path +o/a +result.walls.grade  full$' "$LYCH_TMP/show" | python3 -c 'print(int(input()) > 20)')"

for columns in 20 40 80 200 0; do
	on "$columns" "$LYCH_BIN/lych" artifacts "$id" >"$LYCH_TMP/out"
	is "artifacts, $columns columns: a row each" "$((n + 1))" "$(wc -l <"$LYCH_TMP/out")"
	is "artifacts, $columns columns: none wrapped" 0 "$(grep -c '^<wrapped>' "$LYCH_TMP/out")"
	is "artifacts, $columns columns: each begins with its number" "$(seq 0 $((n - 1)) | tr '\n' ' ')" "$(sed 1d "$LYCH_TMP/out" | awk '{ printf "%s ", $1 }')"
	on "$columns" "$LYCH_BIN/lych" show "$id" >"$LYCH_TMP/out"
	is "show, $columns columns: as many lines as in a pipe" "$(wc -l <"$LYCH_TMP/show")" "$(wc -l <"$LYCH_TMP/out")"
	is "show, $columns columns: none wrapped" 0 "$(grep -c '^<wrapped>' "$LYCH_TMP/out")"
	is "show, $columns columns: the key of each, as in a pipe" "" \
		"$(paste -d '\n' "$LYCH_TMP/show" "$LYCH_TMP/out" | awk 'NR % 2 { whole = $1 } !(NR % 2) { sub(/…$/, "", $1); if (index(whole, $1) != 1) print whole, "|", $0 }' | head -n 3)"
	on "$columns" "$LYCH_BIN/lych" jobs >"$LYCH_TMP/out"
	is "jobs, $columns columns" 2 "$(wc -l <"$LYCH_TMP/out")"
	on "$columns" "$LYCH_BIN/lych" status >"$LYCH_TMP/out"
	on "$columns" "$LYCH_BIN/lych" artifacts "$id" --force --out "$LYCH_TMP/got" >"$LYCH_TMP/out"
	is "what was fetched, $columns columns: a line each" "$n" "$(grep -c '^lych: /' "$LYCH_TMP/out")"
	is "what was fetched, $columns columns: none wrapped" 0 "$(grep -c '^<wrapped>' "$LYCH_TMP/out")"
done
# a value that fits is not cut, and neither is one beside a long name
on 80 "$LYCH_BIN/lych" artifacts "$id" >"$LYCH_TMP/out"
is "80 columns: what stands beside a name" "$n" "$(grep -cE '^[0-9]+ +1 B +[a-z]+ +o/' "$LYCH_TMP/out")"
on 200 "$LYCH_BIN/lych" show "$id" >"$LYCH_TMP/out"
is "200 columns: a sum of 64 digits" "$n" "$(grep -cE '^result\.artifacts\.[0-9]+\.sha256 +[0-9a-f]{64}$' "$LYCH_TMP/out")"
echo "$count checks"
