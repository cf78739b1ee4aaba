#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# lych receipt: of jobs that ended in each way, what their receipts say against what Lychgate itself shows, and that such a file
# holds elsewhere: no data directory, no daemon, another implementation. Refusals first. (Changed files: test_receipts.)
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin receipt
export PYTHONPATH=$PWD/tests/support/python PYTHONDONTWRITEBYTECODE=1
cd "$LYCH_TMP" || exit 1

code() { # what, exit code, error's code, command...
	local what=$1 exit=$2 error=$3
	shift 3
	"$@" >out 2>err; is "$what" "$exit" $?
	has "$what: its code" "$error" "$(cat err)"
	is "$what: nothing on stdout" "" "$(cat out)"
}
third() { # file, key, expression over r (what it says) and sha
	python3 -c 'import sys, third_person
r, sha = third_person.receipt(open(sys.argv[1], encoding="utf-8").read(), sys.argv[2])
print(eval(sys.argv[3]))' "$@"
}
event() { # name, job, key: of the record's unmapped
	cat "$LYCHGATE_DATA"/audit/segment-* | python3 -c 'import json, sys
for j in map(json.loads, sys.stdin):
    if j.get("event") == sys.argv[1] and j["metadata"].get("correlation_uid") == sys.argv[2]: last = j
print(last["unmapped"][sys.argv[3]])' "$@"
}

# --- usage, and no log yet
for words in "" "x" "0" "1 2" "verify" "verify f" "verify f --pin" "verify f g --pin K" "verify f --pin K --out o" "verify f --pin K --no-wait" "1 --pin K"; do
	# shellcheck disable=SC2086
	code "receipt $words" 2 LYCH-CORE-004 lych receipt $words
done
: >f
code "no key" 2 LYCH-CORE-004 lych receipt verify f --pin K
code "no log" 3 LYCH-AUDIT-007 lych receipt 1

lych up --detach >up.out 2>&1 || fail "up: $(cat up.out)"
pin=$("$LYCH_BIN/lych-audit" verify "$LYCHGATE_DATA/audit" --json | json 'j["genesis"]')
code "no such job" 3 LYCH-AUDIT-011 lych receipt 4711 --no-wait
waits=$(lych run -n --detach -- sleep 600)
code "it has not ended" 3 LYCH-AUDIT-011 lych receipt "$waits" --no-wait

# --- one that failed, with all that a receipt can have
mkdir d && echo given >d/in
lych run -n --dir ./d --artifact 'o/*' -- sh -c 'cat in; echo told >&2; mkdir o; echo x >o/a; echo y >o/b; exit 3' >o.out 2>o.err
id=$(lych jobs --limit 1 --json | json 'j["jobs"][0]["id"]')
lych show "$id" --json >shown || fail "show"
lych logs "$id" --only stdout >stdout 2>/dev/null
lych logs "$id" --only stderr >stderr 2>/dev/null
has "it ran" given "$(cat stdout)"
wait_until 20 "the record of its receipt" grep -q '"event":"job.receipt".*"correlation_uid":"'"$id"'"' "$LYCHGATE_DATA/audit/segment-0000000001.jsonl"
echo mine >kept
code "a file that is there" 1 LYCH-STORE-006 lych receipt "$id" --out kept
is "it was left as it is" mine "$(cat kept)"
# there may just have been a checkpoint
lych receipt "$id" --no-wait >out 2>err || has "no checkpoint has it yet" LYCH-AUDIT-012 "$(cat err)"
wait_for_it() { lych receipt "$id" --out waited >waited.out 2>waited.err; echo $? >waited.rc; }
wait_for_it &
lych cancel "$waits" >/dev/null 2>&1
ran=$(lych run -n --detach -- sh -c 'echo some; sleep 600')
wait_until 20 "it says something" sh -c '"$0/lych" logs "$1" 2>/dev/null | grep -q some' "$LYCH_BIN" "$ran"
lych contain "$ran" >contained.out 2>&1 || fail "contain: $(cat contained.out)"
contained=$(sed -nE '1s/^job ([0-9]+): .*/\1/p' contained.out)
lych retry "$id" >/dev/null || fail "retry"
wait_until 30 "it failed again" sh -c '"$0/lych" show "$1" --json | grep -q "\"attempts\": *2"' "$LYCH_BIN" "$id"
wait_until 30 "and ended" sh -c '"$0/lych" show "$1" --json | grep -q "\"state\": *\"failed\""' "$LYCH_BIN" "$id"
removed=$(lych run -n -- true >/dev/null 2>&1; lych jobs --limit 1 --json | json 'j["jobs"][0]["id"]')
wait_until 20 "the record of its receipt" grep -q '"event":"job.receipt".*"correlation_uid":"'"$removed"'"' "$LYCHGATE_DATA/audit/segment-0000000001.jsonl"
lych rm "$removed" >/dev/null || fail "rm"
lych show "$id" --json >shown
lych down >/dev/null 2>&1 || fail "down"
wait
is "who waited for the checkpoint" 0 "$(cat waited.rc)"

