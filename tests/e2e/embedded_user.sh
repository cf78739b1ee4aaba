#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run by embedded.sh on the workstation, as its user; once more after the reboot that it asks for.
set -uo pipefail
export PATH=$HOME/.local/bin:$PATH
count=0
fail() {
	echo "FAIL $*"
	systemctl --user status --no-pager --lines=20 lychgate 2>&1 | tail -n 30
	tail -n 20 ~/.local/share/lychgate/log/starter.log 2>/dev/null
	echo "$count passed, 1 failed"
	exit 1
}
is() { [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"; count=$((count + 1)); }
# The block of code of OPERATE.md whose first line begins like this, without what the workstation has done for its user.
block() { # section, first words
	sed -n "/^## $1\$/,/^## /p" ~/in/OPERATE.md |
		awk -v first="    $2" 'index($0, first) == 1 { on = 1 } on && !/^    / { exit } on { sub(/^    /, ""); print }' |
		grep -v '^loginctl enable-linger'
}
typed() { # section, first words: each of its commands
	local commands
	commands=$(block "$1" "$2")
	[ -n "$commands" ] || fail "OPERATE.md, $1: no block '$2'"
	bash -e -c "$commands" >said 2>&1 || fail "OPERATE.md, $1: $(cat said)"
	count=$((count + 1))
}
is_active() { [ "$(state)" = active ]; }
is_inactive() { [ "$(state)" = inactive ]; }
state() { systemctl --user is-active lychgate; }
main() { systemctl --user show --property=MainPID --value lychgate; }
starter() { lych up --detach | grep -oE 'pid [0-9]+' | grep -oE '[0-9]+'; } # it runs: who it is is said
until_true() { # seconds, command...
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.2
	done
}
another_main() { [ "$(main)" -ne "$1" ] && [ "$(main)" -ne 0 ] && [ "$(state)" = active ]; }
has_ended() { lych show "$1" --json | grep -qE '"state": ?"(succeeded|failed|lost|cancelled|timed_out|quarantined)"'; }
runs() { lych show "$1" --json | grep -qE '"state": ?"running"'; }
nothing_runs() { ! pgrep -u dev 'lych|postgres' >/dev/null; }
# shellcheck disable=SC2016 # awk's
job() { echo 20 22 | timeout 60 lych run -- awk '{print $1+$2}'; }

before_the_reboot() {
	mkdir -p ~/.local && cp -a ~/in/local/. ~/.local/ && chmod -R go-w ~/.local || fail "the programs"
	is "nothing is enabled by an installation" disabled "$(systemctl --user daemon-reload; systemctl --user is-enabled lychgate)"
	typed "At every boot" "systemctl --user daemon-reload"
	is "active when it is ready" active "$(state)"
	is "a job at once" 42 "$(job)"
	is "systemd watches the starter" "$(starter)" "$(main)"
	local killed
	killed=$(main)
	kill -KILL "$killed"
	until_true 120 another_main "$killed" || fail "killed, it did not come back"
	is "killed, it is back: a job" 42 "$(job)"
	local first second
	first=$(lych run --detach -- sh -c 'sleep 8; echo done') && second=$(lych run --detach -- sh -c 'echo done') || fail "jobs"
	until_true 60 runs "$first" || fail "job $first does not run"
	echo "$first $second $count" >~/jobs
	touch ~/reboot
	exit 0
}
after_the_reboot() {
	local first second id
	read -r first second count <~/jobs
	until_true 120 is_active || fail "after the reboot it is $(state)"
	for id in $first $second; do
		until_true 120 has_ended "$id" || fail "job $id: $(lych show "$id" | head -n 3)"
		is "after the reboot it is there by itself, and job $id ends" "done" "$(lych logs "$id" --only stdout)"
	done
	systemctl --user stop lychgate
	is "stopped" inactive "$(state)"
	until_true 10 nothing_runs || fail "stopped, and there are $(pgrep -u dev -l 'lych|postgres')"
	systemctl --user start lychgate
	is "started again" 42 "$(job)"
	lych down >/dev/null || fail "lych down"
	until_true 30 is_inactive || fail "after lych down it is $(state)"
	is "lych down is no failure" success "$(systemctl --user show --property=Result --value lychgate)"
	until_true 10 nothing_runs || fail "down, and there are $(pgrep -u dev -l 'lych|postgres')"
	systemctl --user start lychgate
	make() { rm -r ~/.local/bin ~/.local/libexec ~/.local/lib ~/.local/share/systemd; } # the programs' own test is in make check
	export -f make
	typed "To remove it" "systemctl --user disable"
	until_true 10 nothing_runs || fail "removed, and there are $(pgrep -u dev -l 'lych|postgres')"
	is "nothing is left" "" "$(find ~ -name '*lych*' -not -path "$HOME/in/*")"
	echo "$count passed, 0 failed"
}

if [ -e ~/jobs ]; then after_the_reboot; else before_the_reboot; fi
