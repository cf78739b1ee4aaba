#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# A full disk: the data directory lies on a small file system. A job fills it, ballast fills it, PostgreSQL
# can't extend a table and at last can't write its log (a PANIC). Whoever asks is told so by a typed error;
# once there is space again, everything that was accepted is there and goes on, once.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
SIZE_MB=260

if [ "${1:-}" != inside ]; then
	place=$(mktemp -d /tmp/ly-full-XXXXXX)
	trap 'rmdir "$place"' EXIT
	enter=(unshare --user --map-current-user --keep-caps --mount)
	"${enter[@]}" mount -t tmpfs -o "size=${SIZE_MB}m,mode=0700" none "$place" 2>/dev/null ||
		skip "an unprivileged mount is refused here"
	"${enter[@]}" sh -c 'mount -t tmpfs -o "size=$2m,mode=0700" none "$1" &&
		exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$3" inside "$1"' \
		sh "$place" "$SIZE_MB" "$0"
	exit $?
fi

lych_begin full
LYCHGATE_DATA=$2/data
ballast=$2/ballast
work=$LYCH_TMP
cd "$work" || exit 1

json() { # expressions over j, printed side by side
	python3 -ISc 'import json,sys; j=json.load(sys.stdin); print(*eval("[" + sys.argv[1] + "]"))' "$1"
}
field() { lych show "$1" --json | json "$2"; } # job, expressions
fill() { dd if=/dev/zero of="$ballast" bs=64k oflag=append conv=notrunc 2>/dev/null; }
give() { truncate -s "-$1" "$ballast"; } # bytes
told() { # what: full, or that the database does not answer; never anything else
	grep -qE '^      LYCH-(CORE-005|RUN-007|HTTP-008)  .{8}' err || fail "$1: not typed: $(cat err)"
	count=$((count + 1))
}
settled() { # what, job: it ended well, at the first attempt that began
	for _ in $(seq 600); do
		lych_job "$2" 2>/dev/null
		case $job_state in succeeded) break ;; queued | preparing | running | "") nap 0.1 ;; *) break ;; esac
	done
	is "$1" "succeeded 0" "$(field "$2" 'j["state"], j["lost"]')"
}

# --- a first start without room, at three of its steps: told, and done again from the beginning
for room in 8K 2M 20M; do
	fill
	give "$room"
	lych up --detach >/dev/null 2>err; is "a first start with $room" 4 $?
	is "it says so: $(cat err)" 1 "$(grep -c '^      LYCH-CORE-005  .' err)"
	is "no half of a cluster" 0 "$(find "$LYCHGATE_DATA/phylactery" -mindepth 1 -not -path '*/log*' -not -name lock | wc -l)"
done
rm "$ballast"
lych up --detach 2>/dev/null || fail "up"

# --- a later start without room, where PostgreSQL can't even log why: told, and it starts when there is some
lych down >/dev/null || fail "down"
fill
lych up --detach >/dev/null 2>err; is "a start with nothing left" 4 $?
is "it says so: $(cat err)" 1 "$(grep -c '^      LYCH-CORE-005  .' err)"
is "and where" 1 "$(grep -cF "$LYCHGATE_DATA" err)"
rm "$ballast"
lych up --detach 2>/dev/null || fail "up, with room"

# --- a job that fills it: its own trouble, and not its neighbour's
neighbour=$(lych run -n --detach -- sh -c 'i=0; while [ $i -lt 30 ]; do echo line $i; i=$((i+1)); sleep 0.1; done')
# shellcheck disable=SC2016
is "a job that fills the disk sees that" "1 after" \
	"$(lych run -n -- sh -c 'echo before >&2; m=$(dd if=/dev/zero of=f bs=1M count=900 2>&1); echo $?; sleep 1; rm f; echo "$m" >&2; echo after' 2>err | tr '\n' ' ' | sed 's/ $//')"
is "and is told why" 1 "$(grep -c 'No space left on device' err)"
settled "its neighbour" "$neighbour"
is "its neighbour's output is whole" 30 "$(lych logs "$neighbour" | wc -l)"

