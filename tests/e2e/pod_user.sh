#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run by pod.sh on the workstation, as its user.
# shellcheck disable=SC2317 # functions are called through step
set -uo pipefail
cd ~/in || exit 1
umask 022 # what others may write is refused as configuration
src=$HOME/in/src data=$HOME/.local/share/lychgate run=$XDG_RUNTIME_DIR/lychgate
units="phylactery scribe migrate vessel tomb"
store=$HOME/.local/share/lychgate-secrets key=$HOME/.config/lychgate/store.key
secrets="db_migrate db_vessel db_watchdog db_tomb work"
PATH=$HOME/bin:$PATH
mkdir -p ~/bin ~/log ~/.config/lychgate
. "$src/tests/e2e/pod_broker.sh"
. "$src/tests/e2e/pod_reboot.sh"
number=0 table=() serving=()
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
	echo "$((number - 1)) passed, 1 failed"
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
	local list pid importing=()
	for list in base/*; do
		list=${list#base/}
		podman import -q "base/$list/root.tar" "localhost/base-$list" &
		importing+=($!)
	done
	for pid in "${importing[@]}"; do wait "$pid" || return 1; done
	rm -f base/*/root.tar
}
build() { # label, option of podman build...
	LYCH_BUILD_NETWORK=none "$src/containerfiles/build" --base localhost/base-build --base-tomb localhost/base-tomb \
		--base-phylactery localhost/base-phylactery --label "$@"
}
build_first() {
	local id began=$SECONDS
	build 1 | tee ~/images || return 1
	echo $((SECONDS - began)) >~/build.seconds
	[ "$(wc -l <~/images)" -eq 5 ] || return 1
	mkdir -p ~/libexec ~/lib
	id=$(podman create localhost/lychgate-build:1 x) && podman cp "$id:/usr/bin/lych" ~/bin/lych &&
		podman cp "$id:/usr/bin/lych-sandbox" ~/bin/ && podman cp "$id:/usr/bin/lych-audit" ~/bin/ &&
		podman cp "$id:/usr/libexec/lychgate" ~/libexec/ && podman cp "$id:/usr/lib/lychgate" ~/lib/ &&
		podman rm "$id" && lych --version
}
unpinned_is_refused() {
	! "$src/containerfiles/build" --base debian:trixie && ! "$src/containerfiles/build"
}
# Beside what follows, most of which waits.
begin_again() {
	build 1 --prefix localhost/again --no-cache >~/images.again 2>~/images.log &
	again=$!
	{ tail --pid="$again" -f /dev/null; test_builds; } >~/test-builds.log 2>&1 &
	tests_built=$!
	{ tail --pid="$tests_built" -f /dev/null; build 2; } >~/upgrade.log 2>&1 &
}
# Of the daemons; walls puts them into their rooms. Then the images of the upgrade.
test_builds() {
	mkdir -p walls
	podman build -q --format docker -f "$src/tests/e2e/Containerfile.walls" --build-arg BUILD=localhost/lychgate-build:1 \
		--build-arg ROOM=vessel --target build walls
}
built_again() {
	sed 's/localhost.lychgate/localhost\/again/' ~/images >~/images.want
	wait "$again" || { tail -n 20 ~/images.log; return 1; }
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
each_has_a_list() {
	local image id
	for image in vessel scribe tomb phylactery; do
		id=$(podman create localhost/lychgate-$image:1 x) && podman cp "$id:/usr/lib/lychgate/sbom.spdx.json" $image.spdx.json &&
			podman rm "$id" && python3 - $image <<-'PY' || return 1
				import json, sys
				image = sys.argv[1]
				d = json.load(open(image + ".spdx.json"))
				ids = [p["SPDXID"] for p in d["packages"]]
				links = {(r["spdxElementId"], r["relationshipType"], r["relatedSpdxElement"]) for r in d["relationships"]}
				assert d["spdxVersion"] == "SPDX-2.3" and d["name"] == "lychgate-" + image and len(ids) == len(set(ids))
				assert {b for _, _, b in links} == set(ids) and len(links) == len(ids)
				names = {p["name"]: p["versionInfo"] for p in d["packages"]}
				wanted = {"vessel": "libcurl4t64 libvectorscan5 ca-certificates", "scribe": "libevent-core-2.1-7t64", "tomb": "python3 dpkg libseccomp-dev",
				          "phylactery": "postgresql-17 tzdata"}[image]
				assert all(names[w] for w in ("lychgate libc6 " + wanted).split()), names
				assert (image == "tomb") == any(kind == "STATIC_LINK" for _, kind, _ in links)
				print("NOTE", image, len(names) - 2, "packages")
			PY
	done
}

# ---- install ----

# docs/SECRETS.md, "Podman's shell driver", as it stands there.
secret_driver() {
	local driver=$HOME/libexec/lychgate/lych-secret-driver verb
	[ ! -e "$store" ] || return 0
	mkdir -p ~/.config/containers
	install -d -m 0700 "$store" ~/.config/lychgate
	(umask 077; head -c 32 /dev/urandom | od -An -vtx1 | tr -d ' \n' >"$key")
	"$driver" --store "$store" --key --passphrase-file "$key" init || return 1
	{
		printf '[secrets]\ndriver = "shell"\n[secrets.opts]\n'
		for verb in list delete; do echo "$verb = \"$driver --store $store $verb\""; done
		for verb in lookup store; do echo "$verb = \"$driver --store $store --passphrase-file $key $verb\""; done
	} >~/.config/containers/containers.conf
}
make_secrets() {
	local name
	secret_driver || return 1
	for name in $secrets; do
		lych secret set "lychgate_$name" --generate --store=podman || return 1
	done
	lych secret check --store=podman || return 1
	# at rest: in our driver's store, and nowhere as they are
	[ "$(podman secret ls --format '{{.Driver}}' | sort -u)" = shell ] || fail "another driver" || return 1
	[ "$(find "$store" -name '*.secret' | wc -l)" -eq 5 ] || fail "not in the store" || return 1
	for name in $secrets; do
		podman secret inspect --showsecret --format '{{.SecretData}}' "lychgate_$name" >value || return 1
		! grep -rqF -f value "$store" ~/.local/share/containers/storage/secrets ~/.config || fail "$name is on the disk as it is" || return 1
	done
	rm -f value
}
configure() { # profile, label, what prints the rest: somebody to ask
	local image conf=~/.config/lychgate/codex.yaml
	chmod 0700 ~/.config/lychgate && install -m 0600 /dev/null "$conf" || return 1
	{
		printf 'version: 1\npod:\n  profile: %s\n  cgroups: none\n' "$1"
		for image in vessel scribe tomb phylactery; do
			printf '  %s:\n    image: localhost/lychgate-%s:%s\n' $image $image "$2"
		done
		[ -z "${3:-}" ] || "$3"
	} >"$conf"
	lych config check
}
portal() {
	cat <<-'EOF'
		portals:
		  - name: x
		    kind: openai
		    url: "https://api.example.com/v1"
		    secret: portal_x
		    models:
		      - {name: m, input: "0", output: "0"}
	EOF
}
missing_secret_is_refused() { # nothing is written
	local said
	said=$(lych bind --install 2>&1) && return 1
	echo "$said"
	[[ $said == *LYCH-*lychgate_* || $said == *lychgate_*LYCH-* ]] && [ ! -e ~/.config/containers/systemd/lychgate.pod ] && [ ! -e "$data/bind/lychgate" ]
}
install_units() { # as configure
	configure "$@" && lych bind --dry-run && lych bind --install
}
start() {
	systemctl --user start lychgate-pod && until_true 120 all_are active && lych run --no-stdin -- true
}
stop() {
	systemctl --user stop lychgate-pod && until_true 60 all_are inactive && nothing_runs
}
uninstall() {
	lych unbind && until_true 60 all_are inactive && [ -z "$(podman ps -aq)" ] &&
		! systemctl --user list-unit-files --no-legend 'lychgate*' | grep . &&
		! find ~/.config/containers -name 'lychgate*' | grep . && ! podman network ls --format '{{.Name}}' | grep lychgate &&
		podman secret rm --all && [ -z "$(find "$store" -name '*.secret')" ]
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
# A job of one process: one that forks would change while its processes are looked at.
wait_for_seen='
import os, time
with open("f", "w") as f:
    print(os.getuid(), file=f)
for i in range(300):
    if os.path.exists("seen"):
        raise SystemExit(0)
    time.sleep(0.1)
raise SystemExit("nobody looked")'
# Nobody is root, inside or out; the uid inside is the uid outside; what a job writes is the user's.
identity() {
	local me name pid task files status
	me=$(id -u)
	mkdir -p artifacts
	lych run --no-stdin --artifact f --out "$HOME/in/artifacts" -- \
		python3 -c "$wait_for_seen" &
	until_true 20 job_wrote || return 1
	files=$(find "$data/tomb/jobs" -path '*work/f')
	[ -n "$files" ] && [ "$(stat -c %u "$files")" = "$me" ] || fail "the job's file: $files" || return 1
	for name in phylactery scribe vessel tomb; do
		pid=$(podman inspect -f '{{.State.Pid}}' lychgate-$name)
		for task in $pid $(descendants "$pid"); do
			# PostgreSQL's helpers come and go; a container's first process stays.
			status=$(cat /proc/"$task"/status) || { [ "$task" != "$pid" ] && continue; }
			# real, effective, saved and file system uid, as the workstation sees them
			[ "$(sed -n 's/^Uid:\t//p' <<<"$status")" = "$me	$me	$me	$me" ] ||
				fail "$name: $(grep -E '^(Name|Uid)' <<<"$status")" || return 1
			[ "$(sed -n 's/^NoNewPrivs:\t//p' <<<"$status")" = 1 ] || fail "$name $task: NoNewPrivs" || return 1
		done
		echo "NOTE $name: $(($(descendants "$pid" | wc -l) + 1)) processes, all of uid $me"
	done
	touch "${files%/f}/seen"
	wait $! || return 1
	[ "$(cat artifacts/f)" = "$me" ] || fail "inside: $(cat artifacts/f)" || return 1
	! find "$data" "$run" ! -uid "$me" | grep . || return 1
	rm -rf artifacts
}
job_wrote() { [ -s "$(find "$data/tomb/jobs" -path '*work/f')" ]; }
descendants() { # pid
	local child
	for child in $(pgrep -P "$1"); do
		echo "$child"
		descendants "$child"
	done
}

# The folders of jobs on a tmpfs, as the tomb's container sees it and in a job; and back.
jobs_on_tmpfs() {
	local conf=~/.config/lychgate/codex.yaml
	cp -p "$conf" codex.before
	printf 'tomb:\n  jobs_tmpfs: 256MiB\n' >>"$conf"
	lych bind --install && systemctl --user restart lychgate-pod && until_true 120 all_are active || return 1
	lych run --no-stdin -- sh -c 'stat -f -c %T . && df -m --output=size . | tail -n 1 && cp /bin/echo e && ./e ran' | tee said || return 1
	[ "$(tr -d ' ' <said | paste -sd' ')" = "tmpfs 256 ran" ] || return 1
	[ -z "$(ls "$data/tomb/jobs")" ] || fail "on the disk: $(ls "$data/tomb/jobs")" || return 1
	cp -p codex.before "$conf"
	lych bind --install && systemctl --user restart lychgate-pod && until_true 120 all_are active
}

# What it attempts on this host and in a job, what the daemons and Podman say of their walls.
doctor() {
	local rc=0
	lych doctor --json >doctor.json || rc=$?
	python3 - <<'PY' || return 1
import collections, json
lines = json.load(open("doctor.json"))["lines"]
count = collections.Counter(l["verdict"] for l in lines)
rooms = collections.Counter(l["where"] for l in lines)
print("NOTE", dict(count))
print("NOTE", dict(rooms))
for l in lines:
    if l["verdict"] in ("FAIL", "SKIP", "NOTE", "KNOWN"):
        print("NOTE", l["verdict"], l["where"], l["tried"], l["answer"])
wanted = {"kernel", "host", "full", "floor", "job", "vessel", "tomb", "scribe", "pod", "database", "tombs"}
raise SystemExit(bool(count["FAIL"] or wanted - set(rooms)))
PY
	return $rc
}

# ---- what the vessel may ask of the host ----

value_of() { podman secret inspect --showsecret --format '{{.SecretData}}' "$1" | sha256sum; }
began_at() { podman inspect -f '{{.State.StartedAt}}' "lychgate-$1"; }
reactor() {
	local tomb vessel work
	tomb=$(began_at tomb) vessel=$(began_at vessel)
	lych request restart-tomb && until_true 60 all_are active && [ "$(began_at tomb)" != "$tomb" ] &&
		[ "$(began_at vessel)" = "$vessel" ] || fail "restart-tomb" || return 1
	lych request stop-tomb && [ "$(systemctl --user is-active lychgate-tomb)" = inactive ] || fail "stop-tomb" || return 1
	lych request restart-tomb && until_true 60 all_are active || fail "restart-tomb after stop-tomb" || return 1
	work=$(value_of lychgate_work_of_tomb_1)
	lych request rotate-secret && until_true 60 all_are active && [ "$(value_of lychgate_work_of_tomb_1)" != "$work" ] &&
		lych run --no-stdin -- true || fail "rotate-secret" || return 1
	# neither a command nor a path nor a unit's name: it is put aside, and nothing else comes of it
	printf '{"intent":"restart-tomb; touch %s/planted"}' "$HOME" >"$data/vessel/reactor/x.json"
	printf 'lychgate-vessel.service' >"$data/vessel/reactor/stop-unit"
	vessel=$(began_at vessel)
	until_true 30 is_aside || fail "not put aside" || return 1
	[ ! -e ~/planted ] && all_are active && [ "$(began_at vessel)" = "$vessel" ] || fail "something came of it" || return 1
	echo "NOTE $(find "$data/reactor" -maxdepth 1 -name '*.json' | wc -l) receipts, $(find "$data/reactor/aside" -type f | wc -l) put aside"
}
is_aside() { [ -z "$(ls -A "$data/vessel/reactor")" ] && [ "$(find "$data/reactor/aside" -type f | wc -l)" -eq 2 ]; }

# ---- a second tomb: docs/OPERATIONS.md, "Tombs" ----

run_once() { # secret..., --, what the vessel's image is told
	local with=()
	while [ "$1" != -- ]; do
		with+=(--secret "lychgate_$1,type=mount,uid=$(id -u),gid=$(id -g),mode=0400")
		shift
	done
	podman run --rm --userns keep-id --network none --read-only --cap-drop all --security-opt no-new-privileges --health-cmd none \
		-v "$run/pg:/run/lychgate/pg:ro,z" "${with[@]}" localhost/lychgate-vessel:1 "${@:2}"
}
second_tomb() {
	lych secret tomb tomb_2 --store=podman &&
		run_once db_migrate db_vessel db_watchdog db_tomb generation_of_tomb_1 generation_of_tomb_2 -- migrate --pg-dir /run/lychgate/pg --secrets /run/secrets --tomb tomb_1 --tomb tomb_2 &&
		sed 's/^Image=.*/Image=localhost\/lychgate-tomb:1/' "$src/quadlet/tomb/lychgate-tomb_2.container" >lychgate-tomb_2.container &&
		podman quadlet install lychgate-tomb_2.container && systemctl --user start lychgate-tomb_2 || return 1
	until_true 60 is_healthy lychgate-tomb_2 && lych status | grep tomb_2 && lych bind --dry-run | grep 'Nothing would change' || return 1
	# it alone has work, and a kill of it costs nothing
	systemctl --user stop lychgate-tomb && [ "$(lych run --no-stdin -- echo by the second)" = "by the second" ] || return 1
	podman kill lychgate-tomb_2 && [ "$(lych run --no-stdin -- echo again)" = again ] || return 1
	systemctl --user start lychgate-tomb && systemctl --user stop lychgate-tomb_2 && podman quadlet rm lychgate-tomb_2.container && until_true 60 all_are active || return 1
	! podman ps -a --format '{{.Names}}' | grep tomb_2 && rm -r ~/.local/share/lychgate-tomb_2 &&
		podman secret rm lychgate_{generation,db,work}_of_tomb_2
}
is_healthy() { [ "$(podman inspect -f '{{.State.Health.Status}}' "$1")" = healthy ]; }

# ---- the owner's rotation: docs/OPERATIONS.md, "Rotate" ----

secret_value() { podman secret inspect --showsecret --format '{{.SecretData}}' "lychgate_$1"; }
login() { # role, password: whether the database takes it
	podman exec -e PGPASSWORD="$2" lychgate-phylactery /usr/lib/postgresql/17/bin/psql -X -q -w -h /run/lychgate/pg -U "$1" -d lychgate -c 'SELECT 1'
}
a_job_runs() { [ "$(state_of "$1")" = running ]; }
state_of() { lych show "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])'; }
has_ended() { [ "$(state_of "$1")" = succeeded ]; }
rotations() {
	local name role old id what
	id=$(lych run --detach --no-stdin -- sh -c 'sleep 5; echo done') && until_true 20 a_job_runs "$id" || return 1
	for name in db_vessel:lych_vessel db_watchdog:lych_watchdog db_of_tomb_1:tomb_1 work_of_tomb_1: db_tomb: work:; do
		role=${name#*:} name=${name%:*}
		old=$(secret_value "$name")
		case $name in *_of_tomb_1) what="--tomb=tomb_1" ;; *) what=lychgate_$name ;; esac
		lych secret rotate "$what" --store=podman && until_true 60 all_are active || fail "$name" || return 1
		[ "$(secret_value "$name")" != "$old" ] || fail "$name has its former value" || return 1
		[ -n "$role" ] || continue
		login "$role" "$(secret_value "$name")" || fail "$role: the new password is refused" || return 1
		! login "$role" "$old" || fail "$role: the old password is taken" || return 1
	done
	until_true 60 has_ended "$id" && [ "$(lych logs "$id" --only stdout)" = "done" ] && lych run --no-stdin -- true || fail "jobs" || return 1
	# the owner's own login, by hand
	refused LYCH-SECRET- lych secret rotate lychgate_db_migrate --store=podman || return 1
	old=$(secret_value db_migrate)
	(umask 077; head -c 32 /dev/urandom | base64 >new)
	cat new new | podman exec -i lychgate-phylactery /usr/bin/lych _pgtool psql -d postgres -c '\password lych_migrate' || return 1
	podman secret create --replace lychgate_db_migrate new && rm new || return 1
	systemctl --user restart lychgate-pod && until_true 120 all_are active || return 1
	[ "$(secret_value db_migrate)" != "$old" ] && ! login lych_migrate "$old" && login lych_migrate "$(secret_value db_migrate)" || return 1
	lych secret check --store=podman && lych run --no-stdin -- true
}

# ---- authority ----

# The daemons' own confinement, tried by them: test builds of the same sources in the units' containers.
walls() { # profile
	local room since
	[ -z "${tests_built:-}" ] || wait "$tests_built" || { tail -n 20 ~/test-builds.log; return 1; }
	mkdir -p walls && cp with_probes walls/ && (cd walls && python3 "$src/tests/e2e/daemons.py" lists "$1") || return 1
	for room in vessel scribe tomb; do
		podman build -q --format docker -f "$src/tests/e2e/Containerfile.walls" --build-arg BUILD=localhost/lychgate-build:1 \
			--build-arg ROOM=$room -t localhost/lychgate-$room:walls walls || return 1
	done
	podman tag localhost/lychgate-phylactery:1 localhost/lychgate-phylactery:walls
	stop && install_units "$1" walls portal || return 1
	since=$(date +%s)
	systemctl --user start --no-block lychgate-pod
	python3 "$src/tests/e2e/daemons.py" judge "$1" "authority-$1.md" "$since" || return 1
	systemctl --user stop lychgate-pod && until_true 60 nothing_runs || return 1
	rm -f "$data/audit/probe" "$data/vessel/probe" "$data/tomb/jobs/probe"
	systemctl --user reset-failed 'lychgate-*'
	install_units "$1" 1 portal && systemctl --user start lychgate-pod && until_true 120 all_are active
}
nothing_runs() { [ -z "$(podman ps -aq)" ] && ! pgrep -l 'lych-|postgres'; }

probe_images() {
	local image
	mkdir -p probe && cp "$HOME/in/probe_room" probe/ || return 1
	for image in vessel scribe tomb phylactery; do
		printf 'FROM localhost/lychgate-%s:1\nCOPY probe_room /probe_room\n' $image >probe/Containerfile
		podman build -q --format docker -t localhost/lychgate-$image:probe probe || return 1
	done
}
authority() { # profile: the same units, images with the probe in them, and somebody to ask
	local room
	(umask 077; mkdir -p ~/.ssh)
	[ -e ~/.ssh/id_ed25519 ] || (umask 077; echo "not a key" >~/.ssh/id_ed25519)
	probe_images || return 1
	# nobody to ask: not one room of golden-mean has an interface
	if [ "$1" = golden-mean ]; then
		install_units "$1" probe && systemctl --user restart lychgate-pod && until_true 120 all_are active || return 1
		for room in vessel scribe tomb phylactery; do
			[ "$(podman exec lychgate-$room /probe_room interface= route= | cut -f 2 | tr '\n' ' ')" = "ENODEV ENETUNREACH " ] ||
				fail "$room has a network" || return 1
		done
	fi
	echo sk-not-a-real-key-0123456789 | lych secret set portal_x --store=podman || return 1
	install_units "$1" probe portal && systemctl --user restart lychgate-pod && until_true 120 all_are active || return 1
	# what the egress workers read before they confine themselves
	[ "$(podman exec lychgate-vessel /probe_room read=/etc/resolv.conf read=/etc/hosts read=/etc/ssl/certs/ca-certificates.crt |
		cut -f 2 | sort -u)" = yes ] || fail "the vessel lacks servers of names or authorities" || return 1
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
	build 2 && install_units "$1" 2 portal && systemctl --user restart lychgate-pod && until_true 120 all_are active || return 1
	[ "$(podman inspect -f '{{index .Config.Labels "org.lychgate.version"}}' lychgate-vessel)" = 2 ] || return 1
	lych show "$before" >/dev/null && lych run --no-stdin -- true || return 1
	after=$(lych jobs --limit 1 --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["jobs"][0]["id"])')
	echo "NOTE job $before is known still, job $after ran"
	[ "$after" -gt "$before" ]
}

# ---- backup ----

backup_key=$HOME/.config/lychgate/backup.key
jobs_as_seen() {
	lych jobs --limit 500 --json | python3 -c '
import json, sys
for j in sorted(json.load(sys.stdin)["jobs"], key=lambda j: j["id"]):
    print(j["id"], j["request_id"], j["state"], j["class"], j["attempts"], j["finished_at"])'
	# what a vessel was writing when it was killed belongs to nothing
	(cd "$data" && find vessel/blobs vessel/output -type f ! -name '*.tmp' -exec sha256sum {} + | sort -k 2)
}
backup() {
	local name
	lych run --no-stdin --artifact f -- sh -c 'head -c 300000 /dev/urandom >f; echo done' || return 1
	jobs_as_seen >seen && [ "$(wc -l <seen)" -gt 30 ] || fail "little to compare" || return 1
	rm -f saved.tar "$backup_key"
	lych backup --pod saved.tar 2>told || { cat told; return 1; }
	grep -oE '([0-9A-HJKMNP-TV-Z]{4}-){7}[0-9A-HJKMNP-TV-Z]{4}' told >code || fail "no recovery code: $(cat told)" || return 1
	[ "$(stat -c %a saved.tar "$backup_key" | sort -u)" = 600 ] || return 1
	for name in $secrets; do
		# one that its owner wrote ends in a line's end: without the empty line, which is everywhere
		podman secret inspect --showsecret --format '{{.SecretData}}' "lychgate_$name" | grep . >value || return 1
		! grep -qaF -f value saved.tar || fail "the value of $name is in the archive" || return 1
	done
	rm -f value
	[ -z "$(find "$data" -name 'backup.*')" ] || fail "remains" || return 1
	refused LYCH-BACKUP-001 lych restore --pod --force saved.tar
}
refused() { # code, command...
	local code=$1 said
	shift
	said=$("$@" 2>&1) && fail "not refused: $said"
	echo "$said"
	[[ $said == *"$code"* ]]
}
# Destroyed, and back with its jobs, their output, and the log; on a new cluster.
restore() { # profile
	local system key
	stop && system=$(stat -c %i "$data/phylactery/data/global/pg_control") || return 1
	refused LYCH-BACKUP-005 lych restore --pod saved.tar || return 1
	cp saved.tar bad.tar && printf x | dd of=bad.tar bs=1 seek=4000 conv=notrunc status=none
	refused LYCH-BACKUP-003 lych restore --pod --force bad.tar || return 1
	mv "$backup_key" the.key # as on another machine
	refused LYCH-BACKUP-009 lych restore --pod --force saved.tar </dev/null || return 1
	tr '0123456789' '1234567890' <code >other.code
	refused LYCH-BACKUP-008 lych restore --pod --force --code-file other.code saved.tar || return 1
	[ "$(stat -c %i "$data/phylactery/data/global/pg_control")" = "$system" ] || return 1
	cp -a "$data/audit" audit.before
	rm -rf "$data"/phylactery "$data"/vessel "$data"/audit "$data"/tomb "$data"/reactor
	podman secret rm portal_x || return 1
	lych restore --pod --code-file code saved.tar | tee said || return 1
	cmp the.key "$backup_key" || fail "the key is not kept" || return 1
	echo sk-not-a-real-key-0123456789 | lych secret set portal_x --store=podman || return 1
	grep -q 'set again: lych secret set portal_x' said || fail "it does not say what is missing" || return 1
	[ -z "$(podman ps -aq)" ] || fail "a container is left" || return 1
	lych bind --dry-run | grep -q 'Nothing would change' || fail "the units are not its own any more" || return 1
	start || return 1
	jobs_as_seen >seen.after
	! grep -vxFf seen.after seen || fail "not all came back" || return 1
	# a restored log goes on with new keys, for which a person vouches
	key=$(lych-audit verify "$data/audit" --json | sed -nE 's/^.*"verdict":"unsealed".*"genesis":"([^"]+)".*$/\1/p')
	lych-audit verify "$data/audit" --pin "$key" || return 1
	diff <(head -c "$(tar xOf saved.tar --wildcards 'audit/segment-*' | wc -c)" audit.before/segment-0000000001.jsonl) \
		<(tar xOf saved.tar --wildcards 'audit/segment-*') >/dev/null || fail "another log" || return 1
	rm -rf audit.before saved.tar bad.tar code other.code told the.key
	[ ! -e "$data.restore" ] && [ "$(lych run --no-stdin -- echo new)" = new ] && healthy_soon
}
healthy_soon() { until_true 60 healthy; }

[ ! -e ~/rebooted ] || after_the_reboot
step "bases imported" bases
step "an unpinned base is refused" unpinned_is_refused
step "images built" build_first
[ -e quick ] || begin_again
step "the vessel's image holds one program, no shell" image_is_bare localhost/lychgate-vessel:1
step "the scribe's image holds one program, no shell" image_is_bare localhost/lychgate-scribe:1
step "images are of an ordinary user" not_root
step "each image has a list of the packages in it" each_has_a_list
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
	step "$profile: lych doctor, and nothing fails" doctor
	step "$profile: what the vessel asks of the host" reactor
	[ "$profile" = sovereign ] || step "$profile: a second tomb, by a unit of its own" second_tomb
	step "$profile: each secret rotated by its owner" rotations
	step "$profile: a provider, an index, a page: asked by the vessel" somebody_to_ask "$profile"
	step "$profile: a provider's key, rotated by its owner" portal_rotated
	step "$profile: unmodified SDKs in a job" sdks
	step "$profile: a URL in a job, and one that is refused" pages
	step "$profile: pip, npm and dependencies in a job" packages
	step "$profile: the tomb has no key and no way out" tomb_has_neither "$profile"
	step "$profile: nobody to ask again" nobody_to_ask
	step "$profile: authority, tried in every room" authority "$profile"
	[ "$profile" = sovereign ] || step "$profile: authority in the database, as the tomb" database_authority
	step "$profile: walls, tried by the daemons themselves" walls "$profile"
	[ -e quick ] || step "$profile: each container and the pod killed under 100 jobs" kills
	step "$profile: saved while it runs" backup
	step "$profile: destroyed and restored" restore "$profile"
	[ "$profile" = sovereign ] || step "$profile: jobs on a tmpfs" jobs_on_tmpfs
	step "$profile: stopped, nothing left" stop
	step "$profile: started again" start
	step "$profile: upgraded" upgrade "$profile"
	step "$profile: uninstalled" uninstall
	rm -rf "$data"
done <profiles
[ -e quick ] || step "built again without a cache: the same image ids" built_again
step "from nothing to the first job, by the document's five commands" five_commands
step "a job runs and one waits when the machine is rebooted" before_the_reboot
and_reboot
