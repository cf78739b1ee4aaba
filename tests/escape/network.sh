#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# What probe_inet.c and probe_unix.c cannot try from inside: a connection to the host handed over
# as stdin, stdout or stderr; names looked up by Python. And the listeners that judge those
# probes are awake: without a sandbox the same attempts reach them.
set -uo pipefail
bin=${LYCH_BUILD:-build/release}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
probe=$(realpath "$bin/tests/escape/try_probe") || exit 1
if [ "$(id -u)" -eq 0 ]; then
	echo "run as an ordinary user: the sandbox refuses root" >&2
	exit 1
fi
scratch=$(mktemp -d)
outside=
cleanup() {
	[ -z "$outside" ] || kill -KILL "$outside" 2>/dev/null
	rm -rf "$scratch"
}
trap cleanup EXIT
failed=0 count=0
check() { # what, expected, got
	count=$((count + 1))
	if [ "$2" = "$3" ]; then return; fi
	echo "FAIL $1: expected '$2', got '$3'"
	failed=$((failed + 1))
}
cd "$scratch" || exit 1

for grade in full floor; do
	# Each kind of socket at each of the three places: whoever holds it could speak through it.
	check "$grade: a connection as stdin, stdout or stderr is refused" "15 refused, 0 ran" "$(python3 - "$sandbox" $grade <<'END'
import socket, subprocess, sys
sandbox, grade = sys.argv[1:]
tcp = socket.create_server(("127.0.0.1", 0))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 0))
def connected(kind, to):
    s = socket.socket(socket.AF_INET, kind)
    s.connect(to.getsockname())
    return s
listening = socket.socket(socket.AF_UNIX)
listening.bind("listening")
listening.listen(1)
kinds = {"tcp": connected(socket.SOCK_STREAM, tcp), "udp": connected(socket.SOCK_DGRAM, udp),
         "unix datagram": socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0],
         "unix, unconnected": socket.socket(socket.AF_UNIX), "unix, listening": listening}
refused = ran = 0
for what, s in kinds.items():
    for place in ("stdin", "stdout", "stderr"):
        std = {k: subprocess.DEVNULL for k in ("stdin", "stdout", "stderr")}
        std[place] = s
        p = subprocess.run([sandbox, "--grade", grade, "--workspace", ".", "--", "touch", "ran"], **std)
        refused += p.returncode == 78
        if p.returncode != 78:
            print(what, place, p.returncode, file=sys.stderr)
import os
ran = os.path.exists("ran")
tcp.settimeout(0.2)
c, _ = tcp.accept()
c.setblocking(False)
try:  # what the sandbox itself says on a stderr that it was given is not the job's
    got = c.recv(4096)
    assert not got or got.startswith(b"lych-sandbox: "), got
except BlockingIOError:
    pass
print(f"{refused} refused, {int(ran)} ran")
END
	)"
	rm -f listening ran

	# A clean error at once: no time-out of a resolver that nobody answers.
	check "$grade: python looks up names" "gaierror URLError gaierror quick" \
		"$("$sandbox" --grade $grade --timeout 60 -- python3 -c '
import http.client, socket, time, urllib.request
said = []
start = time.monotonic()
for fn in (lambda: socket.getaddrinfo("lychgate.invalid", 80), lambda: urllib.request.urlopen("http://lychgate.invalid/", timeout=30),
           lambda: http.client.HTTPConnection("lychgate.invalid", timeout=30).request("GET", "/")):
    try:
        fn()
        said.append("answered")
    except OSError as e:
        said.append(type(e).__name__)
took = time.monotonic() - start
print(*said, "quick" if took < 15 else took)' </dev/null 2>&1)"
done

# --- the listeners are awake
mkdir -p place/work
cp "$probe" place/work/try_probe
"$probe" --outside "$scratch/place" >log &
outside=$!
for _ in $(seq 200); do
	[ -e place/work/targets ] && break
	sleep 0.02
done
for id in 32 34 35 35e 36b 41 41b 42 42f 43 43b 43c 44; do
	(cd place/work && ./try_probe full $id >/dev/null 2>&1 </dev/null)
done
kill -TERM "$outside"
wait "$outside"
check "without a sandbox the attempts are seen" 1 $?
outside=
for what in tcp fast udp stream seqpacket dgram abstract abstract_seqpacket abstract_dgram; do
	check "without a sandbox $what is reached" 1 "$(grep -c "reached: $what\$" log)"
done
check "without a sandbox somebody is lured" 1 "$(grep -cP '^FAIL\toutside: nobody answered' log)"
echo "network: $count checks, $failed failed"
[ $failed -eq 0 ]
