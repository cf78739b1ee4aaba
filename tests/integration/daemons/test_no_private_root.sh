#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# daemons: no_private_root (docs/adr/0047). Sockets of the owner's stand where the daemons can see them: the user bus,
# Podman's, ssh-agent's, the vessel's own, one for datagrams. Lychgate comes up, does a job and comes back from the death of
# each peer; test builds of every daemon try the sockets in every way; and nobody is ever heard there. Then
# each wall is left out on purpose, and that daemon does not start.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/support/lych.sh

lych_test_builds
lych_begin bare
listeners=()
end() { # lych_end goes by $?
	local rc=$?
	for p in "${listeners[@]}"; do kill "$p" 2>/dev/null || :; done
	if (exit "$rc"); then lych_end; else lych_end; fi
}
trap end EXIT
run=$XDG_RUNTIME_DIR/lychgate

# --- the key: by its word, with floor, and without what nobody could mount
refused() { # what-it-says line...
	local what=$1
	shift
	lych_config "$@"
	echo "daemons: ${word:-no_private_root}" >>"$LYCH_CONFIG"
	! lych config check 2>"$LYCH_TMP/err" || fail "taken: $*"
	grep -q "LYCH-STARTUP-002" "$LYCH_TMP/err" && grep -qF "$what" "$LYCH_TMP/err" || fail "no '$what': $(cat "$LYCH_TMP/err")"
}
refused "no_private_root is for tomb.grade: floor" "slots: 2"
refused "no_private_root is for tomb.grade: floor" "grade: full"
refused "nobody who could mount" "grade: floor" "jobs_tmpfs: 64MiB"
word=yes refused "no_private_root, or no such key" "grade: floor"
lych_config "grade: floor"
echo "daemons: no_private_root" >>"$LYCH_CONFIG"

# --- sockets of the owner's: who connects to them, or sends there, is written down
mkdir -m 0700 "$XDG_RUNTIME_DIR/podman" "$HOME/.ssh"
echo "a private key" >"$HOME/.ssh/id"
chmod 600 "$HOME/.ssh/id"
export SSH_AUTH_SOCK=$LYCH_TMP/agent
places=("$XDG_RUNTIME_DIR/bus" "$XDG_RUNTIME_DIR/podman/podman.sock" "$SSH_AUTH_SOCK")
cat >"$LYCH_TMP/listeners.py" <<'P'
import select, socket, sys
out, ready = sys.argv[1:3]
ls = []
for p in sys.argv[3:]:
    kind = socket.SOCK_DGRAM if p.endswith("datagrams") else socket.SOCK_STREAM
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(p)
    if kind == socket.SOCK_STREAM:
        s.listen()
    ls.append(s)
open(ready, "w").close()
while True:
    for s in select.select(ls, [], [])[0]:
        if s.type == socket.SOCK_STREAM:
            s.accept()
        else:
            s.recv(1)
        with open(out, "a") as f:
            f.write(f"{s.getsockname()}\n")
P
: >"$LYCH_TMP/reached"
python3 "$LYCH_TMP/listeners.py" "$LYCH_TMP/reached" "$LYCH_TMP/ready" "${places[@]}" "$LYCH_TMP/datagrams" &
listeners+=($!)
wait_until 60 "the listeners" test -e "$LYCH_TMP/ready"
unheard() {
	[ ! -s "$LYCH_TMP/reached" ] || fail "$1: somebody was there: $(sort -u "$LYCH_TMP/reached")"
	kill -0 "${listeners[@]}" || fail "$1: the listeners are gone"
}
hear() { # the listener hears: else its silence says nothing
	python3 -ISc '
import socket, sys
for p in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM if p.endswith("datagrams") else socket.SOCK_STREAM)
    s.connect(p)
    if p.endswith("datagrams"):
        s.send(b"x")' "$@"
	heard() { [ "$(sort -u "$LYCH_TMP/reached" | wc -l)" = "$#" ]; }
	wait_until 60 "not every listener hears" heard "$@"
	: >"$LYCH_TMP/reached"
}
hear "${places[@]}" "$LYCH_TMP/datagrams"

# --- the whole of it: up, a job with its files, and every word about the missing root
lych up --detach >/dev/null
echo hello >"$LYCH_TMP/in"
[ "$(lych run --file "$LYCH_TMP/in=a" --artifact b -- sh -c 'cat a; cp a b')" = hello ] || fail "a job"
for kind in first second; do # which finds a sandbox that was built before it
	[ "$(lych run -- sh -c 'cd "$HOME" && [ "$TMPDIR" = "$PWD/.tmp" ] && : >"$TMPDIR/x" && echo its own')" = "its own" ] || fail "HOME and TMPDIR, $kind job"
