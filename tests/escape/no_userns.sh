#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# A host that refuses user namespaces (user.max_user_namespaces is 0, in a namespace of this test's own): Lychgate refuses
# to come up and names the key; with it, and grade floor, it runs jobs, and no probe of the escape tests and of
# lych doctor gets out.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ -z "${NO_USERNS:-}" ]; then
	# Ubuntu's sysctl, as far as it can be shown to a program where the kernel has none: doctor names it, and what lifts it.
	# shellcheck disable=SC2016
	NO_USERNS=ubuntu unshare --user --map-current-user --keep-caps --mount bash -c '
		mount -t tmpfs none /proc/sys/kernel
		echo 1 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns
		echo 0 >/proc/sys/user/max_user_namespaces
		exec setpriv --ambient-caps=-all --inh-caps=-all "$0"' "$(realpath "$0")"
	# The uid is the same inside, and no capability is left: Lychgate refuses both.
	# shellcheck disable=SC2016
	NO_USERNS=1 exec unshare --user --map-current-user --keep-caps bash -c '
		echo 0 >/proc/sys/user/max_user_namespaces
		exec setpriv --ambient-caps=-all --inh-caps=-all "$0"' "$(realpath "$0")"
fi
. tests/support/lych.sh
lych_begin nouserns
if [ "$NO_USERNS" = ubuntu ]; then
	lych doctor >"$LYCH_TMP/out" || :
	grep -q "FAIL .*apparmor_restrict_unprivileged_userns .*1: it refuses user namespaces; load PREFIX/lib/lychgate/apparmor/lychgate" "$LYCH_TMP/out" ||
		fail "doctor: $(grep -i apparmor "$LYCH_TMP/out")"
	exit 0
fi
! unshare --user true 2>/dev/null || fail "user namespaces are to be had: this test says nothing"

# --- without the key: refused, in words that say what to do, and nothing is left running
for grade in full floor; do
	lych_config "grade: $grade"
	! lych up --detach >"$LYCH_TMP/out" 2>&1 || fail "$grade: it came up without the key"
	grep -q "LYCH-STARTUP-017" "$LYCH_TMP/out" || fail "$grade: $(cat "$LYCH_TMP/out")"
	grep -q "daemons: no_private_root" "$LYCH_TMP/out" || fail "$grade: it does not name the key: $(cat "$LYCH_TMP/out")"
	! lych status >/dev/null 2>&1 || fail "$grade: something runs"
	[ ! -e "$LYCHGATE_DATA/phylactery/data/postmaster.pid" ] || fail "$grade: PostgreSQL runs"
done
lych doctor >"$LYCH_TMP/out" || :
grep -q "FAIL .*user.max_user_namespaces .*0: it refuses user namespaces" "$LYCH_TMP/out" || fail "doctor: $(grep -i userns "$LYCH_TMP/out")"
grep -q "FAIL .*a private root for the daemons" "$LYCH_TMP/out" || fail "doctor does not say what is not possible"

# --- with it: up, a job, and each word about it
echo "daemons: no_private_root" >>"$LYCH_CONFIG"
lych up --detach >/dev/null
[ "$(lych run -- echo hello)" = hello ] || fail "a job"
lych show 1 | grep -q "result.walls.gaps .*no_private_root" || fail "its result: $(lych show 1)"
lych status | grep -q "no_private_root" || fail "status"
lych doctor >"$LYCH_TMP/out" || fail "doctor: $(grep FAIL "$LYCH_TMP/out")"
! grep "^FAIL" "$LYCH_TMP/out" || fail "doctor"
grep -q "^KNOWN .*a private root for the daemons" "$LYCH_TMP/out" || fail "doctor does not say it"
grep -q "^SKIP .*full" "$LYCH_TMP/out" || fail "doctor tried grade full"
for who in vessel scribe tomb "egress parent" "egress keyless" "egress gate"; do
	grep -q "^PASS *$who *unix:user bus" "$LYCH_TMP/out" || fail "doctor: no self-test of $who"
done
lych down >/dev/null

# --- the sandbox itself, by all its probes
GRADES=floor tests/escape/run.sh
