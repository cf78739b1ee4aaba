#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Faults around a whole Lychgate: two daemons on one data directory, a runtime directory that is
# not ours, secrets with a wrong mode, a cluster of another major version, PostgreSQL stopped under
# load. Each is told with a typed error and a hint, nothing is lost, nothing is half done.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
load=$PWD/tests/integration/queue/faults_load.py
lych_begin faults
cd "$LYCH_TMP" || exit 1

json() { # expressions over j, printed side by side
	python3 -ISc 'import json,sys; j=json.load(sys.stdin); print(*eval("[" + sys.argv[1] + "]"))' "$1"
}
refused() { # what, exit code, error code, command...
	local what=$1 want=$2 code=$3 rc
	shift 3
	timeout 30 "$@" >out 2>err </dev/null
	rc=$?
	is "$what: $(cat err)" "$want" "$rc"
	grep -qE "^      $code  .{8}|code=\"$code\".* hint=\".{8}" err || fail "$what: not $code with a hint: $(cat err)"
}
pids() { lych status --json | json '*sorted(p for p in j["processes"].values() if p)'; }
tree() { (cd "$1" && find . -type f -printf '%p %m ' -exec sha256sum {} + -o -printf '%p %m %l\n' | sort | sha256sum); }
L=$LYCH_BIN/lych

# --- places that are not ours alone: refused before anything is made
mkdir -m 0755 open && mkdir -m 0700 private && ln -s "$PWD/private" linked && : >file
for run in open linked file none /; do
	refused "the runtime directory '$run'" 78 LYCH-STARTUP-009 env XDG_RUNTIME_DIR="$(realpath -s "$run")" "$L" up --detach
done
long=$PWD/$(printf 'x%.0s' $(seq 90)) && mkdir -m 0700 "$long"
refused "a path too long for a socket" 78 LYCH-STARTUP-009 env XDG_RUNTIME_DIR="$long" "$L" up --detach
is "it says how long" 1 "$(grep -c "$long" err)"
mkdir -m 0755 data-open
refused "an open data directory" 78 LYCH-STARTUP-016 env LYCHGATE_DATA="$PWD/data-open" "$L" up --detach
is "nothing was made" "0 0 0" "$(find open private data-open -mindepth 1 | wc -l) $(find "$long" -mindepth 1 | wc -l) $(find data 2>/dev/null | wc -l)"

# --- two of each on one data directory
for i in 1 2 3 4; do (lych up --detach >"up.$i" 2>&1 || echo failed >>"up.$i") & done
wait
is "four first starts at once, one starter: $(cat up.?)" "1 3" \
	"$(cat up.? | grep -c ': up (pid') $(cat up.? | grep -c 'already running (pid')"
before=$(pids)
id=$(lych run -n --detach -- sh -c 'sleep 8; echo through')
is "a second start says who runs" 1 "$("$L" up --detach | grep -c "already running (pid $(lych_pid supervisor))")"
mkdir -m 0700 run2 v2 api2 work2
refused "a second start with another runtime directory" 1 LYCH-STARTUP-001 env XDG_RUNTIME_DIR="$PWD/run2" "$L" up --detach
refused "another data directory, the same sockets" 1 LYCH-STARTUP-001 env LYCHGATE_DATA="$PWD/data2" "$L" up --detach
is "no cluster was made there" 0 "$(find data2/phylactery -mindepth 1 -not -name log | wc -l)"
R=$XDG_RUNTIME_DIR/lychgate
shared=(--pg-dir "$R/pg" --secrets "$LYCHGATE_DATA/secrets")
refused "a second vessel" 1 LYCH-STARTUP-001 "$LYCH_BIN/lych-vessel" serve --data "$LYCHGATE_DATA/vessel" --audit-dir "$R/audit" \
	--api-dir "$R/api" --work-dir "$R/work" "${shared[@]}"
refused "a second vessel with a directory of its own" 1 LYCH-STARTUP-011 "$LYCH_BIN/lych-vessel" serve --audit-dir "$R/audit" \
	--data "$PWD/v2" --api-dir "$PWD/api2" --work-dir "$PWD/work2" "${shared[@]}"
