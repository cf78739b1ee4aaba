#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# What the vessel may ask of the host: hostile entries first (as a vessel that was taken over would drop
# them), then the four requests, in the pod's form (a stand-in for systemctl) and in embedded mode.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin react
mkdir -p "$LYCH_TMP/bin"
cp tests/support/podman "$LYCH_TMP/bin/podman"
cat >"$LYCH_TMP/bin/systemctl" <<'EOF'
#!/bin/bash
echo "$*" >>"$HOME/systemctl.log"
[ ! -e "$HOME/systemctl-fails" ] || { echo "Job for $3 failed." >&2; exit 1; }
EOF
chmod +x "$LYCH_TMP/bin/systemctl"
old_path=$PATH
PATH=$LYCH_TMP/bin:$PATH
I=$LYCHGATE_DATA/vessel/reactor R=$LYCHGATE_DATA/reactor log=$HOME/systemctl.log
uuid() { cat /proc/sys/kernel/random/uuid; }
drop() { # WORD [ID]: as the vessel does
	local id=${2:-$(uuid)}
	printf '%s\n' "$1" >"$LYCH_TMP/intent" && chmod 600 "$LYCH_TMP/intent"
	mv "$LYCH_TMP/intent" "$I/$id.intent"
	echo "$id"
}
calls() { cat "$log" 2>/dev/null; }
left() { find "$I" -mindepth 1 | wc -l; }
aside() { find "$R/aside" -mindepth 1 -maxdepth 1 | wc -l; }

"$LYCH_BIN/lych" react 2>/dev/null && fail "react without a directory of intents"
(umask 077; mkdir -p "$I")
chmod 770 "$I"
lych react 2>"$LYCH_TMP/err" && fail "a directory that others can write"
is "an open directory" 1 "$(grep -c LYCH-HOST-003 "$LYCH_TMP/err" | head -n 1)"
chmod 700 "$I"

# --- nothing but the four words; nothing is followed, opened or waited on
echo precious >"$LYCH_TMP/precious"
printf 'restart-tomb\n' >"$LYCH_TMP/outside" && chmod 600 "$LYCH_TMP/outside"
ln -s "$LYCH_TMP/outside" "$I/$(uuid).intent"
ln "$LYCH_TMP/outside" "$I/$(uuid).intent"
mkfifo "$I/$(uuid).intent"
mkdir -p "$I/$(uuid).intent/deep/er"
: >"$I/$(uuid).intent"
printf 'restart-tomb' >"$I/$(uuid).intent"
printf 'restart-tomb\nstop-pod\n' >"$I/$(uuid).intent"
printf 'restart-tomb \n' >"$I/$(uuid).intent"
printf 'RESTART-TOMB\n' >"$I/$(uuid).intent"
printf 'restart-tomb\0\n' >"$I/$(uuid).intent"
printf 'restart-tomb; rm -rf ~\n' >"$I/$(uuid).intent"
printf 'restart ssh.service\n' >"$I/$(uuid).intent"
printf '/bin/sh\n' >"$I/$(uuid).intent"
head -c 100000 /dev/zero >"$I/$(uuid).intent"
printf 'restart-tomb\n' >"$I/restart-tomb"
printf 'restart-tomb\n' >"$I/../../../../$(basename "$LYCH_TMP")/x.intent" 2>/dev/null
printf 'restart-tomb\n' >"$I/00000000-0000-0000-0000-000000000000.intent.intent"
printf 'restart-tomb\n' >"$I/--version.intent"
printf 'restart-tomb\n' >"$I/$(uuid | tr a-f A-F)X.intent"
planted=$(find "$I" -mindepth 1 -maxdepth 1 | wc -l)
lych react 2>"$LYCH_TMP/err" || fail "react: $(cat "$LYCH_TMP/err")"
is "none of $planted was carried out" "" "$(calls)"
is "each was set aside and reported" "$planted $planted" "$(aside) $(grep -c 'set aside' "$LYCH_TMP/err")"
is "the directory is empty" 0 "$(left)"
is "the link's target is as it was" "restart-tomb" "$(cat "$LYCH_TMP/outside")"
for i in $(seq 120); do echo "$i" >"$I/junk$i"; done
lych react 2>/dev/null || fail "react over much junk"
is "what is set aside does not grow for ever" "64 0" "$(aside) $(left)"

