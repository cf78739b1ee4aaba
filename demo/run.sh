#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The demo: an honest job, a hostile one and five runaways through the real command line, on a
# private data directory that is removed afterwards. Every claim is checked from outside; exit 0
# only if all of them hold. DEMO_POD=1: on the pod that runs already (tests/e2e/pod_user.sh), which goes on.
# DEMO_DAEMONS=no_private_root: the owner's word for a host that refuses user namespaces; it is written into codex.yaml
# beside grade floor. Without it nothing is run on such a host.
# shellcheck disable=SC2317 # functions are called by trap and must
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
here=$PWD
export PATH=$here/build/${VARIANT:-release}:$PATH
word=${DEMO_DAEMONS:-}
if [ -n "$word" ] && { [ "$word" != no_private_root ] || [ -n "${DEMO_POD:-}" ]; }; then
	echo "DAEMONS=$word: it is no_private_root or left out, and not for the pod" >&2
	exit 2
fi

tmp=$(mktemp -d /tmp/lych-demo-XXXXXX)
victims=""
cleanup() {
	[ -n "${DEMO_POD:-}" ] || lych down >/dev/null 2>&1
	[ -z "$victims" ] || kill -TERM "$victims" 2>/dev/null
	chmod -R u+rwx "$tmp" 2>/dev/null
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
mkdir -m 0700 "$tmp/home" "$tmp/home/.ssh" "$tmp/run" "$tmp/src" "$tmp/out"
if [ -z "${DEMO_POD:-}" ]; then
	export XDG_RUNTIME_DIR=$tmp/run LYCHGATE_DATA=$tmp/data
	unset XDG_DATA_HOME XDG_CONFIG_HOME DBUS_SESSION_BUS_ADDRESS
else
	export LYCHGATE_DATA=${LYCHGATE_DATA:-$HOME/.local/share/lychgate}
fi
export HOME=$tmp/home
sockets=$XDG_RUNTIME_DIR/lychgate

bad=0
title() { printf '\n=== %s\n\n' "$*"; }
ok() { printf '  ok    %s\n' "$*"; }
wrong() {
	printf '  WRONG %s\n' "$*"
	bad=$((bad + 1))
}
must() { # what, command...
	local what=$1
	shift
	if "$@"; then ok "$what"; else wrong "$what"; fi
}
field() { # FILE EXPRESSION: of a job's JSON
	python3 -c 'import json,sys; j=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"
}
newest() { lych jobs --limit 1 --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["jobs"][0]["id"])'; }

# Pid of the tomb.
tomb_pid() {
	if [ -n "${DEMO_POD:-}" ]; then
		pgrep -o -x lych-tomb
	else
		lych status --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["processes"]["tomb"])'
	fi
}
answers() { timeout 30 lych run --no-stdin -- true; }

