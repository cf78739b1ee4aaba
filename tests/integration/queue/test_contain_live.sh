#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# alone
# lych contain of a job that has a stream of the broker under way, sixty processes, and no ear for SIGTERM, beside eight others
# that run: judged from outside, by the provider and by /proc. Then a worker that is killed at that moment. The rest is in contain_live.py.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
live=$PWD/tests/integration/queue/contain_live.py
lych_begin contain
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
install -m 0600 /dev/null "$LYCH_CONFIG"
cat >"$LYCH_CONFIG" <<END
version: "1"
tomb: {slots: 10}
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
egress: {idle: 60s, total: 300s}
END
lych up --detach <&- >&- 2>&- || fail "up"
cd "$LYCH_TMP" || exit 1
python3 -B "$live" "$LYCH_BIN/lych" "$port" "$(lych_pid tomb)" || fail "contain_live.py"
