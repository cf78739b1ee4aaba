#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# The whole way of what a job asks, without packages of anybody: a job in a real sandbox, its tomb, the
# vessel, an egress worker with the key, and a stand-in for the provider, in both grades. Refusals first. The same with the
# SDKs that people use: tests/real/broker/run.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
provider_py=$PWD/tests/support/python/provider.py
lych_begin way
servers=()
end() {
	local rc=$?
	[ ${#servers[@]} -eq 0 ] || kill "${servers[@]}" 2>/dev/null
	(exit $rc)
	lych_end
}
trap end EXIT

count=0
is() { # what, expected, got
	[ "$2" = "$3" ] || { cat "$LYCH_TMP/err" >&2; fail "$1: expected '$2', got '$3'"; }
	count=$((count + 1))
}
asked() { wc -l <"$LYCH_TMP/provider.log"; }

key=sk-real-$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
touch "$LYCH_TMP/provider.log" "$LYCH_TMP/err"
python3 -B "$provider_py" --key "$key" --log "$LYCH_TMP/provider.log" >"$LYCH_TMP/port" &
servers+=($!)
mkdir "$LYCH_TMP/www"
echo "the page" >"$LYCH_TMP/www/page.txt"
python3 -c '
import functools, http.server, sys
h = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), h)
print("port", s.server_address[1], flush=True)
s.serve_forever()' "$LYCH_TMP/www" >"$LYCH_TMP/port2" 2>/dev/null &
servers+=($!)
until [ -s "$LYCH_TMP/port" ] && [ -s "$LYCH_TMP/port2" ]; do
	kill -0 "${servers[@]}" 2>/dev/null || fail "the stand-ins"
	nap 0.05
done
port=$(sed 's/^port //' "$LYCH_TMP/port")
pages=$(sed 's/^port //' "$LYCH_TMP/port2")

for name in portal_open portal_anthro portal_shut; do
	printf '%s' "$key" | lych secret set "$name" >/dev/null || fail "secret set $name"
done

start() { # grade
	lych_config "slots: 2" "grade: $1"
	cat >>"$LYCH_CONFIG" <<END
portals:
  - name: open
    kind: openai
    url: "http://127.0.0.1:$port/v1"
    secret: portal_open
    addresses:
      - 127.0.0.1
    models:
      - {name: small, input: "0", output: "0"}
  - name: anthro
    kind: anthropic
    url: "http://127.0.0.1:$port"
    secret: portal_anthro
    addresses:
      - 127.0.0.1
    models:
      - {name: little, input: "0", output: "0"}
  - name: shut
    kind: openai
    url: "http://127.0.0.1:$port/v1"
    secret: portal_shut
    addresses:
      - 127.0.0.1
    models:
      - {name: costly, input: "0", output: "0"}
ward:
  - {portal: open, action: allow}
  - {portal: anthro, action: allow}
  - {portal: shut, action: deny, reason: "not for jobs"}
  - host: 127.0.0.1
    scheme: http
    port: $port
    path: /page
    action: allow
    addresses:
      - 127.0.0.1
  - host: 127.0.0.1
    scheme: http
    port: $pages
    path: /page.txt
    action: allow
    addresses:
      - 127.0.0.1
END
	lych config check >"$LYCH_TMP/out" 2>&1 || fail "codex.yaml: $(cat "$LYCH_TMP/out")"
	lych up --detach <&- >&- 2>"$LYCH_TMP/err" || fail "up: $(cat "$LYCH_TMP/err")"
	: >"$LYCH_TMP/provider.log"
}
cd "$LYCH_TMP" || exit 1

job() { lych run -n --egress brokered -- "$@" 2>"$LYCH_TMP/err"; }

