#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone
# timeout: 1200
# Ten thousand jobs (JOBS) through one tomb, then: descriptors, processes, mounts, namespaces and
# memory are what they were after the warm-up. Judged from outside, by an observer that may look
# into the daemons although they forbid it to their own uid: the whole Lychgate runs in a user
# namespace of its own, in which this shell, and nothing that it starts, keeps the capabilities.
# In that namespace the kernel grants no more than MAX_NAMESPACES of each kind at a time: one that
# leaks, held by whatever it is, ends the run within a few hundred jobs.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
MAX_NAMESPACES=160

if [ "${LYCH_SOAK_INSIDE:-}" != 1 ]; then
	[ "$(id -u)" -ne 0 ] || { echo "as an ordinary user, please" >&2; exit 1; }
	exec unshare --user --map-current-user --keep-caps env LYCH_SOAK_INSIDE=1 "$0" "$@"
fi
. tests/support/lych.sh
lych() { setpriv --ambient-caps -all --inh-caps -all "$LYCH_BIN/lych" "$@"; }

for kind in user mnt pid net ipc uts cgroup; do
	echo $MAX_NAMESPACES >"/proc/sys/user/max_${kind}_namespaces" || fail "the limit of $kind namespaces"
done
lych_begin soak
cat >"$LYCH_CONFIG" <<'Y'
version: "1"
tomb:
  slots: "8"
Y
chmod 600 "$LYCH_CONFIG"
lych up --detach 2>/dev/null || fail "up"
JOBS=${JOBS:-10000} python3 tests/soak/soak.py || fail "the soak"
