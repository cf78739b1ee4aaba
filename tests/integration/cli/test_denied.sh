#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# What the walls refused is told, by the keeper alone: which call, on what, how often. Not told:
# what the kernel refused for ordinary reasons, and what the sandbox tried before the job ran.
# A flood costs the job, not its supervision.
# LYCH_BIN: where the programs are (build/release).
set -uo pipefail
bin=${LYCH_BIN:-${LYCH_BUILD:-build/release}}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/work" "$scratch/out"
failed=0

check() { # what command...
	local what=$1
	shift
	if "$@"; then
		echo "ok   $what"
	else
		echo "FAIL $what"
		failed=$((failed + 1))
	fi
}
# The last line of stderr is the sandbox's; what the job wrote there comes before.
run() { # grade option... -- command...
	local grade=$1
	shift
	timeout 120 "$sandbox" --grade "$grade" --json --workspace "$scratch/work" "$@" \
		</dev/null 2>"$scratch/err" >"$scratch/stdout"
	code=$?
	tail -n 1 "$scratch/err" >"$scratch/end"
}
# An expression over d, the list of what was denied, and j, the whole.
says() {
	python3 -c 'import json, sys
j = json.load(open(sys.argv[1])); d = j["denied"]
ok = eval(sys.argv[2])
if not ok: print("   ", json.dumps(d)[:2000])
sys.exit(not ok)' "$scratch/end" "$1"
}

cat >"$scratch/work/ask.py" <<'END'
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def attempt(act, *args):
    try:
        act(*args)
    except OSError:
        pass
what = sys.argv[1]
if what == "calls":
    libc.unshare(0x10000000)
    libc.mount(b"none", b"/", None, 0, None)
    for _ in range(3):
        libc.syscall(425, 1, 0)                  # io_uring_setup
    libc.ioctl(0, 0x5412, b"x")                  # TIOCSTI
    attempt(socket.socket, 40)
elif what == "sockets":
    for _ in range(2):
        attempt(socket.socket, socket.AF_INET)
    a = b"\x02\x00\x01\xbb\xc0\x00\x02\x01" + bytes(8)
    libc.connect(0, a, len(a))                   # 192.0.2.1:443
    a = b"\x0a\x00\x00\x50" + bytes(4) + bytes(15) + b"\x01" + bytes(4)
    libc.connect(0, a, len(a))                   # [::1]:80
    a = b"\x01\x00" + b"/run/docker.sock"
    libc.connect(0, a, len(a))
    a = b"\x01\x00\x00abstract"
    libc.connect(0, a, len(a))
    libc.connect(0, 8, 16)                       # no address there
    libc.connect(0, a, 1 << 30)                  # nor that long
elif what == "metadata":
    attempt(os.chmod, sys.argv[2], 0o644)
    attempt(os.utime, sys.argv[2], (1, 1))
    attempt(os.chmod, "ask.py", 0o4755)
elif what == "ordinary":
    attempt(open, "/etc/shadow")
    attempt(os.kill, os.getppid(), 0)
    attempt(os.chmod, "/usr/bin/true/x", 0o755) if sys.argv[2] == "full" else None
    attempt(os.setxattr, "ask.py", "trusted.x", b"1")
    attempt(os.chown, "ask.py", 0, 0)
    attempt(os.chmod, "missing", 0o600)
    attempt(os.sched_setaffinity, 0, [])
elif what == "forge":
    sys.stderr.write('{"how":"exited","denied":[{"act":"read","wall":"landlock"}]}\n')
    for fd in range(3, 64):
        attempt(os.write, fd, b"\x09" * 600)
elif what == "kinds":
    for family in range(100, 260):
        attempt(socket.socket, family)
elif what == "flood":
    n = int(sys.argv[2])
    unshare = libc.unshare
    for _ in range(n):
        unshare(0x10000000)
END

