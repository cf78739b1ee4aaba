#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The bypass cases of docs/EGRESS.md in a network of its own, with a name server and servers that lie.
set -euo pipefail
cd "$(dirname "$0")/../../.."
command -v ip >/dev/null || { echo "iproute2 is missing"; exit 77; }
unshare -Urnm true 2>/dev/null || { echo "no user namespaces here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unshare -Urnm env PYTHONPATH=tests/support/python python3 tests/integration/broker/egress_bypass.py \
	"${LYCH_BUILD:-build/release}/tests/support/fetch_drive" "$work"
