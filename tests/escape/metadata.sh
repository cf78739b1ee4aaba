#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 400
# Grade floor: the metadata of files outside, by every call and every way to name them, and
# against a thread that swaps links, directories and the path's own bytes. Judged from
# outside: mode, owner, times, attributes and links of the victims are what they were. Then
# the same calls on the job's own files, with the kernel's errnos, and the CPUs.
# LYCH_BIN: where the programs are (build/release).
set -uo pipefail
bin=${LYCH_BIN:-${LYCH_BUILD:-build/release}}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
lie=$(realpath "$bin/tests/support/lie") || exit 1
try=$(realpath "$bin/tests/escape/try_metadata") || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
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

if [ "$(id -u)" -eq 0 ]; then
	echo "run as an ordinary user: the sandbox refuses root" >&2
	exit 1
fi

mkdir "$scratch/work" "$scratch/out" "$scratch/out/ro"
mkdir -m 700 "$scratch/jobs"
cp "$try" "$scratch/work/try_metadata"
echo "the secret" >"$scratch/out/victim"
echo "shown" >"$scratch/out/ro/file"
chmod 600 "$scratch/out/victim" "$scratch/out/ro/file"
python3 -c 'import os, sys
for f in sys.argv[1:]: os.setxattr(f, "user.mark", b"m")' "$scratch/out/victim" "$scratch/out/ro/file"
touch -d '2001-01-01 00:00:00' "$scratch/out/victim" "$scratch/out/ro/file"
touch -d '2001-01-01 00:00:00' "$scratch/out/ro" "$scratch/out"

# Any change of an inode moves its ctime (%z); the access time (%x) moves when it is read.
state() {
	stat -c '%n %a %u %g %h %s %y %z' "$scratch" "$scratch/out" "$scratch/out/victim" \
		"$scratch/out/ro" "$scratch/out/ro/file"
	python3 -c 'import os, sys
for f in sys.argv[1:]: print([(n, os.getxattr(f, n)) for n in os.listxattr(f)])' \
		"$scratch/out/victim" "$scratch/out/ro/file"
}
outer=() # what runs the sandbox
run() {
	"${outer[@]}" "$sandbox" --grade floor --workspace "$scratch/work" --ro "$scratch/out/ro" \
		--timeout 300 "$@" </dev/null 2>&1 | cat # no stdio is a file: notify_meta.c
}

before=$(state)
run -- ./try_metadata attack "$scratch/out"
check "no attempt was answered with success" [ $? -eq 0 ]
check "nothing outside changed" [ "$before" = "$(state)" ]
run --processes 8 -- ./try_metadata race "$scratch/out" "${ROUNDS:-20000}"
check "the race ran, and reached its own files" [ $? -eq 0 ]
check "nothing outside changed in the race" [ "$before" = "$(state)" ]

# A descriptor for writing that the job did not open itself: as its stdio, or sent over it.
"$sandbox" --grade floor --workspace "$scratch/work" --timeout 60 -- \
	./try_metadata brought 0 1 <>"$scratch/out/victim" >>"$scratch/out/ro/file"
check "no attempt on a file that is its stdio was answered with success" [ $? -eq 0 ]
python3 -c 'import os, socket, subprocess, sys
ours, jobs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
socket.send_fds(ours, [b"x"], [os.open(sys.argv[1], os.O_RDWR)])
sys.exit(subprocess.run(sys.argv[2:], stdin=jobs, stdout=2).returncode)' "$scratch/out/victim" \
	"$sandbox" --grade floor --workspace "$scratch/work" --timeout 60 -- ./try_metadata brought sent \
	2> >(cat >&2)
