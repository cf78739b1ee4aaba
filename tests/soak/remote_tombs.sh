#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Two tombs on "other hosts": each in a network namespace of its own that has nothing but a wire to the
# vessel's. A tomb speaks unix sockets there as anywhere; stunnel carries them, PostgreSQL's own TLS for
# the one, TLS on both ends for the work socket, with a certificate for each tomb (docs/OPERATIONS.md,
# "A tomb on another host"; docs/adr/0022). First what must not get through, then jobs, then a cut wire.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ -z "${REMOTE_INNER:-}" ]; then
	for tool in stunnel openssl ip; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null || {
			[ "${MUST_RUN:-0}" != 1 ] || { echo "no $tool"; exit 1; }
			exit 77
		}
	done
	REMOTE_INNER=1 exec unshare --user --map-current-user --keep-caps --net "$0" "$@"
fi
PATH=$PATH:/usr/sbin:/sbin
build=${LYCH_BUILD:-$PWD/build/${VARIANT:-release}}
dir=$(mktemp -d /tmp/ly-far-XXXXXX)
declare -A pids=()
# The namespace's rights are for the wires; no program of ours gets them.
plain=(setpriv --ambient-caps=-all --inh-caps=-all --no-new-privs)
cleanup() {
	local p
	for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null || true; done
	"${plain[@]}" tests/support/pg stop "$dir/pg" >/dev/null 2>&1 || true
	exec 2>/dev/null # that they were killed is no news
	wait
	chmod -R u+rwx "$dir"
	rm -rf "$dir"
}
trap cleanup EXIT
count=0
fail() {
	echo "FAIL: $*" >&2
	tail -n 8 "$dir"/*.log >&2 2>/dev/null || true
	exit 1
}
is() { # what, expected, got
	[ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
	count=$((count + 1))
}
says() { # FILE TEXT
	for _ in $(seq 600); do
		! grep -qs -- "$2" "$1" || { count=$((count + 1)); return 0; }
		sleep 0.1
	done
	fail "$1: no '$2'"
}
until_sql() { # COUNT SQL
	for _ in $(seq 1200); do
		[ "$(psql "$2")" = "$1" ] && return
		sleep 0.1
	done
	fail "never: $2"
}
psql() { "${plain[@]}" tests/support/pg psql "$dir/pg" lych_migrate -At -c "$1"; }
home() { # N COMMAND...: on the host of tomb N
	local n=$1
	shift
	nsenter --net="/proc/${pids[host$n]}/ns/net" "$@"
}

# --- wires: 10.77.N.1 is the vessel's end, 10.77.N.2 that of tomb N
ip link set lo up
for n in 1 2; do
	unshare --net sleep 600 &
	pids[host$n]=$!
	for _ in $(seq 100); do
		[ "$(readlink "/proc/${pids[host$n]}/ns/net")" = "$(readlink /proc/self/ns/net)" ] || break
		sleep 0.05
	done
	ip link add "wire$n" type veth peer name wire netns "${pids[host$n]}"
	ip addr add "10.77.$n.1/30" dev "wire$n"
	ip link set "wire$n" up
	home "$n" ip addr add "10.77.$n.2/30" dev wire
	home "$n" ip link set wire up
	home "$n" ip link set lo up
done

# --- certificates: one authority of the owner's, and one of somebody else
(
	cd "$dir"
	umask 077
	issue() { # AUTHORITY NAME SUBJECT-ALT-NAME
		openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" -keyout "$1-$2.key" -out req.pem
		openssl x509 -req -in req.pem -CA "$1.pem" -CAkey "$1.key" -CAcreateserial -days 2 \
			-extfile <(echo "subjectAltName=$3") -out "$1-$2.crt"
	}
	for ca in own foreign; do
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$ca" -days 2 \
			-addext basicConstraints=critical,CA:TRUE -keyout "$ca.key" -out "$ca.pem"
		issue "$ca" vessel "IP:10.77.1.1,IP:10.77.2.1"
		issue "$ca" tomb_1 DNS:tomb_1
		issue "$ca" tomb_2 DNS:tomb_2
	done
) >/dev/null 2>"$dir/openssl.log" || fail "no certificates"

# --- the vessel's host: PostgreSQL with TLS for tombs, stunnel before the work socket
mkdir -p "$dir/data/audit" "$dir/work" "$dir/api"
chmod -R 700 "$dir"
export HOME=$dir
# shellcheck disable=SC2054 # a comma of PostgreSQL's
server_tls=(ssl=on "ssl_cert_file=$dir/own-vessel.crt" "ssl_key_file=$dir/own-vessel.key" "ssl_ca_file=$dir/own.pem"
	listen_addresses=10.77.1.1,10.77.2.1 port=5432)
"${plain[@]}" tests/support/pg start "$dir/pg"
"${plain[@]}" tests/support/pg stop "$dir/pg"
# the certificate is the login: no password leaves this host
cat >>"$dir/pg/data/pg_hba.conf" <<-'HBA'
	hostssl lychgate +lych_tomb 10.77.0.0/16 cert
	host    all      all        all          reject
HBA
"${plain[@]}" tests/support/pg start "$dir/pg" "${server_tls[@]}"
"${plain[@]}" "$build/lych-vessel" migrate --pg-dir "$dir/pg/sock" --secrets "$dir/pg/secrets" --tomb tomb_1 --tomb tomb_2 \
	2>"$dir/migrate.log"
"${plain[@]}" "$build/lych-scribe" --dir "$dir/data/audit" --socket-dir "$dir/audit" 2>"$dir/scribe.log" &
pids[scribe]=$!
"${plain[@]}" "$build/lych-vessel" serve --data "$dir/data/vessel" --api-dir "$dir/api" --work-dir "$dir/work" \
	--pg-dir "$dir/pg/sock" --audit-dir "$dir/audit" --secrets "$dir/pg/secrets" 2>"$dir/vessel.log" &
pids[vessel]=$!
carry() { # NAME: starts stunnel with the configuration on stdin
	(echo "foreground = yes"; echo "syslog = no"; echo "debug = 5"; echo "pid ="; cat) >"$dir/$1.conf"
	"${@:2}" "${plain[@]}" stunnel "$dir/$1.conf" >"$dir/$1.log" 2>&1 &
	pids[$1]=$!
}
carry server <<-CONF
	[work]
	accept = 0.0.0.0:7443
	connect = $dir/work/vessel.sock
	cert = $dir/own-vessel.crt
	key = $dir/own-vessel.key
	CAfile = $dir/own.pem
	verifyChain = yes
	requireCert = yes
	sslVersionMin = TLSv1.3
CONF
says "$dir/vessel.log" 'msg="ready"'
says "$dir/server.log" "Configuration successful"

# --- on the tombs' hosts
far() { # NAME N CERTIFICATE TRUSTED: both sockets of the other host, below $dir/NAME
	local tls="cert = $dir/$3.crt
key = $dir/$3.key
CAfile = $dir/$4.pem
verifyChain = yes
checkIP = 10.77.$2.1
sslVersionMin = TLSv1.3"
	(umask 077; mkdir -p "$dir/$1/pg" "$dir/$1/work" "$dir/$1/secrets")
	rm -f "$dir/$1/pg/.s.PGSQL.5432" "$dir/$1/work/vessel.sock"
	carry "$1-wires" nsenter --net="/proc/${pids[host$2]}/ns/net" <<-CONF
		[postgresql]
		client = yes
		protocol = pgsql
		accept = $dir/$1/pg/.s.PGSQL.5432
		connect = 10.77.$2.1:5432
		$tls
		[work]
		client = yes
		accept = $dir/$1/work/vessel.sock
		connect = 10.77.$2.1:7443
		$tls
	CONF
	says "$dir/$1-wires.log" "Configuration successful"
	for _ in $(seq 100); do [ -S "$dir/$1/work/vessel.sock" ] && break; sleep 0.1; done
}
unwire() { # NAME
	kill "${pids[$1-wires]}"
	wait "${pids[$1-wires]}" 2>/dev/null || true
	unset "pids[$1-wires]"
}
login() { # NAME ROLE: what a database login through that wire answers
	PGPASSWORD=$(cat "$dir/pg/secrets/lychgate_db_of_$2") PGCONNECT_TIMEOUT=10 "${plain[@]}" psql -X -h "$dir/$1/pg" -U "$2" -d lychgate -Atc "SELECT session_user" 2>&1 || true
}
ping_work() { # NAME: the status of a ping through that wire, or "none"
	"${plain[@]}" python3 - "$dir/$1/work/vessel.sock" "$dir/pg/secrets/lychgate_work_of_tomb_1" <<-'P'
		import http.client, socket, sys
		c = http.client.HTTPConnection("lychgate", timeout=10)
		try:
		    c.sock = socket.socket(socket.AF_UNIX)
		    c.sock.settimeout(10)
		    c.sock.connect(sys.argv[1])
		    c.request("GET", "/work/v1/ping", headers={"Lychgate-Version": "1", "Lychgate-Tomb": "tomb_1",
		        "Authorization": "Bearer " + open(sys.argv[2]).read().strip()})
		    print(c.getresponse().status)
		except (OSError, http.client.HTTPException):
		    print("none")
	P
}

# Without TLS, with nobody's certificate, with another's, towards another server: nothing.
out=$(PGPASSWORD=$(cat "$dir/pg/secrets/lychgate_db_of_tomb_1") home 1 "${plain[@]}" \
	psql -X "host=10.77.1.1 user=tomb_1 dbname=lychgate sslmode=disable connect_timeout=10" -Atc "SELECT 1" 2>&1 || true)
grep -q "rejects connection" <<<"$out" || fail "PostgreSQL without TLS: $out"
far stranger 1 foreign-tomb_1 own
grep -qE "SSL error|certificate|closed the connection" <<<"$(login stranger tomb_1)" || fail "a foreign certificate: $(login stranger tomb_1)"
is "the work socket with a foreign certificate" none "$(ping_work stranger)"
unwire stranger
far misled 1 own-tomb_1 foreign
grep -qE "closed the connection|SSL" <<<"$(login misled tomb_1)" || fail "a server of somebody else: $(login misled tomb_1)"
is "the work socket of somebody else" none "$(ping_work misled)"
unwire misled
far wrong 2 own-tomb_2 own
grep -q "certificate authentication failed" <<<"$(login wrong tomb_1)" || fail "tomb_2 logs in as tomb_1: $(login wrong tomb_1)"
is "as itself it may" tomb_2 "$(login wrong tomb_2)"
is "the work socket with the owner's certificate" 200 "$(ping_work wrong)"
unwire wrong
count=$((count + 4))

# What goes over the first wire, as somebody would see it who listens there.
python3 - "$dir/heard" <<'P' &
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("wire1", 0))
with open(sys.argv[1], "wb", buffering=0) as f:
    while True:
        f.write(s.recv(65536))
P
pids[ear]=$!

tomb() { # N
	local n=$1
	cp "$dir/pg/secrets/lychgate_work_of_tomb_$n" "$dir/tomb_$n/secrets/"
	echo nobody-asks-for-this-one >"$dir/tomb_$n/secrets/lychgate_db_of_tomb_$n"
	chmod 600 "$dir/tomb_$n/secrets/"*
	nsenter --net="/proc/${pids[host$n]}/ns/net" "${plain[@]}" "$build/lych-tomb" --name "tomb_$n" --data "$dir/data/tomb_$n" \
		--work-dir "$dir/tomb_$n/work" --queue postgres --pg-dir "$dir/tomb_$n/pg" --secrets "$dir/tomb_$n/secrets" \
		--sandbox "$build/lych-sandbox" --slots 2 --grade full 2>"$dir/tomb_$n.log" &
	pids[tomb_$n]=$!
}
submit() { # REQUEST ARGV
	"${plain[@]}" tests/support/pg psql "$dir/pg" lych_vessel -At -c "SELECT job_id FROM vessel_api.enqueue('main', '$1',
		convert_to('{\"argv\":$2}', 'UTF8'), 50, true, 600, 1000)"
}
far tomb_1 1 own-tomb_1 own
far tomb_2 2 own-tomb_2 own
tomb 1
tomb 2
for n in 1 2; do says "$dir/tomb_$n.log" 'msg="ready"'; done
for n in 1 2; do
	is "tomb $n has no socket of a network" "" "$(for fd in "/proc/${pids[tomb_$n]}/fd/"*; do readlink "$fd"; done |
		sed -n 's/^socket:\[\(.*\)\]$/\1/p' | sort >"$dir/inodes"
		home "$n" cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 | awk '{print $10}' | sort |
			comm -12 "$dir/inodes" -)"
done

# --- jobs on both hosts
for i in $(seq 24); do submit "far-$i" '["sh", "-c", "echo a-word-of-the-job; sleep 0.3"]' >/dev/null; done
until_sql 0 "SELECT count(*) FROM lych.job WHERE state <> 'succeeded'"
is "both hosts worked" "tomb_1,tomb_2" "$(psql "SELECT string_agg(DISTINCT owner, ',' ORDER BY owner) FROM lych.attempt")"
is "each job once" "24 24" "$(psql "SELECT count(*) || ' ' || count(DISTINCT job_id) FROM lych.attempt")"
is "their output is here" 24 "$(grep -rlc a-word-of-the-job "$dir/data/vessel/output" | wc -l)"

# --- the wire of the host that runs a job is cut: the lease ends, the other host runs it again
job=$(submit cut '["sh", "-c", "sleep 8; echo done"]')
until_sql 1 "SELECT count(*) FROM lych.attempt WHERE job_id = $job AND outcome IS NULL"
owner=$(psql "SELECT owner FROM lych.attempt WHERE job_id = $job")
ip link set "wire${owner#tomb_}" down
until_sql succeeded "SELECT state FROM lych.job WHERE id = $job"
is "twice begun, once ended" "2 1" "$(psql "SELECT count(*) || ' ' || count(*) FILTER (WHERE outcome = 'succeeded') FROM lych.attempt WHERE job_id = $job")"
[ "$(psql "SELECT owner FROM lych.attempt WHERE job_id = $job AND outcome = 'succeeded'")" != "$owner" ] ||
	fail "the cut host ended the job"
ip link set "wire${owner#tomb_}" up
last=$(submit again '["true"]')
until_sql succeeded "SELECT state FROM lych.job WHERE id = $last"
is "invariants" 0 "$(psql "SELECT sum(bad) FROM lych.invariants()")"

# --- what was to be heard
[ "$(stat -c %s "$dir/heard")" -gt 20000 ] || fail "the ear heard nothing"
for secret in "$(cat "$dir/pg/secrets/lychgate_work_of_tomb_1")" a-word-of-the-job Bearer tomb_api; do
	! grep -qaF -- "$secret" "$dir/heard" || fail "'${secret:0:8}...' went over the wire in the clear"
	count=$((count + 1))
done
echo "remote tombs: $count checks"
