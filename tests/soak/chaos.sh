#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone
# timeout: 900
# Jobs that are followed, while every process of a Lychgate is killed and stopped by turns, once for each door of the
# tomb: no job is lost and none completes twice, nobody who follows one is left waiting, and where the death of a
# worker is proved its jobs run again within five seconds. CHAOS_JOBS (500, by hand 20000), SEED, LYCH_QUEUE, KEEP=DIR
# (where the logs go).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/support/lych.sh
door=${LYCH_QUEUE:-both}
CHAOS_JOBS=${CHAOS_JOBS:-500}
if [ "$door" = both ]; then
	export CHAOS_JOBS=$((CHAOS_JOBS / 2))
	LYCH_QUEUE=postgres "$0" || exit
	LYCH_QUEUE=vessel exec "$0"
fi
lych_begin chaos
lych_config 'slots: "24"'
PATH=$(dirname "$(ls -d /usr/lib/postgresql/*/bin/psql | tail -n 1)"):$PATH
lych up --detach >/dev/null || fail "up"
echo "chaos: door $door"
rc=0
CHAOS_JOBS=$CHAOS_JOBS PYTHONPATH=tests/support/python python3 -B tests/soak/chaos.py || rc=1
[ -z "${KEEP:-}" ] || cp -r "$LYCHGATE_DATA/log" "$KEEP"
[ $rc -eq 0 ] || fail "chaos"
lych down || fail "down"
[ -z "$(tests/support/marked "chaos-")" ] || fail "a process of a job is left"
