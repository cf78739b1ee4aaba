#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# The directory that is given to a job (threats G 102 and 103): every shape that is not a plain
# directory of the caller is refused with 78 and nothing runs; one that is swapped for a link
# while jobs start never shows what is behind the link; what lies in it changes no wall.
set -uo pipefail
bin=${LYCH_BIN:-${LYCH_BUILD:-build/release}}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
if [ "$(id -u)" -eq 0 ]; then
	echo "run as an ordinary user: the sandbox refuses root" >&2
	exit 1
fi
scratch=$(mktemp -d)
swapper=
cleanup() {
	[ -z "$swapper" ] || kill "$swapper" 2>/dev/null
	rm -rf "$scratch"
}
trap cleanup EXIT
failed=0 count=0
check() { # what, expected, got
	count=$((count + 1))
	if [ "$2" = "$3" ]; then return; fi
	echo "FAIL $1: expected '$2', got '$3'"
	failed=$((failed + 1))
}
cd "$scratch" || exit 1
mkdir -p ws/sub secret lower upper over work tm && echo plain >ws/file && echo behind >secret/file
ln -s ws link && ln -s secret behind && ln -s loop loop && ln -s nowhere dangling
mkfifo fifo && echo x >file

for grade in full floor; do
	refused() { # what, directory
		"$sandbox" --grade $grade --workspace "$2" -- sh -c 'echo ran' >out 2>err </dev/null
		check "$grade: $1" 78 $?
		check "$grade: $1: its code" 1 "$(grep -c 'LYCH-SANDBOX-012' err)"
		check "$grade: $1: nothing ran" 0 "$(grep -c ran out)"
	}
	bad_usage() { # what, directory
		"$sandbox" --grade $grade --workspace "$2" -- sh -c 'echo ran' >out 2>err </dev/null
		check "$grade: $1" 2 $?
		check "$grade: $1: its code" 1 "$(grep -c 'LYCH-SPEC-006' err)"
		check "$grade: $1: nothing ran" 0 "$(grep -c ran out)"
	}
	bad_usage "the root" /
	bad_usage "the root by another name" //./..
	bad_usage "the parent" ..
	bad_usage "the parent, further on" ws/../secret
	bad_usage "the parent, where that is the root" "$(realpath --relative-to=. /)"
	bad_usage "an empty name" ""
	refused "a link" link
	refused "a link with a slash" link/
	refused "a link to itself" loop
	refused "a link to nothing" dangling
	refused "missing" none
	refused "a file" file
	refused "a FIFO" fifo
	refused "of somebody else" /usr
	refused "of somebody else, and shared" /tmp
	refused "in /proc" /proc/self
	refused "by a magic link" /proc/self/cwd
	# It is the caller's own, and a plain directory; what is written there is no file.
	for place in /proc/$$ /proc/$$/task /proc/$$/fd /proc/$$/net /proc/$$/attr; do
		refused "a process, $place" "$place"
	done
	check "$grade: . in a process" 78 "$(cd /proc/$$ && "$sandbox" --grade $grade --workspace . -- true >/dev/null 2>&1; echo $?)"
	check "$grade: . is where the caller stands" plain "$(cd ws && "$sandbox" --grade $grade --workspace . -- cat file)"
	said=$(mkdir gone && cd gone && rmdir ../gone && "$sandbox" --grade $grade --workspace . -- true 2>&1)
	check "$grade: . that is gone: $said" "2 1 1" "$? $(grep -c 'that you are in' <<<"$said") $(grep -c '^      LYCH-SPEC-006  ' <<<"$said")"
	check "$grade: . where that is the root" 2 "$(cd / && "$sandbox" --grade $grade --workspace . -- true >/dev/null 2>&1; echo $?)"

	if [ $grade = floor ]; then
		# TMPDIR is below it: of a plain directory, never through a link, and gone when nothing is in it.
		for shape in "ln -s ../secret" "ln -s ../nowhere" "mkfifo" "touch"; do
			(cd ws && $shape .tmp)
			refused "TMPDIR would be what '$shape' made" ws
			rm ws/.tmp
		done
		check "behind the link nothing was made" "file" "$(ls -A secret)"
		check "with a TMPDIR of one's own nobody minds" "ran" \
			"$(cd ws && ln -s ../secret .tmp && "$sandbox" --grade floor --env TMPDIR=/x --workspace . -- echo ran; rm .tmp)"
		check "TMPDIR is there" "$scratch/ws/.tmp d700" \
			"$("$sandbox" --grade floor --workspace ws -- sh -c 'echo "$TMPDIR d$(stat -c %a "$TMPDIR")"' </dev/null)"
		check "empty, it is gone with the job" "" "$(ls -d ws/.tmp 2>/dev/null)"
		"$sandbox" --grade floor --workspace ws -- sh -c 'echo kept >$TMPDIR/x' </dev/null
		check "what was left in it is the job's" kept "$(cat ws/.tmp/x)"
		"$sandbox" --grade floor --workspace ws -- sh -c 'rm $TMPDIR/x' </dev/null
		check "one that was there stays" ws/.tmp "$(ls -d ws/.tmp)"
		rmdir ws/.tmp
		# Two jobs of one workspace: neither takes it from the other, as it ends or as it starts.
		declare -A pid
		mkfifo on.first on.second
		exec 6<>on.first 7<>on.second
		for each in first second; do
			"$sandbox" --grade floor --workspace ws -- sh -c 'echo up; read -r _; stat -c %F "$TMPDIR"' <on.$each >$each 2>&1 &
			pid[$each]=$!
			for _ in {1..200}; do grep -q up $each && break || sleep 0.05; done
		done
		echo >&6
		wait "${pid[first]}"
		echo >&7
		wait "${pid[second]}"
		check "who made it leaves it to the other" "directory directory" "$(sed -sn 2p first second | paste -sd' ')"
		exec 6>&- 7>&-
		rm -f on.first on.second first second
		rmdir ws/.tmp 2>/dev/null
		many() { for _ in {1..60}; do "$sandbox" --grade floor --workspace ws -- true; done; }
		check "120 starts and ends, two at a time: none refused" "" "$( (many & many; wait) 2>&1 </dev/null)"
		rmdir ws/.tmp 2>/dev/null
	fi

	# Deeper than a keeper goes: ended, with that reason, however soon the job has ended itself.
	mkdir -p deep/"$(printf 'd/%.0s' {1..250})"
	check "$grade: too deep, at the last look too" 1 \
		"$("$sandbox" --grade $grade --json --workspace deep -- true 2>&1 </dev/null | grep -c 'directories too deep to be supervised')"

	# Mounts, made in namespaces of our own. The sandbox refuses root, so a second user
	# namespace gives the uid back.
	mounted() { # what, command that mounts something at tm
		local uid gid
		uid=$(id -u) gid=$(id -g)
		unshare -Urm sh -c "$2 && exec unshare -U --map-user=$uid --map-group=$gid \
			'$sandbox' --grade $grade --workspace '$scratch/tm' -- sh -c 'echo ran'" >out 2>err </dev/null
		check "$grade: $1" 78 $?
		check "$grade: $1: its code ($(head -c 200 err))" 1 "$(grep -c 'LYCH-SANDBOX-012' err)"
		check "$grade: $1: nothing ran" 0 "$(grep -c ran out)"
	}
	mounted "a tmpfs" "mount -t tmpfs tmpfs tm"
	mounted "a bind mount" "mount --bind secret tm"
	mounted "a directory with processes in it" "mkdir -p tm/p && mount --rbind /proc tm/p"
	for how in --ro --rw --workspace-ro; do
		unshare -Urm sh -c "mkdir -p tm/p && mount --rbind /proc tm/p && exec unshare -U --map-user=$(id -u) --map-group=$(id -g) \
			'$sandbox' --grade $grade $how '$scratch/tm' -- sh -c 'echo ran'" >out 2>err </dev/null
		check "$grade: $how of a directory with processes in it ($(head -c 200 err))" "1 1" "$(grep -c ' of the kernel' err) $(grep -cE '^      LYCH-(SPEC-006|SANDBOX-012)  ' err)"
		check "$grade: $how of it: nothing ran" 0 "$(grep -c ran out)"
	done
	overlay="mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay tm"
	if unshare -Urm sh -c "$overlay" 2>err; then
		mounted "an overlay" "$overlay"
	else
		echo "note: an overlay can't be mounted here: $(cat err)"
	fi

	# Swapped for a link to another directory, as fast as it goes, while jobs start.
	python3 - ws spare behind <<'END' &
