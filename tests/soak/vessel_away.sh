#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# The vessel is gone and nobody starts it again, for longer than a lease lasts, once for each door.
# Over PostgreSQL the tomb renews its leases and the job runs on; its end waits for the vessel.
# Through the vessel it cannot: its jobs run until their deadline and are dead then, before anybody
# else may begin them. When the vessel is back each job succeeds, in as many attempts as that means.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/support/lych.sh
door=${LYCH_QUEUE:-both}
if [ "$door" = both ]; then
	LYCH_QUEUE=postgres "$0" || exit
	LYCH_QUEUE=vessel exec "$0"
fi
lych_begin away
lych up --detach >/dev/null || fail "up"
marker=lych-away-$$
id=$(lych run --detach --timeout 300 -- sh -c 'sleep 50; echo through' "$marker") || fail "run"
alive() { [ -n "$(tests/support/marked "$marker")" ]; }
for _ in $(seq 100); do alive && break; sleep 0.1; done
alive || fail "the job did not start"
starter=$(lych_pid supervisor)
kill -STOP "$starter"
kill -KILL "$(lych_pid vessel)"
sleep 12
alive || fail "the job did not outlive its vessel by 12 s"
# the lease was renewed up to 10 s before the kill, lasts 30 s, and the tomb leaves 3 s of it
sleep 24
if [ "$door" = vessel ]; then
	alive && fail "the job runs on without a lease"
else
	alive || fail "the job ended although its lease could be renewed"
fi
kill -CONT "$starter"
lych_wait_up
for _ in $(seq 1500); do
	state=$(lych show "$id" --json | python3 -c 'import json,sys; j=json.load(sys.stdin); print(j["state"], j["attempts"])')
	[[ $state == queued* || $state == preparing* || $state == running* ]] || break
	sleep 0.1
done
want="succeeded $([ "$door" = vessel ] && echo 2 || echo 1)"
[ "$state" = "$want" ] || fail "$state, not $want"
[ "$(lych logs "$id")" = through ] || fail "the output"
echo "vessel away, door $door: $state"
