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
python3 $here/seeds.py "$build" . "$dir" || exit 1
python3 $here/seeds_typed.py "$build" . "$dir" || exit 1
python3 $here/documents.py check "$build" . || {
	echo "rows for new commands, to be filled in ($here/pages.tsv says how):"
	python3 $here/documents.py rows "$build" .
	exit 1
}
