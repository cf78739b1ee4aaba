#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# places.sh PLACE N: makes the place of a reader, then types steps 0 to N-1 of it (DOC_DIR/steps, written by typed.py):
# each in this shell, so that a directory and a variable stay; its output in N.out, its exit code in N.rc.
set -u -o pipefail
steps=$DOC_DIR/steps
instead=$DOC_DIR/instead # what the page leaves to its reader, as a script of sed
: >"$instead"
conf=$HOME/.config/lychgate/codex.yaml
pids=()

# As make install puts them, for all but README's reader, who does that.
with_programs() {
	make -s install VARIANT="${VARIANT:-release}" PREFIX="$DOC_DIR/prefix" >/dev/null || exit 1
	export PATH=$DOC_DIR/prefix/bin:$PATH
}
# Registries as npm and pip are told: of this machine, where nobody listens.
no_registries() {
	echo registry=https://127.0.0.1:9/ >~/.npmrc
	mkdir -p ~/.config/pip && printf '[global]\nindex-url = https://127.0.0.1:9/simple\n' >~/.config/pip/pip.conf
}
# A project with tests, a Makefile, and what the pages name beside it.
project() {
	mkdir -p ~/project/src ~/project/copy && cd ~/project || exit 1
	printf 'all:\n\tmkdir -p out; echo built > out/x\n' | tee Makefile >src/Makefile
	echo 'print("x ran")' | tee x.py >copy/x.py
	printf 'import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        pass\n' >test_it.py
	seq -s ' is a number, and ' 200 >README
	# shellcheck disable=SC2016 # expanded there
	printf '#!/bin/sh\ncat "$1"/*\n' >report && chmod +x report
	cat >agent.py <<-'PY'
		import json, os, urllib.request
		q = {"model": "some-model", "messages": [{"role": "user", "content": "Name three rivers."}]}
		r = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(q).encode(),
		                           {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
		print(json.load(urllib.request.urlopen(r))["choices"][0]["message"]["content"])
	PY
	git -c init.defaultBranch=main init -q . && git add . && git -c user.name=x -c user.email=x@example.org commit -qm x && echo '# x' >>x.py
}
provider() { # $port
	python3 "$DOC_TREE/tests/support/python/provider.py" --key sesame-open-0123456789 --log "$DOC_DIR/asked" >"$DOC_DIR/port" 2>&1 &
	pids+=($!)
	until grep -q '^port ' "$DOC_DIR/port"; do
		kill -0 $! || exit 1
		read -rt 0.05 <>"$DOC_DIR/never"
	done
	port=$(sed -n 's/^port //p' "$DOC_DIR/port")
	echo sesame-open-0123456789 >keyfile
}

place_readme() { # the clone, a fresh home
	echo "s|^cd ~/lychgate\$|cd '$DOC_TREE'|" >"$instead"
}
place_daily() {
	with_programs
	no_registries
	project
	provider
	local asks=12 # the first job of docs/USE.md that asks a model
	cat >"$instead" <<-EOF
		s|^    url: "https://api.example.com/v1"|    url: "http://127.0.0.1:$port/v1"\n    addresses:\n      - 127.0.0.1|
		s|rotate NAME|rotate lychgate_db_watchdog|
		s|tomb NAME|tomb tomb_1|
		s|TARGET --as|main --as|
		s|URL --as|https://docs.example.org/api --as|
		s|FILE\$|README|
		s|JOB\$|$asks|
		s|--as 1 main|--as $asks main|
		s#^git diff | lych-ask -m small \(.*\) -S\$#lych run --egress brokered --dir . -- sh -c "git diff | lych-ask -m some-model \1 -S"#
		s#^git diff | lych-ask -s#git diff | lych run --egress brokered -- lych-ask -s#
		s#^lych-\(ask\|fetch\) #lych run --egress brokered -- &#
	EOF
}
place_secrets() {
	with_programs
	printf '%s\n' "s|^LIBEXEC/||" "s|^lych-secret-driver |$DOC_DIR/prefix/libexec/lychgate/&|" >"$instead"
}
# A home of its own, so that jobs have the numbers that the examples name: here Lychgate is new. Of them:
#	1 echo 20 22, 2 make, 3 x.py, 4 /srv/data, 5 sleep
place_help() {
	with_programs
	no_registries
	project
	printf '\techo : > out/.envrc\n' >>src/Makefile # one that quarantine is for
	cp Makefile copy/
	echo sesame-open-0123456789 >keyfile
	echo Project Bluebird >name.txt
	cp README contract.txt
}
place_config() { export PATH=$DOC_BUILD:$PATH; }
place_seed() {
	export PATH=$DOC_BUILD:$PATH
	no_registries
}

# A block of codex.yaml alone, with what it refers to: config check takes it.
config() { # step
	mkdir -p ~/.config/lychgate && install -m 0600 /dev/null "$conf"
	{
		echo 'version: "1"'
		sed -E 's/^([a-z_]+)\.([a-z_]+): (.*)/\1: {\2: \3}/' "$1"
		if ! grep -q '^portals:' "$1"; then
			printf 'portals:\n  - name: main\n    kind: openai\n    url: "https://api.example.com/v1"\n    secret: portal_main\n'
			printf '    models:\n      - {name: some-model, input: "2.50", output: "10"}\nregistries:\n  npm: {url: "https://npm.example.org/"}\n'
		fi
	} >"$conf"
	lych config check
}

end() {
	[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}"
	! command -v lych >/dev/null || lych down
} >/dev/null 2>&1
trap end EXIT

mkfifo "$DOC_DIR/never"
"place_$1"
for ((step = 0; step < $2; step++)); do
	read -r what to <"$steps/$step.what"
	sed -f "$instead" "$steps/$step" >"$steps/$step.as"
	case $what in
	written) mkdir -p "$(dirname "$HOME/$to")" && cat "$steps/$step.as" >>"$HOME/$to" ;;
	config) config "$steps/$step.as" ;;
	*) eval "$(<"$steps/$step.as")" ;;
	esac </dev/null >"$steps/$step.out" 2>&1
	echo $? >"$steps/$step.rc"
done