# --- full, while a job runs that talks, and others are accepted
talker=$(lych run -n --detach -- sh -c 'sleep 1; head -c 300000 /dev/zero | tr "\0" x; echo; sleep 1; echo end')
wait_until 60 "it does not run" lych_job_is "$talker" running
fill
waiting=()
for i in 1 2 3 4; do waiting+=("$(lych run -n --detach --request-id "waits-$i" -- echo "waited $i")"); done
head -c 3000000 /dev/urandom >blob
lych run -n --file blob -- cat blob >/dev/null 2>err; is "an upload has no room" 4 $?
told "an upload"
is "nothing of it stays" 0 "$(find "$LYCHGATE_DATA/vessel/uploads" -type f | wc -l)"
is "it says which disk" 1 "$(grep -c 'LYCH-CORE-005' err)"
sleep 3
is "nothing is begun that could not end" "queued queued queued queued" \
	"$(for id in "${waiting[@]}"; do field "$id" 'j["state"]'; done | tr '\n' ' ' | sed 's/ $//')"
is "no attempt was used up" "0 0 0 0" \
	"$(for id in "${waiting[@]}"; do field "$id" 'j["attempts"]'; done | tr '\n' ' ' | sed 's/ $//')"
is "the tomb says why" yes "$(grep -q 'LYCH-CORE-005.*no job is begun' "$LYCHGATE_DATA/log/tomb.log" && echo yes)"
is "status shows it" True "$(lych status --json | json 'j["vessel"]["store"]["disk_free_bytes"] < 16 << 20')"
rm "$ballast"
settled "the one that talked" "$talker"
is "its output is whole" "300001 end" "$(lych logs "$talker" | head -n 1 | wc -c) $(lych logs "$talker" | tail -n 1)"
for i in 1 2 3 4; do
	settled "one that waited" "${waiting[$((i - 1))]}"
	is "ran once and said it" "waited $i 1" "$(lych logs "${waiting[$((i - 1))]}") $(field "${waiting[$((i - 1))]}" 'j["attempts"]')"
done
is "the upload goes now" "$(sha256sum <blob)" "$(lych run -n --file blob -- sha256sum blob | sed 's/blob$/-/')"

# --- PostgreSQL without room for its tables, then without room for its log
fill
# large texts in the description itself: lych would make a blob of them
cat >submit.py <<'P'
import base64, http.client, json, os, socket, sys
c = http.client.HTTPConnection("lychgate")
c.sock = socket.socket(socket.AF_UNIX)
c.sock.settimeout(30)
c.sock.connect(os.environ["XDG_RUNTIME_DIR"] + "/lychgate/api/vessel.sock")
text = base64.b64encode(os.urandom(675000)).decode()
c.request("POST", "/v1/jobs", json.dumps({"argv": ["wc", "-c"], "stdin": text, "request_id": sys.argv[1]}))
r = c.getresponse()
answer = json.loads(r.read())
if r.status == 201:
    print(answer["id"])
else:
    print("      " + answer["error_code"] + "  " + answer["hint"], r.status, file=sys.stderr)
    sys.exit(1)
P
accepted=()
for i in $(seq 80); do
	if id=$(python3 submit.py "big-$i" 2>err); then
		accepted+=("$id")
	else
		told "a description without room"
		grep -q PANIC "$LYCHGATE_DATA/phylactery/log/postgres.log" && break
		give 1M
	fi
done
is "its log had no room" 1 "$(grep -c PANIC "$LYCHGATE_DATA/phylactery/log/postgres.log" | sed 's/[2-9].*/1/')"
[ "${#accepted[@]}" -ge 1 ] || fail "only ${#accepted[@]} were accepted"
fill
for _ in $(seq 100); do lych jobs >/dev/null 2>&1; [ $? -eq 4 ] && break; nap 0.2; done
lych jobs >/dev/null 2>err; is "a question has an answer" 4 $?
told "a question"
lych run -n --detach --request-id late -- echo late >/dev/null 2>err; is "so has a submission" 4 $?
told "a submission"
rm "$ballast"
for _ in $(seq 300); do lych jobs >/dev/null 2>&1 && break; nap 0.1; done
for id in "${accepted[@]}"; do
	settled "accepted on a full disk" "$id"
	is "and whole" "900000" "$(lych logs "$id")"
done
late=$(lych run -n --detach --request-id late -- echo late) && settled "sent again" "$late"
is "the same request is one job" "$late" "$(lych run -n --detach --request-id late -- echo late)"
is "no stranger among the jobs" "$((${#accepted[@]} + 9))" "$(lych jobs --limit 500 --json | json 'len(j["jobs"])')"
is "the queue's invariants hold" 0 "$(lych_violations)"
for _ in $(seq 150); do kill -0 "$(lych_pid postgres)" 2>/dev/null && break; nap 0.2; done
is "status names the living" 1 "$(kill -0 "$(lych_pid postgres)" && echo 1)"
lych down >/dev/null || fail "down"
echo "full_disk: $count checks, ${#accepted[@]} large descriptions accepted"