done
lych show "$(lych jobs --json --limit 1 | python3 -ISc 'import json,sys; print(json.load(sys.stdin)["jobs"][0]["id"])')" --json >"$LYCH_TMP/show"
python3 -ISc '
import json, sys
j = json.load(open(sys.argv[1]))
assert j["state"] == "succeeded", j["state"]
w = j["result"]["walls"]
assert w["grade"] == "floor" and any("daemons: no_private_root" in g for g in w["gaps"]), w' "$LYCH_TMP/show" || fail "its result"
lych status >"$LYCH_TMP/status"
grep -q "no_private_root" "$LYCH_TMP/status" || fail "lych status does not say it: $(cat "$LYCH_TMP/status")"
lych status --json | python3 -ISc '
import json, sys
s = json.load(sys.stdin)
assert s["starter"]["private_root"] is False and s["vessel"]["private_root"] is False
who = {"vessel": s["vessel"]["walls"], **{w["name"]: w["walls"] for w in s["vessel"]["egress_workers"]}}
for name, walls in who.items():
    tried = {w["wall"] for w in walls if w["wall"].startswith("unix:")}
    assert {"unix:api", "unix:user bus", "unix:Podman", "unix:ssh agent", "unix:an abstract name"} <= tried, (name, tried)
    assert all(w["held"] for w in walls), name' || fail "status --json"
# The spawner has one filter, that of connect(); one of its own it has none. A job tries what only that one is asked about.
spawner=$(pgrep -P "$(lych_pid tomb)" -x lych-sandbox) || fail "no spawner"
grep -qx "Seccomp_filters:[[:space:]]*1" "/proc/$spawner/status" || fail "the spawner's filter: $(grep Seccomp "/proc/$spawner/status")"
lych run --timeout 30 -- python3 -ISc '
import socket, sys
a, b = socket.socketpair()
try:
    a.connect(sys.argv[1])
except PermissionError:
    sys.exit(0)
sys.exit("connected")' "$XDG_RUNTIME_DIR/bus" || fail "connect() of a job"
unheard "up"

# --- each peer dies once: what lives asks the dialer anew
again() { # who signal
	kill "-$2" "$(lych_pid "$1")"
	wait_until 60 "a job after the death of $1" works
}
works() { [ "$(lych run -- echo back 2>/dev/null)" = back ]; }
again vessel KILL
again postgres QUIT
again scribe KILL
unheard "after the deaths"
lych down >/dev/null

# --- a tomb that claims through the vessel: its dialer has no database
LYCH_QUEUE=vessel lych_config "grade: floor"
echo "daemons: no_private_root" >>"$LYCH_CONFIG"
mkdir "$LYCH_TMP/bin"
cp "$LYCH_BIN/lych" "$LYCH_TMP/bin"
ln -s "$LYCH_BIN"/{lych-scribe,lych-sandbox,tools} "$LYCH_TMP/bin"
for p in lych-tomb lych-vessel; do
	# Becomes that daemon. The first of them has a child that holds its end of the dialer and, when a file asks for it, says
	# there what nobody has business with.
	cat >"$LYCH_TMP/bin/$p" <<-W
		#!/bin/bash
		if [ "\$1" != migrate ] && mkdir "\$0.once" 2>/dev/null; then
			(exec 3>&-; until [ -e "\$0.say" ]; do sleep 0.1; done; printf x >&4) &
		fi
		exec "$LYCH_BIN/$p" "\$@"
	W
	chmod 0700 "$LYCH_TMP/bin/$p"
done
"$LYCH_TMP/bin/lych" up --detach >/dev/null
works || fail "a job through the vessel"

# --- whose dialer has ended would reach nobody any more: it is killed and started again, and no other part is
vessel=$(lych_pid vessel) tomb=$(lych_pid tomb)
another() { # part, pid of the former: the other parts answer all the while
	local now
	[ "$1" = vessel ] || lych jobs >/dev/null || fail "the api is not there while the $1 is started again"
	now=$(lych_pid "$1") && [ "$now" != "$2" ]
}
: >"$LYCH_TMP/bin/lych-tomb.say"
wait_until 120 "a tomb whose dialer ended was not started again" another tomb "$tomb"
wait_until 120 "a job after the end of the tomb's dialer" works
[ "$(lych_pid vessel)" = "$vessel" ] || fail "the vessel was started again, too"
tomb=$(lych_pid tomb)
: >"$LYCH_TMP/bin/lych-vessel.say"
wait_until 120 "a vessel whose dialer ended was not started again" another vessel "$vessel"
wait_until 120 "a job after the end of the vessel's dialer" works
[ "$(lych_pid tomb)" = "$tomb" ] || fail "the tomb was started again, too"
for p in tomb vessel; do
	grep -q "the dialer of a part has ended; the part is started again.*part=\"$p\"" "$LYCHGATE_DATA/log/starter.log" || fail "the starter does not say it of the $p"
