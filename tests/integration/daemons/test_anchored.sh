#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A whole instance with an anchor of its audit log: all of its data directory, database too, is put back as it was
# some time ago, which nothing in it shows. The anchor does: lych-audit, lych status, lych doctor, and the log say so.
# One that fails is told and stops nothing, one that is required lets no job begin.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh

lych_begin anchored
log=$LYCHGATE_DATA/audit
anchor=$LYCH_TMP/stick/lychgate-anchor
mkdir -m 0700 "$LYCH_TMP/stick"

codex() { # required
	install -m 0600 /dev/null "$LYCH_CONFIG"
	printf 'version: "1"\naudit:\n  anchors:\n    - kind: path\n      path: "%s"\n      required: %s\n' "$anchor" "$1" >"$LYCH_CONFIG"
}
stands_is() { # which, True or False
	[ "$(lych status --json | json '[a["ok"] for a in j["vessel"]["audit"]["anchors"] if a["name"] == "'"$1"'"][0]' 2>/dev/null)" = "$2" ]
}
doctor() { # what of its lines about anchors
	lych doctor --json | json '[(l["tried"], l["verdict"]) for l in j["lines"] if l["where"] == "anchors" and l["tried"] != "database"]'
}
verify() { # exit code, options: what it says is in out
	local want=$1 rc=0
	shift
	"$LYCH_BIN/lych-audit" verify "$log" "$@" >out || rc=$?
	is "verify $*: $(cat out)" "$want" "$rc"
}
cd "$LYCH_TMP" || exit 1

lych up --detach 2>/dev/null || fail "up"
is "doctor says that none is set" "[('one is off this machine', 'KNOWN')]" "$(doctor)"
lych down >/dev/null || fail "down"

codex no
lych up --detach 2>/dev/null || fail "up with an anchor"
wait_until 20 "the anchor stands" stands_is lychgate-anchor True
wait_until 20 "that of the database stands, by default" stands_is database True
has "status says so" "2 of 2 anchors stand" "$(lych status)"
lych run -n -- true || fail "a job"
lych down >/dev/null || fail "down"
verify 0 --anchor "$anchor"
has "it says what the anchor has" "$anchor has" "$(cat out)"
cp -a "$LYCHGATE_DATA" yesterday

lych up --detach 2>/dev/null || fail "up"
for _ in 1 2 3; do lych run -n -- true || fail "a job of today"; done
lych down >/dev/null || fail "down"
verify 0 --anchor "$anchor"

# --- what the database has is one too, for who looks
lych up --detach 2>/dev/null || fail "up"
wait_until 20 "that of the database stands" stands_is database True
exported() {
	PGPASSWORD=$(cat "$LYCHGATE_DATA/secrets/lychgate_db_vessel") psql -XAtq -h "$XDG_RUNTIME_DIR/lychgate/pg" -U lych_vessel -d lychgate \
		-c 'SELECT line FROM lych_anchor.checkpoint ORDER BY n' >"$1" || fail "export"
}
exported from_database
verify 0 --anchor from_database
lych down >/dev/null || fail "down"
cp -a "$log" whole
rm -rf "$log" && cp -a yesterday/audit "$log"
verify 2 --anchor from_database
lych up --detach 2>/dev/null || fail "up"
wait_until 20 "it does not go with yesterday's log" stands_is database False
has "status says it" "the database has a checkpoint of" "$(lych status)"
exported from_database
verify 2 --anchor from_database
lych down >/dev/null || fail "down"
rm -rf "$log" && mv whole "$log"

# --- all of it as it was yesterday
rm -rf "$LYCHGATE_DATA" && mv yesterday "$LYCHGATE_DATA"
verify 0
verify 2 --anchor "$anchor"
has "and why" "cut off" "$(cat out)"
lych up --detach 2>/dev/null || fail "up on yesterday's"
wait_until 20 "the anchor does not stand" stands_is lychgate-anchor False
has "status says it first" "AN ANCHOR OF THE AUDIT LOG DOES NOT STAND" "$(lych status | head -n 1)"
has "and why" "an old copy was put back" "$(lych status)"
has "doctor says it" "('lychgate-anchor', 'FAIL')" "$(doctor)"
is "the log has it" 1 "$(grep -c '"event":"scribe.anchor".*"ok":false' "$log"/segment-*.jsonl)"
lych run -n -- true || fail "it does not stop the work"
lych down >/dev/null || fail "down"
verify 2 --anchor "$anchor"

# --- and required: nothing begins until a person has looked, and moved it aside
codex yes
lych up --detach >/dev/null 2>err && fail "it starts although a required anchor knows better"
has "why" LYCH-AUDIT-009 "$(cat err "$LYCHGATE_DATA/log/scribe.log")"
lych down >/dev/null 2>&1
mv "$anchor" evidence
lych up --detach 2>/dev/null || fail "up"
wait_until 20 "a new one stands" stands_is lychgate-anchor True
is "doctor knows where it is" "[('lychgate-anchor', 'KNOWN'), ('one is off this machine', 'KNOWN')]" "$(doctor)"
lych run -n -- true || fail "a job"
lych down >/dev/null || fail "down"
verify 0 --anchor "$anchor"
verify 2 --anchor "$anchor" --anchor evidence
echo "anchored: $count checks"
