#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 90
# The confined daemons themselves are tried: test builds of tomb, vessel and scribe, in the very walls
# that `lych up` makes for them, attempt what the list says after they have confined themselves.
# The answers are theirs; the verdict is taken from outside: a key unread, listeners that nobody
# reached, a process that still lives.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/support/lych.sh

lych_test_builds

lych_begin walls
lych up --detach >/dev/null
lych run -- true
lych down >/dev/null
run=$XDG_RUNTIME_DIR/lychgate

mkdir -m 0700 "$HOME/.ssh"
echo "a private key" >"$HOME/.ssh/id"
chmod 600 "$HOME/.ssh/id"
(umask 077; mkdir -p "$run/api")
cat >"$LYCH_TMP/listeners.py" <<'P'
import select, socket, sys
out, paths = sys.argv[1], sys.argv[2:]
ls = []
for p in paths:
    s = socket.socket(socket.AF_UNIX)
    s.bind(p)
    s.listen()
    ls.append(s)
t = socket.socket()
t.bind(("127.0.0.1", 0))
t.listen()
ls.append(t)
print(t.getsockname()[1], flush=True)
while True:
    for s in select.select(ls, [], [])[0]:
        s.accept()
        with open(out, "a") as f:
            f.write(f"{s.getsockname()}\n")
P
: >"$LYCH_TMP/reached"
rm -f "$run/api/vessel.sock"
python3 "$LYCH_TMP/listeners.py" "$LYCH_TMP/reached" "$run/api/vessel.sock" "$XDG_RUNTIME_DIR/bus" >"$LYCH_TMP/port" &
listeners=$!
sleep 300 &
sleeper=$!
for _ in $(seq 600); do [ -s "$LYCH_TMP/port" ] && break; nap 0.05; done

