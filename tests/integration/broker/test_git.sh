#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# git's own client inside real jobs, through HTTPS_PROXY: tomb, vessel, gate and egress worker are real, and
# git's own http-backend answers on loopback. First what is refused; then clone, fetch and push, by rules with protocol: git. Judged
# by what git shows and by what the server was asked.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
# A name of the test's own, which leads to this machine: in a mount namespace with another hosts file.
if [ -z "${GIT_HOSTS:-}" ]; then
	unshare -Urm true 2>/dev/null || { echo "no user namespaces here"; exit 77; }
	GIT_HOSTS=$(mktemp /tmp/git-hosts-XXXXXX)
	export GIT_HOSTS
	printf '127.0.0.1 localhost\n127.0.0.1 git.example.org\n' >"$GIT_HOSTS"
	chmod 644 "$GIT_HOSTS"
	# shellcheck disable=SC2016
	exec unshare -Urm sh -c 'mount --bind "$GIT_HOSTS" /etc/hosts && exec unshare -U --map-user=1000 --map-group=1000 bash "$1"' sh tests/integration/broker/test_git.sh
fi
. tests/support/lych.sh
[ -x "$(git --exec-path)/git-http-backend" ] || skip "no git http-backend"
server_py=$PWD/tests/support/python/git_server.py
lych_begin git
server=
end() {
	local rc=$?
	[ -z "$server" ] || kill "$server" 2>/dev/null
	rm -f "$GIT_HOSTS"
	(exit $rc)
	lych_end
}
trap end EXIT

