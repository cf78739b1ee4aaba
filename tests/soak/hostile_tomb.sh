#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone
# timeout: 1200
# A tomb that was taken over: with its login, its bearer, its leases and the sockets that it sees it reads nothing of
# others, forges no result, and makes nobody wait for a second. hostile_tomb.py has the acts, hostile_storms.py what it
# does as fast as it goes.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec tests/support/rig tests/soak/hostile_tomb.py
