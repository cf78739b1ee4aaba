#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# Each command that README, docs, a manual or a --help shows has a row in pages.tsv, which says what is done with it, and each
# row a command; every option, command and target that a page names is there.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
build=${LYCH_BUILD:-build/${VARIANT:-release}}
here=tests/integration/documents
python3 $here/documents.py check "$build" . || {
	echo "rows for new commands, to be filled in ($here/pages.tsv says how):"
	python3 $here/documents.py rows "$build" .
	exit 1
}