done
again vessel KILL
lych down >/dev/null
unheard "down"

# --- every daemon, confined, tries them itself
rm -f "$run/pg/.s.PGSQL.5432"
python3 "$LYCH_TMP/listeners.py" "$LYCH_TMP/reached" "$LYCH_TMP/ready2" "$run/pg/.s.PGSQL.5432" &
listeners+=($!)
wait_until 60 "the second listeners" test -e "$LYCH_TMP/ready2"
hear "$run/pg/.s.PGSQL.5432"
tries=("read $HOME/.ssh/id" "list $HOME" "write $HOME/planted" "chmod $HOME/.ssh/id" "fchmod $HOME/.ssh/id" "exec /bin/true" "unshare"
	"socket datagrams" "socket packets" "pair" "read /etc/passwd" "list $LYCHGATE_DATA/phylactery")
for place in "${places[@]}" "$run/pg/.s.PGSQL.5432" "$LYCH_TMP/datagrams" "$LYCH_TMP/nobody"; do
	tries+=("connect unix:$place" "send unix:$place" "sendmsg unix:$place" "reconnect unix:$place")
done
bare() { # program argument...: with a dialer's socket as descriptor 4; what it says goes to $said
	rm -f "$run/api/vessel.sock" "$run/work/vessel.sock"
	timeout 60 python3 -ISc '
import os, socket, sys
a, b = socket.socketpair(socket.AF_UNIX, getattr(socket, os.environ.get("DIALER", "SOCK_SEQPACKET")))
keep, give = os.dup(a.fileno()), os.dup(b.fileno())
os.dup2(give, 4)
os.dup2(keep, 5)
os.set_inheritable(5, True)
if "STRAY" in os.environ:
    stray = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    os.dup2(stray.fileno(), 6)
os.execv(sys.argv[1], sys.argv[1:])' "$@" 2>"${said:-$LYCH_TMP/said}"
}
# A tomb whose file workers end waits for them: so these are tried beside the rest, each in a place of its own.
aside() { # place argument...
	local at=$LYCH_TMP/$1 rc=0
	shift
	(umask 077; mkdir -p "$at/tomb" "$at/work")
	said=$at/said bare "$test_build/lych-tomb" --name tomb_1 --data "$at/tomb" --work-dir "$at/work" --queue vessel --secrets "$LYCHGATE_DATA/secrets" \
		--sandbox "$LYCH_BIN/lych-sandbox" --slots 1 --grade floor --jobs-apart no --no-private-root --dial-fd 4 "$@" >"$at/out" || rc=$?
	echo $rc >"$at/rc"
}
scribe() { bare "$test_build/lych-scribe" --dir "$LYCHGATE_DATA/audit" --socket-dir "$run/audit" --no-private-root "$@"; }
vessel() {
	bare "$test_build/lych-vessel" serve --config "$LYCH_CONFIG" --data "$LYCHGATE_DATA/vessel" --api-dir "$run/api" --work-dir "$run/work" \
		--pg-dir "$run/pg" --audit-dir "$run/audit" --secrets "$LYCHGATE_DATA/secrets" --no-private-root --dial-fd 4 "$@"
}
tomb() {
	bare "$test_build/lych-tomb" --name tomb_1 --data "$LYCHGATE_DATA/tomb" --work-dir "$run/work" --queue postgres --pg-dir "$run/pg" \
		--secrets "$LYCHGATE_DATA/secrets" --sandbox "$LYCH_BIN/lych-sandbox" --slots 1 --grade floor --jobs-apart no \
		--no-private-root --dial-fd 4 "$@"
}
# Names for sockets, an abstract one and paths beside those of Lychgate. The vessel makes its own anew; who speaks to
# the network may bind(), but nobody can connect to what does not listen.
naming=("bind unix:@lych-planted" "listen unix:@lych-planted" "bind unix:$run/audit/planted" "listen unix:$run/work/planted")
total=0
# File workers change the modes of what jobs left, to 0755 and less: a gap that is known (docs/THREAT_MODEL.md).
printf '%s\n' "${tries[@]}" "${naming[@]}" >"$LYCH_TMP/file-probes"
beside=()
for who in files-parent file-worker; do
	aside "$who" --probe-walls "$LYCH_TMP/file-probes" --probe-process "$who" & beside+=($!)
done
# What only a worker has of its filter, it is asked for itself: the rest is its parent's.
left_out=("file workers' parent:"{connect,socketpair,bind,listen,modes,landlock} "file worker:filter")
for wall in "${left_out[@]}"; do
	LYCH_TEST_LEAVE_OUT=$wall aside "${wall// /_}" & beside+=($!)
