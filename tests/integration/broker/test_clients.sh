#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Real clients by HTTPS_PROXY, the whole way: curl and pip in a job, with their own settings; tomb, vessel and egress worker;
# servers, names and an authority in a network of its own (shops.py). What no rule allows is refused by name, what one allows
# is served, and bytes come only where it says so. npm, go and cargo: tests/real/packages/clients.
set -uo pipefail
self=$(realpath "$0")
cd "$(dirname "$0")/../../.." || exit 1
if [ -z "${SHOPS:-}" ]; then
	command -v ip >/dev/null || { echo "iproute2 is missing"; exit 77; }
	unshare -Urnm true 2>/dev/null || { echo "no user namespaces here"; exit 77; }
	dir=$(mktemp -d /tmp/ly-shops-XXXXXX)
	trap 'rm -rf "$dir"' EXIT
	SHOPS=$dir PYTHONPATH=tests/support/python unshare -Urnm python3 -B tests/support/python/shops.py "$dir" bash "$self"
	exit
fi
. tests/support/lych.sh
lych_begin clients
lych_config "slots: 2"
cat >>"$LYCH_CONFIG" <<END
egress: {authorities: "$SHOPS/ca.pem"}
credentials:
  - {name: shop, host: private.shop.example, path: /npm, header: bearer, secret: host_shop}
registries:
  npm:
    url: "https://private.shop.example/npm"
    file_hosts:
      - files.shop.example
      - private.shop.example
ward:
  - {host: files.shop.example, action: allow}
  - {host: files.shop.example, path: /bin/moved, action: allow, replies: binary}
  - {host: files.shop.example, path: /echo, method: POST, action: allow}
  - {host: files.shop.example, path: /echo, method: PUT, action: allow}
  - {host: files.shop.example, path: /echo, method: PATCH, action: allow}
END
lych secret set host_shop <<<shop-4f7Qz2Lm9XcV >/dev/null || fail "set the secret"
lych up --detach >/dev/null || fail up
job() { lych run --egress brokered -n -- sh -c "$1" 2>&1; }
pip='PIP_INDEX_URL=https://pypi.shop.example/simple python3 -m pip install --no-cache-dir --disable-pip-version-check --retries 0'
asked() { cat "$SHOPS/asked"; }

