#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# Twenty thousand jobs (FOLLOWERS), each with a follower: none is left waiting. The jobs are null ones, of tombs made
# of SQL; the races are those of the vessel, its database and its clients. The small one is in make check.
set -euo pipefail
cd "$(dirname "$0")/../.."
FOLLOWERS=${FOLLOWERS:-20000} exec tests/support/rig tests/soak/followers.py
