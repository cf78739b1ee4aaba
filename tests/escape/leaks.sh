#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What probe_leaks.c cannot try where it runs: a host with a domain name, a stdin that comes from
# a network with other interfaces, a core handler. Each is first made, and seen without a sandbox.
set -uo pipefail
bin=${LYCH_BUILD:-build/release}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
lie=$(realpath "$bin/tests/support/lie") || exit 1
if [ "$(id -u)" -eq 0 ]; then
	echo "run as an ordinary user: the sandbox refuses root" >&2
	exit 1
fi
if [ -n "${LYCH_NESTED:-}" ]; then
	echo "leaks: a container lets nobody make these"
	exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failed=0 count=0
check() { # what, expected, got
	count=$((count + 1))
	if [ "$2" = "$3" ]; then return; fi
	echo "FAIL $1: expected '$2', got '$3'"
	failed=$((failed + 1))
}
# Namespaces where this very user may change things.
own() {
	unshare --map-current-user --keep-caps "$@"
}
if ! own --uts --net --mount true; then
	echo "no namespaces to be had here"
	exit 77
fi

# --- the domain name
cat >domain.py <<'END'
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.setdomainname(b"corp.example", ctypes.c_size_t(12)) != 0:
    raise OSError(ctypes.get_errno(), "setdomainname")
refused = subprocess.run([sys.argv[2], "--no-domain", "--", sys.argv[1], "--", "true"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
print("SANDBOX-005" in refused.stderr, refused.returncode, end=" ", flush=True)
for command in [[]] + [[sys.argv[1], "--grade", g, "--"] for g in ("full", "floor")]:
    print(subprocess.run(command + ["python3", "-c", "import ctypes\nb = ctypes.create_string_buffer(390)\nctypes.CDLL(None).uname(b)\nprint(b.raw[325:].split(b'\\0')[0].decode())"],
                         capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout.strip(), end=" ", flush=True)
END
check "the domain name: one that can't be hidden; bare, full, floor (which has no names of its own)" \
	"True 78 corp.example (none) corp.example " "$(own --uts python3 domain.py "$sandbox" "$lie" 2>&1)"

# --- a socket of another network: as stdin, from where an interface has an address
cat >ask.py <<'END'
import array, fcntl, struct
def ask(what):
    try:
        return what()
    except OSError as e:
        return e.errno
def addresses():
    buf = array.array("B", bytes(1280))
    n = struct.unpack("iP", fcntl.ioctl(0, 0x8912, struct.pack("iP", len(buf), buf.buffer_info()[0])))[0]
    return sorted(".".join(str(b) for b in buf[i + 20:i + 24]) for i in range(0, n, 40))
def name(index):
    return fcntl.ioctl(0, 0x8910, struct.pack("16si20s", b"", index, b"")).split(b"\0")[0].decode()
def mac():
    return fcntl.ioctl(0, 0x8927, struct.pack("40s", b"there"))[18:24].hex()
def driver():
    return fcntl.ioctl(0, 0x8946, struct.pack("16sP16s", b"there", 0, b""))
print(ask(addresses), [ask(lambda: name(i)) for i in (1, 2, 3)], ask(mac), isinstance(ask(driver), int))
END
cat >network.sh <<'END'
ip link set lo up && ip link add there type veth peer name here && ip link set there address 02:00:00:00:be:ef &&
	ip addr add 192.0.2.77/24 dev there && ip link set there up || exit 1
exec python3 - "$1" <<'PY'
import socket, subprocess, sys
for grade in (None, "full", "floor"):
    ours, theirs = socket.socketpair()
    command = [sys.argv[1], "--grade", grade, "--"] if grade else []
    print(subprocess.run(command + ["python3", "-c", open("ask.py").read()], stdin=theirs, capture_output=True, text=True).stdout.strip())
PY
END
check "a socket of another network: bare, full, floor" \
	"['127.0.0.1', '192.0.2.77'] ['lo', 'here', 'there'] 02000000beef True
['127.0.0.1'] ['lo', 19, 19] 19 True
1 [1, 1, 1] 1 True" "$(own --net bash network.sh "$sandbox" 2>&1)"

# --- a name on the host's network, which the same socket could take
check "a name of the host's network: bare, full, floor; full on a socket that has one" \
	"named taken OSError(22) free OSError(1) free OSError(22) free" "$(python3 - "$sandbox" <<'END'
import os, socket, subprocess, sys
take = """import os, socket
try:
    socket.socket(fileno=os.dup(0)).bind(chr(0) + 'lych-leaks-%d')
    print('named')
except OSError as e:
    print(f'OSError({e.errno})')""" % os.getpid()
said = []
for grade in (None, "full", "floor", "full"):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET if grade else socket.SOCK_STREAM)
    if len(said) == 6:
        theirs.bind("")
    command = [sys.argv[1], "--grade", grade, "--"] if grade else []
    said.append(subprocess.run(command + ["python3", "-c", take], stdin=theirs, capture_output=True, text=True).stdout.strip())
    try:
        socket.socket(socket.AF_UNIX).bind("\0lych-leaks-%d" % os.getpid())
        said.append("free")
    except OSError:
        said.append("taken")
print(*said)
END
	)"

# --- a core handler: with a hard limit of 0 the kernel would start it all the same
limits() { # hard-limit grade: the job's own, after it asked for 0, or the refusal
	# shellcheck disable=SC2016 # the inner shell expands it
	bash -c 'ulimit -S -c 0 && ulimit -H -c "$1" && "$2" --grade "$3" -- bash -c "ulimit -S -c 0; prlimit --core --raw --noheadings -o SOFT,HARD"' \
		bash "$1" "$sandbox" "$2" 2>&1 </dev/null | grep -oE 'SANDBOX-007|^[0-9].*'
}
# A pattern of its own: what floor sees; full has a /proc of its own, with the host's true one.
with_pattern() { # pattern hard-limit
	echo "$1" >pattern
	export -f limits
	# shellcheck disable=SC2016
	sandbox=$sandbox own --mount bash -c 'mount --bind pattern /proc/sys/kernel/core_pattern && limits "$1" floor' bash "$2" 2>&1
}
check "floor: a limit that starts no handler" "1 1" "$(with_pattern '|/bin/handler %P' unlimited)"
check "floor: 0 where there is no handler" "0 0" "$(with_pattern core 0)"
check "floor: 0 and a core handler" SANDBOX-007 "$(with_pattern '|/bin/handler %P' 0)"
check "full: a limit that starts no handler" "1 1" "$(limits unlimited full)"
case $(cat /proc/sys/kernel/core_pattern) in
'|'*) check "full: 0 and the host's core handler" SANDBOX-007 "$(limits 0 full)" ;;
*) check "full: 0 where there is no handler" "0 0" "$(limits 0 full)" ;;
esac

echo "leaks: $count checks, $failed failed"
[ $failed -eq 0 ]