check "... nor on one that was sent to it" [ $? -eq 0 ]
# A sandbox that waits gets its stdio later; what it writes goes to a file here.
for pool in 0 3; do
	rm -rf "$scratch/jobs"/*
	PYTHONPATH=$(dirname "$0")/../support/python python3 -c 'import os, sys, time
from spawner import Spawner
s = Spawner(sys.argv[1], sys.argv[2], "floor", "--pool", sys.argv[3])
s.wait(s.run("true"))
time.sleep(0.5)
job = s.wait(s.run("python3", "-c", """
import os
for fd in 0, 1:
    try:
        os.utime(fd, (1, 1))
        raise SystemExit(1)
    except PermissionError:
        pass
""", stdin=os.open(sys.argv[4], os.O_RDWR)))
s.close()
sys.exit((job.exited or ("refused", 2))[1])' "$sandbox" "$scratch/jobs" "$pool" "$scratch/out/victim"
	check "... nor by a job of the spawner, a pool of $pool" [ $? -eq 0 ]
done
check "... and nothing outside changed" [ "$before" = "$(state)" ]

works=works
"$try" has-xattrat || works="works-but-xattrat"
run -- ./try_metadata $works
check "every call works on files of its own" [ $? -eq 0 ]

# The keeper takes a descriptor of the job, or opens it again where it may not take it.
before=$(state)
outer=("$lie" --no-getfd --)
run -- ./try_metadata $works
check "every call works where a container forbids to take descriptors" [ $? -eq 0 ]
run -- ./try_metadata attack "$scratch/out"
check "... and no attempt was answered with success" [ $? -eq 0 ]
rm -rf "$scratch/work"/dir*
run --processes 8 -- ./try_metadata race "$scratch/out" 2000
check "... nor changed anything in a race" [ "$before" = "$(state)" ]
outer=()
for grade in full floor; do
	"$sandbox" --grade $grade --workspace "$scratch/work" --timeout 60 -- \
		./try_metadata affinity </dev/null
	check "$grade: its CPUs and no more" [ $? -eq 0 ]
done

# A single file that is granted, and a second tree; a workspace that may only be read.
mkdir "$scratch/tree"
: >"$scratch/one"
: >"$scratch/tree/f"
run --rw "$scratch/one" --rw "$scratch/tree" -- sh -c \
	'touch -d 2003-03-03 "$1" "$2/f" && chmod 640 "$1" "$2/f"' sh "$scratch/one" "$scratch/tree"
check "a file and a tree granted by --rw" \
	[ "$(stat -c %a-%Y "$scratch/one" "$scratch/tree/f" | sort -u)" = 640-1046649600 ]
before=$(stat -c '%a %y %z' "$scratch/work/try_metadata")
"$sandbox" --grade floor --workspace-ro "$scratch/work" --timeout 60 -- sh -c \
	'chmod 600 try_metadata; touch try_metadata; touch -h try_metadata; chmod 700 .' </dev/null 2>/dev/null
check "a read-only workspace stays as it is" \
	[ "$before" = "$(stat -c '%a %y %z' "$scratch/work/try_metadata")" ]

# In full only attributes are set by the keeper: in the job's trees, by any name, and in no memory.
cat >"$scratch/attributes.py" <<'END'
import errno, os, subprocess, sys
failed = 0
def wants(what, want, *args, **more):
    global failed
    try:
        os.setxattr(*args, **more)
        got = 0
    except OSError as e:
        got = e.errno
    if got != want:
        print("FAIL", what, os.strerror(got), "instead of", os.strerror(want))
        failed += 1
NONE = errno.EOPNOTSUPP
for name in "f", "/tmp/t", "/dev/shm/t", sys.argv[1] + "/g":
    open(name, "w").close()
os.symlink("f", "l")
os.symlink("/tmp/t", "out")
fd, ro, memory = os.open("f", os.O_RDWR), os.open("f", os.O_RDONLY), os.memfd_create("x")
wants("a name", 0, "f", "user.a", b"v")
wants("a whole name", 0, "/work/f", "user.b", b"v")
wants("a name with dots", 0, "../work/./f", "user.b", b"v")
wants("a link", 0, "l", "user.c", b"v")
wants("a link itself", errno.EPERM, "l", "user.c", b"v", follow_symlinks=False)
wants("a descriptor", 0, fd, "user.d", b"v")
wants("one that only reads", 0, ro, "user.e", b"v")
wants("its name", 0, f"/proc/self/fd/{fd}", "user.f", b"v")
wants("a directory", 0, ".", "user.g", b"v")
wants("a tree of its own", 0, sys.argv[1] + "/g", "user.a", b"v")
wants("what is not there", errno.ENOENT, "nothing", "user.a", b"v")
wants("/tmp", NONE, "/tmp/t", "user.a", b"v")
wants("/dev/shm", NONE, "/dev/shm/t", "user.a", b"v")
wants("through a link", NONE, "out", "user.a", b"v")
wants("a memfd", NONE, memory, "user.a", b"v")
wants("its name", NONE, f"/proc/self/fd/{memory}", "user.a", b"v")
wants("a pipe", NONE, os.pipe()[0], "user.a", b"v")
wants("the system's", NONE, "/usr/bin/env", "user.a", b"v")
wants("trusted", errno.EPERM, "f", "trusted.a", b"v")
wants("a capability", errno.EPERM, "f", "security.capability", b"\1\0\0\2" + bytes(16))
assert os.listxattr("f") and os.getxattr("f", "user.a") == b"v"
# who copies with them does not mind
for command in (["cp", "-a", "f", "/tmp/"], ["mv", "f", "/tmp/f2"], ["mv", "/tmp/f2", "f3"], ["install", "-m", "600", "f3", "/tmp/f3"]):
    if subprocess.run(command).returncode:
        print("FAIL", *command)
        failed += 1
sys.exit(failed)
END
mkdir "$scratch/attributes" "$scratch/plain"
cp "$scratch/attributes.py" "$scratch/plain"
if python3 -c 'import os, sys
os.setxattr(sys.argv[1], "user.x", b"1")' "$scratch/attributes" 2>/dev/null; then
	"$sandbox" --grade full --workspace "$scratch/plain" --rw "$scratch/attributes" --timeout 60 -- \
		python3 attributes.py "$scratch/attributes" </dev/null
	check "full: attributes in its trees, and in no memory" [ $? -eq 0 ]
fi

# A flood costs the job, not the supervision: it is ended in time, and nothing is left.
start=$(date +%s)
"$sandbox" --grade floor --workspace "$scratch/work" --timeout 2 --grace 100ms --processes 16 -- \
	sh -c 'for i in 1 2 3 4; do ./try_metadata flood 100000000 & done; wait' </dev/null 2>/dev/null
check "out of time in a flood" [ $? -eq 124 ]
check "... and in time" [ $(($(date +%s) - start)) -le 20 ]
echo "$failed checks failed"
[ $failed -eq 0 ]
