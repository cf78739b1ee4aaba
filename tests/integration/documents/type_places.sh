#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# type_places.sh PLACE...: typed.py in a directory of its own. Nothing stays: what a place started is stopped there (places.sh).
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
[ "$(id -u)" -ne 0 ] || { echo "must not run as root"; exit 1; }
# Sockets have short names: a path of at most 107 bytes.
dir=$(mktemp -d /tmp/ly-doc-XXXXXX)
end() {
	chmod -R u+rwx "$dir"
	rm -rf "$dir"
} 2>/dev/null
trap end EXIT
python3 tests/integration/documents/typed.py "${LYCH_BUILD:-build/${VARIANT:-release}}" . "$dir" "$@"