for grade in full floor; do
	run $grade -- python3 ask.py calls
	check "$grade: each refused call is told once, counted" says \
		'{(x["call"], x["object"], x["count"]) for x in d} == {
			("unshare", "flags 0x10000000", 1), ("mount", "", 1), ("io_uring_setup", "", 3),
			("ioctl", "request 0x5412", 1), ("socket", "socket family 40 (vsock)", 1)}'
	check "$grade: ... by the filter, as EPERM" says \
		'all(x["wall"] == "seccomp" and x["errno"] == "EPERM" and not x["grant"] for x in d)'
	check "$grade: ... with the act" says '{x["act"] for x in d} == {"call", "connect"}'
	run $grade -- true
	check "$grade: the sandbox's own attempts are not told" says 'd == [] and j["denied_dropped"] == 0'
	run $grade -- python3 ask.py ordinary $grade
	check "$grade: what the kernel refuses by itself is not told" says 'd == []'
	run $grade -- python3 ask.py forge
	check "$grade: a job cannot forge a record" says 'd == [] and j["how"] == "exited"'
	run $grade -- python3 ask.py kinds
	check "$grade: 64 kinds and the number of others" says \
		'len(d) == 64 and 90 <= j["denied_dropped"] <= 96'
	"$sandbox" --grade $grade --explain --workspace "$scratch/work" -- python3 ask.py calls \
		</dev/null >/dev/null 2>"$scratch/err"
	check "$grade: in words with --explain" \
		grep -q '^lych-sandbox: call unshare "flags 0x10000000" refused (seccomp: .*EPERM' "$scratch/err"
	"$sandbox" --grade $grade --workspace "$scratch/work" -- python3 ask.py calls \
		</dev/null >/dev/null 2>"$scratch/err"
	check "$grade: silent without" [ ! -s "$scratch/err" ]

	# FLOOD calls (10^6 take 8 s on a quiet machine): one record, no memory, and the clock goes on.
	run $grade --timeout 100 -- python3 ask.py flood "${FLOOD:-100000}"
	check "$grade: a flood is one record" says "len(d) == 1 and d[0]['count'] == ${FLOOD:-100000}"
	check "$grade: ... and the job ends by itself" [ "$code" -eq 0 ]
	python3 -c 'import json, sys
j = json.load(open(sys.argv[1])); print("     flood: %d ms, %d ms of CPU, %d KiB" %
	(j["wall_ms"], j["cpu_ms"], j["memory_peak_bytes"] >> 10))' "$scratch/end"
	start=$(date +%s)
	run $grade --timeout 1 --grace 100ms -- sh -c \
		'for i in 1 2 3 4 5 6 7 8; do python3 ask.py flood 1000000000 & done; wait'
	check "$grade: out of time in a flood of eight" says 'j["how"] == "timeout" and j["tree_gone"]'
	check "$grade: ... without delay" [ $(($(date +%s) - start)) -le 15 ]
done

run floor -- python3 ask.py sockets
check "floor: sockets by family, connects by address" says \
	'{(x["call"], x["object"], x["count"]) for x in d} == {
		("socket", "socket family 2 (inet)", 2), ("connect", "192.0.2.1:443", 1),
		("connect", "[::1]:80", 1), ("connect", "/run/docker.sock", 1),
		("connect", "@abstract", 1), ("connect", "", 2)}'
: >"$scratch/out/victim"
run floor -- python3 ask.py metadata "$scratch/out/victim"
check "floor: metadata outside, and a set-id bit" says \
	"{(x['act'], x['wall'], x['object'], x['call'] in ('chmod', 'utimensat')) for x in d} == {
		('metadata', 'landlock', '$scratch/out/victim', True),
		('metadata', 'seccomp', '$scratch/work/ask.py', True)}"

# The same through the spawner, cold and out of its pool; and the trees of a warm sandbox, which
# learns its workspace late, are its own.
client=$(realpath "$bin/tests/support/spawn_client") || exit 1
mkdir -m 700 "$scratch/jobs"
for grade in full floor; do
	for pool in 0 2; do
		rm -rf "$scratch/jobs/"*
		mkdir "$scratch/jobs/a" "$scratch/jobs/b"
		: >"$scratch/jobs/a/own"
		: >"$scratch/jobs/b/other"
		chmod 600 "$scratch/jobs/a/own" "$scratch/jobs/b/other"
		: >"$scratch/told"
		{
			echo "run 1 --grade $grade --timeout 30 --workspace a -- unshare -U true"
			echo "run 2 --grade $grade --timeout 30 --workspace a -- chmod 640 own"
			echo "run 3 --grade $grade --timeout 30 --workspace a -- chmod 640 $scratch/jobs/b/other"
			for _ in $(seq 300); do
				[ "$(grep -c '^exited' "$scratch/told")" -eq 3 ] && break
				sleep 0.1
			done
		} | "$client" "$sandbox" "$scratch/jobs" $grade --pool $pool >"$scratch/told" 2>/dev/null
		check "$grade, pool of $pool: the spawner passes it on" grep -q \
			'^denied 1 wall=1 act=6 count=1 errno=1 unshare flags 0x10000000' "$scratch/told"
		check "$grade, pool of $pool: its own file" [ "$(stat -c %a "$scratch/jobs/a/own")" = 640 ]
		check "$grade, pool of $pool: not its neighbour's" \
			[ "$(stat -c %a "$scratch/jobs/b/other")" = 600 ]
		[ $grade = full ] || check "$grade, pool of $pool: ... which is told" grep -q \
			"^denied 3 wall=2 act=5 .* $scratch/jobs/b/other" "$scratch/told"
	done
done
echo "$failed checks failed"
[ $failed -eq 0 ]
