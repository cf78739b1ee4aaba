#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 400
# lych backup and restore: what a damaged, cut, foreign or newer archive changes (nothing), then a
# destroyed installation that comes back with its jobs, results, blobs, output and audit log.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/support/lych.sh
lych_begin backup
count=0
is() {
	[ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
	count=$((count + 1))
}
refused() { # what, code, command...
	local what=$1 code=$2
	shift 2
	"$@" >"$LYCH_TMP/out" 2>"$LYCH_TMP/err" </dev/null && fail "$what: not refused"
	grep -q "$code" "$LYCH_TMP/err" || fail "$what: $(cat "$LYCH_TMP/err")"
	count=$((count + 1))
}
A=$LYCH_TMP/saved.tar
state() { # everything that a user can see of the jobs, and the bytes behind it
	lych jobs --json --limit 500 | python3 -c '
import json, sys
for j in sorted(json.load(sys.stdin)["jobs"], key=lambda j: j["id"]):
    print(j["id"], j["request_id"], j["state"], j["class"], j["attempts"], j["finished_at"])' >"$1"
	awk '{ print $1 }' "$1" >"$1.ids"
	while read -r id; do
		lych show "$id" --json
		lych logs "$id"
		lych artifacts "$id" --json
	done <"$1.ids" >>"$1" 2>&1
	(cd "$LYCHGATE_DATA" && find vessel/blobs vessel/output -type f -exec sha256sum {} + | sort -k 2) >>"$1"
}

# --- refusals
refused "a backup of nothing that runs" LYCH-BACKUP-001 lych backup "$A"
refused "a restore from nothing" LYCH-CORE-002 lych restore "$A"
head -c 5000 /dev/urandom >"$LYCH_TMP/noise"
refused "noise is no backup" LYCH-BACKUP-003 lych restore "$LYCH_TMP/noise"
(cd "$LYCH_TMP" && tar cf foreign.tar noise)
refused "another tar is no backup" LYCH-BACKUP-003 lych restore "$LYCH_TMP/foreign.tar"
refused "a directory" LYCH-BACKUP-003 lych restore "$LYCH_TMP"
[ ! -e "$LYCHGATE_DATA" ] || [ -z "$(find "$LYCHGATE_DATA" -type f)" ] || fail "a refusal made something"

# --- something to save
lych config init >/dev/null
lych up --detach || fail up
echo "an input" >"$LYCH_TMP/input"
lych run -n -f "$LYCH_TMP/input" -a 'out/*' -- sh -c 'mkdir out; cat input; head -c 300000 /dev/urandom >out/blob; echo done' >/dev/null || fail "a job"
lych run -n -- sh -c 'echo fails >&2; exit 7'
is "a job that fails" 7 "$?"
for i in $(seq 12); do lych run -n -- echo "job $i" >/dev/null || fail "job $i"; done
echo sk-not-a-real-key-0123456789 | lych secret set portal_x >/dev/null
state "$LYCH_TMP/before"
[ "$(wc -l <"$LYCH_TMP/before")" -gt 40 ] || fail "there is little to compare"
refused "a restore over what runs" LYCH-BACKUP-001 bash -c "'$LYCH_BIN/lych' backup '$A' >/dev/null && '$LYCH_BIN/lych' restore --force '$A'"
is "the archive is private" 600 "$(stat -c %a "$A")"
refused "an archive is not written over" LYCH-STORE-006 lych backup "$A"
is "tar can read it" 0 "$(tar tf "$A" >"$LYCH_TMP/list"; echo $?)"
for f in "$LYCHGATE_DATA"/secrets/*; do
	grep -qaF "$(cat "$f")" "$A" && fail "the value of ${f##*/} is in the archive"
done
tar xOf "$A" database.copy >"$LYCH_TMP/rows"
is "its rows are of twelve sections" 12 "$(grep -cFx '\.' "$LYCH_TMP/rows")"
is "each begins with its columns" 1 "$(head -n 1 "$LYCH_TMP/rows" | grep -c '^id	queue	request_id	')"
# shellcheck disable=SC2016
grep -qaF 'SCRAM-SHA-256$4096:' "$A" && fail "a password's verifier is in the archive"
is "secrets are named" 1 "$(tar xOf "$A" BACKUP.json | grep -c '"portal_x"')"
is "no remains" 0 "$(find "$LYCHGATE_DATA" "$LYCH_TMP" -maxdepth 1 -name '*.part' -o -maxdepth 1 -name 'backup.*' | wc -l)"
(cd "$LYCHGATE_DATA" && find audit -type f ! -name lock -exec sha256sum {} +) >/dev/null
lych down >/dev/null