done
judge() { # name: ok is the answer of nothing, and a name for a socket is refused before the kernel looks whether it is free
	local n
	n=$(wc -l <"$LYCH_TMP/out")
	[ "$n" = "${#tries[@]}" ] || fail "$1: $n answers of ${#tries[@]}: $(cat "$LYCH_TMP/said")"
	! grep -E ': (ok|unknown|\?)$' "$LYCH_TMP/out" || fail "$1 got through a wall"
	! grep -E '^(bind|listen) ' "$LYCH_TMP/out" | grep -v ': EPERM$' || fail "$1 may give a socket a name"
	unheard "$1"
	total=$((total + n))
}
tried() { # name program argument...
	local name=$1
	shift
	printf '%s\n' "${tries[@]}" >"$LYCH_TMP/probes"
	"$1" --probe-walls "$LYCH_TMP/probes" "${@:2}" >"$LYCH_TMP/out" || [ $# -gt 1 ] || fail "$name: $(tail -n 3 "$LYCH_TMP/said")"
	judge "$name"
}
tried vessel vessel
connecting=("${tries[@]}")
tries+=("${naming[@]}")
tried scribe scribe
tried tomb tomb
tried "egress gate" vessel --probe-worker gate
tries=("${connecting[@]}" "listen unix:@lych-planted" "listen unix:$run/work/planted")
for who in parent keyless; do tried "egress $who" vessel --probe-worker "$who"; done
unchanged() { [ "$(stat -c %a "$HOME/.ssh/id")" = 600 ] && [ ! -e "$HOME/planted" ] && [ -z "$(compgen -G "$run/*/planted")" ] || fail "something was changed"; }
unchanged

# --- each wall left out: that daemon says which, and does not start
ends() { # name wall program...
	local rc=0
	LYCH_TEST_LEAVE_OUT="$1:$2" "$3" >"$LYCH_TMP/out" || rc=$?
	[ $rc = 78 ] || fail "$1 without '$2': exit $rc, $(tail -n 3 "$LYCH_TMP/said")"
	grep -q "LYCH-STARTUP-018.*$1: " "$LYCH_TMP/said" || fail "$1 without '$2': $(cat "$LYCH_TMP/said")"
	! grep -q 'msg="ready"' "$LYCH_TMP/said" || fail "$1 without '$2' was ready"
	: >"$LYCH_TMP/reached"
	total=$((total + 1))
}
for wall in connect socketpair bind listen modes landlock; do ends scribe $wall scribe; done
for wall in connect socket socketpair modes landlock; do
	ends vessel $wall vessel
	ends tomb $wall tomb
done
for wall in bind listen; do ends tomb $wall tomb; done
ends spawner connect tomb
for wall in socketpair listen modes landlock; do ends "egress parent" $wall vessel; done
for wall in connect socketpair bind listen modes landlock; do ends "egress watcher" $wall vessel; done
# of a worker: what its parent, which has to leave it more, does not have
for wall in connect bind landlock filter; do ends gate $wall vessel; done
for wall in landlock filter; do ends keyless $wall vessel; done

# --- what came with it: a socket that could be told an address; a dialer that is none; half of the word
turned_away() { # code what program argument...
	local code=$1 what=$2 rc=0
	shift 2
	"$@" >"$LYCH_TMP/out" || rc=$?
	[ $rc != 0 ] && grep -q "$code.*$what" "$LYCH_TMP/said" || fail "exit $rc, no '$what': $(tail -n 3 "$LYCH_TMP/said")"
	total=$((total + 1))
}
STRAY=1 turned_away LYCH-STARTUP-018 "descriptor 6 is a socket that could reach others" scribe
DIALER=SOCK_STREAM turned_away LYCH-STARTUP-018 "the dialer's descriptor is another socket" vessel
DIALER=SOCK_STREAM turned_away LYCH-STARTUP-018 "the dialer's descriptor is another socket" tomb
lych_config "grade: floor"
turned_away LYCH-STARTUP-002 "daemons: no_private_root is for 'lych up'" vessel
# --- the file workers and their parent, by now
wait "${beside[@]}"
mapfile -t tries <"$LYCH_TMP/file-probes"
for who in files-parent file-worker; do
	cp "$LYCH_TMP/$who/out" "$LYCH_TMP/$who/said" "$LYCH_TMP"
	judge "$who"
done
for wall in "${left_out[@]}"; do
	at=$LYCH_TMP/${wall// /_}
	[ "$(cat "$at/rc")" = 78 ] && grep -q "LYCH-STARTUP-018.*${wall%:*}: " "$at/said" || fail "without '$wall': $(cat "$at/said")"
	total=$((total + 1))
done
echo "no_private_root: $total attempts refused, nobody was heard"