# --- the four, each once
id=$(drop restart-tomb)
lych react 2>/dev/null || fail "restart-tomb"
is "restart-tomb" "--user restart lychgate-tomb.service" "$(calls)"
is "its receipt" "done" "$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["state"])' "$R/$id.json")"
drop restart-tomb "$id" >/dev/null
lych react 2>/dev/null || fail "the same again"
is "the same id is not carried out again" 1 "$(calls | wc -l)"
: >"$log"
drop stop-tomb >/dev/null
nap 0.02
drop stop-pod >/dev/null
lych react 2>/dev/null || fail "stops"
is "stops, in order" "--user stop lychgate-tomb.service --user stop lychgate-pod.service" "$(calls | tr '\n' ' ' | sed 's/ $//')"
: >"$log"
touch "$HOME/systemctl-fails"
id=$(drop stop-tomb)
lych react 2>"$LYCH_TMP/err" && fail "a failure was not told"
is "a failure is told" 1 "$(grep -c LYCH-HOST-003 "$LYCH_TMP/err")"
is "and in the receipt, with why" "failed 1" "$(python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
print(r["state"], r["detail"].count("Job for"))' "$R/$id.json")"
is "it is not tried for ever" 0 "$(left)"
rm "$HOME/systemctl-fails"
# cut off between the two receipts: done again
: >"$log"
id=$(uuid)
printf '{"id":"%s","intent":"stop-tomb","state":"begun","detail":"","at":""}' "$id" >"$R/$id.json" && chmod 600 "$R/$id.json"
drop stop-tomb "$id" >/dev/null
lych react 2>/dev/null || fail "after a crash"
is "one that was cut off is done" "--user stop lychgate-tomb.service" "$(calls)"
: >"$log"
for _ in $(seq 30); do drop restart-tomb >/dev/null; done
lych react 2>/dev/null
[ "$(calls | wc -l)" -le 10 ] || fail "$(calls | wc -l) restarts at once"
drop stop-tomb >/dev/null
lych react 2>/dev/null
is "a stop is never too many" "--user stop lychgate-tomb.service" "$(calls | tail -n 1)"
is "the directory is empty" 0 "$(left)"
# two at a time: one works, the other says so
rm -rf "$R"
id=$(drop rotate-secret)
lych react 2>/dev/null && fail "a rotation of secrets that are not there"
is "its receipt says why" 1 "$(grep -c 'only what is there is rotated' "$R/$id.json")"

# --- the units: the two templates hold no variable but paths of the host
is "placeholders" "@DATA_DIR@ @LYCH@" "$(cat quadlet/host/*.in | grep -o '@[A-Z_]*@' | sort -u | tr '\n' ' ' | sed 's/ $//')"
is "what the service starts" "ExecStart=@LYCH@ react" "$(grep ^Exec quadlet/host/lychgate-reactor.service.in)"

# --- embedded mode: the starter takes them
PATH=$old_path
rm -rf "$R" "$LYCHGATE_DATA/vessel/reactor"
lych up --detach || fail up
tomb=$(lych_pid tomb) vessel=$(lych_pid vessel)
lych request open-the-gate 2>"$LYCH_TMP/err" && fail "a fifth request"
is "a fifth request" 1 "$(grep -c LYCH-CORE-004 "$LYCH_TMP/err")"
ask() { # BODY: the status of POST /v1/intents
	python3 - "$XDG_RUNTIME_DIR/lychgate/api/vessel.sock" "$1" <<'PY'
import http.client, socket, sys
c = http.client.HTTPConnection("localhost")
c.sock = socket.socket(socket.AF_UNIX)
c.sock.connect(sys.argv[1])
c.request("POST", "/v1/intents", sys.argv[2], {"Content-Type": "application/json"})
print(c.getresponse().status)
PY
}
is "nor through the API" 400 "$(ask '{"intent":"restart ssh.service"}')"
is "nor with more than the word" 400 "$(ask '{"intent":"stop-tomb","unit":"ssh.service"}')"
is "restart-tomb" "restart-tomb: done" "$(lych request restart-tomb)"
lych_wait_up
[ "$tomb" != "$(lych_pid tomb)" ] || fail "the tomb is the same"
is "the vessel went on" "$vessel" "$(lych_pid vessel)"
is "a job after it" hello "$(lych run -n -- echo hello)"
is "stop-tomb" '{"id":"ID","intent":"stop-tomb","state":"done"}' "$(lych request stop-tomb --json | sed -E 's/[0-9a-f-]{36}/ID/')"
sleep 1
lych status --json 2>/dev/null | python3 -c 'import json,sys; sys.exit(bool(json.load(sys.stdin)["processes"].get("tomb")))' || fail "the tomb came back by itself"
is "status says it first, and aloud" "NO JOB IS BEGUN: the tomb is DOWN" "$(lych status | head -n 1)"
is "and among the daemons" 1 "$(lych status | grep -c '^daemons: .*tomb DOWN')"
is "and back by request" "restart-tomb: done" "$(lych request restart-tomb)"
lych_wait_up
cp -p "$LYCHGATE_DATA/secrets/lychgate_work_of_tomb_1" "$LYCHGATE_DATA/secrets/lychgate_db_of_tomb_1" "$LYCH_TMP/"
is "rotate-secret" "rotate-secret: done" "$(lych request rotate-secret)"
for _ in $(seq 600); do
	[ "$vessel" != "$(lych_pid vessel 2>/dev/null)" ] && break
	nap 0.1
done
lych_wait_up
for name in lychgate_work_of_tomb_1 lychgate_db_of_tomb_1; do
	cmp -s "$LYCH_TMP/$name" "$LYCHGATE_DATA/secrets/$name" && fail "$name is as before"
done
is "a job after the rotation" hello "$(lych run -n -- echo hello)"
printf 'stop-pod and more\n' >"$LYCH_TMP/intent"
mv "$LYCH_TMP/intent" "$LYCHGATE_DATA/vessel/reactor/$(uuid).intent"
for _ in $(seq 100); do [ "$(aside)" -eq 1 ] && break; nap 0.1; done
is "the starter sets aside what is no intent" "1 0" "$(aside) $(left)"
starter=$(lych_pid supervisor)
is "stop-pod" "stop-pod: done" "$(lych request stop-pod)"
for _ in $(seq 600); do kill -0 "$starter" 2>/dev/null || break; nap 0.1; done
kill -0 "$starter" 2>/dev/null && fail "the starter is still there"
is "and it starts again" 0 "$(lych up --detach >/dev/null; echo $?)"
echo "$count checks"
