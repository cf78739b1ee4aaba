#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Package mirrors, the whole way: a job in a real sandbox, tomb, vessel, egress worker, a registry on loopback.
# First what is refused; then an index with its links rewritten, files, the cache, real pip, and dependencies
# that are fetched and installed before the job begins.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin packages
has() { # what, text, pattern
	grep -q -- "$3" <<<"$2" || fail "$1: no '$3' in: $2"
	count=$((count + 1))
}
: >"$LYCH_TMP/asked"
python3 tests/support/python/registry.py "$LYCH_TMP/asked" "$LYCH_TMP/port" &
registry=$!
# what ended the test, not what kill says, is its exit code
trap 'rc=$?; kill $registry 2>/dev/null; (exit $rc); lych_end' EXIT
for _ in $(seq 300); do [ -s "$LYCH_TMP/port" ] && break; nap 0.05; done
port=$(cat "$LYCH_TMP/port")
lych_config "slots: 2"
cat >>"$LYCH_CONFIG" <<END
registries:
  npm:
    url: "http://127.0.0.1:$port/npm"
    addresses:
      - 127.0.0.1
  pypi:
    url: "http://127.0.0.1:$port/pypi/simple"
    addresses:
      - 127.0.0.1
  cargo:
    url: "http://127.0.0.1:$port/crates"
    addresses:
      - 127.0.0.1
  go:
    url: "http://127.0.0.1:$port/go"
    addresses:
      - 127.0.0.1
ward:
  - {registry: npm, action: allow}
  - {registry: pypi, action: allow}
  - {registry: cargo, action: allow}
  - {registry: go, action: allow}
  - {host: docs.example.org, action: allow}
END
lych up --detach >/dev/null || fail up
get='import sys, urllib.request, urllib.error
for u in sys.argv[1:]:
    try:
        r = urllib.request.urlopen("http://127.0.0.1:8787" + u, timeout=60)
        print(r.status, r.headers["Content-Type"], r.read().decode("latin-1"))
    except urllib.error.HTTPError as e:
        print(e.code, e.read().decode())
'
job() { # EGRESS URL...
	lych run --egress "$1" -n -- python3 -c "$get" "${@:2}" 2>&1
}

# --- refused: another mode, other paths, a package that names another place, an index that is none
out=$(job brokered /registry/pypi/simple/tiny/)
has "brokered has no mirrors" "$out" LYCH-BROKER-021
out=$(job registry /registry/pypi/other/tiny/ /registry/npm/-/v1/search /registry/npm/~1/x.tgz \
	/registry/pypi/simple/../../secret /registry/npm/moved /registry/npm/nothing)
is "no path but packages" 3 "$(grep -c LYCH-REGISTRY-002 <<<"$out")"
has "a redirect elsewhere" "$out" LYCH-REGISTRY-001
has "what is not there" "$out" "^404"
! grep -q "where are you looking" <<<"$out" || fail "the registry's words came through"
# outside of its URL a registry is asked for what an index of it named, and for nothing that only has the form of a file
mark=$(printf '0%.0s' $(seq 32))
out=$(job registry /registry/cargo/~0/api/v4/projects/1/secret/download "/registry/cargo/~0/$mark/secret/1.0.0/download" \
	/registry/pypi/~0/api/v4/secret/archive.tar.gz "/registry/pypi/~0/$mark/files/secret-1.0.whl" /registry/pypi/~0/files/secret-1.0.whl.metadata)
is "what no index named" 5 "$(grep -c '^403 .*LYCH-REGISTRY-002.*ask for the index' <<<"$out")"
# an index is read whole before the job has a word of it; the reason is in the log
out=$(job registry /registry/npm/liar /registry/npm/twice)
is "an index that breaks off, one whose link stands twice" 2 "$(grep -c '^502 .*LYCH-REGISTRY-001' <<<"$out")"
! grep -q elsewhere <<<"$out" || fail "part of an index that was refused: $out"
# not behind a pipe, whose writer a grep that has found it would end
logged() { lych audit tail -n 200 --json >"$LYCH_TMP/tail" 2>/dev/null && grep -q -- "$1" "$LYCH_TMP/tail"; }
wait_until 30 "the log does not say why" logged '"detail": *"an index that is no index: it ends too early"'
wait_until 30 "the log does not say where" logged '"detail": *"byte [0-9]*: an index that is no index: a link.s key that stands twice"'
is "the registry's secrets were not asked for" 0 "$(grep -c secret "$LYCH_TMP/asked")"
lych run --dep 'pypi:tiny @ https://evil/' -n -- true >"$LYCH_TMP/out" 2>&1 && fail "a dependency by URL"
has "a dependency by URL" "$(cat "$LYCH_TMP/out")" LYCH-SPEC-015
lych run --dep pypi:nothing-of-that-name -n -- echo ran >"$LYCH_TMP/out" 2>&1 && fail "a dependency that is not there"
! grep -qx ran "$LYCH_TMP/out" || fail "the job ran without its dependency"
count=$((count + 1))

