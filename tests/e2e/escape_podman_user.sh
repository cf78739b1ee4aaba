#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run by escape_podman.sh on the workstation, as its user.
set -uo pipefail
cd ~/in || exit 1
echo "Linux $(uname -r), $(podman --version)"
podman import -q image.tar localhost/lychgate-escape >/dev/null || exit 1
rm -f image.tar
mkdir -m 700 disk

# Shared memory: a neighbour of a job fills 150 MiB of it (within_limits), and has 64 unless it is said.
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
passed=0 failed=0
try() { # name, command...
	local script=$1 t=$SECONDS
	shift
	if contain "$@" >"$script.log" 2>&1; then
		passed=$((passed + 1))
		printf 'ok   e2e/podman: %-29s %5d s\n' "$script" $((SECONDS - t))
		tail -n 1 "$script.log" | sed 's/^/     | /'
	else
		failed=$((failed + 1))
		printf 'FAIL e2e/podman: %-29s %5d s\n' "$script" $((SECONDS - t))
		{ grep -B 3 -A 1 FAIL "$script.log" | head -n 80; tail -n 5 "$script.log"; } | sed 's/^/     | /'
	fi
}
# Those that need the command alone; the others start daemons.
for script in lychgate/tests/escape/*.sh; do
	name=$(basename "$script" .sh) where=/tmp
	# a job sets attributes on a disk, and in no memory
	[ "$name" != metadata ] || where=/disk
	grep -q 'tests/support/lych.sh' "$script" || try "$name" env TMPDIR="$where" "${script#lychgate/}"
done
try real env LYCH=0 tests/real/run affinity archive git
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
