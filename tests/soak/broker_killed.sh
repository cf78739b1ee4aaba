#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# SIGKILL of the tomb while two jobs have a stream of a model under way, that is between reserve and settle. One
# job is to be retried, the other never: the policy of each holds, the provider is let go, what was sent is booked once,
# nothing stays reserved, and the log has one end for each beginning. The vessel's kill: test_broker.sh, tests/soak/bypass_job.sh.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/support/lych.sh
provider_py=$PWD/tests/support/python/provider.py
lych_begin killed
server=
end() {
	local rc=$?
	[ -z "$server" ] || kill "$server" 2>/dev/null
	(exit $rc)
	lych_end
}
trap end EXIT
until_is() { # what, expected, command...
	local what=$1 want=$2 got=
	shift 2
	for _ in $(seq 600); do
		got=$("$@" 2>/dev/null)
		[ "$got" != "$want" ] || { count=$((count + 1)); return 0; }
		sleep 0.1
	done
	fail "$what: '$got' never became '$want'"
}
field() { # JOB FIELD
	lych show --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}
books() { # JOB spent|reserved THING...
	lych budget --json "$1" | python3 -c '
import json, sys
row = next((r for r in json.load(sys.stdin)["books"] if r["scope"] == "job"), None)
print(*(row[sys.argv[1]][x] for x in sys.argv[2:]) if row else ["none"])' "${@:2}"
}
day() { # THING...: what all scopes of the day together have spent and reserved
	lych budget --json "$id_retried" | python3 -c '
import json, sys
rows = [r for r in json.load(sys.stdin)["books"] if r["scope"] != "job"]
print(*(r[k][x] for r in rows for k in ("spent", "reserved") for x in sys.argv[1:]))' "$@"
}

printf 'key-of-nobody-0123456789' | lych secret set portal_open >/dev/null || fail "secret set"
touch "$LYCH_TMP/provider.log"
python3 -B "$provider_py" --key key-of-nobody-0123456789 --log "$LYCH_TMP/provider.log" >"$LYCH_TMP/port" &
server=$!
until [ -s "$LYCH_TMP/port" ]; do
	kill -0 $server 2>/dev/null || fail "the stand-in"
	sleep 0.05
done
port=$(sed 's/^port //' "$LYCH_TMP/port")
lych_config "slots: 2"
cat >>"$LYCH_CONFIG" <<END
portals:
  - name: open
    kind: openai
    url: "http://127.0.0.1:$port/v1"
    secret: portal_open
    addresses:
      - 127.0.0.1
    models:
      - {name: small, input: "1", output: "1"}
ward:
  - {portal: open, action: allow}
END
lych up --detach <&- >&- 2>"$LYCH_TMP/err" || fail "up: $(cat "$LYCH_TMP/err")"

id_retried=$(lych run -n -d --egress brokered -- lych-ask -m small --stream endless-once a) || fail "run"
id_never=$(lych run -n -d --egress brokered --retry never -- lych-ask -m small --stream endless) || fail "run"
until_is "a reservation of the one" 1 books "$id_retried" reserved requests
until_is "a reservation of the other" 1 books "$id_never" reserved requests
for id in "$id_retried" "$id_never"; do # what came from the provider has reached it: the request was sent
	until_is "output" yes sh -c "'$LYCH_BIN/lych' logs $id | grep -q on && echo yes"
done
is "nothing is settled" 0 "$(books "$id_retried" spent requests)"
est=$(books "$id_never" reserved tokens)
est_retried=$(books "$id_retried" reserved tokens)
[ "$est" -gt 0 ] || fail "no estimate"

kill -KILL "$(lych_pid tomb)" || fail "kill"
until_is "nothing of the one stays reserved" "0 0 0 0" books "$id_never" reserved requests tokens money bytes
until_is "the other is retried, and answered" succeeded field "$id_retried" state
until_is "the one is not tried again" lost field "$id_never" state
until_is "nothing of the other stays reserved" "0 0 0 0" books "$id_retried" reserved requests tokens money bytes

is "attempts of the one" 1 "$(field "$id_never" attempts)"
is "attempts of the other" 2 "$(field "$id_retried" attempts)"
is "its answer" "you said: endless-once a" "$(lych logs "$id_retried")"
is "the one is booked once, at its estimate" "1 $est" "$(books "$id_never" spent requests tokens)"
# 24 letters in pieces of five, and 14 of the question with seven around them: what the provider counted
is "the other is booked twice: its estimate, and what it took" "2 $((est_retried + 26))" "$(books "$id_retried" spent requests tokens)"
is "the day has the sum of both, and nothing open" "3 $((est + est_retried + 26)) 0 0 3 $((est + est_retried + 26)) 0 0" \
	"$(day requests tokens)"
until_is "the provider was asked three times, and is done with each" 3 sh -c "wc -l <'$LYCH_TMP/provider.log'"

[ "$(lych_violations)" = 0 ] || fail "invariants: $(lych_violations)"
ends() {
	cat "$LYCHGATE_DATA"/audit/segment-*.jsonl | python3 -c '
import collections, json, sys
n = collections.Counter()
for line in sys.stdin:
    e = json.loads(line)
    name = e.get("unmapped", {}).get("event", e.get("event", ""))
    if name.startswith("ask."):
        n[name] += 1
print(dict(sorted(n.items())))'
}
until_is "the log: an end for each beginning" "{'ask.allowed': 3, 'ask.done': 1, 'ask.failed': 2}" ends
lych down >/dev/null || fail "down"
echo "$count checks"