# What each daemon tries; "own" is what it must still be able to do.
common=(
	"read $HOME/.ssh/id" "list $HOME/.ssh" "list $HOME" "write $HOME/planted"
	"connect unix:$XDG_RUNTIME_DIR/bus" "exec /bin/true" "exec /usr/bin/id" "fork" "unshare" "mmap-exec"
	"socket inet" "socket inet6" "socket netlink" "socket packet"
	"kill $sleeper" "kill $$" "ptrace $sleeper"
	"read $LYCHGATE_DATA/secrets/lychgate_db_migrate" "list $LYCHGATE_DATA/phylactery"
)
judge() { # name output count-of-attempts own...
	local name=$1 out=$2 n=$3 line rc=0
	shift 3
	# shellcheck disable=SC2001
	sed "s/^/   $name: /" <<<"$out"
	[ "$(wc -l <<<"$out")" -eq $((n + $#)) ] || fail "$name: not every attempt was answered"
	while read -r line; do
		case $line in *": ok" | *": unknown" | *": ?") echo "$name: $line"; rc=1 ;; esac
	done < <(head -n "$n" <<<"$out")
	[ $rc -eq 0 ] || fail "$name got through a wall"
	while read -r line; do
		[[ $line == *": ok" ]] || fail "$name cannot do its own work: $line"
	done < <(tail -n $# <<<"$out")
}

# --- the tomb, in the wall of the starter. The test build and the list come in with its data.
tomb=$LYCH_TMP/tomb
mkdir -m 0700 "$tomb"
cp "$test_build/lych-tomb" "$tomb/lych-tomb"
cat >"$LYCH_TMP/wrapper" <<'W'
#!/bin/sh
ls /lych /lych/secrets >/lych/tomb/seen
cat /lych/secrets/* >/lych/tomb/held
process=$(cat /lych/tomb/process)
exec /lych/tomb/lych-tomb "$@" --probe-walls /lych/tomb/probes ${process:+--probe-process "$process"}
W
chmod 0700 "$LYCH_TMP/wrapper"
own=("socket unix")
total=0 process=
try_tomb() { # door attempt...: by $process, which does not outlive it; "": the tomb itself
	local door=(--queue "$1") name="${process:-tomb} ($1)" out
	[ "$1" = vessel ] || door+=(--pg "$run/pg")
	shift
	tries=("${common[@]}" "connect unix:$run/api/vessel.sock" "list $LYCHGATE_DATA/vessel"
		"write /lych/bin/planted" "write /usr/planted" "list /lych/tomb" "write /lych/tomb/planted" "$@")
	printf '%s\n' "${tries[@]}" "${own[@]}" >"$tomb/probes"
	echo "$process" >"$tomb/process"
	out=$("$LYCH_BIN/lych" _tomb --data "$tomb" --work "$run/work" "${door[@]}" --secrets "$LYCHGATE_DATA/secrets" \
		--tomb "$LYCH_TMP/wrapper" --sandbox "$LYCH_BIN/lych-sandbox" --tools "$LYCH_BIN" --slots 1 --grade full --record "$LYCH_TMP/tomb.process" 2>"$LYCH_TMP/tomb.err") ||
		[ -n "$process" ] || fail "the $name did not finish its attempts: $(tail -n 3 "$LYCH_TMP/tomb.err")"
	judge "$name" "$out" ${#tries[@]} "${own[@]}"
	total=$((total + ${#tries[@]}))
}
try_tomb postgres "list /lych/tomb/jobs" "write /lych/tomb/jobs/probe" "list /lych/tomb/quarantine" \
	"read /lych/secrets/lychgate_db_of_tomb_1" "read /lych/secrets/lychgate_db_tomb"

grep -qx pg "$tomb/seen" && grep -qx lychgate_db_of_tomb_1 "$tomb/seen" || fail "the listing of the tomb's root means nothing"

# Of the masters, from which every tomb's secrets are made, nothing is there: not by a name, not by their bytes.
no_master() {
	local name
	! grep -qxE 'lychgate_(work|db_tomb|generation_of_.*)' "$tomb/seen" || fail "the tomb's root has $(tr '\n' ' ' <"$tomb/seen")"
	for name in work db_tomb; do
		! grep -qF "$(cat "$LYCHGATE_DATA/secrets/lychgate_$name")" "$tomb/held" || fail "the tomb holds the master lychgate_$name"
	done
}
no_master

# Claiming through the vessel: a database listens, and neither its directory nor the password is in
# the tomb's root, before it confines itself and after.
python3 "$LYCH_TMP/listeners.py" "$LYCH_TMP/reached" "$run/pg/.s.PGSQL.5432" >"$LYCH_TMP/port2" &
listeners2=$!
for _ in $(seq 600); do [ -s "$LYCH_TMP/port2" ] && break; nap 0.05; done
try_tomb vessel "read /lych/secrets/lychgate_db_of_tomb_1" "read $LYCHGATE_DATA/secrets/lychgate_db_of_tomb_1" \
	"list /lych/pg" "list $run/pg" "connect unix:/lych/pg/.s.PGSQL.5432" "connect unix:$run/pg/.s.PGSQL.5432"
! grep -qxE 'pg|lychgate_db_.*' "$tomb/seen" || fail "the sovereign tomb's root: $(tr '\n' ' ' <"$tomb/seen")"
no_master
[ "$(grep -c '^lychgate_' "$tomb/seen")" = 1 ] || fail "the sovereign tomb holds other secrets: $(tr '\n' ' ' <"$tomb/seen")"

# --- who touches the jobs' folders has these and nothing else: no socket, no secret, no database
common_all=("${common[@]}")
no_fork=()
for t in "${common[@]}"; do [ "$t" = fork ] || no_fork+=("$t"); done
beside=("socket unix" "list /lych/work" "list /lych/pg" "list /lych/secrets" "read /lych/secrets/lychgate_work_of_tomb_1" "read /etc/passwd"
	"read /lych/tomb/leases" "read /lych/tomb/lock")
folders=("write /lych/tomb/jobs/1.1" "write /lych/tomb/spool/probe" "write /lych/tomb/artifacts/probe" "write /lych/tomb/quarantine/probe")
process=file-worker own=("${folders[@]}")
try_tomb vessel "${beside[@]}"
process=files-parent own=("${folders[@]}" fork) common=("${no_fork[@]}")
try_tomb vessel "${beside[@]}"
# --- who ends the TLS of jobs has nothing at all: no file, no socket
nothing=("${beside[@]}" "write /lych/tomb/jobs/1.1" "list /lych/tomb/jobs" "list /tmp" "write /tmp/planted" "list /usr")
process=tls-parent own=(fork)
try_tomb vessel "${nothing[@]}"
common=("${common_all[@]}")
process=tls-process own=()
try_tomb vessel "${nothing[@]}"

# --- the vessel, in the root that it makes for itself
tries=("${common[@]}" "list $LYCHGATE_DATA/tomb" "read /etc/passwd" "write $LYCHGATE_DATA/planted")
own=("write $LYCHGATE_DATA/vessel/probe" "socket unix")
printf '%s\n' "${tries[@]}" "${own[@]}" >"$LYCH_TMP/probes"
rm -f "$run/api/vessel.sock"
out=$("$test_build/lych-vessel" serve --data "$LYCHGATE_DATA/vessel" --api-dir "$run/api" --work-dir "$run/work" \
	--pg-dir "$run/pg" --audit-dir "$run/audit" --secrets "$LYCHGATE_DATA/secrets" --probe-walls "$LYCH_TMP/probes" 2>"$LYCH_TMP/vessel.err") ||
	fail "the vessel did not finish its attempts: $(tail -n 3 "$LYCH_TMP/vessel.err")"
judge vessel "$out" ${#tries[@]} "${own[@]}"
total=$((total + ${#tries[@]}))

# --- the egress workers and their parent, in the root that the parent makes: no name leads to a
# file, not even to their own secrets; the network is there for those that need it, and only it
(umask 077; echo sk-walls-0123456789 >"$LYCHGATE_DATA/secrets/portal_walls")
cat >"$LYCH_TMP/codex.yaml" <<'C'
version: "1"
portals:
  - name: walls
    kind: openai
    url: "http://127.0.0.1:9/v1"
    secret: portal_walls
    addresses:
      - 127.0.0.1
    models:
      - name: m
        input: "0"
        output: "0"
C
chmod 600 "$LYCH_TMP/codex.yaml"
try_worker() { # name attempts...; own in own
	local name=$1 out
	shift
	printf '%s\n' "$@" "${own[@]}" >"$LYCH_TMP/probes"
	rm -f "$run/api/vessel.sock"
	# it never becomes ready: the vessel refuses to start without it
	out=$("$test_build/lych-vessel" serve --config "$LYCH_TMP/codex.yaml" --data "$LYCHGATE_DATA/vessel" --api-dir "$run/api" \
		--work-dir "$run/work" --pg-dir "$run/pg" --audit-dir "$run/audit" --secrets "$LYCHGATE_DATA/secrets" \
		--probe-walls "$LYCH_TMP/probes" --probe-worker "$name" 2>"$LYCH_TMP/worker.err") &&
		fail "the vessel started without its worker $name"
	[ -n "$out" ] || fail "$name tried nothing: $(tail -n 3 "$LYCH_TMP/worker.err")"
	judge "egress $name" "$out" $# "${own[@]}"
	total=$((total + $#))
}
files=()
for t in "${common[@]}"; do [[ $t == "socket inet"* ]] || files+=("$t"); done
files+=("list $LYCHGATE_DATA/tomb" "list $LYCHGATE_DATA/vessel" "read /etc/passwd" "read /etc/resolv.conf" "list $LYCHGATE_DATA/secrets"
	"read $LYCHGATE_DATA/secrets/portal_walls" "write $LYCHGATE_DATA/planted" "write /planted" "socket unix"
	"connect unix:$run/api/vessel.sock")
# the gate worker reads what is most private: not even a socket is its own
own=()
try_worker gate "${files[@]}" "socket inet" "socket inet6"
own=("socket inet" "socket inet6")
try_worker portal:walls "${files[@]}"
try_worker keyless "${files[@]}"
parent=()
for t in "${files[@]}"; do [ "$t" = fork ] || parent+=("$t"); done
own+=("fork")
try_worker parent "${parent[@]}"
# who reads the host's files again has these, by their names, and no network to take them to
watcher=("socket inet" "socket inet6" "list /etc" "write /etc/planted" "write /etc/resolv.conf")
for t in "${files[@]}"; do [[ $t == "read /etc/"* ]] || watcher+=("$t"); done
own=("read /etc/passwd")
try_worker watcher "${watcher[@]}"
rm "$LYCHGATE_DATA/secrets/portal_walls"
! "$test_build/lych-vessel" serve --config "$LYCH_TMP/codex.yaml" --data "$LYCHGATE_DATA/vessel" --api-dir "$run/api" \
	--work-dir "$run/work" --pg-dir "$run/pg" --audit-dir "$run/audit" --secrets "$LYCHGATE_DATA/secrets" 2>"$LYCH_TMP/worker.err" ||
	fail "the vessel started without a portal's credential"
grep -q 'LYCH-EGRESS-010.*portal walls.*lych secret set portal_walls' "$LYCH_TMP/worker.err" ||
	fail "a missing credential is not named: $(tail -n 3 "$LYCH_TMP/worker.err")"

# --- the scribe: it writes audit/ and that is all; not even a socket of its own kind
tries=("${common[@]}" "list $LYCHGATE_DATA/tomb" "list $LYCHGATE_DATA/vessel" "read /etc/passwd" "write $LYCHGATE_DATA/planted"
	"write $run/audit/planted" "list $run/audit" "socket unix" "connect unix:$run/api/vessel.sock")
own=("write $LYCHGATE_DATA/audit/probe" "read $LYCHGATE_DATA/audit/segment-0000000001.jsonl")
printf '%s\n' "${tries[@]}" "${own[@]}" >"$LYCH_TMP/probes"
out=$("$test_build/lych-scribe" --dir "$LYCHGATE_DATA/audit" --socket-dir "$run/audit" --probe-walls "$LYCH_TMP/probes" 2>"$LYCH_TMP/scribe.err") ||
	fail "the scribe did not finish its attempts: $(tail -n 3 "$LYCH_TMP/scribe.err")"
judge scribe "$out" ${#tries[@]} "${own[@]}"

# --- from outside
[ ! -s "$LYCH_TMP/reached" ] || fail "somebody was reached: $(cat "$LYCH_TMP/reached")"
kill -0 "$sleeper" || fail "the victim was killed"
[ "$(cat "$HOME/.ssh/id")" = "a private key" ] || fail "the key changed"
[ ! -e "$HOME/planted" ] && [ ! -e "$LYCHGATE_DATA/planted" ] || fail "a file was planted"
kill "$sleeper" "$listeners" "$listeners2"
echo "daemons: $((total + ${#tries[@]})) attempts refused, nobody reached, their own work goes on"
