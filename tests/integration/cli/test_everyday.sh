#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# What a person types each day: commands without a number mean the last job. Refusals first.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin everyday
lych up --detach <&- >&- 2>&- || fail "up"
cd "$LYCH_TMP" || exit 1

count=0
is() { # what, expected, got
	[ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
	count=$((count + 1))
}

# --- no number: refused where there is no job, and cancel where the last one has ended
for command in why logs show artifacts cancel "logs -f" "show --json"; do
	# shellcheck disable=SC2086
	lych $command >out 2>err; is "$command: there is no job" 3 $?
	is "$command: its code" 1 "$(grep -c LYCH-RUN-001 err)"
	is "$command: nothing on stdout" "" "$(cat out)"
done
lych run -n -- sh -c 'echo first; mkdir o; echo x >o/a' >/dev/null 2>&1
first=$(lych run -n --detach --artifact 'o/*' -- sh -c 'echo second; mkdir o; echo x >o/a')
lych logs -f "$first" >/dev/null || fail "the job"
lych cancel >out 2>err; is "cancel: the last job has ended" 1 $?
is "it is named, with its end" 1 "$(grep -c "the last job, $first, has ended (succeeded)" err)"
is "its code" 1 "$(grep -c LYCH-RUN-006 err)"
is "nothing was cancelled" "" "$(cat out)"
for command in why logs show; do
	lych "$command" x >/dev/null 2>&1; is "$command: no number" 2 $?
	lych "$command" 1 2 >/dev/null 2>&1; is "$command: two jobs" 2 $?
done

# --- no number: the last job, and which that is
for command in why logs show artifacts "logs -f" "show --json" "why --json" "artifacts --json"; do
	# shellcheck disable=SC2086
	lych $command >out 2>err; is "$command" 0 $?
	is "$command: which" "lych: the last job: $first, succeeded" "$(head -n 1 err)"
	# shellcheck disable=SC2086
	is "$command: as with its number" "$(lych $command "$first" 2>/dev/null)" "$(cat out)"
done
is "logs" second "$(lych logs 2>/dev/null)"
id=$(lych run -n --detach -- sleep 60)
is "cancel" "job $id: cancelled" "$(lych cancel 2>err)"
is "cancel: which" 1 "$(grep -cE "^lych: the last job: $id, [a-z]+$" err)"
echo "everyday: $count checks"
