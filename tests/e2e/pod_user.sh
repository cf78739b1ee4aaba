#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run by pod.sh on the workstation, as its user.
# shellcheck disable=SC2317 # functions are called through step
set -uo pipefail
cd ~/in || exit 1
umask 022 # what others may write is refused as configuration
src=$HOME/in/src data=$HOME/.local/share/lychgate run=$XDG_RUNTIME_DIR/lychgate
units="phylactery scribe migrate vessel tomb"
secrets="db_migrate db_vessel db_watchdog db_tomb work"
PATH=$HOME/bin:$PATH
mkdir -p ~/bin ~/share ~/log ~/.config/lychgate
number=0 table=()
echo "Linux $(uname -r), $(podman --version), systemd $(systemctl --version | sed -n '1s/[^0-9]*\([0-9]*\).*/\1/p')"

now() { date +%s%N; }
report() {
	printf '\n%4s  %-58s %s\n' step what seconds
	printf '%s\n' "${table[@]}"
}
step() { # what, command...
	local what=$1 t log rc
	shift
	number=$((number + 1))
	log=~/log/$number
	t=$(now)
	"$@" >"$log" 2>&1
	rc=$?
	table+=("$(printf '%4d  %-58s %6.1f%s' $number "$what" "$((($(now) - t) / 100000000))e-1" "$([ $rc -eq 0 ] || echo '  FAILED')")")
	echo "${table[-1]}"
	sed -n 's/^NOTE /          /p' "$log"
	[ $rc -ne 0 ] || return 0
	echo "--- the end of its output:"
	grep -v '^NOTE ' "$log" | tail -n 40
	echo "--- the units:"
	systemctl --user list-units --plain --no-legend --all 'lychgate*'
	for unit in $units; do
		echo "--- $unit:"
		journalctl --user -u "lychgate-$unit" -n 60 --no-pager -o cat | grep -v -e ' m=+' -e conmon -e pids.max -e '^$' |
			tail -n 12 | cut -c1-300
	done
	report
	exit 1
}
fail() { echo "$*"; return 1; }

until_true() { # seconds, command...
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}
all_are() { # state
	local unit
	for unit in pod $units; do
		[ "$(systemctl --user is-active "lychgate-$unit")" = "$1" ] || return 1
	done
}
healthy() {
	[ "$(podman ps --filter health=healthy --format '{{.Names}}' | grep -c -e vessel -e tomb -e phylactery -e scribe)" -eq 4 ]
}

# ---- images ----

bases() {
	local list
	for list in build phylactery tomb; do
		podman build -q --format docker --timestamp 1767225600 -f "$src/containerfiles/Containerfile.base" \
			--build-arg ROOT=root.tar -t "localhost/base-$list" "base/$list" || return 1
		rm -f "base/$list/root.tar"
	done
}
build() { # label, option of podman build...
	LYCH_BUILD_NETWORK=none "$src/containerfiles/build" --base localhost/base-build --base-tomb localhost/base-tomb \
		--base-phylactery localhost/base-phylactery --label "$@"
}
build_first() {
	local id
	build 1 | tee ~/images || return 1
	[ "$(wc -l <~/images)" -eq 5 ] || return 1
	id=$(podman create localhost/lychgate-build:1 x) && podman cp "$id:/usr/bin/lych" ~/bin/lych &&
		podman cp "$id:/usr/share/lychgate" ~/share/ && podman rm "$id" && lych --version
}
unpinned_is_refused() {
	! "$src/containerfiles/build" --base debian:trixie && ! "$src/containerfiles/build"
}
build_again() {
	sed 's/localhost.lychgate/localhost\/again/' ~/images >~/images.want
	build 1 --prefix localhost/again --no-cache >~/images.again || return 1
	diff ~/images.want ~/images.again || fail "the same input gave other images"
}
# What the image of an untalkative program must not hold, and how much there is.
image_is_bare() { # image
	local id dir
	dir=$(mktemp -d)
	id=$(podman create "$1" x) && podman export "$id" | tar -C "$dir" -x && podman rm "$id" >/dev/null || return 1
	echo "NOTE $1: $(find "$dir" -type f | wc -l) files, $(du -sm "$dir" | cut -f1) MB"
	find "$dir" -type f -perm /111 ! -name '*.so*' | sed "s#$dir##"
	! find "$dir" \( -name sh -o -name bash -o -name dash -o -name busybox -o -name 'apt*' -o -name 'dpkg*' -o -name 'gcc*' -o \
		-name cc -o -name 'python*' -o -name perl -o -name ld -o -name curl -o -name wget \) ! -type d | grep . || return 1
	[ "$(find "$dir" -type f -perm /111 ! -name '*.so*' ! -name 'ld-linux*' | wc -l)" -eq 1 ] || fail "more than one program"
	! find "$dir" -perm /6000 | grep . || fail "something is setuid"
	rm -rf "$dir"
}
not_root() {
	local image
	for image in vessel scribe tomb phylactery; do
		[ "$(podman image inspect -f '{{.Config.User}}' localhost/lychgate-$image:1)" = 1000:1000 ] || return 1
	done
}

