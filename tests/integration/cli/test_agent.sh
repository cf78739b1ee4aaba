#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# lych agent, as make install puts it there: what is refused before there is a job, what --list says of each agent and why, and
# an agent at a person's terminal (agent.py).
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
here=$PWD/tests/integration/cli
lych_begin agent
make -s install VARIANT="${VARIANT:-release}" DESTDIR="$LYCH_TMP/dest" PREFIX=/usr >"$LYCH_TMP/install.log" 2>&1 ||
	fail "make install: $(tail -3 "$LYCH_TMP/install.log")"
export LYCH_BIN=$LYCH_TMP/dest/usr/bin
mine=$HOME/.config/lychgate/agents
mkdir "$mine"
cd "$LYCH_TMP" || exit 1
refused() { # what, exit code, LYCH-CODE, text in the message, arguments of lych agent
	local what=$1 code=$2 id=$3 words=$4
	shift 4
	lych agent "$@" </dev/null >out 2>err; is "$what" "$code" $?
	is "$what: nothing on stdout" "" "$(cat out)"
	has "$what" "$id" "$(cat err)"
	has "$what" "$words" "$(cat err)"
}
profile() { # name, lines besides those that each has
	printf '%s\n' 'version: "1"' 'summary: of the user' 'command:' '  - bash' 'home: .own' "${@:2}" >"$mine/$1.yaml"
	chmod 0644 "$mine/$1.yaml"
}
listed() { # agent, expression over its object a
	lych agent --list --json >list || fail "--list --json"
	json "[$2 for a in j['agents'] if a['name'] == '$1'][0]" <list
}

# --- wrong usage
refused "no name" 2 LYCH-CORE-004 "which agent?"
refused "two names" 2 LYCH-CORE-004 "behind '--'" shell more
refused "an unknown option" 2 LYCH-CORE-004 "--frob" shell --frob
refused "--list of one" 2 LYCH-CORE-004 "--list shows all" --list shell
refused "--list with a directory" 2 LYCH-CORE-004 "--list shows all" --list --dir .
refused "--list with arguments" 2 LYCH-CORE-004 "--list shows all" --list -- x
refused "--json without it" 2 LYCH-CORE-004 "--json goes with --list" shell --json
refused "--git without --dir" 2 LYCH-CORE-004 "--git goes with --dir" shell --git
refused "--exclude without --dir" 2 LYCH-CORE-004 "--exclude goes with --dir" shell --exclude x

# --- names
refused "a name that is none" 3 LYCH-CORE-010 "there is no agent 'frobnicate'" frobnicate
refused "a name that is near" 3 LYCH-CORE-010 "did you mean 'shell'?" shel
refused "a path" 3 LYCH-CORE-010 "there is no agent '../agents/shell'" ../agents/shell
refused "a package that nothing brings" 2 LYCH-SPEC-010 "claude: it is the package @anthropic-ai/claude-code@2.1.197" claude

