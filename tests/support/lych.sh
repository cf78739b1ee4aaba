# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For whole-system tests: a private Lychgate in a temporary directory, driven through the real
# command line. Source it, then lych_begin NAME. Everything is stopped and removed at exit.

LYCH_BIN=${LYCH_BIN:-$PWD/build/${VARIANT:-release}}
export LYCH_BIN
lych_support=$PWD/tests/support

fail() {
	echo "FAIL: $*" >&2
	if [ -n "${LYCH_TMP:-}" ]; then
		for log in "$LYCHGATE_DATA"/log/*.log; do
			[ -e "$log" ] || continue
			echo "--- $log" >&2
			tail -n 15 "$log" >&2
		done
	fi
	exit 1
}

skip() { # a skip in CI is a failure
	[ "${MUST_RUN:-0}" != 1 ] || fail "must not be skipped: $*"
	echo "SKIP: $*"
	exit 77
}

# Where the daemons are that try their own walls: test_build.
lych_test_builds() {
	local p
	test_build=$LYCH_BIN/test-build
	for p in lych-tomb lych-vessel lych-scribe; do
		[ -x "$test_build/$p" ] || skip "no test build ($test_build/$p); make test-programs"
	done
}

# Seconds; without a program where a place was made for it: reading what nobody writes to.
nap() {
	if [ -n "${LYCH_TMP:-}" ]; then read -rt "$1" <>"$LYCH_TMP/never" || :; else sleep "$1"; fi
}

# fail() with what did not come true in time.
wait_until() { # seconds, what, command...
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "$what"
		nap 0.05
	done
}

lych() { "$LYCH_BIN/lych" "$@"; }

# At a terminal of its own, at which somebody types the answers: ANSWER... -- what lych is given.
lych_typed() {
	local answers=()
	while [ "$1" != -- ]; do
		answers+=("$1")
		shift
	done
	"$lych_support/at-terminal" "${answers[@]}" -- "$LYCH_BIN/lych" "${@:2}"
}

# Checks, counted in $count. A test whose failures need other words has its own.
count=0
is() { # what, expected, got
	[ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
	count=$((count + 1))
}
has() { # what, fixed text, in this output
	grep -qF -- "$2" <<<"$3" || fail "$1: no '$2' in: $3"
	count=$((count + 1))
}
lacks() {
	! grep -qF -- "$2" <<<"$3" || fail "$1: '$2' in: $3"
	count=$((count + 1))
}
json() { # expression over j, from stdin
	python3 -ISc 'import json,sys; j=json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"
}
# What no command says or does: in the database itself, as the owner of the schema.
lych_sql() {
	PGPASSWORD=$(cat "$LYCHGATE_DATA/secrets/lychgate_db_migrate") \
		psql -XAtq -v ON_ERROR_STOP=1 -h "$XDG_RUNTIME_DIR/lychgate/pg" -U lych_migrate -d lychgate -c "$1" || fail "$1"
}

lych_end() {
	local rc=$?
	[ -z "${LYCH_TMP:-}" ] || {
		lych down >/dev/null 2>&1
		chmod -R u+rwx "$LYCH_TMP" 2>/dev/null
		rm -rf "$LYCH_TMP"
	}
	exit "$rc"
}

# A short path: the name of a unix socket has 108 bytes.
lych_begin() {
	LYCH_TMP=$(mktemp -d "/tmp/ly-$1-XXXXXX")
	trap lych_end EXIT
	mkfifo -m 0600 "$LYCH_TMP/never"
	mkdir -m 0700 "$LYCH_TMP/home" "$LYCH_TMP/run" "$LYCH_TMP/home/.config" "$LYCH_TMP/home/.config/lychgate"
	export HOME=$LYCH_TMP/home XDG_RUNTIME_DIR=$LYCH_TMP/run LYCHGATE_DATA=$LYCH_TMP/data
	export PAGER=cat
	unset XDG_DATA_HOME XDG_CONFIG_HOME
	LYCH_CONFIG=$HOME/.config/lychgate/codex.yaml
	[ -z "${LYCH_QUEUE:-}" ] || lych_config
}

# codex.yaml: the door of LYCH_QUEUE (postgres, vessel; as shipped without it) and what is said
# here, "key: value" of tomb a line.
lych_config() {
	install -m 0600 /dev/null "$LYCH_CONFIG"
	printf 'version: "1"\ntomb:\n  queue: %s\n' "${LYCH_QUEUE:-postgres}" >"$LYCH_CONFIG"
	[ $# -eq 0 ] || printf '  %s\n' "$@" >>"$LYCH_CONFIG"
}

# What the jobs of "lych jobs --json" in a file said is 1 to n, each once.
lych_ledger() { # n, file
	local id
	for id in $(python3 -c 'import json, sys; print(*(j["id"] for j in json.load(open(sys.argv[1]))["jobs"]))' "$2"); do
		lych logs "$id"
	done | sort -n >"$LYCH_TMP/ledger"
	diff <(seq "$1") "$LYCH_TMP/ledger" >"$LYCH_TMP/wrong" ||
		fail "an output is missing, doubled or mixed: $(head -n 5 "$LYCH_TMP/wrong" | tr '\n' ' ')"
}

# What lych status says of our own processes: lych_is_ready, and their pids; nothing, when it does not answer.
lych_look() {
	local status
	status=$(lych status --json) || :
	lych_is_ready='' lych_processes=''
	if [[ $status =~ ^\{\"ready\":(true|false),\"processes\":\{([^{}]*)\} ]]; then
		lych_is_ready=${BASH_REMATCH[1]} lych_processes=,${BASH_REMATCH[2]}
	fi
}

# Pid of one of our own processes: tomb, vessel, postgres, supervisor; spawner: the inner one.
lych_pid() {
	lych_look
	[[ $lych_processes =~ ,\"$1\":([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

# What lych show says of a job: job_state, job_attempts, job_lost.
lych_job() {
	local shown word='(null|"[a-z_]*")'
	shown=$(lych show "$1" --json) || :
	job_state='' job_attempts='' job_lost=''
	if [[ $shown =~ \"state\":\"([a-z_]+)\",\"class\":$word,\"phase\":$word,\"attempts\":([0-9]+),\"lost\":([0-9]+), ]]; then
		job_state=${BASH_REMATCH[1]} job_attempts=${BASH_REMATCH[4]} job_lost=${BASH_REMATCH[5]}
	fi
}
lych_job_is() { # job, state
	lych_job "$1"
	[ "$job_state" = "$2" ]
}

# How many of the queue's invariants are broken, with their names.
lych_violations() {
	python3 -c '
import http.client, json, socket, sys
c = http.client.HTTPConnection("lychgate", timeout=65)
c.sock = socket.socket(socket.AF_UNIX)
c.sock.connect(sys.argv[1])
c.request("GET", "/v1/check")
j = json.load(c.getresponse())
print(j["violations"], *(k for k, v in j["invariants"].items() if v))' "$XDG_RUNTIME_DIR/lychgate/api/vessel.sock"
}

lych_is_up() {
	local name
	lych_look 2>/dev/null
	[ "$lych_is_ready" = true ] || return
	for name in tomb vessel postgres spawner; do
		[[ $lych_processes =~ ,\"$name\":[1-9] ]] || return
	done
}

lych_wait_up() {
	local end=$((SECONDS + 90))
	until lych_is_up; do
		[ $SECONDS -lt $end ] || fail "Lychgate did not come back"
		nap 0.1
	done
}
