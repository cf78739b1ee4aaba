#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# The audit log of a real instance. Its scribe and its vessel are killed while jobs run, its disk is full, its
# directory is closed, it hangs, its log is changed or cut: what is in the database is in the log, once and in
# order, and while the log cannot be written nothing is begun.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh

if [ "${1:-}" != inside ]; then
	place=$(mktemp -d /tmp/ly-aud-XXXXXX)
	trap 'rmdir "$place"' EXIT
	enter=(unshare --user --map-current-user --keep-caps --mount)
	"${enter[@]}" mount -t tmpfs -o size=4m,mode=0700 none "$place" 2>/dev/null ||
		skip "an unprivileged mount is refused here"
	# audit/ of the instance lies on a small file system of its own, beside what will fill it
	# shellcheck disable=SC2016
	"${enter[@]}" sh -c 'umask 077 && mount -t tmpfs -o size=600m,mode=0700 none "$1" && mkdir -p "$1/data/audit" "$1/small" &&
		mount -t tmpfs -o size=4m,mode=0700 none "$1/small" && mkdir "$1/small/audit" &&
		mount --bind "$1/small/audit" "$1/data/audit" &&
		exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$2" inside "$1"' sh "$place" "$0"
	exit $?
fi

lych_begin audit
LYCHGATE_DATA=$2/data
log=$LYCHGATE_DATA/audit
ballast=$2/small/ballast