# --- an index, its links, a file
out=$(job registry /registry/pypi/simple/tiny/)
has "the link leads to the mirror" "$out" 'href="http://127.0.0.1:8787/registry/pypi/~0/[0-9a-f]\{32\}/files/[^"]*tiny-1.0-py3-none-any.whl#sha256='
sha=$(grep -o 'sha256=[0-9a-f]*' <<<"$out" | head -n 1)
! grep -q elsewhere.example <<<"$out" || fail "a link to another place"
has "the digest of its metadata stays" "$out" 'data-core-metadata="sha256=[0-9a-f]\{64\}"'
out=$(job registry /registry/npm/@acme%2fpad)
has "npm's tarball" "$out" '"tarball": "http://127.0.0.1:8787/registry/npm/@acme/pad/-/pad-2.0.0.tgz"'
has "its integrity stays" "$out" '"integrity": "sha512-'
out=$(job registry /registry/npm/escaped)
has "an escaped key is the key that it says" "$out" '"..0074arball": "http://127.0.0.1:8787/registry/npm/escaped/-/e.tgz"'
has "what is none of ours stays as it is" "$out" '"dependencies": {"a\\\\b": "1"}'

# --- crates, by cargo's sparse protocol: what its configuration in the job says is where they are
out=$(job registry /registry/cargo/api/v1/crates /registry/cargo/ti/ny/Tiny /registry/cargo/~1/tiny/1.0.0/download \
	/registry/cargo/li/ar/liar /registry/cargo/no/th/nothing)