ways() {
	# --- refusals: nothing of them comes to the provider
	lych run -n -- lych-ask -m small hello >/dev/null 2>err; is "a job without a broker" 4 $?
	job lych-ask -m costly hello >/dev/null; is "a portal that the ward denies" 1 $?
	is "its code" 1 "$(grep -c 'LYCH-WARD-' err)"
	job lych-ask -m none hello >/dev/null; is "a model that nobody has" 1 $?
	job lych-fetch "http://127.0.0.1:$port/other" >/dev/null; is "a URL by http that no rule names" 1 $?
	is "its code" 1 "$(grep -c 'LYCH-WARD-001' err)"
	job lych-fetch https://api.example.com/ >/dev/null; is "a host that no rule names" 1 $?
	is "its code" 1 "$(grep -c 'LYCH-WARD-' err)"
	job lych-fetch http://169.254.169.254/latest/meta-data/ >/dev/null; is "the metadata service" 1 $?
	# shellcheck disable=SC2016
	is "no way but the broker's" refused "$(job python3 -c "
import socket
try:
    socket.create_connection(('127.0.0.1', $port), 5)
    print('connected')
except OSError:
    print('refused')")"
	is "nothing of this came to the provider" 0 "$(asked)"

	# --- and what is allowed
	is "models" small "$(job lych-ask --models)"
	is "Anthropic's models" little "$(job lych-ask --anthropic --models)"
	is "an answer" "you said: hello there" "$(job lych-ask -m small hello there)"
	is "a stream" "you said: a stream, please" "$(job lych-ask -m small --stream a stream, please)"
	is "Anthropic's" "you said: hello" "$(job lych-ask --anthropic -m little hello)"
	is "Anthropic's stream" "you said: hello" "$(job lych-ask --anthropic -m little --stream hello)"
	job lych-ask -m small broken >/dev/null; is "an error of the provider" 1 $?
	is "is told as its own" 1 "$(grep -c 'the provider refused (500' err)"
	is "a fetch" "the page" "$(job lych-fetch "http://127.0.0.1:$pages/page.txt")"
	is "a fetch at the provider goes without the key" 1 "$(job lych-fetch "http://127.0.0.1:$port/page" >/dev/null
		grep -c 'the server answered 401' err)"

	# --- what is private stays here, and the job does not notice
	text="write to erika.mustermann@firma-beispiel.de today"
	for how in "" --stream; do
		before=$(asked)
		# shellcheck disable=SC2086
		is "the address comes back $how" "you said: $text" "$(job lych-ask -m small $how "$text")"
		for _ in $(seq 100); do # it writes down what came when it has answered
			[ "$(asked)" -eq "$before" ] || break
			nap 0.1
		done
		tail -n +$((before + 1)) provider.log >sent
		is "and was not sent $how" 0 "$(grep -c 'erika\|firma-beispiel' sent)"
		is "something stood for it $how" 1 "$(grep -c 'write to <EMAIL_1> today' sent)"
	done

	# --- what it found in its environment stays there
	# shellcheck disable=SC2016
	job sh -c 'lych-ask -m small "the key is $LYCHGATE_BROKER_KEY"' >/dev/null; is "its key is replaced, and it goes on" 0 $?
	# shellcheck disable=SC2016
	job sh -c 'lych-ask -m small "the key is $(printf %s "$LYCHGATE_BROKER_KEY" | base64 -w 0)"' >/dev/null; is "encoded, it is a canary" 1 $?
	is "is told as one" 1 "$(grep -c 'LYCH-GATE-001.*canary\|canary.*LYCH-GATE-001' err)"

	# --- the key: the provider's alone
	# shellcheck disable=SC2016
	job sh -c 'env; tr "\0" "\n" </proc/self/environ; lych-ask -m small echo' >seen; is "an echo of the key" 0 $?
	is "is blotted out" 1 "$(grep -c 'redacted' seen)"
	is "the key is not in the job" 0 "$(grep -c -e "$key" seen)"
	own=$(sed -nE 's,^LYCHGATE_BROKER_KEY=,,p' seen | head -n 1)
	[ ${#own} -ge 20 ] || fail "no key of the job's own"
	is "the job's own went nowhere" 0 "$(grep -c -e "$own" provider.log)"
	is "every ask had the right key" 0 "$(grep '"path": "/v1' provider.log | grep -vc '"key": true')"
	is "nor in the data" "" "$(grep -rlF -e "$key" "$LYCHGATE_DATA" 2>/dev/null | grep -v "^$LYCHGATE_DATA/secrets/")"
}

for grade in full floor; do
	start $grade
	ways
	lych down >/dev/null || fail "down"
done
echo "$count checks in two grades"
