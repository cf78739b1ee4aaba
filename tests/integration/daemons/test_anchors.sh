#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# The anchors of the audit log, with a real scribe and without a database: the log is cut, rewritten by its own key, put
# back, gone on with; the anchor is cut, edited, forged, exchanged, on a full disk; each gets the verdict of its own,
# and what a crash or a restart leaves gets none. The cases are in anchors.py.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh

if [ "${1:-}" != inside ]; then
	place=$(mktemp -d /tmp/ly-anc-XXXXXX)
	trap 'rm -rf "$place"' EXIT
	enter=(unshare --user --map-current-user --keep-caps --mount)
	"${enter[@]}" mount -t tmpfs -o size=4m,mode=0700 none "$place" 2>/dev/null ||
		skip "an unprivileged mount is refused here"
	# the disk of one anchor is small
	# shellcheck disable=SC2016
	"${enter[@]}" sh -c 'umask 077 && mkdir "$1/small" && mount -t tmpfs -o size=64k,mode=0700 none "$1/small" &&
		exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$2" inside "$1"' sh "$place" "$0"
	exit $?
fi
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support/python LYCH_BUILD=${LYCH_BUILD:-$LYCH_BIN} python3 tests/integration/daemons/anchors.py "$2"