tomb=("$LYCH_BIN/lych-tomb" --name tomb_1 --work-dir "$R/work" --sandbox "$LYCH_BIN/lych-sandbox" --slots 2 --grade full --queue postgres "${shared[@]}")
refused "a second tomb" 1 LYCH-STARTUP-001 "${tomb[@]}" --data "$LYCHGATE_DATA/tomb"
mkdir -m 0700 t2
refused "a second tomb with a directory of its own" 78 LYCH-STARTUP-009 "${tomb[@]}" --data "$PWD/t2"
is "the first ones run on, the same" "$before" "$(pids)"
is "the job went through" through "$(lych logs -f "$id" 2>/dev/null)"
is "in one attempt" "succeeded 1" "$(lych show "$id" --json | json 'j["state"], j["attempts"]')"

# --- PostgreSQL stopped under load: 60 jobs and 8 clients, three ways
for how in stop kill immediate; do
	python3 "$load" "$how" "$(lych_pid postgres)" "$(dirname "$(readlink -f "/proc/$(lych_pid postgres)/exe")")" \
		"$LYCHGATE_DATA/phylactery/data" || fail "PostgreSQL: $how"
	lych_wait_up
done
is "the queue's invariants hold" 0 "$(lych_violations)"

# --- while the database is away, a question is answered soon; one that stands still for long is started anew,
# which the starter does not get to before the question has its answer
freeze() {
	until lych jobs >/dev/null 2>&1; do nap 0.1; done
	starter=$(lych_pid supervisor) postgres=$(lych_pid postgres)
	kill -STOP "$starter" "$postgres"
	mapfile -t backends < <(pgrep -P "$postgres")
	kill -STOP "${backends[@]}"
}
freeze
start=$(date +%s%3N)
refused "show without a database" 4 LYCH-RUN-007 "$L" show "$id"
took=$(($(date +%s%3N) - start))
[ "$took" -lt 15000 ] || fail "show took $took ms"
kill -CONT "${backends[@]}" "$postgres" "$starter"
freeze
refused "run without a database" 4 LYCH-RUN-007 "$L" run -n --detach -- echo once
kill -CONT "$starter"
once=$(sed -nE 's/.*--request-id ([^ ]+) is the same job.*/\1/p' err)
lych status --json >status; is "status answers all the same" 0 $?
lych_wait_up
is "and it goes on" on "$(lych run -n -- echo on)"
is "what was not known is one job: $once" once "$(lych run -n --request-id "$once" -- echo once)"
is "with that id" 1 "$(lych jobs --limit 500 --json | json "sum(x['request_id'] == '$once' for x in j['jobs'])")"

# --- secrets
lych down >/dev/null || fail "down"
secret=$LYCHGATE_DATA/secrets/lychgate_work
for mode in 640 604 666; do
	chmod $mode "$secret"
	refused "a secret with mode $mode" 1 LYCH-SECRET-001 "$L" up --detach
done
chmod 600 "$secret" && mv "$secret" aside && ln -s "$PWD/aside" "$secret"
refused "a secret that is a symlink" 1 LYCH-SECRET-001 "$L" up --detach
rm "$secret" && mkfifo -m 600 "$secret"
refused "a secret that is a FIFO" 1 LYCH-SECRET-001 "$L" up --detach
rm "$secret" && : >"$secret" && chmod 600 "$secret"
refused "an empty secret" 1 LYCH-SECRET-001 "$L" up --detach
mv aside "$secret" && mv "$LYCHGATE_DATA/secrets/lychgate_db_migrate" aside
refused "the one that opens the cluster is gone" 3 LYCH-SECRET-002 "$L" up --detach
is "it was not made anew" 0 "$(find "$LYCHGATE_DATA/secrets" -name lychgate_db_migrate | wc -l)"
mv aside "$LYCHGATE_DATA/secrets/lychgate_db_migrate"

# --- a cluster of another major version, or of none: not a byte is changed
cluster=$LYCHGATE_DATA/phylactery/data
version=$(cat "$cluster/PG_VERSION")
for other in 9 14 99 "" x; do
	echo "$other" >"$cluster/PG_VERSION"
	was=$(tree "$cluster")
	refused "a cluster of version '$other'" 1 LYCH-STARTUP-005 "$L" up --detach
	is "it was not touched" "$was" "$(tree "$cluster")"
done
echo "$version" >"$cluster/PG_VERSION"
lych up --detach >/dev/null || fail "up again"
is "everything is still there" "succeeded 1" "$(lych show "$id" --json | json 'j["state"], j["attempts"]')"
is "and works" again "$(lych run -n -- echo again)"
echo "faults: $count checks"
