#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# alone
# Containment that begins by itself: each trigger is pulled from inside a real job, with a stream of the broker under way, beside
# one that has what was planted, prints it and tells its model of it; with contain, with signal and with off in
# codex.yaml. Judged from outside; the cases are in triggers.py.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
live=$PWD/tests/integration/queue/triggers.py
lych_begin triggers
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
install -m 0600 /dev/null "$LYCH_CONFIG"
cd "$LYCH_TMP" || exit 1
for what in contain signal off; do
	cat >"$LYCH_CONFIG" <<END
version: "1"
portals:
  - name: main
    kind: openai
    url: "http://127.0.0.1:$port/v1"
    secret: none
    addresses:
      - 127.0.0.1
    models:
      - {name: m, input: "0", output: "0"}
ward:
  - {portal: main, action: allow}
  - {host: allowed.example, action: allow}
egress: {idle: 60s, total: 300s}
containment: {canary: $what, denials: $what, denials_count: 6}
END
	lych up --detach <&- >&- 2>&- || fail "up"
	python3 -B "$live" "$LYCH_BIN/lych" "$port" "$(lych_pid tomb)" "$what" || fail "triggers.py $what"
	lych down >/dev/null || fail "down"
done
