#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# lych why with a real tomb: every end is told with its own reason, a limit with its figure, and
# no wall is blamed for what a program did to itself or only said.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin why
lych up --detach <&- >&- 2>&- || fail "up"
cd "$LYCH_TMP" || exit 1

ends() { # expected exit code of lych run, its arguments; $why and $whyj tell about it
	local want=$1
	shift
	timeout 60 "$LYCH_BIN/lych" run -n "$@" >out 2>err
	is "exit code of: $*" "$want" $?
	id=$(lych jobs --limit 1 --json | json 'j["jobs"][0]["id"]')
	why=$(lych why "$id") || fail "lych why $id"
	whyj=$(lych why "$id" --json) || fail "lych why $id --json"
}

# --- refusals
lych why >/dev/null 2>err; is "no job, and none is the last" 3 $?
is "its code" 1 "$(grep -c LYCH-RUN-001 err)"
lych why x >/dev/null 2>&1; is "no number" 2 $?
lych why 1 2 >/dev/null 2>&1; is "two jobs" 2 $?
lych why 999999 >/dev/null 2>err; is "an unknown job" 3 $?
is "its code" 1 "$(grep -c LYCH-RUN-001 err)"

# --- the program's own failures: no wall is blamed
ends 7 -- sh -c 'exit 7'
has "its own exit" "exit code 7, the program's own" "$why"
has "nothing recorded" "No wall refused anything that is recorded" "$why"
has "what would be" "lych run --explain" "$why"
is "no denial" "[]" "$(json 'j["denials"]' <<<"$whyj")"
ends 1 -- sh -c 'echo x >f && chmod 000 f && cat f'
has "an EACCES of a file's own mode" "exit code 1, the program's own" "$why"
has "is no wall's" "No wall refused anything that is recorded" "$why"
ends 1 --explain -- sh -c 'echo x >f && chmod 000 f && cat f'
has "nor with --explain" "No wall refused anything that is recorded" "$why"
lacks "which is not advised then" "--explain" "$why"
ends 1 -- sh -c 'echo "call mount refused (seccomp): EPERM"; echo "{\"denials\":[1]}" >&2; exit 1'
has "what it says is no record" "No wall refused anything that is recorded" "$why"
ends 139 -- sh -c 'kill -SEGV $$'
has "its own signal" "SIGSEGV" "$why"
has "is nobody's" "no limit and no wall ended it" "$why"
ends 0 -- true
has "success" "it succeeded" "$why"

# --- a command that is none
ends 127 -- no-such-program-here
has "a missing program" "could not be executed" "$why"
has "its errno" "ENOENT" "$why"
has "where it is looked for" "/usr/local/bin" "$why"
ends 126 -- /etc
has "a directory" "EACCES" "$why"

# --- what walls refused is told with the wall, once, and counted; it is not said to be the reason
cat >ask.py <<'PY'
import ctypes, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mount(b"none", b"/", None, 0, None)
for _ in range(3):
    try:
        socket.socket(40, socket.SOCK_STREAM)
    except OSError:
        pass
sys.exit(int(sys.argv[1]))
PY
ends 5 --file ask.py -- python3 ask.py 5
has "its own exit" "exit code 5, the program's own" "$why"
has "mount" "call mount refused (seccomp: no job may do this), EPERM" "$why"
has "a socket, counted" "vsock" "$why"
has "how often" "3 times" "$why"
has "how many" "Refused by its walls (2):" "$why"
has "no false blame" "Whether one of these made it fail, only its own output can tell" "$why"
lacks "no other" "No wall refused" "$why"
is "the records" "[('call', 'seccomp', 'mount', 'EPERM', 1), ('connect', 'seccomp', 'socket', 'EPERM', 3)]" \
	"$(json 'sorted(tuple(d["record"][k] for k in ("act", "wall", "call", "errno", "count")) for d in j["denials"])' <<<"$whyj")"
is "lych run tells where to look" "lych: denials of its walls: 2; see 'lych why $id'" "$(grep denials err)"
is "lych show too" "2 denials, see 'lych why $id'" "$(lych show "$id" | tail -1)"
is "a row each" 2 "$(lych show "$id" | grep -c '^result\.denials\.seccomp .*refused (seccomp')"
ends 0 --file ask.py -- python3 ask.py 0
has "also of a job that succeeded" "call mount refused" "$why"
is "which lych run does not mention" "" "$(cat err)"

