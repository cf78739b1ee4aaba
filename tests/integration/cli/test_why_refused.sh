#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# lych why of a job whose broker refused it: ward with rule and line, gate with family and place and
# never the text, budget with what was wanted and used, canary; 57 times the same is one line. What was
# quarantined, and many refusals of one call. No provider is there: what is refused reaches none.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin why-refused
install -m 0600 /dev/null "$LYCH_CONFIG"
cat >"$LYCH_CONFIG" <<'END'
version: "1"
portals:
  - name: main
    kind: openai
    url: "http://127.0.0.1:9/v1"
    secret: none
    addresses:
      - 127.0.0.1
    models:
      - name: m
        input: "1"
        output: "10"
ward:
  - portal: main
    action: allow
  - host: denied.example
    action: deny
    reason: "not this one"
budgets:
  job: {requests: "1000", tokens: "5000", money: "100", bytes: 64MiB, denials: "100"}
  identity_day: {requests: "1000", tokens: "10000000", money: "1000", bytes: 1GiB, denials: "10000"}
  day: {requests: "1000", tokens: "10000000", money: "1000", bytes: 1GiB, denials: "10000"}
END
line=$(grep -n 'host: denied.example' "$LYCH_CONFIG" | cut -d: -f1)
lych up --detach <&- >&- 2>&- || fail "up"
cd "$LYCH_TMP" || exit 1

newest() { lych jobs --limit 1 --json | json 'j["jobs"][0]["id"]'; }

# --- the broker
cat >ask.py <<'END'
import base64, json, os, urllib.error, urllib.parse, urllib.request
base, key = os.environ["LYCHGATE_BROKER"], os.environ["OPENAI_API_KEY"]
def go(path, body=None, key=key):
    rq = urllib.request.Request(base + path, data=body, headers={"Authorization": "Bearer " + key, "Content-Type": "application/json"})
    try:
        urllib.request.urlopen(rq).read()
    except urllib.error.HTTPError as e:
        e.read()
def fetch(url):
    go("/fetch?url=" + urllib.parse.quote(url, safe=""))
def ask(text, tokens=20):
    go("/v1/chat/completions", json.dumps({"model": "m", "max_tokens": tokens, "messages": [{"role": "user", "content": text}]}).encode())
for wrong in ("another", "one more"):
    go("/v1/chat/completions", b"{}", wrong)
go("/v1/nothing")
for i in range(57):
    fetch("https://denied.example/%d" % i)
fetch("https://other.example/")
ask("my key is ghp_" + "0123456789abcdefghijklmnopqrstuvwxyzAB")
# encoded: as it is it would be replaced
ask("here: " + base64.b64encode(key.encode()).decode())
ask("x " * 4000)
raise SystemExit(3)
END
timeout 90 "$LYCH_BIN/lych" run -n --egress brokered --file ask.py -- python3 ask.py >out 2>err
is "the job's own end" 3 $?
id=$(newest)
logged() { grep -q LYCH-BUDGET-002 "$LYCHGATE_DATA"/audit/segment-*.jsonl; }
wait_until 30 "the last refusal is not in the log" logged
why=$(lych why "$id") || fail "lych why"
has "its own exit comes first" "exit code 3, the program's own" "$(head -n 1 <<<"$why")"
has "ward: the rule, its line, once" "fetch https://denied.example:443 refused: A rule denies this (denied: rule 2 of the ward: not this one), line $line of codex.yaml, 57 times" "$why"
is "57 times the same is one line" 1 "$(grep -c 'denied.example:443 refused' <<<"$why")"
has "what to do" "'lych ward test https://denied.example:443/ --as $id' explains it rule by rule" "$why"
has "no rule" "fetch https://other.example:443 refused: No rule allows this" "$why"
has "gate: family and place" "found: token in text " "$why"
has "in bytes" " (42 bytes)" "$why"
lacks "never the text" ghp_ "$why"
has "canary" "it tried to send the key of its own broker (the canary) to portal:main" "$why"
lacks "which is not shown" lych-sk "$why"
has "many refusals at once are a signal" "20 refusals within 60 s" "$why"
has "budget: what was short" "ask portal:main, model m refused: The budget of tokens does not cover this request" "$why"
has "what it wanted" "; it wanted " "$why"
has "how much of how much" "tokens: job $id 0 of 5000" "$why"
has "and what to do" "'lych budget $id' shows what is left" "$why"
has "the tomb's own refusals, which no log has" "a request refused: This is not the key of this job (by the tomb; the vessel did not hear of it), 2 times" "$why"
has "a route that is none" "a request refused: No such route" "$why"
# what is advised is a command that works as it stands
lych ward test https://denied.example:443/ --as "$id" >out; is "the advised command" 1 $?
lych why "$id" --json >j || fail "lych why --json"
is "for programs" "[('LYCH-WARD-002', 57, 2, $line), ('LYCH-BROKER-020', 2, 0, 0)]" \
	"$(json '[(r["error_code"], r["count"], r["rule"], r["line"]) for r in j["refused"] if r["count"] > 1]' <j)"
