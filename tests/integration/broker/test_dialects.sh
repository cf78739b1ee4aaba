#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 150
# OpenAI's Responses and embeddings, Anthropic's count of tokens, Gemini's API, and one model, as a job asks for them: a real
# sandbox, its tomb, the vessel, an egress worker with the key, and a stand-in that is as strict as the providers.
# Refusals first. The job's part is dialects.py and dialects_gemini.py; the SDKs that people use: tests/real/broker/run.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
provider_py=$PWD/tests/support/python/provider.py
clients=$PWD/tests/integration/broker
lych_begin dialects
provider=
end() {
	local rc=$?
	[ -z "$provider" ] || kill "$provider" 2>/dev/null
	(exit $rc)
	lych_end
}
trap end EXIT

is() { # what, expected, got
	[ "$2" = "$3" ] || { cat "$LYCH_TMP/out" "$LYCH_TMP/err" >&2; fail "$1: expected '$2', got '$3'"; }
	count=$((count + 1))
}

key=sk-real-$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
touch "$LYCH_TMP/provider.log" "$LYCH_TMP/err" "$LYCH_TMP/out"
python3 -B "$provider_py" --key "$key" --log "$LYCH_TMP/provider.log" >"$LYCH_TMP/port" &
provider=$!
until [ -s "$LYCH_TMP/port" ]; do
	kill -0 "$provider" 2>/dev/null || fail "the stand-in"
	nap 0.05
done
port=$(sed 's/^port //' "$LYCH_TMP/port")
portal() { # name, kind, path, model, more
	printf '  - name: %s\n    kind: %s\n    url: "http://127.0.0.1:%s%s"\n    secret: portal_%s\n%b' \
		"$1" "$2" "$port" "$3" "$1" "${5:-}"
	printf '    addresses:\n      - 127.0.0.1\n    models:\n      - {name: %s, input: "0", output: "0"}\n' "$4"
}
lych_config "slots: 2"
{
	echo "portals:"
	portal open openai /v1 small
	portal plain openai /v1 lean "    lacks:\n      - responses\n"
	portal anthro anthropic "" little
	portal shut openai /v1 costly
	portal goog gemini "" gem
	cat <<END
ward:
  - {portal: open, action: allow}
  - {portal: plain, action: allow}
  - {portal: anthro, action: allow}
  - {portal: goog, action: allow}
  - {portal: shut, action: deny, reason: "not for jobs"}
budgets:
  job: {requests: 200, tokens: 1000000, money: "1", bytes: 64MiB, denials: 100}
END
} >>"$LYCH_CONFIG"
lych config check >"$LYCH_TMP/out" 2>&1 || fail "codex.yaml: $(cat "$LYCH_TMP/out")"
is "what a portal lacks is said when the file is read" 1 \
	"$(grep -cF "portal plain (http://127.0.0.1:$port/v1, with chat, embeddings only)" "$LYCH_TMP/out")"
for name in open plain anthro shut goog; do
	printf '%s' "$key" | lych secret set "portal_$name" >/dev/null || fail "secret set $name"
done
lych up --detach <&- >&- 2>"$LYCH_TMP/err" || fail "up: $(cat "$LYCH_TMP/err")"
cd "$LYCH_TMP" || exit 1

job() { # what, file
	lych run -n --egress brokered --file "$clients/${2:-dialects.py}" -- python3 "${2:-dialects.py}" "$1" >out 2>err
}

job refusals
is "the job of refusals" 0 $?
is "it came to its end" end "$(tail -n 1 out)"
is "each is refused as it should" 0 "$(grep -c '^BAD' out)"
is "and none was left out" 27 "$(grep -c '^ok' out)"
job refusals dialects_gemini.py
is "the job of Gemini's refusals" 0 $?
is "it came to its end" end "$(tail -n 1 out)"
is "each is refused as it should" 0 "$(grep -c '^BAD' out)"
is "and none was left out" 17 "$(grep -c '^ok' out)"
is "nothing of this came to the provider" 0 "$(wc -l <provider.log)"

job answers dialects_gemini.py
is "the job of Gemini's answers" 0 $?
is "it came to its end" end "$(tail -n 1 out)"
is "each answer is as it should" 0 "$(grep -c '^BAD' out)"
is "the key is not among what it saw" 0 "$(grep -c -e "$key" out)"
# What came to the provider: our cap, the signature as it gave it out, and nothing that is private; all of it booked.
counted=$(python3 - "$port" 2>judged <<'END'
import json, time, urllib.request
import sys
while json.load(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/ledger"))["open"]:
    time.sleep(0.05)
seen = [json.loads(line) for line in open("provider.log")]
assert seen and all(r["key"] and "Authorization" not in r["headers"] for r in seen), seen
assert {r["path"] for r in seen} == {"/v1beta/models/gem:" + m for m in (
    "generateContent", "streamGenerateContent?alt=sse", "countTokens")}, seen
bodies = [json.loads(r["body"]) for r in seen if "enerateContent" in r["path"]]
assert all(b["generationConfig"]["maxOutputTokens"] >= 16 for b in bodies), bodies
sent = json.dumps(seen)
assert "firma-beispiel" not in sent and "<EMAIL_1>" in sent and "lych-" not in sent and "google-genai" not in sent, sent
print(sum(r["bill"]["input"] + r["bill"]["output"] for r in seen if r["bill"]))
END
) || fail "at the provider: $(cat judged)"
last=$(lych jobs -n 1 --json | json 'j["jobs"][0]["id"]')
is_booked() { [ "$counted" = "$(lych show "$last" --json | json 'j["spent"]["tokens"]')" ]; }
[ "$counted" -gt 0 ] || fail "nothing was counted"
wait_until 30 "not what the provider counted ($counted): $(lych show "$last" --json | json 'j["spent"]')" is_booked
: >provider.log

job answers
is "the job of answers" 0 $?
is "it came to its end" end "$(tail -n 1 out)"
is "each answer is as it should" 0 "$(grep -c '^BAD' out)"
is "the key is not among what it saw" 0 "$(grep -c -e "$key" out)"

# What came to the provider: nothing that it would store, and no text that is private.
counted=$(python3 - "$port" 2>judged <<'END'
import json, time, urllib.request
import sys
while json.load(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/ledger"))["open"]:
    time.sleep(0.05)
seen = [json.loads(line) for line in open("provider.log")]
bodies = [json.loads(r["body"]) for r in seen if r["path"] == "/v1/responses"]
assert len(bodies) > 10 and all(b["store"] is False and b["max_output_tokens"] >= 16 for b in bodies), bodies
assert {r["path"] for r in seen} == {"/v1/responses", "/v1/embeddings", "/v1/messages/count_tokens"}, seen
assert all(r["key"] for r in seen), seen
sent = json.dumps(seen)
assert "firma-beispiel" not in sent and "<EMAIL_1>" in sent and "lych-" not in sent, sent
print(sum(r["bill"]["input"] + r["bill"]["output"] for r in seen if r["bill"]))
END
) || fail "at the provider: $(cat judged)"
# what was booked is what it counted; the books are written after the answer
last=$(lych jobs -n 1 --json | json 'j["jobs"][0]["id"]')
[ "$counted" -gt 0 ] || fail "nothing was counted"
wait_until 30 "not what the provider counted ($counted): $(lych show "$last" --json | json 'j["spent"]')" is_booked
lych down >/dev/null || fail "down"
echo "$count checks, $(grep -c '^ok' out) answers"
