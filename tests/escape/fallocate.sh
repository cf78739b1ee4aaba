#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 60
# fallocate(2) takes a gibibyte in two milliseconds, before anybody has looked. Under a disk limit of
# 128 MiB a job asks for pieces of 60 MiB, each a file of its own: the third is refused (or, where a file system has no
# such call and they are written, the job ended), whether it asks for them one after the other or from
# many processes at once; also where the file system does not tell what was added (as with two writable trees). What is on the disk afterwards is judged from outside.
# A neighbour that writes on the same file system takes nothing of it: two pieces are had beside it, TRIES times of so many. Needs Python, and not to be root.
set -uo pipefail
bin=${LYCH_BUILD:-build/release}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
scratch=$(mktemp -d)
neighbour=
trap '[ -z "$neighbour" ] || kill "$neighbour"; wait; rm -rf "$scratch"' EXIT
limit=128 slack=128 pieces=9
failed=0 tries=${TRIES:-3}

cat >"$scratch/take.py" <<'END'
import errno, os, sys, time

def take(n):
    fd = os.open(f"piece.{n}", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.posix_fallocate(fd, 0, 60 << 20)
    except OSError as e:
        return errno.errorcode[e.errno]
    return "ok"

time.sleep(float(sys.argv[3]) if len(sys.argv) > 3 else 0)
if sys.argv[1] == "in turn":
    said = [take(n) for n in range(int(sys.argv[2]))]
else:
    for n in range(int(sys.argv[2])):
        if os.fork() == 0:
            with open(f"said.{n}", "w") as f:
                f.write(take(n))
            os._exit(0)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    said = sorted(open(f"said.{n}").read() for n in range(int(sys.argv[2])))
print(*said, flush=True)
END

for grade in full floor; do
	for way in "in turn" "at once" "in turn, blind" "at once, blind"; do
		work=$scratch/work
		mkdir "$work" "$scratch/other"
		cp "$scratch/take.py" "$work"
		two=()
		[[ $way != *blind ]] || two=(--rw "$scratch/other")
		told=$("$sandbox" --grade "$grade" --json --workspace "$work" "${two[@]}" --timeout 30 --memory 512MiB --disk ${limit}MiB -- \
			/usr/bin/python3 take.py "${way%, blind}" $pieces 2>&1 </dev/null)
		# the blocks of what it made: reserved, not only said to be that long
		took=$(du -sm "$work" | cut -f1)
		rm -rf "$work" "$scratch/other"
		answers=$(head -n 1 <<<"$told")
		how=$(grep -o '"how":"[^"]*"' <<<"$told")
		# Refused: two of them and no more. Ended: before it had too much.
		case $how in
		'"how":"exited"')
			ok=$(grep -o '\bok\b' <<<"$answers" | wc -l)
			no=$(grep -o '\bENOSPC\b' <<<"$answers" | wc -l)
			[ "$ok" -eq 2 ] && [ "$no" -eq $((pieces - 2)) ] && right=1 || right=
			;;
		'"how":"disk"') right=1 ;;
		*) right= ;;
		esac
		if [ -n "$right" ] && [ "$took" -le $((limit + slack)) ]; then
			echo "ok    $grade: $way: $took MiB, $how, $answers"
		else
			echo "FAIL  $grade: $way: $took MiB, ${told:0:400}"
			failed=$((failed + 1))
		fi
	done
done

# So many names that a round over them takes the keeper half a second: what was added since it began
# is the neighbour's.
work=$scratch/work
mkdir -p "$work/many"
cp "$scratch/take.py" "$work"
(cd "$work" && python3 -c 'import os
for i in range(20000):
    os.link("take.py", f"many/{i}")') || exit 1
while :; do
	dd if=/dev/zero of="$scratch/neighbour" bs=1M count=64 status=none
	rm "$scratch/neighbour"
done &
neighbour=$!
for grade in full floor; do
	for _ in $(seq "$tries"); do
		told=$("$sandbox" --grade "$grade" --json --workspace "$work" --timeout 30 --memory 512MiB --disk ${limit}MiB -- \
			/usr/bin/python3 take.py "in turn" 2 0.3 2>&1 </dev/null)
		rm -f "$work"/piece.*
		if [ "$(head -n 1 <<<"$told")" = "ok ok" ] && grep -q '"how":"exited"' <<<"$told"; then
			echo "ok    $grade: beside a neighbour: both"
		else
			echo "FAIL  $grade: beside a neighbour: ${told:0:400}"
			failed=$((failed + 1))
		fi
	done
done
exit $((failed > 0))