# --- a damaged one changes nothing: bits all over it, and cuts
tree() { (cd "$LYCHGATE_DATA" && find . -printf '%p %s %T@ %i\n' | sort | sha256sum); }
whole=$(tree) size=$(stat -c %s "$A")
python3 - "$A" "$LYCH_TMP/bad" >"$LYCH_TMP/places" <<'EOF'
import os, random, sys
size = os.path.getsize(sys.argv[1])
rng = random.Random(1)
# headers, padding and both ends densely, the rest by chance
places = list(range(0, 600, 37)) + [size - 1, size - 513, size - 1025] + [rng.randrange(size) for _ in range(40)]
print(*places, sep="\n")
EOF
while read -r at; do
	cp "$A" "$LYCH_TMP/bad"
	python3 -c '
import sys
f = open(sys.argv[1], "r+b"); at = int(sys.argv[2]); f.seek(at); b = f.read(1)[0]; f.seek(at); f.write(bytes([b ^ 1 << at % 8]))' "$LYCH_TMP/bad" "$at"
	"$LYCH_BIN/lych" restore --force "$LYCH_TMP/bad" </dev/null >/dev/null 2>"$LYCH_TMP/err" && fail "a bit at $at was not seen"
	grep -q 'LYCH-BACKUP-003' "$LYCH_TMP/err" || fail "a bit at $at: $(cat "$LYCH_TMP/err")"
	count=$((count + 1))
done <"$LYCH_TMP/places"
for cut in 0 1 511 512 513 $((size / 2)) $((size - 1024)) $((size - 512)) $((size - 1)); do
	head -c "$cut" "$A" >"$LYCH_TMP/bad"
	refused "cut at $cut" LYCH-BACKUP-003 lych restore --force "$LYCH_TMP/bad"
done
cat "$A" "$LYCH_TMP/noise" >"$LYCH_TMP/bad"
refused "something after its end" LYCH-BACKUP-003 lych restore --force "$LYCH_TMP/bad"
refused "where something is" LYCH-BACKUP-005 lych restore "$A"
is "none of them changed anything" "$whole" "$(tree)"
[ ! -e "$LYCHGATE_DATA.restore" ] || fail "something was left beside it"

# --- killed at any moment: nothing changed, and the next one works over what it left
for delay in 0.05 0.3 0.9 1.6; do
	"$LYCH_BIN/lych" restore --force "$A" >/dev/null 2>&1 </dev/null &
	pid=$!
	sleep "$delay"
	kill -KILL "$pid" 2>/dev/null || break # it was done: then what was there lies aside
	wait "$pid" 2>/dev/null
	for _ in $(seq 100); do pgrep -u "$(id -u)" -f "$LYCHGATE_DATA.restore" >/dev/null || break; sleep 0.1; done
	[ "$(find "$LYCH_TMP" -maxdepth 1 -name 'data.before-*' | wc -l)" -gt 0 ] && break
	is "killed after $delay s" "$whole" "$(tree)"
done
rm -rf "$LYCHGATE_DATA".before-*

# --- destroyed, and back
cp -a "$LYCHGATE_DATA/audit" "$LYCH_TMP/audit.before"
rm -rf "$LYCHGATE_DATA"
rm "$LYCH_CONFIG"
lych restore "$A" >"$LYCH_TMP/out" || fail "restore"
is "it says what is missing" 1 "$(grep -c 'set again: lych secret set portal_x' "$LYCH_TMP/out")"
is "the configuration is back" "600" "$(stat -c %a "$LYCH_CONFIG")"
for f in "$LYCH_TMP"/audit.before/*; do
	[ "${f##*/}" != lock ] || continue
	saved=$LYCHGATE_DATA/audit/${f##*/}
	[ -e "$saved" ] || fail "audit: ${f##*/} is not there"
	cmp -n "$(stat -c %s "$saved")" "$saved" "$f" || fail "audit: ${f##*/} has other bytes"
done
lych up --detach || fail "up after the restore"
state "$LYCH_TMP/after"
diff "$LYCH_TMP/before" "$LYCH_TMP/after" >"$LYCH_TMP/diff" || fail "not the same: $(head -n 20 "$LYCH_TMP/diff")"
is "new jobs run" new "$(lych run -n -- echo new)"
is "with a number that is new" 15 "$(lych jobs --json --limit 500 | python3 -c 'import json,sys; print(len({j["id"] for j in json.load(sys.stdin)["jobs"]}))')"
lych secret check --json | python3 -c 'import json,sys; sys.exit(not all(s["ok"] for s in json.load(sys.stdin)["secrets"]))' || fail "secret check"
lych down >/dev/null

# --- over an installation: moved aside, not removed
lych restore --force "$A" --json >"$LYCH_TMP/out" || fail "restore --force"
kept=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["kept"])' "$LYCH_TMP/out")
[ -d "$kept/phylactery/data" ] || fail "what was there is not kept: $kept"
lych up --detach || fail "up after the second restore"
state "$LYCH_TMP/after"
diff "$LYCH_TMP/before" "$LYCH_TMP/after" >"$LYCH_TMP/diff" || fail "not the same the second time: $(head -n 20 "$LYCH_TMP/diff")"
lych down >/dev/null
echo "$count checks"
