#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# Each command that README, docs, a manual or a --help shows has a row in pages.tsv, which says what is done with it, and each
# row a command; every option, command and target that a page names is there. First made-up pages, each with a sin.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
build=${LYCH_BUILD:-build/${VARIANT:-release}}
dir=$(mktemp -d /tmp/ly-doc-XXXXXX)
trap 'rm -rf "$dir"' EXIT
here=tests/integration/documents
# what is to be copied into codex.yaml is acceptable, and says of which day its prices are
presets=0
for preset in examples/portals/*.yaml; do
	mkdir -p "$dir/config/lychgate"
	install -m 0600 "$preset" "$dir/config/lychgate/codex.yaml"
	env XDG_CONFIG_HOME="$dir/config" LYCHGATE_DATA="$dir/data" "$build/lych" config check >"$dir/said" 2>&1 || { echo "FAIL $preset: $(cat "$dir/said")"; exit 1; }
	grep -qE 'input: "0"|as of 20[0-9]{2}-[0-9]{2}-[0-9]{2}' "$preset" || { echo "FAIL $preset: of which day are the prices?"; exit 1; }
	presets=$((presets + 1))
done
[ "$presets" -ge 3 ] || { echo "FAIL $presets presets"; exit 1; }
python3 $here/seeds.py "$build" . "$dir" || exit 1
python3 $here/seeds_typed.py "$build" . "$dir" || exit 1
python3 $here/documents.py check "$build" . || {
	echo "rows for new commands, to be filled in ($here/pages.tsv says how):"
	python3 $here/documents.py rows "$build" .
	exit 1
}