is "all kinds" "['LYCH-BROKER-020', 'LYCH-BUDGET-002', 'LYCH-GATE-001', 'LYCH-GATE-001', 'LYCH-HTTP-002', 'LYCH-WARD-001', 'LYCH-WARD-002']" \
	"$(json 'sorted(r["error_code"] for r in j["refused"] if r["error_code"])' <j)"
is "the log was read" "None 0" "$(json 'j["audit_log"]' <j) $(json 'j["refused_dropped"]' <j)"
# what it used is in the job itself, as the book has it
used() { lych "$@" --json | json 'sorted((j["spent"] if "spent" in j else [b for b in j["books"] if b["scope"] == "job"][0]["spent"]).items())'; }
agree() { [ "$(used show "$id")" = "$(used budget "$id")" ]; }
wait_until 30 "what it used is not what its book has: $(used show "$id") $(used budget "$id")" agree
is "in words" 1 "$(lych show "$id" | grep -cE "^it has used [0-9]+ requests, 0 tokens, 0\.00 of your money, .*; 'lych budget $id' has the limits$")"
# another job has nothing of it
timeout 60 "$LYCH_BIN/lych" run -n --json --summary --egress brokered -- true >out || fail "a job that asks nothing"
is "which has used nothing" None "$(json 'j["job"]["spent"]' <out)"
lacks "another job" Refused "$(lych why)"
# what the log got after the job's end is told as well, up to a day after
lych_sql "UPDATE lych.job SET finished_at = created_at, started_at = created_at WHERE id = $id"
why=$(lych why "$id") || fail "lych why of what was logged late"
has "logged after the end" "fetch https://other.example:443 refused: No rule allows this" "$why"
has "all of it" "denied.example:443 refused: A rule denies this" "$why"
lych_sql "UPDATE lych.job SET created_at = created_at - interval '25 hours', started_at = started_at - interval '25 hours',
	finished_at = finished_at - interval '25 hours' WHERE id = $id"
lacks "more than a day after it" "example:443 refused" "$(lych why "$id")"
lych_sql "UPDATE lych.job SET created_at = created_at + interval '25 hours', started_at = started_at + interval '25 hours',
	finished_at = finished_at + interval '25 hours' WHERE id = $id"
chmod 000 "$LYCHGATE_DATA/audit"
why=$(lych why "$id") || fail "lych why without the log"
chmod 700 "$LYCHGATE_DATA/audit"
has "what is not known is said" "What its broker refused is not known: the audit log cannot be read" "$why"

# --- what is not delivered
# shellcheck disable=SC2016
timeout 60 "$LYCH_BIN/lych" run -n --artifact '**' -- sh -c 'mkdir -p .git/hooks; echo x >.git/hooks/pre-commit; ln -s /etc/passwd link' >out 2>err
why=$(lych why)
has "quarantined" ".git/hooks/pre-commit: git metadata" "$why"
has "a link is no artifact" "link: " "$why"

# --- many objects of one call
cat >many.py <<'END'
import ctypes
libc = ctypes.CDLL(None)
for i in range(57):
    libc.ptrace(16, 1000 + i, 0, 0)
END
timeout 60 "$LYCH_BIN/lych" run -n --file many.py -- python3 many.py >out 2>err
why=$(lych why)
is "57 objects of one call are one line" 1 "$(grep -c ptrace <<<"$why")"
has "with their number" "and 56 others by the same call, 57 times in all" "$why"
is "each is there for programs" 57 "$(lych why --json 2>/dev/null | json 'len(j["denials"])')"
# as many kinds as a spawner may tell, and a name looked up behind them, which has no place of its own
cat >more.py <<'END'
import ctypes, socket
libc = ctypes.CDLL(None)
for i in range(70):
    libc.ptrace(16, 1000 + i, 0, 0)
try:
    socket.getaddrinfo("name.example", 443)
except OSError:
    pass
END
timeout 60 "$LYCH_BIN/lych" run -n --explain --file more.py -- python3 more.py >out 2>err
is "all that fits, and the number of the rest" "succeeded 64 7" \
	"$(lych why --json 2>/dev/null | json '" ".join((j["state"], str(len(j["denials"])), str(j["denials_dropped"])))')"
echo "why refused: $count checks"
