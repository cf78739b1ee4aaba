#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# The folders of jobs on a file system of their own: a tmpfs, and a directory that is a mount. What is
# no such thing, or holds something else, is refused, and nothing of it is touched.
set -euo pipefail
cd "$(dirname "$0")/../../.."
# Mounts of this test's own. The uid is the same again afterwards: Lychgate refuses root.
if [ -z "${APART:-}" ]; then
	APART=$(mktemp -d /tmp/ly-apart-XXXXXX)
	export APART UID_OUTSIDE=$UID GID_OUTSIDE=${GROUPS[0]}
	rc=0
	# shellcheck disable=SC2016
	unshare --user --map-root-user --mount sh -c '
		mkdir "$APART/own" "$APART/plain" "$APART/part"
		mount -t tmpfs -o size=64m,mode=0700 own "$APART/own"
		mkdir "$APART/whole" && mount -t tmpfs -o size=1m,mode=0700 whole "$APART/whole"
		mkdir "$APART/whole/part" && mount --bind "$APART/whole/part" "$APART/part"
		mkdir "$APART/twice" "$APART/again"
		mount -t tmpfs -o size=1m,mode=0700 twice "$APART/twice" && mount --bind "$APART/twice" "$APART/again"
		mkdir "$APART/open" && mount -t tmpfs -o size=1m,mode=0777 open "$APART/open"
		exec unshare --user --map-user="$UID_OUTSIDE" --map-group="$GID_OUTSIDE" "$0"' "$0" || rc=$?
	rm -rf "$APART"
	exit "$rc"
fi
. tests/support/lych.sh
lych_begin apart

# where a job's workspace lies: the file system and its size in MiB
look='stat -f -c "%T" . ; df -m --output=size . | tail -n 1; echo x >file; cp /bin/echo e; ./e "ran"'
refused() { # key value what
	lych_config "$1: \"$2\""
	! lych up --detach 2>"$LYCH_TMP/err" || fail "$1: $2 was taken"
	grep -q 'LYCH-STARTUP-013' "$LYCH_TMP/err" "$LYCHGATE_DATA"/log/*.log || fail "$1: $2: $(cat "$LYCH_TMP/err")"
	grep -qh "$3" "$LYCH_TMP/err" "$LYCHGATE_DATA"/log/*.log || fail "$1: $2: no '$3'"
	lych down >/dev/null 2>&1 || true
	rm -f "$LYCHGATE_DATA"/log/*.log
	echo "apart: refused: $3"
}
refused jobs_dir "$APART/plain" "no mount of its own"
refused jobs_dir "$APART/missing" "No such file"
refused jobs_dir "$APART/part" "a part of a file system that has more"
refused jobs_dir "$APART/twice" "mounted elsewhere too"
refused jobs_dir "$APART/open" "no directory of yours that only you can write"
echo "dear you" >"$APART/own/letter"
refused jobs_dir "$APART/own" "'letter', which is no job's folder"
[ "$(cat "$APART/own/letter")" = "dear you" ] || fail "the letter is gone"
rm "$APART/own/letter"

works() { # MiB
	lych up --detach || fail "up"
	lych run -- sh -c "$look" >"$LYCH_TMP/out" || fail "run"
	[ "$(tr -d ' ' <"$LYCH_TMP/out" | paste -sd' ')" = "tmpfs $1 ran" ] || fail "in a job: $(cat "$LYCH_TMP/out")"
	! lych run -- sh -c 'head -c 200m /dev/zero >big' 2>"$LYCH_TMP/err" || fail "200 MiB on a tmpfs of $1"
	echo hello >"$LYCH_TMP/in"
	[ "$(lych run --file "$LYCH_TMP/in=a/b" --artifact 'c*' -- sh -c 'cat a/b; cp a/b c')" = hello ] || fail "a file"
	lych artifacts -1 >/dev/null 2>&1 || lych artifacts "$(lych jobs --json --limit 1 | python3 -ISc 'import json,sys; print(json.load(sys.stdin)["jobs"][0]["id"])')" | grep -q ' c$\|^c' || fail "an artifact"
	[ ! -e "$LYCHGATE_DATA/tomb/jobs" ] || [ -z "$(ls "$LYCHGATE_DATA/tomb/jobs")" ] || fail "something lies in the data directory"
}
lych_config "jobs_dir: \"$APART/own\""
works 64
id=$(lych run --detach -- sh -c 'echo begun; sleep 60')
for _ in $(seq 300); do [ -z "$(ls "$APART/own")" ] || break; nap 0.05; done
[ -n "$(ls "$APART/own")" ] || fail "no folder in the named directory"
# A job folder of a tomb that is killed is removed by the next one.
kill -KILL "$(lych_pid tomb)"
lych_wait_up
lych cancel "$id" >/dev/null
for _ in $(seq 300); do [ -n "$(ls "$APART/own")" ] || break; nap 0.05; done
[ -z "$(ls "$APART/own")" ] || fail "left in the named directory: $(ls "$APART/own")"
lych down
echo "apart: jobs on a directory of their own"

lych_config 'jobs_tmpfs: "128MiB"'
works 128
lych down
lych_config 'jobs_tmpfs: "128MiB"
  jobs_dir: "/srv"'
! lych config check 2>"$LYCH_TMP/err" || fail "both were taken"
grep -q 'tomb.jobs_tmpfs: or tomb.jobs_dir: not both' "$LYCH_TMP/err" || fail "both: $(cat "$LYCH_TMP/err")"
echo "apart: jobs on a tmpfs"