# --- nothing runs any more: it is in the log
lych receipt "$id" --out job.receipt >out 2>err; is "receipt: $(cat err)" 0 $?
has "where" "is in job.receipt" "$(cat out)"
has "the key to check it by" "$pin" "$(cat out)"
is "nobody else may read it" 600 "$(stat -c %a job.receipt)"
is "to stdout it is the same file" "$(cat job.receipt)" "$(lych receipt "$id")"
is "as JSON" "$id job2 $pin" "$(lych receipt "$id" --out job2 --json | json '"%d %s %s" % (j["job"], j["file"], j["genesis"])')"
say() { third job.receipt "$pin" "$1"; }
is "whose" "$id failed exit 3 None False" "$(say '"%d %s %s %d %s %s" % (r["job"], r["state"], r["class"], r["exit_code"], r["signal"], r["contained"])')"
is "of its second attempt" 2 "$(say 'r["attempts"]')"
is "the spec, as the log has it since it was accepted" "$(event job.enqueued "$id" spec_sha)" "$(say 'r["spec"]["sha256"]')"
is "the result, as the log has it since it ended" "$(event attempt.failed "$id" result_sha)" "$(say 'r["result"]["sha256"]')"
for stream in stdout stderr; do
	is "$stream" "$(sha256sum <$stream | cut -d' ' -f1) $(wc -c <$stream) False" "$(say "'%s %d %s' % (r['$stream']['sha256'], r['$stream']['bytes'], r['$stream']['truncated'])")"
done
is "artifacts" "2 4 $(json '"\n".join(a["sha256"] + "  " + a["path"] for a in j["result"]["artifacts"])' <shown | sha256sum | cut -d' ' -f1)" \
	"$(say '"%d %d %s" % (r["artifacts"]["count"], r["artifacts"]["bytes"], r["artifacts"]["sha256"])')"
is "its input" "1 $(json 'j["spec"]["input"] + "  input"' <shown | sha256sum | cut -d' ' -f1)" "$(say '"%d %s" % (r["inputs"]["count"], r["inputs"]["sha256"])')"
is "the walls that stood" "$(json '"%s %s" % (j["result"]["walls"]["grade"], j["result"]["walls"]["layers"])' <shown)" "$(say '"%s %s" % (r["walls"]["grade"], r["walls"]["layers"])')"
is "it had no broker" "None None" "$(say '"%s %s" % (r["spent"], r["decisions"])')"
has "the one that waited is of its first attempt or its second" "$id" "$(third waited "$pin" 'r["job"]')"

# --- the other ends
lych receipt "$waits" >cancelled || fail "cancelled"
is "cancelled" "cancelled None" "$(third cancelled "$pin" '"%s %s" % (r["state"], r["class"])')"
lych receipt "$contained" >evidence || fail "contained"
is "contained" "quarantined True" "$(third evidence "$pin" '"%s %s" % (r["state"], r["contained"])')"
is "it ran, and no tomb reported of it" "True None None" "$(third evidence "$pin" '"%s %s %s" % (r["started_at"] is not None, r["walls"], r["stdout"]["truncated"])')"
lych receipt "$removed" >well || fail "removed"
is "succeeded, and removed since" "succeeded 0" "$(third well "$pin" '"%s %d" % (r["state"], r["exit_code"])')"

# --- who does not take it says nothing against the log
lych receipt "$removed" 2>err >&- && fail "stdout is closed"
has "stdout is closed" LYCH-CORE-006 "$(cat err)"
lych receipt "$removed" 2>err >/dev/full && fail "stdout is full"
has "stdout is full" LYCH-CORE-006 "$(cat err)"

# --- elsewhere: nothing but the file and the key
mkdir elsewhere && cp job.receipt elsewhere/
mv "$LYCHGATE_DATA" away
there() { (cd elsewhere && env -i HOME=/nonexistent PATH=/nowhere "$LYCH_BIN/lych" receipt verify "$@"); }
there job.receipt --pin "$pin" >out 2>err; is "verify: $(cat out err)" 0 $?
has "it says which" "ok  record " "$(cat out)"
there --json job.receipt --pin "$pin" >out 2>err; is "verify --json" 0 $?
is "what it says" "ok $id $(say sha)" "$(json '"%s %d %s" % (j["verdict"], j["receipt"]["job"], j["receipt_sha256"])' <out)"
is "no data directory was made" "" "$(ls -A "$LYCHGATE_DATA" 2>/dev/null)"
there job.receipt --pin "$(head -c 32 /dev/zero | base64)" >out 2>err; is "another key" 1 $?
has "why" LYCH-AUDIT-010 "$(cat out)"
sed -i 's/"exit_code\\":3/"exit_code\\":0/' elsewhere/job.receipt
there job.receipt --pin "$pin" >out 2>err; is "changed" 1 $?
head -c 1000 job.receipt >elsewhere/job.receipt
there job.receipt --pin "$pin" >out 2>err; is "cut" 2 $?
mv away "$LYCHGATE_DATA"
echo "receipt: $count checks; a record of $(python3 -c 'import json; print(len(json.load(open("job.receipt"))["line"]) + 1)') bytes in a file of $(wc -c <job.receipt)"
