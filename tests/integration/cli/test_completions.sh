#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 60
# lych completions: what bash offers, word by word, and that the three scripts have the same commands and options. No daemon
# runs, and none is begun by asking each command for its options.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin completions
cd "$LYCH_TMP" || exit 1

for words in "" "ksh" "bash zsh" "--shell bash"; do
	# shellcheck disable=SC2086
	lych completions $words >out 2>err; is "completions $words" 2 $?
	is "completions $words: nothing on stdout" "" "$(cat out)"
done
for shell in bash zsh fish; do
	lych completions $shell >script.$shell 2>err; is "$shell" 0 $?
	is "$shell: not a word beside it" "" "$(cat err)"
	! command -v $shell >/dev/null || $shell -n script.$shell || fail "$shell: no script of its own"
done
is "nothing was made by asking" "" "$(find "$HOME" "$XDG_RUNTIME_DIR" -mindepth 1 -not -path '*/.config*')"
is "a full disk is an error" 1 "$(lych completions bash >/dev/full 2>err; echo $?)"
for shell in bash zsh fish; do # head may be quicker than the last word, or not
	lych completions $shell 2>err | head -n 1 >/dev/null
	ended=${PIPESTATUS[0]}
	[ "$ended" -eq 0 ] || is "$shell: a reader that has enough" 141 "$ended"
	is "$shell: without a word to it" "" "$(cat err)"
done

# --- the same in all of them, and each command that there is
listed=$(lych --help | sed -nE 's/^  ([a-z]+) .*/\1/p' | sort)
is "commands: bash" "$listed" "$(sed -nE 's/^\t([a-z]+)\)$/\1/p' script.bash | sort)"
is "commands: zsh" "$listed" "$(sed -nE 's/^_lych_([a-z]+)\(\) \{$/\1/p' script.zsh | grep -vx commands | sort)"
is "commands: fish" "$listed" "$(sed -nE 's/^complete -c lych -f -n __fish_use_subcommand -a ([a-z]+) .*/\1/p' script.fish | grep -vx help | sort)"
options() { # command: long options by its own --help
	lych "$1" --help | grep -oE -- '--[a-z][a-z-]*' | grep -vxE -- '--help|--usage' | sort -u
}
of_bash() { awk -v c="	$1)" '$0 == c { getline; print }' script.bash | grep -oE -- '--[a-z][a-z-]*' | grep -vx -- --help | sort -u; }
of_zsh() { awk -v c="_lych_$1() {" '$0 == c { on = 1 } on && /^}/ { exit } on' script.zsh | grep -oE -- '--[a-z][a-z-]*(=|\[|\})' | tr -d '=[}' | grep -vx -- --help | sort -u; }
of_fish() { sed -nE "s/^complete -c lych -n '__fish_seen_subcommand_from $1'( -s .)? -l ([a-z-]+) .*/--\2/p" script.fish | sort -u; }
for command in up run agent jobs prune quarantine logs bind backup artifacts doctor audit; do
	wanted=$(options "$command")
	[ -n "$wanted" ] || fail "$command has no options"
	is "$command: bash" "$wanted" "$(of_bash "$command")"
	is "$command: zsh" "$wanted" "$(of_zsh "$command")"
	is "$command: fish" "$wanted" "$(of_fish "$command")"
done
is "lych-sandbox's own: bash and fish" "$(of_fish sandbox)" "$(of_bash sandbox)"
is "each of them" "" "$(comm -23 <(sed -nE 's/^(OPTION|LIMIT)\([A-Z_]+, "([a-z-]+)".*/--\2/p' "$OLDPWD/common/proto/sandbox_options.def" | sort) <(of_bash sandbox))"

# --- what bash offers
cat >offer.sh <<'OFFER'
. ./script.bash
compopt() { :; } # it knows that nobody completes
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_lych
printf '%s\n' "${COMPREPLY[@]}" | sort | xargs
OFFER
offers() { # expected, words...
	local expected=$1
	shift
	is "$*" "$expected" "$(bash --norc offer.sh "$@")"
}
mkdir -p dir/sub && touch file-1 file-2
offers "agent artifacts attach audit" lych a
offers "config" lych conf
offers "completions config contain" lych help co
offers "run" lych help ru
offers "" lych frobnicate --
offers "--state" lych jobs --st
offers "succeeded" lych jobs --state su
offers "cancelled failed lost succeeded timed_out" lych prune --state ""
offers "succeeded" lych jobs --state = su
offers "loopback none" lych run --network ""
offers "brokered none registry" lych run --json --egress =
offers "file-1 file-2" lych run --file file
offers "file-1 file-2" lych run -f file
offers "dir" lych run --dir d
offers "check edit init set unset" lych config ""
offers "set" lych config s
offers "" lych config set ""
offers "list release show" lych quarantine ""
offers "bash fish zsh" lych completions ""
offers "" lych run -- --st
offers "" lych run --json -- sh --net
offers "--memory" lych sandbox --mem
echo "completions: $count checks"
