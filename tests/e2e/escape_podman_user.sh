#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run by escape_podman.sh on the workstation, as its user.
set -uo pipefail
cd ~/in || exit 1
echo "Linux $(uname -r), $(podman --version)"
podman import -q image.tar localhost/lychgate-escape >/dev/null || exit 1
rm -f image.tar
mkdir -m 700 disk

# Shared memory: a neighbour of a job fills 150 MiB of it (limits_beside), and has 64 unless it is said.
contain() { # command...
	podman run --rm --userns=keep-id --cap-drop=all --security-opt=no-new-privileges --read-only --shm-size=512m \
		--tmpfs /tmp:rw,exec,nosuid,nodev,mode=1777 --network=none --volume "$PWD/lychgate:/lychgate:ro" \
		--volume "$PWD/disk:/disk" \
		--workdir /lychgate --env MUST_RUN=1 --env LYCH_NESTED=1 --env LANG=C.UTF-8 --env PATH=/usr/bin:/bin \
		localhost/lychgate-escape "$@"
}

# The walls of the container are as said, or the test says nothing.
contain bash -c '
grep -E "^(CapEff|CapBnd|NoNewPrivs|Seccomp):" /proc/self/status
test "$(id -u)" = 1000 && ! touch /x 2>/dev/null &&
	grep -q "^CapBnd:[[:space:]]*0*$" /proc/self/status &&
	grep -q "^NoNewPrivs:[[:space:]]*1$" /proc/self/status &&
	grep -q "^Seccomp:[[:space:]]*2$" /proc/self/status &&
	grep "/proc" /proc/self/mountinfo | cut -d" " -f5-6,9' || exit 1
try() { # name, command...
	local script=$1 t=$SECONDS mark=FAIL
	shift
	if contain "$@" >"$script.log" 2>&1; then mark=ok; fi
	printf '%-4s e2e/podman: %-29s %5d s\n' $mark "$script" $((SECONDS - t)) >"$script.new"
	if [ $mark = ok ]; then
		tail -n 1 "$script.log" | sed 's/^/     | /' >>"$script.new"
	else
		{ grep -B 3 -A 1 FAIL "$script.log" | head -n 80; tail -n 5 "$script.log"; } | sed 's/^/     | /' >>"$script.new"
	fi
	cat "$script.new" # at once: they run side by side
	mv "$script.new" "$script.said"
}
# Those that need the command alone; the others start daemons. As in tests/support/check: which say so run by
# themselves, the rest side by side.
names=()
for script in lychgate/tests/escape/*.sh; do
	if [ -x "$script" ] && ! grep -q 'tests/support/lych.sh' "$script"; then names+=("$(basename "$script" .sh)"); fi
done
try_named() {
	local where=/tmp
	# a job sets attributes on a disk, and in no memory
	[ "$1" != metadata ] || where=/disk
	try "$1" env TMPDIR="$where" "tests/escape/$1.sh"
}
is_alone() { head -n 30 "lychgate/tests/escape/$1.sh" | grep -q '^# alone$'; }
for name in "${names[@]}"; do
	if is_alone "$name"; then try_named "$name"; fi
done
try_named held & # waits for most of its time, which is the longest
for name in "${names[@]}"; do
	if is_alone "$name" || [ "$name" = held ]; then continue; fi
	while [ "$(jobs -rp | wc -l)" -ge 4 ]; do wait -n; done
	try_named "$name" &
done
try real env LYCH=0 tests/real/run affinity archive git &
wait
passed=$(cat ./*.said | grep -c '^ok ')
failed=$((${#names[@]} + 1 - passed)) # one without a verdict failed too
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
