# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The second day of a pod: set up by the commands of docs/OPERATIONS.md as they stand there, a reboot, and everything removed by
# those of docs/REMOVE.md. Sourced by pod_user.sh, whose functions and variables it uses, and which runs again after the reboot.
# shellcheck disable=SC2034,SC2154 # pod_user.sh has them

# The lines of code of a section.
code_of() { # document, section
	sed -n "/^## $2\$/,/^## /s/^    //p" "$src/docs/$1.md"
}
# What nobody can choose for a reader: the label that was built, no cgroup controllers here; one job at a time, so that one waits.
chosen() {
	sed -i 's/^  cgroups: required/  cgroups: none/; s/^  # label: .*/  label: "1"/; s/^  slots: .*/  slots: 1/' ~/.config/lychgate/codex.yaml
	[ "$(grep -cE '^  (cgroups: none|label: "1"|slots: 1)$' ~/.config/lychgate/codex.yaml)" -eq 3 ]
}
five_commands() {
	local commands t
	rm -f ~/.config/lychgate/codex.yaml
	commands=$(code_of OPERATIONS "The pod" | sed '/^lych run -- id/q')
	[ "$(grep -cE '^[a-z]' <<<"$(grep -v '^done' <<<"$commands")")" -eq 5 ] || fail "not five commands: $commands" || return 1
	[[ $commands == containerfiles/build* ]] || fail "the first is not the build's" || return 1
	echo "NOTE containerfiles/build: $(cat ~/build.seconds) s, before"
	t=$(now)
	bash -e <<<"$(sed -n 2p <<<"$commands")" && chosen && bash -e <<<"$(sed 1,2d <<<"$commands")" || return 1
	echo "NOTE the other four, to the end of a first job: $((($(now) - t) / 1000000)) ms"
}

submit_one() { lych run --detach --no-stdin -- sh -c "sleep $1; echo done"; } # seconds
before_the_reboot() {
	local first second
	first=$(submit_one 8) && second=$(submit_one 0) && until_true 30 a_job_runs "$first" || return 1
	[ "$(state_of "$second")" = queued ] || fail "job $second does not wait: $(state_of "$second")" || return 1
	echo "$first $second" >~/jobs
	date +%s >~/rebooted
}
and_reboot() {
	declare -p number table >~/steps
	touch ~/reboot
	exit 0
}
# Both have ended, and nobody did anything for it but to ask.
back_by_itself() {
	local first second id t booted
	booted=$(systemctl show --property=UserspaceTimestamp --timestamp=unix --value)
	echo "NOTE logged out and shut down in $((${booted#@} - $(cat ~/rebooted))) s, booted and logged in after $(($(date +%s) - ${booted#@}))"
	t=$(now)
	lych status --wait 120 >/dev/null || return 1
	echo "NOTE every part answers $((($(now) - t) / 1000000)) ms after the login"
	read -r first second <~/jobs
	for id in $first $second; do
		until_true 120 has_ended "$id" && [ "$(lych logs "$id" --only stdout)" = "done" ] || fail "job $id: $(state_of "$id")" || return 1
		echo "NOTE job $id: attempts $(lych show "$id" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["attempts"])')"
	done
	until_true 60 all_are active && until_true 60 healthy && lych run --no-stdin -- true
}
removed() {
	local left
	bash -e <<<"$(code_of REMOVE "The pod")" || return 1
	[ -z "$(podman ps -aq)" ] && [ -z "$(podman pod ps -q)" ] || fail "a container or pod" || return 1
	[ -z "$(podman images -q --filter label=org.lychgate.version)" ] || fail "images: $(podman images)" || return 1
	[ -z "$(podman volume ls -q)" ] && [ -z "$(podman secret ls -q)" ] || fail "a volume or secret" || return 1
	! podman network ls --format '{{.Name}}' | grep lychgate || return 1
	! systemctl --user list-unit-files --no-legend 'lychgate*' | grep . || return 1
	until_true 30 nothing_runs || return 1
	# of the programs, which this script copied by hand, and the store of the shell driver the document speaks apart
	left=$(find ~ "$XDG_RUNTIME_DIR" -name '*lych*' -not -path "$HOME/in/*" -not -path "$HOME/bin/*" -not -path "$HOME/libexec/lychgate*" \
		-not -path "$HOME/lib/lychgate*" -not -path "$HOME/.local/share/containers/*" -not -path "$store*")
	[ -z "$left" ] || fail "left: $left" || return 1
	[ -z "$(find "$store" -name '*.secret')" ]
}

after_the_reboot() {
	# shellcheck disable=SC1090 # number and table
	. ~/steps
	step "after the reboot the pod is there by itself, and both jobs end" back_by_itself
	step "removed as docs/REMOVE.md says, nothing is left" removed
	report
	echo "$number passed, 0 failed"
	while read -r profile; do
		echo "=== authority $profile"
		cat "authority-$profile.md"
		echo "=== end"
	done <profiles
	exit 0
}
