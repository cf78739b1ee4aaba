#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# All bypass cases of docs/EGRESS.md from inside a job: Lychgate as a whole (PostgreSQL, scribe, vessel with its
# workers, tomb) in a network of its own, whose name server and servers lie; a job of grade full that asks
# http://127.0.0.1:8787/fetch for each. Judged by what the job was told, by the audit log, by the servers, and by
# the packets on the wire and on loopback.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v ip >/dev/null || { echo "iproute2 is missing"; exit 77; }
unshare -Urnm true 2>/dev/null || { echo "no user namespaces here"; exit 77; }
work=$(mktemp -d /tmp/ly-by-XXXXXX)
trap 'chmod -R u+rwx "$work"; rm -rf "$work"' EXIT
unshare -Urnm env PYTHONPATH=tests/support/python python3 -B tests/soak/bypass_job.py \
	"$(realpath "${LYCH_BUILD:-build/release}")" "$work"