# --- repositories, an authority, the server
root=$LYCH_TMP/root log=$LYCH_TMP/asked
mkdir "$root" "$root/team" "$root/other" "$root/private" "$LYCH_TMP/tls"
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
g "$LYCH_TMP" clone --bare source "$root/private/mine.git"
g "$root/private/mine.git" config http.receivepack true
g "$LYCH_TMP" init --bare --object-format=sha256 "$root/private/sha256.git"
g "$root/private/sha256.git" config http.receivepack true
python3 -B -c '
import sys
sys.path.insert(0, "tests/support/python")
import lab
lab.make_ca(sys.argv[1], ["git.example.org"])' "$LYCH_TMP/tls" || fail "certificates"
cat "$LYCH_TMP/tls/ca-server.key" "$LYCH_TMP/tls/ca-server.pem" >"$LYCH_TMP/tls/server.pem"
secret=key-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
printf '%s' "$secret" | lych secret set host_forge >/dev/null || fail "secret set"
GIT_SERVER_KEY=$secret python3 -B "$server_py" "$root" "$LYCH_TMP/tls/server.pem" "$log" >"$LYCH_TMP/port" &
server=$!
wait_until 30 "the server of git" test -s "$LYCH_TMP/port"
port=$(cat "$LYCH_TMP/port")
name=git.example.org:$port
at=https://$name
asked() { python3 -ISc 'import json, sys
for line in open(sys.argv[1]): print(*json.loads(line)[:2])' "$log"; }
forget() { : >"$log"; }

lych_config "slots: 2"
cat >>"$LYCH_CONFIG" <<END
egress: {authorities: "$LYCH_TMP/tls/ca.pem"}
credentials:
  - name: forge
    host: git.example.org
    port: $port
    path: /private
    header: basic
    user: x-access-token
    secret: host_forge
    addresses:
      - 127.0.0.1
ward:
  - host: git.example.org
    port: $port
    addresses:
      - 127.0.0.1
    path: /private
    protocol: git
    push: allow
    credential: forge
    action: allow
  - host: git.example.org
    port: $port
    addresses:
      - 127.0.0.1
    path: /team
    protocol: git
    action: allow
END
lych config check >"$LYCH_TMP/out" 2>&1 || fail "$(cat "$LYCH_TMP/out")"
has "the rule is shown" "git https://$name/team" "$(cat "$LYCH_TMP/out")"
has "and what it lets through" "git https://$name/private, with the key of forge, with push" "$(cat "$LYCH_TMP/out")"
lych up --detach >/dev/null || fail up
job() { lych run --egress brokered -n -- bash -c "$1" job "$at" 2>&1; }

has "a decision is explained" "permitted: GET $at/team/project.git/info/refs?service=git-upload-pack, by rule 2" \
	"$(lych ward test "$at/team/project.git/info/refs?service=git-upload-pack")"
has "of a push too" "the rule is for reading; a push needs push: allow in it" \
	"$(lych ward test --method POST "$at/team/project.git/git-receive-pack")"

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
send "" $u
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
has "another path" "remote: LYCH-WARD-001: No rule allows this: path: no rule allows this path of the host (for git: one with protocol: git): $name" "$out"
has "a push" "remote: LYCH-WARD-001: No rule allows this: push: the rule is for reading; a push needs push: allow in it: $name" "$out"
is "what git shows of each" 3 "$(grep -c '^fatal: unable to access .* error: 403' <<<"$out")"
is "what is no request of git's smart HTTP" 5 "$(grep -c '"error_code":"LYCH-WARD-001".*protocol: the rule is for git' <<<"$out")"
is "without a body, or of the wrong type, encoding or version" 6 "$(grep -o 'LYCH-FETCH-002: The request is not acceptable: header: ' <<<"$out" | wc -l)"
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
cd /tmp
for v in 2 0; do
	at() { git -c protocol.version=$v "$@" 2>/dev/null; }
	at clone -q --depth 1 $1/team/project.git deep$v
	at -C deep$v fetch -q --depth 2
	at -C deep$v fetch -q --deepen 3
	git -C deep$v log --oneline | wc -l
	at -C deep$v fetch -q --unshallow
	git -C deep$v log --oneline | wc -l
	at clone -q --shallow-since=2001-01-01 $1/team/project.git since$v
	git -C since$v log --oneline | wc -l
	at clone -q --shallow-exclude=t39 $1/team/project.git not$v
	git -C not$v log --oneline | wc -l
done
git clone -q --mirror $1/team/project.git mirror
git -C mirror remote update --prune 2>/dev/null
git ls-remote --tags $1/team/project.git "t1*" | wc -l
echo all')
sum=$(sha256sum <"$LYCH_TMP/source/bytes")
is "clone" "41 $sum 41 $sum 41 $sum 1 $(git -C "$LYCH_TMP/more" rev-parse HEAD) 5 41 41 1 5 41 41 1 11 all" "$(tr '\n' ' ' <<<"$out" | sed 's/ $//')"
versions=$(python3 -ISc 'import json, sys
rows = [json.loads(x) for x in open(sys.argv[1])]
assert all(set(h) <= {"content-type", "content-encoding", "git-protocol", "accept-encoding", "user-agent"} for _, _, h, _ in rows), rows
print(*sorted({h.get("git-protocol", "none") for _, _, h, _ in rows}), *sorted({h["content-encoding"] for _, _, h, _ in rows if "content-encoding" in h}))' "$log") ||
	fail "what was sent along: $(cat "$log")"
is "its versions, and gzip" "none version=1 version=2 gzip" "$versions"

# --- push: what may not leave is refused as a whole, with the object and without the text; nothing of it reaches the server
forget
begin='
set -e
git config --global user.name a
git config --global user.email a@example.org
git clone -q $1/private/mine.git w
cd w
put() { git add -A; git commit -qm "$1"; }
'
key=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
out=$(job "$begin"'
set +e
key=ghp_zQWBuTSOoRi4A9spHcVY5ncnsDkx''kJ0mLq17
echo "the key is $key" >notes; put one
echo "it is in $(git rev-parse HEAD:notes)"
rm notes; put "taken out again"
git push origin HEAD:refs/heads/one
git reset -q --hard origin/main; git commit -q --allow-empty -m "see $key"; git push origin HEAD:refs/heads/two
git reset -q --hard origin/main; echo x >"$LYCHGATE_BROKER_KEY"; put three; git push origin HEAD:refs/heads/three
git reset -q --hard origin/main; head -c 5000 /dev/urandom >noise; put four; git push origin HEAD:refs/heads/four
git reset -q --hard origin/main; git push origin "HEAD:refs/heads/$key"
git reset -q --hard origin/main; sed -i "s/^7$/seven/" numbers; put five
{ printf "008a0000000000000000000000000000000000000000 $(git rev-parse HEAD) refs/heads/five\\0 report-status-v2 object-format=sha1"; printf 0000; } >body
printf "HEAD\n^origin/main\n" | git pack-objects --thin --revs --stdout -q >>body
curl -sS --cacert $SSL_CERT_FILE -H "Content-Type: application/x-git-receive-pack-request" --data-binary @body $1/private/mine.git/git-receive-pack | tr "\\0" " "
echo
gzip -n body
curl -sS --cacert $SSL_CERT_FILE -H "Content-Type: application/x-git-receive-pack-request" -H "Content-Encoding: gzip" --data-binary @body.gz $1/private/mine.git/git-receive-pack
git reset -q --hard origin/main; head -c 1300000 /dev/urandom >noise; put six
git push origin HEAD:refs/heads/six
git -c http.postBuffer=4000000 push origin HEAD:refs/heads/seven
git push $1/private/sha256.git HEAD:refs/heads/eight
git push $1/private/silly.git HEAD:refs/heads/nine
env')
blob=$(sed -n 's/^it is in //p' <<<"$out")
has "a key in a file that a later commit takes out" "remote: LYCH-GATE-001: The request is too private to leave: score 1.00: token; in blob $blob" "$out"
has "what git says of it" "! [remote rejected] HEAD -> one (LYCH-GATE-001)" "$out"
has "a key in a message" "token; in commit $(sed -n 's/.*token; in commit \([0-9a-f]*\).*/\1/p' <<<"$out")" "$out"
has "the job's own key as the name of a file" "canary; in tree" "$out"
has "a pack that is not whole" "unpack" "$out"
has "bytes that nobody can read" "binary; in blob" "$out"
has "a key as the name of a branch" "in the request itself" "$out"
has "in gzip too" "LYCH-GIT-001: This request of git's is not let through: the pack: a delta whose base" "$(tail -n +2 <<<"${out#*unpack}")"
is "more than a mebibyte, in chunks or with its length" 2 "$(grep -c '^remote: LYCH-HTTP-' <<<"$out")"
has "each branch of it, where it was read" "! [remote rejected] HEAD -> six (LYCH-HTTP-" "$out"
has "ids of SHA-256" "fatal: remote error: LYCH-FETCH-006: The reply is not acceptable" "$out"
has "which is told" "the ids of its objects are not SHA-1's" "$out"
has "what is no advertisement" "before a push: it does not begin as git's" "$out"
is "each was refused" 6 "$(grep -c 'remote rejected' <<<"$out")"
lacks "no text is shown" "$key" "$(grep -v 'refs/heads\|->' <<<"$out")"
# four bytes: what git asks before a large push
is "and the server was asked to take none" 0 "$(python3 -ISc 'import json, sys
print(sum(r[0] == "POST" and "receive-pack" in r[1] and r[3] > 4 for r in map(json.loads, open(sys.argv[1]))))' "$log")"
lacks "the job has not seen the key of the host" "$secret" "$out"
lacks "nor in Base64" "$(printf 'x-access-token:%s' "$secret" | base64 -w0)" "$out"
is "no branch was made" main "$(git -C "$root/private/mine.git" for-each-ref --format='%(refname:short)')"

# --- and what may
forget
out=$(job "$begin"'
git checkout -q -b work
sed -i s/^1000$/thousand/ numbers; put "a change of a large file"
git mv numbers figures; seq 50 >more; put "and a file"
git tag -am "as it is" v1
git push -q origin work v1
seq 60000 >long; put "more than git sends in one piece"
git -c http.postBuffer=65536 push -q origin work
git commit -q --amend -m "said better"
git push -q --force origin work
git push -q origin :refs/tags/v1
git branch other
git push -q --atomic --signed=if-asked --force-with-lease origin other work:more 2>/dev/null
git push -q origin --delete other
git push -q --tags origin work:more
git push -q origin --delete v1 more
git ls-remote origin
git rev-parse HEAD
echo all' 2>&1)
has "a push" all "$out"
tip=$(tail -n 2 <<<"$out" | head -n 1)
is "is what the job has" "$tip" "$(git -C "$root/private/mine.git" rev-parse work)"
is "whole" "" "$(git -C "$root/private/mine.git" fsck --no-dangling 2>&1)"
is "and a tag is gone again" "main work" "$(git -C "$root/private/mine.git" for-each-ref --format='%(refname:short)' | tr '\n' ' ' | sed 's/ $//')"
is "in chunks too" "POST 4 " "$(python3 -ISc 'import json, sys
sizes = [json.loads(x)[3] for x in open(sys.argv[1]) if json.loads(x)[0] == "POST"]
print("POST", *(n for n in sizes if n == 4), "" if max(sizes) > 65536 else max(sizes))' "$log")"
lacks "the key of the host is not shown" "$secret" "$out"
is "each request had it" 0 "$(python3 -ISc 'import json, sys
rows = [json.loads(x) for x in open(sys.argv[1])]
print(sum("authorization" not in h for _, _, h, _ in rows) if rows else -1)' "$log")"
# into a file: a reader that stops at its first match would break the pipe
logged() {
	lych audit tail -n 300 --json >"$LYCH_TMP/tail" 2>/dev/null
	grep -q '"protocol": *"git"' "$LYCH_TMP/tail"
}
wait_until 30 "the log does not say what it was" logged
echo "PASS: $count checks"
