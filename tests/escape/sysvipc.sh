#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 60
# System V objects of two jobs at once in full: each has its own under the same key, the host sees none
# of them, and what a job has left behind is gone with it, its memory too.
set -uo pipefail
bin=${LYCH_BUILD:-build/release}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
scratch=$(mktemp -d)
first=
cleanup() {
	[ -n "$first" ] && kill -KILL "$first" 2>/dev/null
	rm -rf "$scratch"
}
trap cleanup EXIT
failed=0

judge() { # what, condition...
	if "${@:2}"; then echo "ok   $1"; else
		echo "FAIL $1"
		failed=$((failed + 1))
	fi
}
shmem_mib() { awk '/^Shmem:/ { print int($2 / 1024) }' /proc/meminfo; }

cat >"$scratch/ipc.py" <<'PY'
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
KEY, CREATE, MIB = int(sys.argv[2], 0), 0o1600, 1 << 20
what = sys.argv[1]

def get(call, *args):
    r = call(*args)
    return r if r >= 0 else -ctypes.get_errno()

if what == "hold":  # fills a segment that it does not even keep mapped
    size = int(sys.argv[3]) * MIB
    shm = get(libc.shmget, KEY, ctypes.c_size_t(size), CREATE)
    at = libc.shmat(shm, None, 0)
    ctypes.memset(at, 0x5a, size)
    libc.shmdt(ctypes.c_void_p(at))
    get(libc.semget, KEY, 1, CREATE), get(libc.msgget, KEY, CREATE)
    open("ready", "w").close()
    while not os.path.exists("end"):
        time.sleep(0.02)
elif what == "look":  # what of another job's is there
    print(*(get(*a) for a in ((libc.shmget, KEY, ctypes.c_size_t(0), 0), (libc.semget, KEY, 0, 0), (libc.msgget, KEY, 0))), flush=True)
    shm = get(libc.shmget, KEY, ctypes.c_size_t(4096), CREATE)
    if shm >= 0:
        print(ctypes.string_at(libc.shmat(shm, None, 0), 4096).count(b"\0"))
PY

job() { # directory, arguments of ipc.py
	mkdir -p "$scratch/$1"
	cp "$scratch/ipc.py" "$scratch/$1/"
	exec "$sandbox" --grade "${grade:-full}" --memory 256MiB --timeout 40 --workspace "$scratch/$1" -- python3 ipc.py "${@:2}" </dev/null
}
wait_for() { # file
	for _ in $(seq 500); do
		[ -e "$1" ] && return 0
		sleep 0.02
	done
	return 1
}

key=$((0x4c590000 + $$ % 65536))
judge "floor: refused" [ "$(grade=floor job refused look $key 2>/dev/null | head -n 1)" = "-1 -1 -1" ]

told=$("$sandbox" --grade floor --explain --workspace "$scratch/refused" -- python3 ipc.py look $key 2>&1 >/dev/null </dev/null)
judge "floor: with the reason" grep -q "shmget.*--grade full" <<<"$(tr '\n' ' ' <<<"$told")"

# Whether the memory comes back is told by the machine's own figure, which others move too.
for try in 1 2 3; do
	rm -rf "$scratch/first"
	before=$(shmem_mib)
	job first hold $key 128 &
	first=$!
	judge "a job fills a segment of 128 MiB that nobody maps" wait_for "$scratch/first/ready"
	held=$(shmem_mib)
	if [ $try -eq 1 ]; then
		said=$(job second look $key | tr '\n' ' ')
		judge "another job finds nothing under that key, and makes its own: $said" [ "$said" = "-2 -2 -2 4096 " ]
		judge "the host has no such segment" [ -z "$(grep "^ *$key " /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg)" ]
	fi
	touch "$scratch/first/end"
	wait $first
	code=$?
	first=
	judge "it ends with its objects left behind" [ $code -eq 0 ]
	for _ in $(seq 100); do
		after=$(shmem_mib)
		[ $((held - after)) -ge 96 ] && break
		sleep 0.05
	done
	[ $((held - before)) -ge 96 ] && [ $((held - after)) -ge 96 ] && break
done
judge "what it left behind is gone with it: $before, $held, $after MiB" [ $((held - after)) -ge 96 ]
echo "$failed checks failed"
[ $failed -eq 0 ]