# ---- install ----

make_secrets() {
	local name
	for name in $secrets; do
		lych secret set "lychgate_$name" --generate --store=podman || return 1
	done
	lych secret check --store=podman
}
configure() { # profile, label
	local image conf=~/.config/lychgate/codex.yaml
	chmod 0700 ~/.config/lychgate && install -m 0600 /dev/null "$conf" || return 1
	{
		printf 'version: 1\npod:\n  profile: %s\n  cgroups: none\n' "$1"
		for image in vessel scribe tomb phylactery; do
			printf '  %s:\n    image: localhost/lychgate-%s:%s\n' $image $image "$2"
		done
	} >"$conf"
	lych config check
}
missing_secret_is_refused() { # nothing is written
	local said
	said=$(lych bind --install 2>&1) && return 1
	echo "$said"
	[[ $said == *LYCH-*lychgate_* || $said == *lychgate_*LYCH-* ]] && [ ! -e ~/.config/containers/systemd/lychgate.pod ] && [ ! -e "$data/bind/lychgate" ]
}
install_units() { # profile, label
	configure "$1" "$2" && lych bind --dry-run && lych bind --install
}
start() {
	systemctl --user start lychgate-pod && until_true 120 all_are active && lych run --no-stdin -- true
}
stop() {
	systemctl --user stop lychgate-pod && until_true 60 all_are inactive &&
		[ -z "$(podman ps -aq)" ] && ! pgrep -l 'lych-|postgres'
}
uninstall() {
	lych unbind && until_true 60 all_are inactive && [ -z "$(podman ps -aq)" ] &&
		! systemctl --user list-unit-files --no-legend 'lychgate*' | grep . &&
		! find ~/.config/containers -name 'lychgate*' | grep . && podman secret rm --all && podman network prune -f
}

# ---- what a job is ----

grade_is_full() {
	lych run --json --no-stdin -- true | tail -n 1 | python3 -c '
import json, sys
walls = json.load(sys.stdin)["job"]["result"]["walls"]
print("NOTE", walls["grade"], "landlock", walls["landlock_abi"])
sys.exit(walls["grade"] != "full")'
}
demo() {
	DEMO_POD=1 DEMO_EXAMPLES=$HOME/in/examples "$src/demo/run.sh"
}
tools() {
	lych run --no-stdin -- sh -c 'python3 --version; pip --version; node --version; npm --version; git --version; make --version; gcc --version'
}
# Nobody is root, inside or out; the uid inside is the uid outside; what a job writes is the user's.
identity() {
	local me name pid task files
	me=$(id -u)
	mkdir -p artifacts
	lych run --no-stdin --artifact f --out "$HOME/in/artifacts" -- sh -c 'id -u >f; sleep 3' &
	until_true 20 pgrep -x sleep || return 1
	for name in phylactery scribe vessel tomb; do
		pid=$(podman inspect -f '{{.State.Pid}}' lychgate-$name)
		for task in $pid $(descendants "$pid"); do
			# real, effective, saved and file system uid, as the workstation sees them
			[ "$(sed -n 's/^Uid:\t//p' /proc/"$task"/status)" = "$me	$me	$me	$me" ] ||
				fail "$name: $(grep -E '^(Name|Uid)' /proc/"$task"/status)" || return 1
			[ "$(sed -n 's/^NoNewPrivs:\t//p' /proc/"$task"/status)" = 1 ] || fail "$name $task: NoNewPrivs" || return 1
		done
		echo "NOTE $name: $(($(descendants "$pid" | wc -l) + 1)) processes, all of uid $me"
	done
	files=$(find "$data/tomb/jobs" -path '*work/f')
	[ -n "$files" ] && [ "$(stat -c %u "$files")" = "$me" ] || fail "the job's file: $files" || return 1
	wait || return 1
	[ "$(cat artifacts/f)" = "$me" ] || fail "inside: $(cat artifacts/f)" || return 1
	! find "$data" "$run" ! -uid "$me" | grep . || return 1
	rm -rf artifacts
}
descendants() { # pid
	local child
	for child in $(pgrep -P "$1"); do
		echo "$child"
		descendants "$child"
	done
}

# ---- authority ----

probe_images() {
	local image
	mkdir -p probe && cp "$HOME/in/probe_room" probe/ || return 1
	for image in vessel scribe tomb phylactery; do
		printf 'FROM localhost/lychgate-%s:1\nCOPY probe_room /probe_room\n' $image >probe/Containerfile
		podman build -q --format docker -t localhost/lychgate-$image:probe probe || return 1
	done
}
authority() { # profile: the same units, images with the probe in them
	(umask 077; mkdir -p ~/.ssh)
	[ -e ~/.ssh/id_ed25519 ] || (umask 077; echo "not a key" >~/.ssh/id_ed25519)
	probe_images && install_units "$1" probe && systemctl --user restart lychgate-pod && until_true 120 all_are active &&
		python3 "$src/tests/e2e/authority.py" "$1" "authority-$1.md"
}
no_port() {
	! ss -Htuln | grep . || fail "somebody listens"
	[ -z "$(podman port --all)" ]
}
database_authority() {
	podman exec -i lychgate-tomb python3 - <"$src/tests/e2e/db_as_tomb.py"
}

