#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# The queue's second door and the versions on both: what is refused there, answers that are lost
# between the commit and the reader, hints, tombs of both doors beside each other, a tomb or a
# vessel of another version (test builds that lie), a schema that is newer or older.
set -euo pipefail
cd "$(dirname "$0")/../../.."
build=${LYCH_BUILD:-$PWD/build/${VARIANT:-release}}
test_build=$build/test-build
for p in lych-tomb lych-vessel; do
	if [ ! -x "$test_build/$p" ]; then
		[ "${MUST_RUN:-0}" != 1 ] || { echo "no test build ($test_build/$p)"; exit 1; }
		exit 77
	fi
done
dir=$(mktemp -d /tmp/ly-doors-XXXXXX)
declare -A pids=()
cleanup() {
	local p
	for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null || true; done
	tests/support/pg stop "$dir/pg" >/dev/null 2>&1 || true
	chmod -R u+rwx "$dir"
	rm -rf "$dir"
}
trap cleanup EXIT
count=0
fail() {
	echo "FAIL: $*" >&2
	tail -n 8 "$dir"/*.log >&2 2>/dev/null || true
	exit 1
}
is() { # what, expected, got
	[ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
	count=$((count + 1))
}
says() { # FILE TEXT
	for _ in $(seq 300); do
		! grep -q -- "$2" "$1" || { count=$((count + 1)); return 0; }
		sleep 0.1
	done
	fail "$1: no '$2'"
}
ended() { # NAME EXIT
	local rc=0
	for _ in $(seq 300); do
		kill -0 "${pids[$1]}" 2>/dev/null || break
		sleep 0.1
	done
	! kill -0 "${pids[$1]}" 2>/dev/null || fail "$1 still runs"
	wait "${pids[$1]}" || rc=$?
	unset "pids[$1]"
	is "$1's exit" "$2" "$rc"
}
stop() { # NAME
	kill "$2" "${pids[$1]}"
	wait "${pids[$1]}" 2>/dev/null || true
	unset "pids[$1]"
}
# A log is emptied here and not by its program: what the last one of that name said must not be
# taken for the word of one that has not begun.
vessel() { # PROGRAM [OPTION...]
	local program=$1
	shift
	: >"$dir/vessel.log"
	"$program" serve --data "$dir/data/vessel" --api-dir "$dir/api" --work-dir "$dir/work" --pg-dir "$dir/pg/sock" \
		--audit-dir "$dir/audit" --secrets "$dir/pg/secrets" --tomb tomb_1 --tomb tomb_2 "$@" 2>>"$dir/vessel.log" &
	pids[vessel]=$!
}
tomb() { # PROGRAM NAME postgres|vessel [OPTION...]
	local program=$1 name=$2 door=(--queue "$3")
	[ "$3" = vessel ] || door+=(--pg-dir "$dir/pg/sock")
	shift 3
	: >"$dir/$name.log"
	"$program" --name "$name" --data "$dir/data/$name" --work-dir "$dir/work" "${door[@]}" --secrets "$dir/pg/secrets" \
		--sandbox "$build/lych-sandbox" --slots 2 --grade full "$@" 2>>"$dir/$name.log" &
	pids[$name]=$!
}
psql() { tests/support/pg psql "$dir/pg" lych_migrate -At -c "$1"; }
py() { python3 tests/integration/queue/doors.py "$1" "$dir" "${@:2}"; }
submit() { # REQUEST
	tests/support/pg psql "$dir/pg" lych_vessel -At -c "SELECT job_id FROM vessel_api.enqueue('main', '$1',
		convert_to('{\"argv\":[\"true\"]}', 'UTF8'), 50, true, 600, 1000)"
}
status() { # expression over the tombs t
	python3 - "$dir/api/vessel.sock" "$1" <<'P'
import http.client, json, socket, sys
c = http.client.HTTPConnection("lychgate")
c.sock = socket.socket(socket.AF_UNIX)
c.sock.connect(sys.argv[1])
c.request("GET", "/v1/status")
t = {x["name"]: x for x in json.load(c.getresponse())["tombs"]}
print(eval(sys.argv[2]))
P
}
mkdir -p "$dir/data/audit" "$dir/work" "$dir/api"
chmod -R 700 "$dir"
export HOME=$dir
tests/support/pg start "$dir/pg"
migrate() {
	"$build/lych-vessel" migrate --pg-dir "$dir/pg/sock" --secrets "$dir/pg/secrets" --tomb tomb_1 --tomb tomb_2 \
		--tomb tomb_3 2>"$dir/migrate.log"
}
migrate

# --- a schema that is not the vessel's
newest=$(psql "SELECT max(version) FROM lych.schema_version")
psql "INSERT INTO lych.schema_version VALUES ($newest + 1, 'tomorrow', 'x')" >/dev/null
vessel "$build/lych-vessel"
ended vessel 1
says "$dir/vessel.log" "LYCH-STARTUP-007"
says "$dir/vessel.log" "at version $((newest + 1)), this vessel (release .*) needs $newest"
is "migrate refuses it too" 1 "$(rc=0; migrate || rc=$?; echo $rc)"
psql "DELETE FROM lych.schema_version WHERE version >= $newest" >/dev/null
vessel "$build/lych-vessel"
ended vessel 1
says "$dir/vessel.log" "LYCH-STARTUP-012.*lych-vessel migrate"
psql "DROP FUNCTION vessel_api.schema_version()" >/dev/null
vessel "$build/lych-vessel"
ended vessel 1
says "$dir/vessel.log" "LYCH-STARTUP-015.*older than version 5"
is "no vessel took the database" 0 "$(psql "SELECT count(*) FROM lych.vessel_owner")"
tests/support/pg stop "$dir/pg"
rm -rf "$dir/pg"
tests/support/pg start "$dir/pg"
migrate

# Nothing is claimed while the log cannot be written.
"$build/lych-scribe" --dir "$dir/data/audit" --socket-dir "$dir/audit" 2>"$dir/scribe.log" &
pids[scribe]=$!

# --- what a tomb must not say
vessel "$build/lych-vessel"
says "$dir/vessel.log" 'msg="ready"'
until_sql() { # COUNT SQL
	for _ in $(seq 400); do
		[ "$(psql "$2")" = "$1" ] && return
		sleep 0.05
	done
	fail "never: $2"
}
until_sql t "SELECT ok_until > now() FROM lych.audit_state"
py refused >"$dir/refused"
is "refusals" 29 "$(wc -l <"$dir/refused")"
coded=$(grep -cE '^[45][0-9][0-9] LYCH-[A-Z]+-[0-9]{3} ' "$dir/refused") || true
[ "$coded" = 29 ] || cat "$dir/refused"
is "each with a code" 29 "$coded"
while read -r code what; do
	grep -qF " $code $what |" "$dir/refused" || fail "not $code: $what"
	count=$((count + 1))
done <<'T'
LYCH-HTTP-005 no name
LYCH-HTTP-005 a name that is none
LYCH-HTTP-005 a name that is nobody's
LYCH-RUN-011 a tomb that does not claim through the vessel
LYCH-HTTP-005 the vessel's own role
LYCH-HTTP-005 the superuser's role
LYCH-HTTP-005 a wrong bearer
LYCH-HTTP-005 another tomb's bearer
LYCH-HTTP-005 another tomb's name
LYCH-HTTP-005 the master itself
LYCH-HTTP-007 an older version
LYCH-RUN-010 a newer version
LYCH-RUN-011 hello, not registered
LYCH-SPEC-002 an unknown key
LYCH-RUN-013 a queue not granted
T
is "nothing was claimed" 0 "$(psql "SELECT count(*) FROM lych.attempt")"

# --- answers that nobody reads: the vessel is killed when the commit is in the database
boot=$(python3 -c 'import uuid; print(uuid.uuid4())')
lose() { # verb args...: SQL-COUNT SQL
	local sql=$1
	shift
	mkfifo "$dir/hold"
	py "$@" <"$dir/hold" >"$dir/sent" &
	local p=$!
	exec 9>"$dir/hold"
	until_sql 1 "$sql"
	stop vessel -KILL
	exec 9>&-
	wait "$p"
	rm "$dir/hold"
	vessel "$build/lych-vessel"
	says "$dir/vessel.log" 'msg="ready"'
	until_sql t "SELECT ok_until > now() FROM lych.audit_state"
}
job=$(submit first)
lose "SELECT count(*) FROM lych.lease WHERE job_id = $job" lost "$boot" "$boot"
read -r j e t <<<"$(py claim "$boot" "$boot")"
is "the same claim, the same lease" "$job 1 $(psql "SELECT token FROM lych.attempt WHERE job_id = $job")" "$j $e $t"
is "and only one attempt" 1 "$(psql "SELECT count(*) FROM lych.attempt")"
is "another tomb with that lease" "200 denied" "$(py ack "$j" "$e" "$t" tomb_2)"
lose "SELECT count(*) FROM lych.attempt WHERE job_id = $job AND outcome = 'succeeded'" ack-lost "$j" "$e" "$t"
is "the same ack again" "200 already" "$(py ack "$j" "$e" "$t")"
is "one result" 1 "$(psql "SELECT count(*) FROM lych.result")"

# --- a hint comes when a job does, and not before
mkfifo "$dir/go"
py hints <"$dir/go" >"$dir/hints" &
hints=$!
exec 8>"$dir/go"
says "$dir/hints" held
submit second >/dev/null
echo >&8
exec 8>&-
wait "$hints" || fail "no hint"
says "$dir/hints" True

# --- tombs of both doors beside each other, with the vessel that knows two of them
tomb "$build/lych-tomb" tomb_1 vessel
tomb "$build/lych-tomb" tomb_2 vessel
tomb "$build/lych-tomb" tomb_3 postgres
for n in 1 2 3; do says "$dir/tomb_$n.log" 'msg="ready"'; done
for i in $(seq 30); do submit "many-$i" >/dev/null; done
until_sql 0 "SELECT count(*) FROM lych.job WHERE state <> 'succeeded'"
is "each once" "32 32" "$(psql "SELECT count(*) || ' ' || count(DISTINCT job_id) FROM lych.attempt")"
is "by names of their own" "" "$(psql "SELECT DISTINCT owner FROM lych.attempt WHERE owner NOT IN ('tomb_1', 'tomb_2', 'tomb_3')")"
is "invariants" 0 "$(psql "SELECT sum(bad) FROM lych.invariants()")"
is "status names doors" "vessel vessel postgres False" \
	"$(status '" ".join([t["tomb_%d" % n]["door"] for n in (1, 2, 3)] + [str(any(x["refused"] for x in t.values()))])')"
is "and when they were seen" True "$(status 'all(x["seen_ago_s"] < 60 and x["release"] and x["protocol"] == 1 for x in t.values())')"
for n in 1 2 3; do stop "tomb_$n" -TERM; done
tomb "$build/lych-tomb" tomb_3 vessel
ended tomb_3 1
says "$dir/tomb_3.log" "LYCH-RUN-011"

# --- another version, both doors, both directions
for door in postgres vessel; do
	tomb "$test_build/lych-tomb" tomb_2 $door --speak-protocol 2
	ended tomb_2 1
	says "$dir/tomb_2.log" "LYCH-RUN-010.*speaks version 2, this vessel (release .*) version 1: upgrade the vessel"
	! grep -q 'msg="ready"' "$dir/tomb_2.log" || fail "a tomb of another version was ready"
done
is "status names it" "True 2" "$(status 'str(t["tomb_2"]["refused"]) + " " + str(t["tomb_2"]["protocol"])')"
for door in postgres vessel; do
	tomb "$build/lych-tomb" tomb_1 $door
	says "$dir/tomb_1.log" 'msg="ready"'
	stop vessel -TERM
	vessel "$test_build/lych-vessel" --speak-protocol 2
	# it ran when the vessel was replaced
	ended tomb_1 1
	says "$dir/tomb_1.log" "LYCH-RUN-010.*tomb_1 speaks version 1, this vessel (release .*) version 2: upgrade the tomb"
	stop vessel -TERM
	vessel "$build/lych-vessel"
	says "$dir/vessel.log" 'msg="ready"'
done
stop vessel -TERM
# A vessel that would take us: the tomb judges for itself.
for fake in "2 upgrade the tomb" "404 upgrade the vessel"; do
	python3 tests/integration/queue/doors.py fake "$dir" "${fake%% *}" >"$dir/fake" &
	pids[fake]=$!
	says "$dir/fake" listening
	tomb "$build/lych-tomb" tomb_1 vessel
	ended tomb_1 1
	says "$dir/tomb_1.log" "LYCH-RUN-010.*${fake#* }"
	stop fake -KILL
done
echo "doors: $count checks"