if [ -z "${DEMO_POD:-}" ]; then
	title "starting Lychgate: a private PostgreSQL, vessel and tomb, as $(id -un)"
	if [ -n "$word" ]; then
		mkdir -m 0700 "$HOME/.config" "$HOME/.config/lychgate"
		(umask 077; printf 'version: "1"\ntomb:\n  grade: floor\ndaemons: %s\n' "$word" >"$HOME/.config/lychgate/codex.yaml")
		echo "  by your word: tomb.grade: floor, daemons: $word"
	fi
	if ! lych up --detach 2>"$tmp/up.err"; then
		cat "$tmp/up.err" >&2
		if grep -q LYCH-STARTUP-017 "$tmp/up.err"; then
			cat >&2 <<-'E'

				No job was run. Allow user namespaces, and all of the demo is shown to you. Or give your word for less:
				    make demo DAEMONS=no_private_root
				writes daemons: no_private_root and tomb.grade: floor into the demo's own codex.yaml. Its daemons then have no
				root of their own, jobs no socket and no loopback (docs/SANDBOX.md, "Where user namespaces are refused").
			E
		else
			tail -n 5 "$tmp"/data/log/*.log 2>/dev/null
		fi
		exit 1
	fi
	cat "$tmp/up.err" >&2
	before=$(date +%s%N)
	lych up --detach >/dev/null
	printf '  a second start: %d ms\n' $((($(date +%s%N) - before) / 1000000))
fi

title "1. honest work: zlib's own examples, compiled and tested inside"
examples=${DEMO_EXAMPLES:-/usr/share/doc/zlib1g-dev/examples}
if ! ls "$examples"/example.c* >/dev/null 2>&1; then
	echo "the package zlib1g-dev with its examples is needed: make deps" >&2
	exit 1
fi
cp "$examples"/* "$tmp/src/"
cp demo/honest.sh "$tmp/src/"
gzip -dqf "$tmp"/src/*.gz 2>/dev/null
lych run --no-stdin --dir "$tmp/src" --timeout 120 --artifact 'out/*' --out "$tmp/out" -- \
	sh honest.sh >"$tmp/honest.log" 2>"$tmp/honest.err"
must "it exits 0" [ $? -eq 0 ]
sed 's/^/  | /' "$tmp/honest.log" | tail -n 25
job=$(newest)
lych show "$job" --json >"$tmp/honest.json"
must "state succeeded" [ "$(field "$tmp/honest.json" 'j["state"]')" = succeeded ]
must "the artifacts came back" [ -s "$tmp/out/out/example.c.gz" ]
gzip -dc "$tmp/out/out/example.c.gz" >"$tmp/example.c" 2>/dev/null
must "unpacked outside, the bytes are those of the package" cmp -s "$tmp/example.c" "$tmp/src/example.c"
must "the user's own tree is as it was" [ ! -e "$tmp/src/example" ]

title "2. hostile work: everything that a job must never do"
key=$HOME/.ssh/id_ed25519
printf 'PRIVATE KEY OF THE DEMO, %s\n' "$(date +%s)" >"$key"
chmod 0600 "$key"
echo '# mine' >"$HOME/.bashrc"
touch -d '2001-02-03' "$key" "$HOME/.bashrc"
seen_before=$(cd "$HOME" && find . -not -name '.lych*' -printf '%p %m %s %T@ %n\n' | sort; cat "$key" "$HOME/.bashrc")
python3 demo/victims.py >"$tmp/victims" &
victims=$!
for _ in $(seq 100); do [ -s "$tmp/victims" ] && break; sleep 0.05; done
read -ra aims <"$tmp/victims"
tomb=$(tomb_pid)
lych run --no-stdin --timeout 60 --file demo/hostile.py -- python3 hostile.py \
	"key=$key" "data=$LYCHGATE_DATA" "api=$sockets/api/vessel.sock" "tomb=$tomb" \
	"work=$sockets/work/vessel.sock" "pg=$sockets/pg/.s.PGSQL.5432" \
	"${aims[@]}" | sed 's/^/  /'
must "the job says that every act was refused" [ "${PIPESTATUS[0]}" -eq 0 ]
printf '\n  seen from outside:\n'
job=$(newest)
lych show "$job" --json >"$tmp/hostile.json"
must "more than 20 acts were tried" [ "$(lych logs "$job" --only stdout | grep -c ' refused ')" -gt 20 ]
must "one process tried to outlive it, and was ended with it" \
	[ "$(field "$tmp/hostile.json" 'j["result"]["tree_gone"] and j["result"]["killed_strays"] >= 1')" = True ]
# The key's path is in the arguments of the job's processes, and here in the environment only.
survivors() {
	KEY=$key python3 -c '
import glob, os
def args(p):
    try:
        return open(p, "rb").read()
    except OSError:
        return b""
print(sum(os.environb[b"KEY"] in args(p) for p in glob.glob("/proc/[0-9]*/cmdline")))'
}
must "no process of it is left" [ "$(survivors)" = 0 ]
seen_after=$(cd "$HOME" && find . -not -name '.lych*' -printf '%p %m %s %T@ %n\n' | sort; cat "$key" "$HOME/.bashrc")
must "the key and the home directory are untouched" [ "$seen_before" = "$seen_after" ]
must "the victim process is alive" kill -0 "$victims"
kill -TERM "$victims"
wait "$victims"
must "no listener outside was reached" [ $? -eq 0 ]
victims=""
must "the service still answers" answers

title "3. runaways: each is stopped, and the result says why"
runaway() { # expected class, options... -- argv
	local class=$1 got rc
	shift
	lych run --no-stdin "$@" >/dev/null 2>"$tmp/runaway.err"
	rc=$?
	lych show "$(newest)" --json >"$tmp/runaway.json"
	got=$(field "$tmp/runaway.json" 'j["class"]')
	if [ "$got" = "$class" ] && [ "$rc" -ne 0 ] && [ "$(field "$tmp/runaway.json" 'j["result"]["tree_gone"]')" = True ]; then
		ok "$(printf '%-14s exit %-4s %5s ms  %s' "$got" "$rc" "$(field "$tmp/runaway.json" 'j["result"]["wall_ms"]')" "$(field "$tmp/runaway.json" 'j["result"]["detail"]')")"
	else
		wrong "expected $class, got $got (exit $rc): $(cat "$tmp/runaway.err")"
	fi
}
runaway oom_kill --memory 64MiB -- python3 -c '
x = []
while True: x.append(bytearray(b"x" * (1 << 20)))'
runaway resource_kill --processes 24 -- python3 -c '
import os, time
for _ in range(500):
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    except OSError:
        pass
time.sleep(60)'
runaway output_limit --output 1MiB -- yes
# shellcheck disable=SC2016
runaway disk_limit --disk 32MiB -- sh -c \
	'i=0; while :; do head -c 4194304 /dev/zero >f$i; i=$((i + 1)); done'
runaway timeout_kill --timeout 1 -- sleep 60

verdict() {
	echo
	if [ "$bad" -eq 0 ]; then
		echo "The demo is done: all as promised."
		exit 0
	fi
	echo "The demo is done: $bad checks FAILED." >&2
	exit 1
}
[ -z "${DEMO_POD:-}" ] || verdict

lych status --json >"$tmp/status.json"
python3 demo/walls.py "$tmp/honest.json" "$tmp/status.json" || bad=$((bad + 1))

title "stopping"
pids=$(python3 -c 'import json,sys; print(*json.load(open(sys.argv[1]))["processes"].values())' "$tmp/status.json")
must "lych down" lych down
for pid in $pids; do
	# a dead one may wait for its parent to notice (Z)
	if grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$pid/status"; then wrong "pid $pid is still there"; fi
done
verdict