# ---- kills ----

submit() { # prefix, n: all of them are accepted in the end, whoever is being killed
	local i
	for i in $(seq "$2"); do
		until lych run --detach --no-stdin --request-id "$1-$i" -- sh -c 'sleep 0.2; echo done' >/dev/null 2>>~/log/refused; do
			sleep 0.1
		done
	done
}
kills() { # every container, and the pod, while a hundred jobs run
	local round=kill-$RANDOM submitter t name
	submit $round 100 &
	submitter=$!
	for name in tomb vessel phylactery scribe tomb infra vessel phylactery; do
		sleep 1
		t=$(now)
		podman kill "lychgate-$name" >/dev/null || return 1
		until_true 10 gone_or_new || return 1
		until_true 90 all_are active || fail "after the kill of $name not everything came back" || return 1
		echo "NOTE $name killed, all units active after $((($(now) - t) / 1000000)) ms"
	done
	wait $submitter || return 1
	until_true 180 settled $round || { lych jobs --limit 120; return 1; }
	lych jobs --limit 200 --json | ROUND=$round python3 -c '
import collections, json, os, sys
jobs = [j for j in json.load(sys.stdin)["jobs"] if j["request_id"].startswith(os.environ["ROUND"] + "-")]
print("NOTE", len(jobs), dict(collections.Counter(j["state"] for j in jobs)), "attempts", sum(j["attempts"] for j in jobs),
      "lost", sum(j["lost"] for j in jobs))
sys.exit(not (len(jobs) == 100 == len({j["request_id"] for j in jobs}) and all(j["state"] == "succeeded" for j in jobs)))' || return 1
	# "twice" would be a second end or a second output
	local id
	for id in $(lych jobs --limit 200 --json | ROUND=$round python3 -c '
import json, os, sys
print(*[j["id"] for j in json.load(sys.stdin)["jobs"] if j["request_id"].startswith(os.environ["ROUND"] + "-")])'); do
		[ "$(lych logs "$id" --only stdout)" = "done" ] || fail "job $id: $(lych logs "$id")" || return 1
	done
}
# The kill has been noticed: something of ours is not active.
gone_or_new() { ! all_are active; }
settled() { # prefix
	lych jobs --limit 200 --json 2>/dev/null | ROUND=$1 python3 -c '
import json, os, sys
jobs = [j for j in json.load(sys.stdin)["jobs"] if j["request_id"].startswith(os.environ["ROUND"] + "-")]
sys.exit(not all(j["state"] in ("succeeded", "failed", "quarantined", "cancelled", "timed_out") for j in jobs))' 2>/dev/null
}

# ---- upgrade ----

upgrade() { # profile
	local before after
	before=$(lych jobs --limit 1 --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["jobs"][0]["id"])')
	build 2 && install_units "$1" 2 && systemctl --user restart lychgate-pod && until_true 120 all_are active || return 1
	[ "$(podman inspect -f '{{index .Config.Labels "org.lychgate.version"}}' lychgate-vessel)" = 2 ] || return 1
	lych show "$before" >/dev/null && lych run --no-stdin -- true || return 1
	after=$(lych jobs --limit 1 --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["jobs"][0]["id"])')
	echo "NOTE job $before is known still, job $after ran"
	[ "$after" -gt "$before" ]
}

step "bases imported" bases
step "an unpinned base is refused" unpinned_is_refused
step "images built" build_first
step "built again without a cache: the same image ids" build_again
step "the vessel's image holds one program, no shell" image_is_bare localhost/lychgate-vessel:1
step "the scribe's image holds one program, no shell" image_is_bare localhost/lychgate-scribe:1
step "images are of an ordinary user" not_root
while read -r profile; do
	step "$profile: configured" configure "$profile" 1
	step "$profile: without its secrets nothing is bound" missing_secret_is_refused
	step "$profile: secrets made" make_secrets
	step "$profile: bound and installed" install_units "$profile" 1
	step "$profile: started, first job" start
	step "$profile: every container is healthy" until_true 60 healthy
	step "$profile: jobs run in grade full" grade_is_full
	step "$profile: the tools of jobs" tools
	step "$profile: identity, in /proc and on disk" identity
	step "$profile: the demo" demo
	step "$profile: no port is open" no_port
	step "$profile: authority, tried in every room" authority "$profile"
	[ "$profile" = sovereign ] || step "$profile: authority in the database, as the tomb" database_authority
	step "$profile: each container and the pod killed under 100 jobs" kills
	step "$profile: stopped, nothing left" stop
	step "$profile: started again" start
	step "$profile: upgraded" upgrade "$profile"
	step "$profile: uninstalled" uninstall
	rm -rf "$data"
done <profiles
report
while read -r profile; do
	echo "=== authority $profile"
	cat "authority-$profile.md"
	echo "=== end"
done <profiles