import ctypes, os, sys
ws, spare, behind = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
parent = os.getppid()
while os.getppid() == parent:
    libc.renameat2(-100, ws.encode(), -100, behind.encode(), 2)  # RENAME_EXCHANGE
END
	swapper=$!
	ran=0 turned=0
	for _ in $(seq 60); do
		"$sandbox" --grade $grade --workspace ws -- cat file >out 2>err </dev/null
		case $? in
		0)
			ran=$((ran + 1))
			check "$grade: swapped: only its own file" plain "$(cat out)"
			;;
		78) turned=$((turned + 1)) ;;
		*) check "$grade: swapped: runs or is refused" "0 or 78" "$(cat out err)" ;;
		esac
		grep -q behind out && check "$grade: swapped" "never behind the link" "$(cat out)"
	done
	kill "$swapper"
	wait "$swapper" 2>/dev/null
	swapper=
	[ ! -L ws ] || python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b"ws", -100, b"behind", 2)'
	echo "$grade: swapped: $ran ran in their own directory, $turned were refused"
	check "$grade: swapped: each one ended" 60 $((ran + turned))

	# The directory above exchanged for a link to where the home directory lies, by another job, say, that may write
	# there: what was judged is what is opened, or nothing.
	home=$(getent passwd "$(id -u)" | cut -d: -f6)
	name=${home##*/} marker=.lychgate-escape-$$
	mkdir -p "fl/P/$name" && ln -s "${home%/*}" fl/Q && echo behind >"$home/$marker"
	python3 - fl/P fl/Q <<'END' &
import ctypes, os, sys
a, b = (p.encode() for p in sys.argv[1:])
libc = ctypes.CDLL(None, use_errno=True)
parent = os.getppid()
while os.getppid() == parent:
    libc.renameat2(-100, a, -100, b, 2)  # RENAME_EXCHANGE
END
	swapper=$!
	for _ in $(seq 40); do
		for how in --workspace --ro --rw; do
			"$sandbox" --grade $grade $how "$scratch/fl/P/$name" -- sh -c "cat $marker '$scratch/fl/P/$name/$marker' '$home/$marker'" >out 2>err </dev/null
			grep -q behind out && check "$grade: $how, swapped above" "never the home directory" "$(cat out)"
		done
	done
	kill "$swapper"
	wait "$swapper" 2>/dev/null
	swapper=
	rm -rf fl "${home:?}/$marker"

	# What lies in the directory, or where the caller stands, is no configuration; what it says
	# in its environment is none either.
	mkdir -p cfg/.config/lychgate cfg/.lychgate
	for name in codex.yaml lychgate.yaml .lychgate.yaml .lychgate/codex.yaml .config/lychgate/codex.yaml \
		lych-sandbox.conf .lych-sandbox lych-sandbox.args .env .envrc; do
		printf 'grade: none\nsandbox: false\n--rw\n/\n--ro\n/\nLYCH_SANDBOX=off\n' >"cfg/$name"
	done
	said=$(cd cfg && env -i HOME="$PWD" XDG_CONFIG_HOME="$PWD/.config" PATH="$PATH" LYCH_SANDBOX=off LYCH_NO_SANDBOX=1 \
		LYCH_UNSAFE=1 LYCHGATE_SANDBOX=none LYCH_GRADE=none LYCH_ARGS="--rw /" LD_PRELOAD=/nonexistent.so \
		"$sandbox" --json --grade $grade --home --workspace . -- sh -c "cat $scratch/secret/file; echo x >$scratch/secret/new; env" 2>&1 </dev/null)
	check "$grade: a hostile directory: nothing from outside" 0 "$(grep -c behind <<<"$said")"
	check "$grade: a hostile directory: nothing written outside" 0 "$(find secret -name new | wc -l)"
	check "$grade: a hostile environment does not arrive" 0 "$(grep -cE '^(LYCH|LD_|XDG)' <<<"$said")"
	check "$grade: the walls are those of every job" \
		"$("$sandbox" --json --grade $grade --workspace ws -- true 2>&1 | grep -o '"layers":[^]]*')" \
		"$(grep -o '"layers":[^]]*' <<<"$said")"

	# The job reaches neither the program that confines it nor the starter's files.
	before=$(sha256sum <"$sandbox")
	"$sandbox" --grade $grade --workspace ws -- sh -c "
		for f in '$sandbox' /proc/self/exe /proc/1/exe /etc/passwd /etc/ld.so.cache /usr/bin/env; do
			(: >>\$f) 2>/dev/null && echo wrote \$f
			mv \$f \$f.x 2>/dev/null && echo moved \$f
		done; cat '$sandbox' >/dev/null 2>&1 && echo read
		exit 0" >out 2>/dev/null </dev/null
	check "$grade: the sandbox can be neither written, moved nor read" "" "$(cat out)"
	check "$grade: it is as it was" "$before" "$(sha256sum <"$sandbox")"
done
echo "workspace: $count checks, $failed failed"
[ $failed -eq 0 ]