# --- refused: a host that no rule names, a method, bytes that no rule lets back, a body that is too long
out=$(job "curl -sS https://denied.shop.example/; curl -sS -X DELETE https://files.shop.example/echo
	curl -sS https://files.shop.example/bin/every-byte; head -c 1100000 /dev/zero | curl -sS -T - https://files.shop.example/echo
	$pip --target t tiny; echo pip ended with \$?")
has "no rule: the host" "no rule allows this host: denied.shop.example:443" "$out"
has "no rule: the method" "no rule allows this method there: files.shop.example:443" "$out"
has "bytes, and the key that lets them back" "replies: binary" "$out"
has "a body that is too long" LYCH-HTTP-004 "$out"
has "pip fails, and shows nothing of a 403" "pip ended with 1" "$out"
has "so the proposal names its host" "pypi.shop.example" "$(lych proposals --json)"
is "nobody was asked but for the file" "files.shop.example GET /bin/every-byte" "$(asked)"

# --- served, by rules that come while the vessel runs
cat >>"$LYCH_CONFIG" <<END
  - {host: files.shop.example, path: /bin, action: allow, replies: binary}
  - {host: pypi.shop.example, action: allow, replies: binary}
END
lych ward reload >/dev/null || fail reload
has "lych ward test tells" "binary replies too" "$(lych ward test https://files.shop.example/bin/x)"
# shellcheck disable=SC2016 # the job's own
out=$(job 'curl -sS -o got https://files.shop.example/bin/every-byte && sha256sum got
	curl -sS -o moved https://files.shop.example/bin/moved && cmp got moved && echo the same
	lych-fetch -o fetched https://files.shop.example/bin/every-byte && cmp got fetched && echo and by lych-fetch
	curl -sS -I https://files.shop.example/bin/every-byte
	curl -sS -T - https://files.shop.example/echo <got; echo
	yes "and so on, line by line" | head -c 900000 >body; sha256sum body
	curl -sS -T - https://files.shop.example/echo <body; curl -sS -X PATCH --data-binary @body https://files.shop.example/echo
	curl -sS https://files.shop.example/text')
has "every byte is back" "$(cat "$SHOPS/every-byte.sum")  got" "$out"
has "behind a redirect too" "the same" "$out"
has "lych-fetch" "and by lych-fetch" "$out"
has "HEAD" "Content-Type: application/x-bytes" "$out"
has "bytes that nobody can read do not go out" "score 0.85: binary: files.shop.example:443" "$out"
sum=$(grep ' body$' <<<"$out" | cut -d ' ' -f 1)
has "a body in chunks arrives with its length" "PUT 900000 $sum" "$out"
has "PATCH" "PATCH 900000 $sum" "$out"
has "text as ever" "a text" "$out"
out=$(job "$pip --target t tiny; $pip --quiet --target t tiny==1.0 && PYTHONPATH=t python3 -m tiny")
has "an index that leads to a host that no rule names" "403 while getting https://elsewhere.example/" "$out"
has "pip install" "tiny works" "$out"
has "the wheel went through the tunnel" "pypi.shop.example GET /files/" "$(asked)"
has "the log has which replies might be bytes" '"replies":"binary"' "$(lych audit tail -n 100 --json | tr -d ' ')"
# --- a registry that wants a token: the rule gives it to what is asked of the registry, and the job never has it
packages() { lych run --egress registry -n -- sh -c 'for p in pad pad/-/pad-1.0.0.tgz moved/-/moved-1.0.0.tgz nothing; do
	curl -sS -o got -w "%{http_code} $p\n" "http://127.0.0.1:8787/registry/npm/$p"; cat got >>all
done; env >>all; grep -aq "shop-4f7Qz2Lm9XcV" all && echo "it has the token"; grep -ao "http://127.0.0.1:8787/registry/npm/pad/-/[a-z0-9.-]*" all' 2>&1; }
echo '  - {registry: npm, action: allow}' >>"$LYCH_CONFIG"
lych ward reload >/dev/null || fail reload
out=$(packages)
is "without a key in the rule: refused by the registry" 4 "$(grep -c '^401 ' <<<"$out")"
lacks "nothing went with a key" "with a key" "$(asked)"
: >"$SHOPS/asked"
sed -i 's/{registry: npm, action: allow}/{registry: npm, action: allow, credential: shop}/' "$LYCH_CONFIG"
lych ward reload >/dev/null || fail reload
out=$(packages)
is "with it: an index and its files" 3 "$(grep -c '^200 ' <<<"$out")"
has "what is not there is not there" "404 nothing" "$out"
lacks "the job never has the token" "it has the token" "$out"
has "the index leads to the mirror" "http://127.0.0.1:8787/registry/npm/pad/-/pad-1.0.0.tgz" "$out"
has "it went to the registry" "private.shop.example GET /npm/pad/-/pad-1.0.0.tgz with a key" "$(asked)"
has "behind a redirect there is a file" "files.shop.example GET /bin/every-byte" "$(asked)"
lacks "to which no key goes" "every-byte with a key" "$(asked)"
# its own host, as a file host, is any place of that host: no key goes there
: >"$SHOPS/asked"
out=$(lych run --egress registry -n -- curl -sS -w ' %{http_code}' http://127.0.0.1:8787/registry/npm/~2/npm/moved/-/moved-1.0.0.tgz 2>&1)
has "a file host is asked without a key" " 401" "$out"
has "it was asked" "private.shop.example GET /npm/moved/-/moved-1.0.0.tgz" "$(asked)"
lacks "with no key" "with a key" "$(asked)"
has "the log has its name" '"credential":"shop"' "$(lych audit tail -n 100 --json | tr -d ' ')"
echo "clients: $count checks"