json() { python3 -ISc 'import json,sys; j=json.load(sys.stdin); print(*eval("[" + sys.argv[1] + "]"))' "$1"; }
field() { lych show "$1" --json | json "$2"; }
audit() { lych status --json | json "*(lambda a: [$1])(j['vessel']['audit'])" 2>/dev/null; }
# Until a condition holds: what, seconds, shell text
until_holds() {
	local end=$((SECONDS + $2))
	while [ $SECONDS -lt $end ]; do
		eval "$3" && { count=$((count + 1)); return; }
		nap 0.1
	done
	fail "$1: not within $2 s: $3 ($(lych status --json | json 'j["vessel"]["audit"]' | cut -c1-300))"
}
goes_on() { until_holds "the log is written again" 40 '[ "$(audit "a[\"ok\"]")" = True ]'; }
stopped_with() { # seconds, code: claims are closed, and status says why
	until_holds "claims stop" "$1" '[ "$(audit "a[\"ok\"]")" = False ]'
	until_holds "the database knows" "$1" '[ "$(sql "SELECT ok_until < clock_timestamp() FROM lych.audit_state")" = t ]'
	until_holds "it says why" "$1" '[ "$(audit "a[\"error_code\"]")" = '"$2"' ]'
	lych status >out
	is "status says it first" 1 "$(grep -c 'NO JOB IS BEGUN' out)"
	is "with its code" yes "$(grep -q "$2" out && echo yes)"
}
waits() { # a job that is accepted now is not begun
	local id
	id=$(lych run -n --detach -- echo "waited") || fail "a submission is accepted without a log"
	sleep 2
	is "it is not begun" "queued 0" "$(field "$id" 'j["state"], j["attempts"]')"
	waiting=$id
}
ends_well() { # job
	until_holds "job $1 ends well" 40 '[ "$(field '"$1"' "j[\"state\"], j[\"lost\"]")" = "succeeded 0" ]'
}
sql() {
	PGPASSWORD=$(cat "$LYCHGATE_DATA/secrets/lychgate_db_migrate") \
		psql -XAtq -h "$XDG_RUNTIME_DIR/lychgate/pg" -U lych_migrate -d lychgate -c "$1"
}
verify() { # what
	"$LYCH_BIN/lych-audit" verify "$log" >out || fail "$1: $(cat out)"
	count=$((count + 1))
}
outbox() {
	sql "SELECT event, coalesce(job_id::text, '-'), coalesce(CASE WHEN job_id IS NOT NULL THEN epoch END::text, '-')
		FROM lych.audit_outbox ORDER BY xid, id" | tr '|' ' '
}
queue_in_log() {
	cat "$log"/segment-*.jsonl | python3 -c '
import json, sys
for line in sys.stdin:
    r = json.loads(line)
    if r["prod"] == "queue":
        print(r["event"], r["metadata"].get("correlation_uid", "-"), r["actor"].get("session", {}).get("uid", "-"))'
}
# Between two readings of the database in which nothing happened.
read_both() {
	outbox >in_database
	[ "$(audit "a[\"waiting\"], a[\"acked\"]")" = "0 $(wc -l <in_database)" ] || return 1
	queue_in_log >in_log
	outbox | cmp -s - in_database
}
# The outbox and the log, as (event, job, epoch) in order: equal, so nothing is missing, twice or invented.
same_as_database() { # what
	until_holds "everything is shipped" 30 read_both
	diff in_database in_log >difference || fail "$1: the log and the database differ: $(head -n 5 difference)"
	[ -s in_log ] || fail "$1: nothing is in the log"
	count=$((count + 1))
	verify "$1"
}
cd "$LYCH_TMP" || exit 1
lych up --detach 2>first || fail "up"
goes_on
"$LYCH_BIN/lych-audit" verify "$log" --json >out || fail "a log that has begun: $(cat out)"
is "the first key is said" 1 "$(grep -cF "begin with $(json 'j["genesis"]' <out)" first)"
"$LYCH_BIN/lych-audit" verify "$log" --pin "$(json 'j["genesis"]' <out)" >/dev/null || fail "the key that was said"

# --- jobs, while scribe and vessel are killed
for i in $(seq 40); do lych run -n --detach --request-id "job-$i" -- sh -c "sleep 0.$((i % 5)); echo $i" >>ids || fail "submit $i"; done &
feeder=$!
killed=0
for victim in scribe scribe vessel scribe vessel scribe; do
	nap 0.7
	pid=$(lych_pid "$victim" 2>/dev/null)
	[ "${pid:-0}" -gt 0 ] && kill -9 "$pid" 2>/dev/null && killed=$((killed + 1))
	[ "$victim" = vessel ] && sleep 1
done
wait "$feeder"
# a submission that met the killed vessel is sent again: the same request is one job
for i in $(seq 40); do
	for _ in $(seq 50); do id=$(lych run -n --detach --request-id "job-$i" -- sh -c "sleep 0.$((i % 5)); echo $i" 2>/dev/null) && break; sleep 0.2; done
	ends_well "$id"
done
[ "$killed" -ge 4 ] || fail "only $killed were killed"
goes_on
same_as_database "after $killed kills"
echo "audit: $killed kills, $(wc -l <in_log) events of the database, each once and in order"

# --- a scribe that hangs: claims stop, what runs goes on, and one fsync takes all that gathered
runner=$(lych run -n --detach -- sh -c 'sleep 3; echo through')
until_holds "it runs" 20 '[ "$(field '"$runner"' "j[\"state\"]")" = running ]'
# the starter would begin another one before all of this was looked at
starter=$(lych_pid supervisor) && kill -STOP "$starter" "$(lych_pid scribe)"
began=$SECONDS
for i in $(seq 60); do lych run -n --detach --request-id "gathered-$i" -- true >/dev/null || fail "submit while it hangs"; done
stopped_with 15 LYCH-AUDIT-004
echo "audit: a hanging scribe stopped claims within $((SECONDS - began)) s"
waits
ends_well "$runner"
before=$(audit 'a["events"], a["batches"]')
kill -CONT "$(lych_pid scribe)" "$starter"
goes_on
ends_well "$waiting"
after=$(audit 'a["events"], a["batches"]')
read -r e0 b0 <<<"$before"
read -r e1 b1 <<<"$after"
[ $((e1 - e0)) -ge 60 ] || fail "only $((e1 - e0)) events"
[ $(((b1 - b0) * 2)) -lt $((e1 - e0)) ] || fail "$((e1 - e0)) events took $((b1 - b0)) fsyncs"
echo "audit: group commit: $((e1 - e0)) events in $((b1 - b0)) fsyncs"

# --- a full disk under the log alone
runner=$(lych run -n --detach -- sh -c 'sleep 2; echo through')
until_holds "it runs" 20 '[ "$(field '"$runner"' "j[\"state\"]")" = running ]'
dd if=/dev/zero of="$ballast" bs=4k 2>/dev/null
for i in $(seq 12); do lych run -n --detach -- true >/dev/null || fail "a submission needs no log"; done
stopped_with 15 LYCH-AUDIT-001
lych run -n -- echo attended >said 2>why &
attended=$!
until_holds "who waits for a job is told why" 30 'grep -q "no job is begun" why && grep -q LYCH-AUDIT-001 why'
waits
ends_well "$runner"
rm "$ballast"
goes_on
wait $attended; is "and it runs" "0 attended" "$? $(cat said)"
ends_well "$waiting"
same_as_database "after a full disk"
is "a torn line was cut and told, or none was there" yes \
	"$(python3 -c '
import json, sys
r = [json.loads(l) for l in open(sys.argv[1])]
print("yes" if all(x["bytes"] > 0 for x in r if x["event"] == "scribe.recovered_tail") else "no")' "$log/segment-0000000001.jsonl")"

# --- a directory that others may read, a second writer
chmod 0750 "$log"
kill -9 "$(lych_pid scribe)"
stopped_with 10 LYCH-AUDIT-004
until_holds "the scribe says why" 15 'grep -q LYCH-AUDIT-002 "$LYCHGATE_DATA/log/scribe.log"'
waits
chmod 0700 "$log"
goes_on
ends_well "$waiting"
"$LYCH_BIN/lych-scribe" --dir "$log" --socket-dir "$LYCH_TMP/other" 2>err; is "a second scribe" 1 $?
is "it says why" 1 "$(grep -c LYCH-STARTUP-001 err)"
lych down >/dev/null || fail "down"
verify "after a clean stop"
older=$LYCH_TMP/older
cp -a "$log" "$older"

# --- a log that was changed
segment=$log/segment-0000000001.jsonl
cp "$segment" kept
sed -i '20s/"event":"/"event":"x/' "$segment"
"$LYCH_BIN/lych-audit" verify "$log" --json >out; is "verify finds it" 1 $?
is "at the line after it" "tampered 21" "$(json 'j["verdict"], j["first_bad_seq"]' <out)"
lych up --detach >/dev/null 2>err; rc=$?
[ $rc -ne 0 ] || fail "it starts on a log that was changed"
is "and is told" yes "$(grep -q 'LYCH-AUDIT-003' err && echo yes)"

# --- a log whose end is missing: the chain holds, and the checkpoints know better
head -n -12 kept >"$segment"
"$LYCH_BIN/lych-audit" verify "$log" --json >out; is "verify finds it" 2 $?
is "and says so" truncated "$(json 'j["verdict"]' <out)"
lych up --detach >/dev/null 2>err; rc=$?
[ $rc -ne 0 ] || fail "it starts on a log that was cut"
is "and is told" yes "$(grep -q 'LYCH-AUDIT-008' err && echo yes)"
cp kept "$segment"
verify "as it was"

# --- all of the directory as it was some time ago, checkpoints and key too: the database knows better
lych up --detach 2>/dev/null || fail "up"
goes_on
lych run -n -- true || fail "a job more"
lych down >/dev/null || fail "down"
rm "$log"/segment-* "$log/seals" "$log/.keys"
cp -a "$older"/. "$log"
verify "an old copy of everything, which only an anchor elsewhere would show"
lych up --detach 2>/dev/null || fail "up"
stopped_with 20 LYCH-AUDIT-006
waits
lych down >/dev/null || fail "down"

# --- the log is moved away and begun anew, as its owner says
rm "$log"/segment-* "$log/seals" "$log/.keys"
lych up --detach 2>/dev/null || fail "up"
stopped_with 20 LYCH-AUDIT-006
"$LYCH_BIN/lych-vessel" migrate --pg-dir "$XDG_RUNTIME_DIR/lychgate/pg" --secrets "$LYCHGATE_DATA/secrets" \
	--restart-audit 2>err || fail "restart-audit: $(cat err)"
goes_on
ends_well "$waiting"
is "the new log says what it follows" 1 "$(grep -c '"event":"audit.restarted"' "$segment")"
verify "the new log"
lych down >/dev/null || fail "down"
echo "audit: $count checks"
