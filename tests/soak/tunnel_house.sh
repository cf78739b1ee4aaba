#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# docs/TUNNEL_CASES.md with Lychgate as a whole (PostgreSQL, scribe, vessel with its workers, tomb) in a network of its own: a job attacks
# its HTTPS proxy, judged by what it was told and by what the host outside got; another job's requests go on.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v ip >/dev/null || { echo "iproute2 is missing"; exit 77; }
unshare -Urnm true 2>/dev/null || { echo "no user namespaces here"; exit 77; }
work=$(mktemp -d /tmp/ly-th-XXXXXX)
trap 'chmod -R u+rwx "$work"; rm -rf "$work"' EXIT
unshare -Urnm env PYTHONPATH=tests/support/python python3 -B tests/soak/tunnel_house.py \
	"$(realpath "${LYCH_BUILD:-build/release}")" "$work"
