#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# The broker's configuration as a person meets it: codex.yaml from the machine's settings, the ward
# listed and explained, portals without their keys, jobs refused and taken.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin ward
refused() { # what, code, command...
	local what=$1 code=$2
	shift 2
	"$@" >"$LYCH_TMP/out" 2>"$LYCH_TMP/err" </dev/null && fail "$what: not refused"
	grep -q "$code" "$LYCH_TMP/err" "$LYCH_TMP/out" || fail "$what: $(cat "$LYCH_TMP/err" "$LYCH_TMP/out")"
	count=$((count + 1))
}
get() { # KEY of the JSON object on stdin
	python3 -ISc 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

# --- config init: registries from npm's and pip's settings, and nothing allowed by that
rm -f "$LYCH_CONFIG"
printf 'registry=https://127-0-0-1.invalid/npm/\n' >"$HOME/.npmrc"
mkdir -p "$HOME/.config/pip"
printf '[global]\nindex-url = https://me:hunter22hunter22@pypi.invalid/simple\n' >"$HOME/.config/pip/pip.conf"
env -u PIP_INDEX_URL -u UV_INDEX_URL -u UV_DEFAULT_INDEX -u npm_config_registry "$LYCH_BIN/lych" config init >/dev/null || fail "config init"
is "it is private" 600 "$(stat -c %a "$LYCH_CONFIG")"
is "npm's registry is in" 1 "$(grep -c '^    url: "https://127-0-0-1.invalid/npm"' "$LYCH_CONFIG")"
is "a setting with a password is not" 1 "$(grep -c '# pypi: the setting was not taken' "$LYCH_CONFIG")"
grep -q hunter22 "$LYCH_CONFIG" && fail "the password was copied"
is "nothing is allowed" 1 "$(lych config check | grep -c 'may ask nothing')"
is "check --json" "[]" "$(lych config check --json | get permits)"
open=$LYCH_TMP/open
mkdir -p "$open/lychgate"
chmod 777 "$open/lychgate"
cp -p "$LYCH_CONFIG" "$open/lychgate/codex.yaml"
for verb in "config check" "up --detach"; do
	# shellcheck disable=SC2086
	refused "$verb with a file that others can replace" LYCH-STARTUP-003 env XDG_CONFIG_HOME="$open" "$LYCH_BIN/lych" $verb
done
# the way that the file names is the way to allow it
sed -i '/^# From the npm/,$ { s/^# ward:$/ward:/; s/^#   - {registry: npm/  - {registry: npm/ }' "$LYCH_CONFIG"
lych config check | grep -q 'rule 1, allow: registry npm' || fail "$(lych config check)"
# a rule that no URL can match is refused with its line, and one label is a name
cp -p "$LYCH_CONFIG" "$LYCH_TMP/codex.good"
hostless() { # HOST: as the last rule
	cp -p "$LYCH_TMP/codex.good" "$LYCH_CONFIG"
	printf '  - {host: %s, action: allow}\n' "$1" >>"$LYCH_CONFIG"
}
for host in api.example.9x a.xn--zz 127.1; do
	hostless "$host"
	refused "config check: $host" "line $(wc -l <"$LYCH_CONFIG"): ward, entry 2: host: " lych config check
done
hostless build-host
lych config check | grep -q 'rule 2, allow: GET https://build-host:443/' || fail "$(lych config check)"
hostless '"2001:db8::1"'
lych config check | grep -qF 'rule 2, allow: GET https://[2001:db8::1]:443/' || fail "$(lych config check)"
cp -p "$LYCH_TMP/codex.good" "$LYCH_CONFIG"

# --- a real one
echo sk-not-a-real-key-0123456789 | lych secret set portal_main >/dev/null || fail "secret set"
lych_config "slots: 4"
cat >>"$LYCH_CONFIG" <<'END'
portals:
  - name: main
    kind: openai
    url: "https://api.example.com/v1"
    secret: portal_main
    models:
      - {name: big-model, input: "2.50", output: "10"}
  - name: local
    kind: openai
    url: "http://127.0.0.1:9/v1"
    addresses:
      - 127.0.0.1
    models:
      - {name: small, input: "0", output: "0"}
ward:
  - {portal: main, action: limit, limit: 60/min}
  - {host: docs.example.org, path: /api, action: allow, reason: "reference"}
  - {host: "*.example.org", path: /api/private, action: deny, reason: "not ours"}
  - {portal: local, action: deny}
  - {host: build-host, action: allow}
END
lych up --detach || fail up

# --- the ward, listed and explained
lych ward list | grep -q '^2 *allow *https://docs.example.org:443/api GET *reference' || fail "list: $(lych ward list)"
is "list --json" 5 "$(lych ward list --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["rules"]))')"
is "no such verb" 2 "$(lych ward grant x >/dev/null 2>&1; echo $?)"
lych ward test https://docs.example.org/api/x >"$LYCH_TMP/out" || fail "not permitted: $(cat "$LYCH_TMP/out")"
grep -q '^permitted: GET https://docs.example.org/api/x, by rule 2' "$LYCH_TMP/out" || fail "$(cat "$LYCH_TMP/out")"
grep -q '^3 .*another path' "$LYCH_TMP/out" || fail "no reason for rule 3: $(cat "$LYCH_TMP/out")"
refused "another path" LYCH-WARD-001 lych ward test https://docs.example.org/
refused "another method" LYCH-WARD-001 lych ward test --method POST https://docs.example.org/api
refused "http" LYCH-WARD-001 lych ward test http://docs.example.org/api
# In the words that the job itself is told (docs/EGRESS.md), whatever a rule that denies a part of the host says.
refused "one label" "single_label: " lych ward test https://nohost/
is "one label that a rule names" 0 "$(lych ward test https://build-host/ >/dev/null; echo $?)"
refused "an address" "ip_literal: " lych ward test https://127.0.0.1:8099/
refused "another scheme by its word" "scheme: " lych ward test http://elsewhere.example.org/
refused "a path by its word" "path: " lych ward test https://docs.example.org/apix
refused "a port by its word" "port: " lych ward test https://docs.example.org:8443/api
refused "a method by its word" "method: " lych ward test --method POST https://docs.example.org/api
refused "a denied path, however spelled" LYCH-WARD-002 lych ward test https://docs.example.org/api/%70rivate
for spelled in '/api/private;x' '/;a/api/private' '/api;b/private/y' '/api/private%3bx' '/%3b/api/private' '/api/%3Bx/private' \
	'/api//private' '/API/Private' '/api/%2570rivate' '/api%2fprivate' '/api/private%20' '/api/x/%252e%252e/private'; do
	refused "a denied path, spelled $spelled" LYCH-WARD-002 lych ward test "https://docs.example.org$spelled"
done
refused "its reason is told" "not ours" lych ward test https://docs.example.org/api/private
refused "no URL" LYCH-FETCH-001 lych ward test https://user@docs.example.org/api
refused "a dot segment" LYCH-FETCH-001 lych ward test https://docs.example.org/api/../x
refused "a portal that a rule denies" LYCH-WARD-002 lych ward test local
refused "no such portal" LYCH-WARD-007 lych ward test nobody
refused "no such registry" LYCH-WARD-007 lych ward test registry:npm
is "a portal" 0 "$(lych ward test main >/dev/null; echo $?)"
is "with a limit" limit "$(lych ward test main --json | get action)"
# the file as it is now, whatever the vessel began with
cp -p "$LYCH_CONFIG" "$LYCH_TMP/codex.good"
hostless a.xn--zz
refused "ward test: a rule that no URL can match" "line $(wc -l <"$LYCH_CONFIG"): ward, entry 6: host: " lych ward test https://docs.example.org/api/x
cp -p "$LYCH_TMP/codex.good" "$LYCH_CONFIG"
is "and without it" 0 "$(lych ward test https://docs.example.org/api/x >/dev/null; echo $?)"

# --- other rules without a restart: refusals first
refused "reload: a rule that nothing bears" "line .*: ward, entry 6: portal: " sh -c 'printf "  - {portal: nobody, action: allow}\n" >>"$0"; "$1" ward reload' "$LYCH_CONFIG" "$LYCH_BIN/lych"
cp -p "$LYCH_TMP/codex.good" "$LYCH_CONFIG"
sed -i 's/slots: 4/slots: 5/' "$LYCH_CONFIG"
refused "reload: another key" "needs a restart: tomb.slots" lych ward reload
cp -p "$LYCH_TMP/codex.good" "$LYCH_CONFIG"
chmod 644 "$LYCH_CONFIG"
refused "reload: a file that others can read" LYCH-STARTUP lych ward reload
chmod 600 "$LYCH_CONFIG"
is "reload with a word too many" 2 "$(lych ward reload x >/dev/null 2>&1; echo $?)"
is "none of these counts" 'Generation 1, as the vessel began.' "$(lych ward list | tail -n 1)"
refused "a host that no rule names yet" LYCH-WARD-001 lych ward test https://late.example.org/
is "an editor that adds a rule says when it counts" 1 \
	"$(EDITOR="sh -c 'echo \"  - {host: late.example.org, action: allow}\" >>\$1' -" lych config edit | grep -c "it counts from 'lych ward reload'")"
is "reload" "generation 2 of the ward is in force; rules: 4 that permit, 2 that deny" "$(lych ward reload)"
is "it counts" 0 "$(lych ward test https://late.example.org/ >/dev/null; echo $?)"
is "and is told" 1 "$(lych ward list | tail -n 1 | grep -c '^Generation 2, reloaded 20')"
cp -p "$LYCH_TMP/codex.good" "$LYCH_CONFIG"
is "reload --json" 3 "$(lych ward reload --json | get generation)"
refused "no rule names it any more" LYCH-WARD-001 lych ward test https://late.example.org/

# --- portals: the key's name, never the key
lych portals >"$LYCH_TMP/out" || fail portals
lych portals --json >>"$LYCH_TMP/out" || fail "portals --json"
grep -q 'main  openai  https://api.example.com/v1  key: portal_main' "$LYCH_TMP/out" || fail "$(cat "$LYCH_TMP/out")"
grep -q 'big-model *2.50 *10.00' "$LYCH_TMP/out" || fail "prices: $(cat "$LYCH_TMP/out")"
grep -q 'sk-not' "$LYCH_TMP/out" && fail "the key is shown"

is "doctor knows the keys" PASS "$(lych doctor --json | python3 -c '
import json, sys
print(*[l["verdict"] for l in json.load(sys.stdin)["lines"] if l["tried"] == "portal_main"])')"

# --- jobs
refused "registry where none is allowed" LYCH-WARD-006 lych run -n --egress registry -- true
refused "a broker without a loopback" LYCH-SPEC-004 lych run -n --egress brokered --network none -- true
refused "no such egress" LYCH-SPEC-004 lych run -n --egress open -- true
refused "the broker's own variable" LYCH-SPEC-008 lych run -n --egress brokered -e OPENAI_API_KEY=x -- true
job=$(lych run -n -d --egress brokered -- sleep 60) || fail "run --egress brokered"
none=$(lych run -n -d -- sleep 60) || fail "run"
is "it is shown" 1 "$(lych show "$job" | grep -c '^spec.egress *brokered')"
is "as a job that may" 0 "$(lych ward test main --as "$job" >/dev/null; echo $?)"
refused "as a job without a broker" LYCH-WARD-008 lych ward test main --as "$none"
refused "as no job" LYCH-RUN-001 lych ward test main --as 999999
lych cancel "$job" >/dev/null || fail cancel
lych cancel "$none" >/dev/null || fail cancel
echo "$count checks"
