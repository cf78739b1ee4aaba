#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# A host that refuses user namespaces (user.max_user_namespaces is 0, in a namespace of this test's own): Lychgate refuses
# to come up and names the key; with it, and grade floor, it runs jobs, and no probe of the escape tests and of
# lych doctor gets out. The demo refuses as well, and by the word of its user shows all that it promises.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ -z "${NO_USERNS:-}" ]; then
	# Ubuntu 24.04: they are made, and AppArmor gives no right in them. Its sysctl is shown where the kernel has none.
	# shellcheck disable=SC2016
	NO_USERNS=ubuntu unshare --user --map-current-user --keep-caps --mount bash -c '
		boot=$(cat /proc/sys/kernel/random/boot_id)
		mount -t tmpfs none /proc/sys/kernel
		mkdir /proc/sys/kernel/random
		echo "$boot" >/proc/sys/kernel/random/boot_id
		echo 1 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns
		exec setpriv --ambient-caps=-all --inh-caps=-all "$1" --userns-restricted -- /bin/bash "$0"' \
		"$(realpath "$0")" "$(realpath "${LYCH_BUILD:-build/release}/tests/support/lie")"
	# The uid is the same inside, and no capability is left: Lychgate refuses both.
	# shellcheck disable=SC2016
	NO_USERNS=1 exec unshare --user --map-current-user --keep-caps bash -c '
		echo 0 >/proc/sys/user/max_user_namespaces
		exec setpriv --ambient-caps=-all --inh-caps=-all "$0"' "$(realpath "$0")"
fi
. tests/support/lych.sh
lych_begin nouserns
# In words that say what to do, and nothing is left running.
refuses_to_come_up() {
	! lych up --detach >"$LYCH_TMP/out" 2>&1 || fail "$1: it came up"
	grep -q "LYCH-STARTUP-017" "$LYCH_TMP/out" || fail "$1: $(cat "$LYCH_TMP/out")"
	grep -q "daemons: no_private_root" "$LYCH_TMP/out" || fail "$1: it does not name the key: $(cat "$LYCH_TMP/out")"
	grep -q "scribe ended with exit 78: LYCH-STARTUP-017: confine scribe: [^=]*$" "$LYCH_TMP/out" || fail "$1: no words for a person: $(cat "$LYCH_TMP/out")"
	! lych status >/dev/null 2>&1 || fail "$1: something runs"
	[ ! -e "$LYCHGATE_DATA/phylactery/data/postmaster.pid" ] || fail "$1: PostgreSQL runs"
}
if [ "$NO_USERNS" = ubuntu ]; then
	unshare --user true || fail "user namespaces can't be made: this test says nothing of Ubuntu's"
	! unshare --user --mount true 2>/dev/null || fail "a user namespace has rights: this test says nothing"
	refuses_to_come_up "Ubuntu's way"
	grep -q "AppArmor profile" "$LYCH_TMP/out" || fail "up does not say what to do: $(cat "$LYCH_TMP/out")"
	rc=0
	"$LYCH_BIN/lych-sandbox" --grade full --workspace "$HOME/.config" -- touch ran >"$LYCH_TMP/out" 2>&1 </dev/null || rc=$?
	[ $rc = 78 ] && [ ! -e "$HOME/.config/ran" ] && grep -q "LYCH-SANDBOX-004" "$LYCH_TMP/out" && grep -q "AppArmor profile" "$LYCH_TMP/out" ||
		fail "lych-sandbox: exit $rc, $(cat "$LYCH_TMP/out")"
	# as it is installed: the profile that doctor names is the one of these programs
	prefix=$LYCH_TMP/pre
	mkdir -p "$prefix/bin" "$prefix/lib/lychgate/apparmor"
	cp "$LYCH_BIN"/{lych,lych-sandbox,lych-probe} "$prefix/bin"
	cli/apparmor/make-profile "$prefix" >"$prefix/lib/lychgate/apparmor/lychgate"
	"$prefix/bin/lych" doctor >"$LYCH_TMP/out" || :
	grep -qF "Next: sudo install -m 0644 \"$prefix/lib/lychgate/apparmor/lychgate\" /etc/apparmor.d/lychgate && sudo apparmor_parser -r" "$LYCH_TMP/out" ||
		fail "doctor: $(tail -n 1 "$LYCH_TMP/out")"
	for p in lych lych-sandbox; do
		grep -qF "profile \"$prefix/bin/$p\" flags=(unconfined)" "$prefix/lib/lychgate/apparmor/lychgate" || fail "no profile for $p"
	done
	grep -q "FAIL .*apparmor_restrict_unprivileged_userns .*1: it refuses user namespaces; load PREFIX/lib/lychgate/apparmor/lychgate" "$LYCH_TMP/out" ||
		fail "doctor: $(grep -i apparmor "$LYCH_TMP/out")"
	grep -q "FAIL .*mount in a user namespace .*EACCES" "$LYCH_TMP/out" || fail "doctor: $(grep -i mount "$LYCH_TMP/out")"
	exit 0
fi
! unshare --user true 2>/dev/null || fail "user namespaces are to be had: this test says nothing"

# --- without the key
for grade in full floor; do
	lych_config "grade: $grade"
	refuses_to_come_up "$grade"
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

# --- the demo: nothing without the word, nothing by another one, and all of it by this one
demo() { # exit code, what it says, DEMO_DAEMONS
	local rc=0
	DEMO_DAEMONS=$3 demo/run.sh >"$LYCH_TMP/out" 2>&1 || rc=$?
	[ $rc = "$1" ] && grep -qF "$2" "$LYCH_TMP/out" || fail "the demo by '$3': exit $rc, $(grep WRONG "$LYCH_TMP/out" || tail -n 20 "$LYCH_TMP/out")"
}
demo 1 "make demo DAEMONS=no_private_root" ""
grep -q "LYCH-STARTUP-017" "$LYCH_TMP/out" && grep -q "daemons: no_private_root" "$LYCH_TMP/out" &&
	! grep -q "honest work" "$LYCH_TMP/out" || fail "the demo: $(cat "$LYCH_TMP/out")"
demo 2 "DAEMONS=yes" yes
demo 0 "The demo is done: all as promised." no_private_root
grep -q "grade floor" "$LYCH_TMP/out" && grep -q "no root of its own" "$LYCH_TMP/out" || fail "the demo's picture of the walls"

# --- the sandbox itself, by all its probes
GRADES=floor tests/escape/run.sh
