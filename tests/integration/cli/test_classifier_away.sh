#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# A classifier that is configured and does not answer, as a person and a job see it: nothing that a job asks leaves, status and
# doctor say why, and lych why names it.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin classifier-away
install -m 0600 /dev/null "$LYCH_CONFIG"
cat >"$LYCH_CONFIG" <<'END'
version: "1"
portals:
  - name: main
    kind: openai
    url: "http://127.0.0.1:9/v1"
    addresses:
      - 127.0.0.1
    models:
      - {name: m, input: "0", output: "0"}
  - name: guard
    kind: classifier
    url: "http://127.0.0.1:9/v1"
    addresses:
      - 127.0.0.1
    models:
      - {name: judge}
ward:
  - {portal: main, action: allow}
gate: {classifier: guard}
END
lych up --detach <&- >&- 2>&- || fail "up"
cd "$LYCH_TMP" || exit 1
line() { lych status | sed -n 's/^classifier: //p'; }
is "status, before" "portal guard, asked about each ask; let pass 0, refused 0, no answer 0" "$(line)"
cat >ask.py <<'END'
import json, os, urllib.error, urllib.request
rq = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", headers={
    "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"},
    data=json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "a plain sentence"}]}).encode())
try:
    print(urllib.request.urlopen(rq).read())
except urllib.error.HTTPError as e:
    print(e.code, json.load(e)["error"]["code"])
END
is "the job" "503 LYCH-CLASSIFIER-001" "$(timeout 90 "$LYCH_BIN/lych" run -n --egress brokered --file ask.py -- python3 ask.py 2>err)"
is "status, after" "portal guard, DOES NOT ANSWER: asks are refused; let pass 0, refused 0, no answer 1" "$(line)"
is "status --json" "guard 1 False" "$(lych status --json | json '(lambda c: (c["portal"], c["failed"], c["answers"]))(j["vessel"]["classifier"])' | tr -d "(),'")"
lych doctor >out 2>&1; is "doctor" 1 $?
grep -q "the classifier answers.*not the last time" out || fail "doctor: $(cat out)"
logged() { grep -q '"event":"ask.denied"' "$LYCHGATE_DATA"/audit/segment-*.jsonl; }
wait_until 30 "the refusal is not in the log" logged
lych why 1 >out || fail "why"
grep -q LYCH-CLASSIFIER-001 out || fail "why: $(cat out)"
echo "classifier away: $count checks"
