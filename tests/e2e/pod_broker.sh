# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Somebody to ask, in the pod: a stand-in for a provider, a package index and a page, as services of the workstation, which the
# vessel reaches at 169.254.1.2. Sourced by pod_user.sh, whose functions and variables it uses.
# shellcheck disable=SC2154,SC2016 # pod_user.sh has them; the shell in the job expands
support=$src/tests/support there=169.254.1.2

serve() { # name, command...: its port is in ~/serve/NAME.port
	local name=$1
	shift
	: >~/serve/"$name.port"
	"$@" >~/serve/"$name.out" 2>&1 &
	serving+=($!)
}
port_of() { sed -nE 's/^(.* )?port ([0-9]+).*/\2/p; s/^[0-9]+$/&/p' ~/serve/"$1.port" ~/serve/"$1.out" | head -n 1; }
all_serve() { [ -n "$(port_of open)" ] && [ -n "$(port_of anthro)" ] && [ -n "$(port_of registry)" ] && [ -n "$(port_of page)" ]; }
stop_serving() {
	[ ${#serving[@]} -eq 0 ] || kill "${serving[@]}"
	serving=()
	until_true 20 no_port
}
# An address of the workstation that is not loopback, as docs/OPERATIONS.md asks of such a service.
address() { ip -4 -o address show eth0 | sed -E 's/.* inet ([0-9.]+).*/\1/'; }

asking() { # what goes into codex.yaml
	cat <<-END
		portals:
		  - name: open
		    kind: openai
		    url: "http://$there:$(port_of open)/v1"
		    secret: portal_open
		    addresses:
		      - $there
		    models:
		      - {name: small, input: "0", output: "0"}
		  - name: anthro
		    kind: anthropic
		    url: "http://$there:$(port_of anthro)"
		    secret: portal_anthro
		    addresses:
		      - $there
		    models:
		      - name: little
		        input: "0"
		        output: "0"
		        extras:
		          - {name: "beta:context-1m-2025-08-07", input: "0", output: "0"}
		registries:
		  pypi:
		    url: "http://$there:$(port_of registry)/pypi/simple"
		    addresses:
		      - $there
		  npm:
		    url: "http://$there:$(port_of registry)/npm"
		    addresses:
		      - $there
		ward:
		  - {portal: open, action: allow}
		  - {portal: anthro, action: allow}
		  - {registry: pypi, action: allow}
		  - {registry: npm, action: allow}
		  - host: "$there"
		    scheme: http
		    port: $(port_of page)
		    path: /page.txt
		    addresses:
		      - $there
		    action: allow
	END
}
somebody_to_ask() { # profile
	local name
	mkdir -p ~/serve/pages
	echo "this page is read" >~/serve/pages/page.txt
	echo "this page is not" >~/serve/pages/other.txt
	for name in open anthro; do # a key each: lych bind refuses two secrets that are one
		(umask 077; printf 'sk-real-%s' "$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n')" >~/serve/$name.key)
		serve $name python3 -B "$support/python/provider.py" --key "$(cat ~/serve/$name.key)" --log ~/serve/$name.asked --address "$(address)"
	done
	serve registry python3 -B "$support/python/registry.py" ~/serve/packages ~/serve/registry.port "$(address)"
	serve page python3 -u -m http.server --bind "$(address)" --directory ~/serve/pages 0
	until_true 30 all_serve || { cat ~/serve/*.out; return 1; }
	# keys that the providers do not take, at first: their rotation is the next step
	for name in open anthro; do
		echo sk-former-key-0123456789-$name | lych secret set portal_$name --store=podman || return 1
	done
	install_units "$1" 1 asking && systemctl --user restart lychgate-pod && until_true 120 all_are active
}
# docs/OPERATIONS.md, "Rotate", the last line of its table.
portal_rotated() {
	local said name
	said=$(lych run --no-stdin --egress brokered -- lych-ask -m small hello 2>&1) && return 1
	grep -q 'no such key' <<<"$said" || fail "the provider's refusal: $said" || return 1
	refused LYCH-SECRET- lych secret rotate portal_open --store=podman || return 1
	for name in open anthro; do
		lych secret set --replace portal_$name --store=podman <~/serve/$name.key || return 1
	done
	systemctl --user restart lychgate-vessel && until_true 60 all_are active || return 1
	[ "$(lych run --no-stdin --egress brokered -- lych-ask -m small hello)" = "you said: hello" ]
}
sdks() {
	local said
	cp "$src/tests/real/broker/sdk.mjs" .
	said=$(lych run --no-stdin -m 1GiB --egress brokered --file sdk.tar --file sdk.mjs -e MODEL_OPENAI=small -e MODEL_ANTHROPIC=little \
		-- sh -c 'env | sort; tar -xf sdk.tar && cd node_modules &&
			echo "openai $(node -p "require(\"./openai/package.json\").version"), @anthropic-ai/sdk $(
				node -p "require(\"./@anthropic-ai/sdk/package.json\").version"), node $(node --version)" && cd .. && exec node sdk.mjs' 2>&1) || { echo "$said"; return 1; }
	! grep -qF -f ~/serve/open.key -f ~/serve/anthro.key <<<"$said" || fail "the key came into the job" || return 1
	echo "NOTE $(grep -c '^ok ' <<<"$said") cases of the SDKs: $(grep '^openai [0-9]' <<<"$said")"
	# each case that the file has, those of a list each by itself, and it came to its end
	[ "$(sed -n 's/^\([0-9]*\) cases$/\1/p' <<<"$said")" = "$(grep -c '^ok ' <<<"$said")" ] &&
		[ "$(grep -c '^ok ' <<<"$said")" -ge "$(grep -c 'await check(' sdk.mjs)" ] && ! grep '^FAIL' <<<"$said"
}
pages() {
	local said
	[ "$(lych run --no-stdin --egress brokered -- lych-fetch "http://$there:$(port_of page)/page.txt")" = "this page is read" ] || return 1
	refused LYCH-WARD-001 lych run --no-stdin --egress brokered -- lych-fetch "http://$there:$(port_of page)/other.txt" || return 1
	refused LYCH-WARD-001 lych run --no-stdin --egress brokered -- lych-fetch http://192.0.2.1/ || return 1
	! grep other.txt ~/serve/page.out || fail "the other page was asked for" || return 1
	# who said nothing of asking has nobody to ask
	said=$(lych run --no-stdin -- lych-fetch "http://$there:$(port_of page)/page.txt" 2>&1) && fail "without --egress: $said"
	[ "$(grep -c 'GET /page.txt' ~/serve/page.out)" -eq 1 ]
}
packages() {
	lych run --no-stdin --egress registry -m 1GiB -- sh -c \
		'python3 -m pip install --quiet --no-cache-dir --target t tiny==1.0 && PYTHONPATH=t python3 -m tiny' | grep -x 'tiny works' || return 1
	lych run --no-stdin --egress registry -m 1GiB -e "NOSY_PORTS=$(port_of registry),1" -- sh -c \
		'npm install --loglevel=error pad @acme/pad nosy && node -p "require(\"pad\")" && cat node_modules/nosy/note.txt' | tee said || return 1
	grep -qx 'pad works' said && grep -q "ECONNREFUSED ECONNREFUSED" said && ! grep phoned ~/serve/packages || fail "npm" || return 1
	lych run --no-stdin --dep pypi:tiny==1.0 -- python3 -m tiny | grep -x 'tiny works' || return 1
	refused LYCH-BROKER-021 lych run --no-stdin --egress brokered -- python3 -c 'import sys, urllib.request, urllib.error
try:
    urllib.request.urlopen("http://127.0.0.1:8787/registry/pypi/simple/tiny/")
except urllib.error.HTTPError as e:
    sys.exit(e.read().decode())'
}
# While a job that asked is still there, and with the vessel at work: the tomb's room has no way but its socket, and no key.
tomb_has_neither() { # profile
	local id
	id=$(lych run --no-stdin --detach --egress brokered -- sh -c 'lych-ask -m small hello; exec sleep 60') || return 1
	until_true 30 answered "$id" || { lych logs "$id"; return 1; }
	if [ "$1" = sovereign ]; then
		podman exec -i lychgate-tomb python3 - "$there" "$(port_of open)" "$(address)" <<-'END' || return 1
			import errno, os, socket, sys
			there, port, address = sys.argv[1], int(sys.argv[2]), sys.argv[3]
			assert os.listdir("/sys/class/net") == ["lo"], os.listdir("/sys/class/net")
			for to in [(there, port), (address, port), ("192.0.2.1", 443)]:
			    with socket.socket() as s:
			        answer = s.connect_ex(to)
			    print(to, errno.errorcode.get(answer, answer))
			    assert answer == errno.ENETUNREACH
		END
		echo "NOTE from the tomb's container: ENETUNREACH to each of 3 addresses, the provider's too"
	fi
	podman unshare python3 -B "$src/tests/e2e/find_key.py" "$(podman inspect -f '{{.State.Pid}}' lychgate-tomb)" \
		"$(podman inspect -f '{{.State.Pid}}' lychgate-vessel)" ~/serve/*.key || return 1
	lych cancel "$id" || return 1
	! grep -rlF -f ~/serve/open.key -f ~/serve/anthro.key "$data" ~/.config ~/log || fail "the key is on the disk as it is" || return 1
	! journalctl --user --no-pager -o cat | grep -F -f ~/serve/open.key -f ~/serve/anthro.key || fail "the key is in the journal" || return 1
	python3 - ~/serve/*.asked <<-'END'
		import json, sys
		for path in sys.argv[1:]:
		    asked = [json.loads(line) for line in open(path)]
		    good = [a for a in asked if a["key"]]
		    print("NOTE", path.split("/")[-1], len(asked), "times,", len(good), "with its key")
		    assert len(good) > 6 and "lych-" not in json.dumps(good)
	END
}
answered() { lych logs "$1" --only stdout | grep -qx 'you said: hello'; }
nobody_to_ask() {
	stop_serving && podman secret rm portal_open portal_anthro
}
