#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# git's own client inside real jobs, through HTTPS_PROXY: tomb, vessel, gate and egress worker are real, and
# git's own http-backend answers on loopback. First what is refused; then clone and fetch, by a rule with protocol: git. Judged by
# what git shows and by what the server was asked.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
[ -x "$(git --exec-path)/git-http-backend" ] || skip "no git http-backend"
server_py=$PWD/tests/support/python/git_server.py
lych_begin git
server=
end() {
	local rc=$?
	[ -z "$server" ] || kill "$server" 2>/dev/null
	(exit $rc)
	lych_end
}
trap end EXIT

# --- repositories, an authority, the server
root=$LYCH_TMP/root log=$LYCH_TMP/asked
mkdir "$root" "$root/team" "$root/other" "$LYCH_TMP/tls"
: >"$log"
g() { git -c init.defaultBranch=main -c user.name=t -c user.email=t@example.org -c commit.gpgsign=false -C "$@" >/dev/null 2>"$LYCH_TMP/err" ||
	fail "git $*: $(cat "$LYCH_TMP/err")"; }
g "$LYCH_TMP" init source
seq 2000 >"$LYCH_TMP/source/numbers"
head -c 3000 /dev/urandom >"$LYCH_TMP/source/bytes"
g "$LYCH_TMP/source" add -A
g "$LYCH_TMP/source" commit -m first
g "$LYCH_TMP" clone --bare source "$root/team/project.git"
g "$LYCH_TMP" clone --bare source "$root/other/project.git"
python3 -B -c '
import sys
sys.path.insert(0, "tests/support/python")
import lab
lab.make_ca(sys.argv[1], ["localhost"])' "$LYCH_TMP/tls" || fail "certificates"
cat "$LYCH_TMP/tls/ca-server.key" "$LYCH_TMP/tls/ca-server.pem" >"$LYCH_TMP/tls/server.pem"
python3 -B "$server_py" "$root" "$LYCH_TMP/tls/server.pem" "$log" >"$LYCH_TMP/port" &
server=$!
wait_until 30 "the server of git" test -s "$LYCH_TMP/port"
port=$(cat "$LYCH_TMP/port")
at=https://localhost:$port
asked() { python3 -ISc 'import json, sys
for line in open(sys.argv[1]): print(*json.loads(line)[:2])' "$log"; }
forget() { : >"$log"; }

lych_config "slots: 2"
cat >>"$LYCH_CONFIG" <<END
egress: {authorities: "$LYCH_TMP/tls/ca.pem"}
ward:
  - host: localhost
    port: $port
    addresses:
      - 127.0.0.1
      - "::1"
    path: /team
    protocol: git
    action: allow
END
lych config check >"$LYCH_TMP/out" 2>&1 || fail "$(cat "$LYCH_TMP/out")"
has "the rule is shown" "git https://localhost:$port/team" "$(cat "$LYCH_TMP/out")"
lych up --detach >/dev/null || fail up
# localhost is in NO_PROXY: here it stands for a host that is elsewhere
job() { lych run --egress brokered -n -- env -u NO_PROXY -u no_proxy bash -c "$1" job "$at" 2>&1; }

# --- refused, with what git shows
out=$(job '
git clone https://elsewhere.example.org/x.git
git clone $1/other/project.git
cd /tmp && git init -q w && cd w && git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m x
git push $1/team/project.git HEAD:refs/heads/new
say() { curl -sS --cacert $SSL_CERT_FILE "$@"; echo; }
say $1/team/project.git/HEAD
say $1/team/project.git/info/refs
say "$1/team/project.git/info/refs?service=git-upload-pack&x=1"
say -d x $1/team/project.git/git-upload-archive
say -X PUT -d x $1/team/project.git/git-upload-pack
say -d x $1/team/project.git/git-upload-pack
type="Content-Type: application/x-git-upload-pack-request"
send() { printf "%b" "$1" | say -H "$type" --data-binary @- "${@:2}"; }
u=$1/team/project.git/git-upload-pack
send "not git" $u
send "0011command=fetch00010011evil: secret0000" $u
send "0011command=fetch00010009done\\n0000more" $u
send "0014command=ls-refs\\n0001" $u
send "001bcommand=object-info\\n00010000" $u
send "0032want 0000000000000000000000000000000000000000" $u
send "0011command=fetch00010000" $u -H "Content-Encoding: gzip"
send "0011command=fetch00010000" $u -H "Content-Encoding: br"
send "0011command=fetch00010000" $u -H "Git-Protocol: version=2:evil"
printf 0011command=fetch00010000 | gzip -n >z
say -H "$type" --data-binary @z $u
printf 0011command=fetch00010000 | gzip -nc >name.gz; printf "\x1f\x8b\x08\x08" >y; tail -c +5 name.gz >>y
say -H "$type" -H "Content-Encoding: gzip" --data-binary @y $u
(cat z; echo behind) >x
say -H "$type" -H "Content-Encoding: gzip" --data-binary @x $u
head -c 20000000 /dev/zero | gzip -n >bomb
say -H "$type" -H "Content-Encoding: gzip" --data-binary @bomb $u
git fetch $1/team/project.git refs/heads/$LYCHGATE_BROKER_KEY
')
echo "$out" >"$LYCH_TMP/refused"
has "no rule" "remote: LYCH-WARD-001: No rule allows this: not_allowed: no rule allows this host (for git: one with protocol: git): elsewhere.example.org:443" "$out"
has "another path" "remote: LYCH-WARD-001: No rule allows this: path: no rule allows this path of the host (for git: one with protocol: git): localhost:$port" "$out"
has "a push" "remote: LYCH-WARD-001: No rule allows this: push: the rule is for reading" "$out"
is "what git shows of each" 3 "$(grep -c '^fatal: unable to access .* error: 403' <<<"$out")"
is "what is no request of git's smart HTTP" 5 "$(grep -c '"error_code":"LYCH-WARD-001".*protocol: the rule is for git' <<<"$out")"
is "of the wrong type, encoding or version" 5 "$(grep -o 'LYCH-FETCH-002: The request is not acceptable: header: ' <<<"$out" | wc -l)"
is "lines that are not git's" 6 "$(grep -o 'LYCH-GIT-001: This request of git.s is not let through: [^:]*' <<<"$out" | grep -vc gzip)"
has "more behind the end" "something stands behind its end" "$out"
has "a head with a name" "gzip: its head has more than it must" "$out"
has "something behind" "gzip: something stands behind it" "$out"
has "a bomb" "gzip: it unpacks to more than is taken" "$out"
has "the job's own key as the name of a branch" "fatal: remote error: LYCH-GATE-001" "$out"
lacks "it is not shown" sk- "$(grep GATE-001 <<<"$out")"
is "the server was asked for refs, and for nothing else" "GET /team/project.git/info/refs?service=git-upload-pack" "$(asked | sort -u)"
forget
out=$(job '
git clone $1/team/page.git
git clone $1/team/moved.git
git clone $1/team/nothing.git
')
has "a page in its place" "LYCH-FETCH-006" "$out"
has "which is told" "'text/html' is not what git's smart HTTP answers with" "$out"
has "it has moved" "the repository is somewhere else: use that URL" "$out"
has "there is none" "repository '$at/team/nothing.git/' not found" "$out"
is "no redirect was followed" 3 "$(asked | wc -l)"

# --- what a rule allows: each version of the protocol; and what grows beyond a kilobyte, which git sends in gzip
forget
g "$LYCH_TMP" clone source "$LYCH_TMP/more"
for i in $(seq 40); do
	echo "$i" >"$LYCH_TMP/more/file$i"
	g "$LYCH_TMP/more" add -A
	g "$LYCH_TMP/more" commit -m "number $i"
	g "$LYCH_TMP/more" tag "t$i"
done
g "$LYCH_TMP/more" push --tags "$root/team/project.git" HEAD:main
out=$(job '
set -e
for v in 2 1 0; do
	git -c protocol.version=$v clone -q $1/team/project.git v$v
	git -C v$v log --oneline | wc -l
	sha256sum <v$v/bytes
done
git clone -q --depth 1 --filter=blob:none --branch t7 $1/team/project.git shallow 2>/dev/null
git -C shallow log --oneline | wc -l
git -C v2 checkout -q t20
git clone -q --single-branch --branch t2 $1/team/project.git old 2>/dev/null
cd old
for i in $(seq 60); do git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m $i; done
git fetch -q --tags origin main
git rev-parse FETCH_HEAD
echo all')
sum=$(sha256sum <"$LYCH_TMP/source/bytes")
is "clone" "41 $sum 41 $sum 41 $sum 1 $(git -C "$LYCH_TMP/more" rev-parse HEAD) all" "$(tr '\n' ' ' <<<"$out" | sed 's/ $//')"
versions=$(python3 -ISc 'import json, sys
rows = [json.loads(x) for x in open(sys.argv[1])]
assert all(set(h) <= {"content-type", "content-encoding", "git-protocol", "accept-encoding", "user-agent"} for _, _, h, _ in rows), rows
print(*sorted({h.get("git-protocol", "none") for _, _, h, _ in rows}), *sorted({h["content-encoding"] for _, _, h, _ in rows if "content-encoding" in h}))' "$log") ||
	fail "what was sent along: $(cat "$log")"
is "its versions, and gzip" "none version=1 version=2 gzip" "$versions"
logged() { lych audit tail -n 300 --json 2>/dev/null | grep -q '"protocol": *"git"'; }
wait_until 30 "the log does not say what it was" logged
echo "PASS: $count checks"