is "no path but crates" 3 "$(grep -c LYCH-REGISTRY-002 <<<"$out")"
has "an index with a version that has no checksum" "$out" "^502 .*LYCH-REGISTRY-001.*cksum"
has "what is not there" "$out" "^404"
out=$(lych run --egress registry -n -- python3 -c 'import hashlib, json, os, re, urllib.request
text = open(os.environ["CARGO_HOME"] + "/config.toml").read()
base = re.search("registry = .sparse.(http://[^\"]*/)\"", text).group(1)
get = lambda u: urllib.request.urlopen(u, timeout=60).read()
config = json.loads(get(base + "config.json"))
print("config:", config)
for name in "ti/ny/tiny", "fa/ls/false":
    version = json.loads(get(base + name))
    crate = get("/".join((config["dl"], version["name"], version["vers"], "download")))
    print(version["name"], hashlib.sha256(crate).hexdigest() == version["cksum"])' 2>&1)
has "dl leads to the mirror, and nothing else is said" "$out" "^config: {'dl': 'http://127.0.0.1:8787/registry/cargo/~0/[0-9a-f]*/dl'}"
has "a crate and its checksum" "$out" "^tiny True"
has "a checksum stays, whatever the crate is" "$out" "^false False"
is "the ward knows both kinds" 2 "$(for k in cargo go; do lych ward test registry:$k >/dev/null && echo; done | wc -l)"

# --- Go modules
m=/registry/go/example.org/!tiny
out=$(job registry /registry/go/fmt/@v/list /registry/go/example.org/Tiny/@v/list $m/@v/v1.0.0.exe $m/@v/v9.0.0.info $m/@v/v2.0.0.info)
is "no path but modules" 3 "$(grep -c LYCH-REGISTRY-002 <<<"$out")"
has "an info that is none" "$out" "^502 .*LYCH-REGISTRY-001"
has "a version that is not there" "$out" "^404"
out=$(job registry $m/@v/list $m/@latest $m/@v/v1.0.0.info $m/@v/v1.0.0.mod $m/@v/v1.0.0.zip \
	/registry/go/sumdb/sum.example.org/latest /registry/go/sumdb/sum.example.org/lookup/example.org/!tiny@v1.0.0 2>&1)
is "a module, and its sums" 7 "$(grep -ac '^200 ' <<<"$out")"
out=$(lych run --egress registry -n -- sh -c 'echo "$GOPROXY"' 2>&1)
has "where go asks" "$out" '^http://127.0.0.1:8787/registry/go$'

# a capital is "!" and its small letter: what it spells is read, and what is cut into segments
id=$(printf 'QuetzalMoon7Base' | lych private add --name m --json | sed 's/[^0-9]//g')
: >"$LYCH_TMP/asked"
e=/registry/go/example.org
out=$(job registry $e/!quetzal!moon7!base/@v/list $e/x/@v/v1.0.0-!quetzal!moon7!base.info $e/quetzalmo/on7base/@latest \
	$e/!quetzal!mo/on7/!base/@v/v1.0.0.zip /registry/go/sumdb/sum.example.org/lookup/example.org/!quetzal!moon7!base@v1.0.0 \
	$e/!a!k!i!a!q3!e!g!r!x!t!z!p5!v!b2!l!k!m/@v/list /registry/cargo/qu/et/quetzalmoon7base)
is "a term in a module's spelling, one in segments, a token" 7 "$(grep -ac '^403 .*LYCH-GATE' <<<"$out")"
out=$(lych run --egress registry -n -- python3 -c 'import os, re, urllib.request, urllib.error
k = os.environ["LYCHGATE_BROKER_KEY"]
spelled = lambda s: re.sub("[A-Z]", lambda m: "!" + m.group().lower(), s)
for path in ("go/example.org/" + spelled(k) + "/@v/list", "go/example.org/x/@v/v1.0.0-" + spelled(k) + ".info",
             "go/example.org/" + spelled(k[:20]) + "/" + spelled(k[20:]) + "/@latest",
             "go/sumdb/sum.example.org/lookup/example.org/" + spelled(k) + "@v1.0.0",
             "cargo/ly/ch/" + k.lower(), "npm/" + k.lower(), "go/example.org/" + k.lower() + "/@v/list"):
    try:
        print(urllib.request.urlopen("http://127.0.0.1:8787/registry/" + path).status)
    except urllib.error.HTTPError as e:
        print(e.code, e.read().decode())' 2>&1)
is "the job's key, spelled so, cut, or in small letters" 7 "$(grep -c '^403 .*LYCH-GATE' <<<"$out")"
is "none of it went out" "" "$(cat "$LYCH_TMP/asked")"
lych_typed "correct horse battery" "correct horse battery" -- passphrase set >/dev/null || fail "set a passphrase"
lych_typed "correct horse battery" -- private remove "$id" >/dev/null || fail "remove"

# --- digits in a path are read like anything else, unless an index that this job fetched has them; for a term and a
# canary even then
hex() { od -An -tx1 | tr -d ' \n'; }
at() { echo "/registry/pypi/simple/files/$1/odd-1.0-py3-none-any.whl"; }
token=$(printf 'glpat-x7Kq2mZv9LsT4bNcW8Rd' | hex) term=$(printf 'Project Nachtigall' | hex) index=/registry/pypi/simple/odd/
: >"$LYCH_TMP/asked"
out=$(job registry "$(at "$token")" "/registry/pypi/simple/$token/" "$(at "${token:0:20}/${token:20}")")
is "a token as digits that no index showed to this job" 3 "$(grep -ac '^403 .*LYCH-GATE' <<<"$out")"
! grep -q "${token:0:20}" "$LYCH_TMP/asked" || fail "digits went out: $(cat "$LYCH_TMP/asked")"
links=$(job registry "$index" | grep -o '/registry/pypi/~0/[^"]*')
token_link=$(grep "$token" <<<"$links") term_link=$(grep "$term" <<<"$links")
out=$(job registry "$index" "$token_link" "$term_link")
is "the same, after their index; a word that nobody minds" 3 "$(grep -ac ^200 <<<"$out")"
out=$(job registry "$token_link")
is "they are no other job's" 1 "$(grep -ac '^403 .*LYCH-GATE' <<<"$out")"
out=$(job registry "/registry/pypi/simple/files/ab/cd/$(printf 0a1b2c3d4e%.0s 1 2 3 4 5 6)/odd-1.0-py3-none-any.whl")
is "a digest is no more than that: the registry says that it has no such thing" 1 "$(grep -ac ^404 <<<"$out")"
id=$(printf 'project nachtigall' | lych private add --name n --json | sed 's/[^0-9]//g')
: >"$LYCH_TMP/asked"
out=$(job registry "$index" "$term_link" "$(at "${term:0:14}/${term:14}")" "/registry/pypi/simple/$term/")
is "a registered term, though the index has it, and cut in two" 3 "$(grep -ac '^403 .*LYCH-GATE' <<<"$out")"
! grep -q "${term:0:14}" "$LYCH_TMP/asked" || fail "the term went out: $(cat "$LYCH_TMP/asked")"
lych_typed "correct horse battery" -- private remove "$id" >/dev/null || fail "remove"
out=$(lych run --egress registry -n -- python3 -c 'import os, urllib.request, urllib.error
k = os.environ["LYCHGATE_BROKER_KEY"].encode().hex()
for path in (k, k[:64] + "/" + k[64:], k[:40] + "/" + k[40:80] + "/" + k[80:]):
    try:
        print(urllib.request.urlopen("http://127.0.0.1:8787/registry/pypi/simple/files/" + path + "/x-1.0.whl").status)
    except urllib.error.HTTPError as e:
        print(e.code, e.read().decode())' 2>&1)
is "the canary, whole and in segments" 3 "$(grep -c '^403 .*LYCH-GATE' <<<"$out")"
has "it is told as one" "$(lych audit tail -n 100 2>/dev/null)" "detection.canary"
! grep -q 6c7963682d "$LYCH_TMP/asked" || fail "the canary went out"

# --- real pip, twice: the second time the file comes from the cache
for _ in 1 2; do
	out=$(lych run --egress registry -n -- sh -c 'python3 -m pip install --quiet --no-cache-dir --target t tiny==1.0 && PYTHONPATH=t python3 -m tiny' 2>&1)
	has "pip" "$out" "tiny works"
done
is "the wheel was fetched once" 1 "$(grep -c '/files/.*whl$' "$LYCH_TMP/asked")"
[ "$(find "$LYCHGATE_DATA/vessel/packages" -type f | wc -l)" -ge 2 ] || fail "nothing is kept"

# --- the form of a simple index is the client's choice (PEP 691); its metadata lies beside the wheel (PEP 658)
out=$(lych run --egress registry -n -- python3 -c 'import hashlib, json, urllib.request, urllib.error
def get(url, accept):
    r = urllib.request.Request(url, headers={"Accept": accept})
    try:
        return urllib.request.urlopen(r, timeout=60)
    except urllib.error.HTTPError as e:
        print(e.code, e.read().decode())
index = "http://127.0.0.1:8787/registry/pypi/simple/tiny/"
get(index, "application/xml")
print("html:", get(index, "text/html").headers["Content-Type"])
r = get(index, "application/vnd.pypi.simple.v1+json, text/html;q=0.1")
page = json.load(r)
print("json:", r.headers["Content-Type"])
f = page["files"][0]
wheel, metadata = get(f["url"], "*/*").read(), get(f["url"] + ".metadata", "*/*").read()
print("hashes:", hashlib.sha256(wheel).hexdigest() == f["hashes"]["sha256"], hashlib.sha256(metadata).hexdigest() == f["core-metadata"]["sha256"])
print("the other:", repr(page["files"][1]["url"]))' 2>&1)
has "neither form" "$out" "^400 .*LYCH-HTTP-007"
has "HTML" "$out" "^html: text/html"
has "JSON" "$out" "^json: application/vnd.pypi.simple.v1+json"
has "wheel and metadata are what the index says" "$out" "^hashes: True True"
has "a link to another place, in JSON" "$out" "^the other: ''"

# --- uv's protocol, by a program that is as strict (Debian has no uv)
out=$(lych run --egress registry -f tests/support/python/like_uv.py -n -- sh -c 'python3 like_uv.py tiny odd && PYTHONPATH=t python3 -m tiny' 2>&1)
has "an index in JSON, its wheel by way of the metadata" "$out" "^tiny: application/vnd.pypi.simple.v1+json, metadata beside it"
has "an index in HTML, a wheel without any" "$out" "^odd: text/html, metadata out of the wheel"
has "both are what they should be" "$out" "^tiny works"

# --- dependencies: there before the job begins, and the job itself asks nobody
out=$(lych run --dep pypi:tiny==1.0 -n -- python3 -m tiny 2>&1)
has "a dependency" "$out" "tiny works"
out=$(lych run --dep pypi:tiny==1.0 -n -- python3 -c 'import socket
s = socket.socket()
print("connect:", s.connect_ex(("127.0.0.1", 8787)))' 2>&1)
has "the job has no broker" "$out" "connect: 111"
out=$(lych run --dep "pypi:tiny==1.0 --hash=sha256:$(printf '0%.0s' $(seq 64))" -n -- echo ran 2>&1) && fail "a wrong hash"
! grep -qx ran <<<"$out" || fail "the job ran with a package of another hash"
has "a wrong hash" "$out" "DO NOT MATCH"
out=$(lych run --dep "pypi:tiny==1.0 --hash=${sha/=/:}" -n -- python3 -m tiny 2>&1)
has "the right hash" "$out" "tiny works"
# what a wheel requires by a URL is not built where the mirrors are
out=$(lych run --dep pypi:direct==1.0 -n -- echo ran 2>&1) && fail "a dependency that must be built"
! grep -qx ran <<<"$out" || fail "the job ran without what must be built"
has "a dependency that must be built" "$out" "no wheel of the registry"
grep -q 'built-1.0.tar.gz' "$LYCH_TMP/asked" || fail "the archive was not even asked for: nothing is shown"
! grep -q phoned-home "$LYCH_TMP/asked" || fail "what a wheel requires has run where the mirrors are"
# what the job brings along is not there while they are fetched, and does not stand in their way
evil=$LYCH_TMP/evil
mkdir -p "$evil/pip" "$evil/pkg_resources"
echo 'open("/work/ran", "w").write("pip.py")' >"$evil/pip.py"
for f in pip/__init__ pip/__main__ sitecustomize usercustomize runpy zipfile ssl; do
	echo "open('/work/ran', 'w').write('$f'); raise SystemExit(0)" >"$evil/$f.py"
done
printf '[global]\nindex-url = http://127.0.0.1:1/simple\n' >"$evil/pip.conf"
mkdir -p "$evil/.config/pip" "$evil/.pip"
cp "$evil/pip.conf" "$evil/.config/pip/"
cp "$evil/pip.conf" "$evil/.pip/"
echo 'other==1.0' >"$evil/requirements.txt"
out=$(lych run -C "$evil" --dep pypi:tiny==1.0 -n -- sh -c 'cat ran; cd /tmp && python3 -I -c "
import sys
sys.path.append(\"/work/.lychgate-deps/python\")
import runpy
runpy.run_module(\"tiny\", run_name=\"__main__\")"' 2>&1)
has "a dependency beside files that are in the way" "$out" "tiny works"
has "none of them has run" "$out" "ran: No such file"
for kind in link directory; do
	rm -rf "${evil:?}"
	mkdir -p "$evil/there"
	if [ $kind = link ]; then ln -s there "$evil/.lychgate-deps"; else mkdir "$evil/.lychgate-deps"; fi
	echo 'other==1.0' >"$evil/there/requirements.txt"
	out=$(lych run -C "$evil" --dep pypi:tiny==1.0 -n -- echo ran 2>&1) && fail "a $kind in the place of the dependencies"
	has "a $kind in the place of the dependencies" "$out" "a name that the job's files may not have"
	! grep -qx ran <<<"$out" || fail "the job ran with a $kind in the place of the dependencies"
done
has "the audit log has it" "$(lych audit tail -n 200 2>/dev/null)" "package"

# --- crates and modules: what is not of the registry is refused before there is a job, by its name
project=$LYCH_TMP/project zero=$(printf '0%.0s' $(seq 64))
mkdir -p "$project/src"
printf '[package]\nname = "user"\nversion = "0.1.0"\nedition = "2018"\n\n[dependencies]\ntiny = "1"\n' >"$project/Cargo.toml"
echo 'fn main() { println!("{}", tiny::works()); }' >"$project/src/main.rs"
printf 'module example.org/user\n\ngo 1.15\n\nrequire example.org/Tiny v1.0.0\n' >"$project/go.mod"
printf 'package main\n\nimport "example.org/Tiny"\n\nfunc main() { println(tiny.Works()) }\n' >"$project/main.go"
lock() { # SOURCE SHA256
	printf 'version = 3\n\n[[package]]\nname = "tiny"\nversion = "1.0.0"\nsource = "%s"\nchecksum = "%s"\n' "$@" >"$project/Cargo.lock"
}
crates_io='registry+https://github.com/rust-lang/crates.io-index'
for source in 'git+https://git.example/tiny#1234' sparse+https://crates.example/; do
	lock "$source" "$zero"
	out=$(lych run -C "$project" --dep cargo-lock -n -- echo ran 2>&1) && fail "a crate of $source"
	has "a crate of $source" "$out" "tiny is of another place than crates.io: ${source%%#*}"
	has "a crate of $source" "$out" LYCH-SPEC-015
done
for dep in cargo:tiny@git+https://git.example/tiny cargo:../tiny go:example.org/Tiny go:example.org/Tiny@main go:example.org/.git/x@v1.0.0; do
	out=$(lych run --dep "$dep" -n -- echo ran 2>&1) && fail "$dep"
	has "$dep" "$out" LYCH-SPEC-015
done
out=$(lych run --dep go-sum -n -- echo ran 2>&1) && fail "no go.sum"
has "no go.sum" "$out" "no go.sum among --file and --dir"
# another digest, a crate that is not what its index says, a module that nobody vouches for: where cargo or go is not
# there, or too old, that is said; the job never runs
lock $crates_io "$zero"
printf 'example.org/Tiny v1.0.0 h1:%s=\nexample.org/Tiny v1.0.0/go.mod h1:%s=\n' "${zero:21}" "${zero:21}" >"$project/go.sum"
for dep in cargo-lock cargo:false cargo:linked cargo:elsewhere go:example.org/Tiny@v1.0.0 go-sum; do
	out=$(lych run -C "$project" --dep "$dep" -n -- echo ran 2>&1) && fail "$dep"
	has "$dep says why" "$out" "lychgate: --dep\|^error"
	has "$dep: nothing ran" "$out" LYCH-EXEC-011
	! grep -qx ran <<<"$out" || fail "the job ran without what it depends on: $dep"
done
! grep -q phoned-home "$LYCH_TMP/asked" || fail "another registry was asked"
# the right ones
lock $crates_io "$(curl -s "http://127.0.0.1:$port/crates/ti/ny/tiny" | json 'j["cksum"]')"
python3 -c 'import sys; sys.path.insert(0, "tests/support/python")
import registry
print(registry.go_sum(), end="")' >"$project/go.sum"
in_jobs() { PATH=/usr/local/bin:/usr/bin:/bin command -v "$1" >/dev/null; }
if in_jobs cargo && printf '1.68\n%s\n' "$(PATH=/usr/local/bin:/usr/bin:/bin cargo --version | awk '{ print $2 }')" | sort -VC; then
	has "cargo-lock" "$(lych run -C "$project" --dep cargo-lock -m 1GiB -n -- cargo run --quiet 2>&1)" "tiny works"
fi
if in_jobs go; then
	has "go-sum" "$(lych run -C "$project" --dep go-sum -m 1GiB -n -- go run . 2>&1)" "tiny works"
fi

# --- the budget of packages is one of its own: what the registry is asked for, an index and a file each, and no request
lych down >/dev/null
printf 'budgets:\n  job: {requests: 0, packages: 2}\n' >>"$LYCH_CONFIG"
lych up --detach >/dev/null || fail "up with another budget"
out=$(job registry /registry/npm/nothing1 /registry/npm/nothing2 /registry/npm/nothing3)
is "as many as there may be" 2 "$(grep -c '^404' <<<"$out")"
has "and no more" "$out" '^429 .*LYCH-BUDGET-006'
last() { lych jobs --json | json 'j["jobs"][0]["id"]'; }
used() { lych budget "$1" --json | json '[[b["spent"][k] for k in ("requests", "packages")] for b in j["books"] if b["scope"] == "job"]'; }
booked() { [ "$(used "$id")" = "$1" ]; }
id=$(last)
wait_until 30 "two packages, no request: $(used "$id")" booked "[[0, 2]]"
has "why" "$(lych why "$id")" "packages: job $id 2 of 2"
has "in words" "$(lych show "$id")" "^it has used 0 requests, .*, 2 packages;"
out=$(job registry /registry/pypi/simple/tiny/ /registry/pypi/simple/tiny/)
is "the same twice" 2 "$(grep -c '^200' <<<"$out")"
id=$(last)
wait_until 30 "what is stored is not counted: $(used "$id")" booked "[[0, 1]]"
echo "packages: $count checks"