# --- profiles that are not believed
profile odd 'frobnicate: 1'
refused "an unknown key" 2 LYCH-SPEC-014 "$mine/odd.yaml: line 6: no key 'frobnicate'" odd
profile odd 'env:' '  - "LD_PRELOAD=/x"'
refused "a loader's variable" 2 LYCH-SPEC-014 "$mine/odd.yaml: line 6: env" odd
profile odd 'asks: {dialect: messages, model: some-model}' 'env:' '  - "HTTPS_PROXY=http://127.0.0.1:9"'
refused "a variable of the broker's" 2 LYCH-SPEC-014 "$mine/odd.yaml: line 7: env: HTTPS_PROXY is the broker's" odd
is "the list says so too" "False LYCH-SPEC-014" "$(listed odd "str(a['works']) + ' ' + a['why'][0]['error_code']")"
profile odd 'files:' '  - path: a' '    text: x' '  - path: a/b' '    text: y'
refused "a file below a file" 2 LYCH-SPEC-014 "$mine/odd.yaml: line 6: files: two files claim the same path" odd
is "the list says so as well" "False LYCH-SPEC-014" "$(listed odd "str(a['works']) + ' ' + a['why'][0]['error_code']")"
profile odd; chmod 0664 "$mine/odd.yaml"
refused "one that others can write" 2 LYCH-SPEC-014 "can be written by others" odd
is "it is in the list" False "$(listed odd "a['works']")"
is "with its reason" LYCH-SPEC-014 "$(listed odd "a['why'][0]['error_code']")"
rm "$mine/odd.yaml"
profile asks 'asks: {dialect: messages, model: some-model}'
refused "a model that no portal has" 1 LYCH-WARD-006 "no portal of kind anthropic has the model some-model" asks
portal() { # a key of the portal, a rule
	lych_config
	printf '%s\n' 'portals:' '  - name: own' '    kind: anthropic' '    url: http://127.0.0.1:9' '    secret: none' \
		'    addresses:' '      - 127.0.0.1' '    models:' '      - {name: some-model, input: "0", output: "0"}' "$@" >>"$LYCH_CONFIG"
}
portal '    lacks:' '      - messages' 'ward:' '  - {portal: own, action: allow}'
refused "a dialect that it lacks" 1 LYCH-WARD-006 "the portal own lacks messages" asks
portal
refused "no rule for it" 1 LYCH-WARD-006 "no rule of the ward allows the portal own" asks
portal 'ward:' '  - {portal: own, action: allow}'
refused "all but a terminal" 2 LYCH-TTY-001 stdin asks
rm "$LYCH_CONFIG" "$mine/asks.yaml"
lych_config; printf '%s\n' 'limits:' '  memory:' '    max: "1GiB"' >>"$LYCH_CONFIG"
profile large 'memory: 2GiB'
refused "a limit above its ceiling" 2 LYCH-SPEC-012 "its memory is above limits.memory.max" large
is "the list says so" "['LYCH-SPEC-012', 'LYCH-HTTP-008']" "$(listed large "[w['error_code'] for w in a['why']]")"
refused "the command line's wins" 2 LYCH-TTY-001 stdin large --memory 1g
profile large 'memory: 1GiB'
refused "the ceiling itself" 2 LYCH-TTY-001 stdin large
refused "one of the command line" 2 LYCH-SPEC-012 "its memory is above limits.memory.max" large --memory 2g
rm "$LYCH_CONFIG" "$mine/large.yaml"
refused "no terminal" 2 LYCH-TTY-001 stdin shell

# --- the list, with no vessel and with one
is "each that is shipped" "$(basename -as .yaml "$OLDPWD"/cli/profiles/agents/*.yaml | sort | xargs)" "$(lych agent --list --json | json '" ".join(a["name"] for a in j["agents"])')"
is "no vessel" "False ['LYCH-HTTP-008']" "$(listed shell "str(a['works']) + ' ' + str([w['error_code'] for w in a['why']])")"
has "in words" "the vessel does not answer" "$(lych agent --list | grep '^shell ')"
is "each reason" "['LYCH-SPEC-010', 'LYCH-WARD-006', 'LYCH-HTTP-008']" "$(listed codex "[w['error_code'] for w in a['why']]")"
is "what it is" "@openai/codex 0.169.0 responses" "$(listed codex "' '.join([a['package'], a['package_version'], a['dialect']])")"
lych up --detach <&- >&- || fail "up"
is "with one" "True []" "$(listed shell "str(a['works']) + ' ' + str(a['why'])")"
has "as a table" "yes" "$(lych agent --list | grep '^shell ')"

python3 -I -B "$here/agent.py" || fail "a case of agent.py"

# --- floor
lych down || fail "down"
lych_config "grade: floor"
lych up --detach <&- >&- || fail "up in floor"
is "floor: the list" "['LYCH-TTY-002']" "$(listed shell "[w['error_code'] for w in a['why']]")"
refused "floor" 2 LYCH-TTY-002 "tomb.grade is floor" shell
echo "agent: $count checks"
