#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The pod as a user has it: boots a workstation, and as its ordinary user builds the images, creates
# secrets, installs the units, runs the demo and a hundred jobs under kills, stops, upgrades and
# uninstalls, in both profiles. Root only, for the boot; nothing in there is root after it.
#	[UPDATE=1] [QUICK=1] tests/e2e/pod.sh [golden-mean|sovereign]...
#	tests/e2e/pod.sh --bases	only what is kept in build/e2e for the next time
# UPDATE writes the tables that were seen into docs/THREAT_MODEL.md. QUICK, for work on these scripts, leaves
# out the second build and the kills.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/support/debian.sh
. tests/e2e/bases.sh
cache=$PWD/build/e2e
began=$SECONDS
[ "$(id -u)" -eq 0 ] || { echo "pod: needs root (it makes roots and boots one), or: sudo $0" >&2; exit 77; }
mkdir -p "$cache"

# The npm packages `openai` and `@anthropic-ai/sdk` as they are, for jobs.
sdk_packages() {
	local dir
	[ ! -e "$cache/sdk.tar" ] || return 0
	dir=$(mktemp -d "$cache/sdk.XXXXXX")
	echo '{"name":"x","version":"1.0.0","private":true}' >"$dir/package.json"
	(cd "$dir" && npm install --silent --no-audit --no-fund openai @anthropic-ai/sdk) && tar -C "$dir" -cf "$cache/sdk.tar.new" node_modules &&
		mv "$cache/sdk.tar.new" "$cache/sdk.tar"
	rm -rf "$dir"
}
sdk_packages &
sdk=$!
base_roots build phylactery tomb
wait "$sdk"
[ "${1:-}" != --bases ] || exit 0
tree=$(mktemp -d "$cache/tree.XXXXXX")
trap 'rm -rf "$tree"' EXIT
image_tree "$tree" build phylactery tomb
cp "$cache/sdk.tar" "$tree/"
cp -r /usr/share/doc/zlib1g-dev/examples "$tree/examples"
for program in probe_room with_probes; do
	gcc -D_GNU_SOURCE -std=gnu17 -Wall -Wextra -Werror -O1 -static -o "$tree/$program" tests/e2e/$program.c
done
printf '%s\n' "${@:-golden-mean}" >"$tree/profiles"
[ -z "${QUICK:-}" ] || touch "$tree/quick"
echo "pod: bases and tree after $((SECONDS - began)) s"
WORKSTATION_SECONDS=${WORKSTATION_SECONDS:-2700} tests/e2e/workstation run tests/e2e/pod_user.sh "$tree" | tee "$cache/pod.log"

# What was seen is what the document says; UPDATE=1 writes it there.
UPDATE=${UPDATE:-} python3 - "$cache/pod.log" docs/THREAT_MODEL.md <<'PY'
import os, re, sys

log, path = open(sys.argv[1], encoding="utf-8").read(), sys.argv[2]
document = new = open(path, encoding="utf-8").read()
for profile, table in re.findall(r"^=== authority (\S+)\n(.*?)^=== end$", log, re.S | re.M):
    place = rf"(<!-- authority {profile} -->\n).*?(<!-- end -->)"
    new = re.sub(place, lambda m: m[1] + table + m[2], new, flags=re.S)
if new != document and os.environ["UPDATE"]:
    open(path, "w", encoding="utf-8").write(new)
elif new != document:
    sys.exit(f"pod: {path} has another table of authority than was seen; UPDATE=1 writes it")
PY
echo "pod: $((SECONDS - began)) s"