# --- with --explain files and connections too
ends 2 --explain -- sh -c 'echo x >/etc/passwd'
has "a write" 'write "/etc/passwd" refused (mount: ' "$why"
has "its errno" "EROFS" "$why"
has "its smallest grant" "--rw /etc/passwd would allow it" "$why"
has "what that is here" "by copying it in with --file or --dir" "$why"
is "explained" True "$(json 'j["explained"]' <<<"$whyj")"
ends 1 --explain -- python3 -c 'import socket; socket.create_connection(("192.0.2.1", 443), 2)'
has "a connection" 'connect "192.0.2.1:443" refused (network: ' "$why"
lacks "which no option allows" "would allow" "$why"
ends 1 --explain -- python3 -c 'import socket; socket.getaddrinfo("name.example", 443)'
has "a name looked up, which is no refusal" "No wall refused anything that is recorded" "$why"
has "whom to ask" "a job asks its broker for a URL (lych-fetch)" "$why"
ends 2 -- sh -c 'echo x >/etc/passwd'
has "not without" "No wall refused anything that is recorded" "$why"

# --- each limit, with its figure and a raise that lych run takes
ends 124 --timeout 1 -- sleep 60
has "time" "its time limit of 1s" "$why"
has "a raise" "'lych run --timeout 2s'" "$why"
is "the limit for programs" "('timeout_ms', 1000, '--timeout')" \
	"$(json 'tuple(j["limit"][k] for k in ("name", "value", "option"))' <<<"$whyj")"
ends 137 --memory 64MiB -- python3 -c 'x = bytearray(400 << 20); print(len(x))'
has "memory" "its memory limit of 64MiB" "$why"
has "a raise" "'lych run --memory 128MiB'" "$why"
# the last looks at a job that grows until it is ended; how many there were, the machine says
cat >grow.py <<'PY'
import time
kept = []
while True:
    kept.append(bytearray(b"x") * (4 << 20))
    time.sleep(0.02)
PY
ends 137 --memory 64MiB --file grow.py -- python3 grow.py
has "its curve" "Memory in the last " "$why"
has "beside the limit" ", the limit is 64.0 MiB)" "$why"
is "what it had in the end was too much" True \
	"$(json '1 <= len(j["curve"]) <= 32 and max(x["memory_bytes"] for x in j["curve"]) > 64 << 20 and all(x["processes"] >= 1 for x in j["curve"])' <<<"$whyj")"
# shellcheck disable=SC2016
ends 137 --disk 1MiB -- sh -c 'for i in 1 2 3 4 5 6 7 8; do head -c 900000 /dev/zero >f$i; done; sleep 30'
has "disk" "its disk limit of 1MiB" "$why"
has "a raise" "'lych run --disk 2MiB'" "$why"
ends 137 --output 100KiB -- head -c 10000000 /dev/zero
has "output" "its output limit of 100KiB" "$why"
lacks "no curve of what has none" "in the last" "$why"
is "for programs" "[]" "$(json 'j["curve"]' <<<"$whyj")"
has "a raise" "'lych run --output 200KiB'" "$why"

# --- ended by who measures it (a tomb's record, as it writes one then): no limit of it, and no signal of the program's own
ends 7 -- sh -c 'exit 7'
lych_sql "UPDATE lych.job SET class = 'resource_kill' WHERE id = $id; UPDATE lych.result SET body = convert_to((convert_from(body, 'UTF8')::jsonb
	|| '{\"class\":\"resource_kill\",\"end\":\"unmeasured\",\"exit_code\":null,\"signal\":\"SIGKILL\",\"detail\":\"memory went faster than could be told whose it is\"}')::text,
	'UTF8') WHERE job_id = $id"
why=$(lych why "$id") || fail "lych why of an unmeasured job"
has "unmeasured" "it was ended by its supervision: memory went faster than could be told whose it is" "$(head -n 1 <<<"$why")"
lacks "unmeasured: no signal of its own" "raised itself" "$why"
lacks "unmeasured: no limit" " limit of " "$why"
lacks "unmeasured: no other limit to try" "lych run --memory" "$why"
is "unmeasured, for programs" "resource_kill unmeasured None" "$(lych why "$id" --json | json '" ".join(str(j[k]) for k in ("class", "end", "limit"))')"
lych_sql "UPDATE lych.result SET body = convert_to((convert_from(body, 'UTF8')::jsonb || '{\"detail\":\"\"}')::text, 'UTF8') WHERE job_id = $id"
has "unmeasured, without more" "it was ended by its supervision: unmeasured" "$(lych why "$id" | head -n 1)"

# --- a job that has not ended, and one that was cancelled
id=$(lych run -n --detach -- sleep 60)
wait_until 60 "it does not run" lych_job_is "$id" running
has "not ended" "it has not ended yet: running" "$(lych why "$id")"
lych cancel "$id" >/dev/null 2>&1
has "cancelled" "it was cancelled" "$(lych why "$id")"
lacks "without blame" "limit" "$(lych why "$id" | head -1)"

is "the names of a job's parts" "['advice', 'audit_log', 'class', 'curve', 'denials', 'denials_dropped', 'end', 'explained', 'id', 'limit', 'proposals', 'reason', 'refused', 'refused_dropped', 'state']" \
	"$(json 'sorted(j)' <<<"$whyj")"
lych why "$id" >/dev/full 2>err; is "a full stdout" 1 $?
echo "why: $count checks"
