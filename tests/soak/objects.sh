#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone
# timeout: 2400
# Every kind of kernel object that a job can make, made as fast as it goes, in both grades and without a
# cgroup: the job is ended, or what it holds is bounded at its limit and 128 MiB, by the machine's
# MemAvailable. KINDS="locks udp": some of them; GRADES=full; EACH_SEC=20.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${LYCH_BUILD:-$PWD/build/${VARIANT:-release}}
[ "$(id -u)" -ne 0 ] || { echo "must not run as root"; exit 1; }
read -ra kinds <<<"${KINDS:-}"
exec python3 tests/escape/objects.py "$build/lych-sandbox" "$build/tests/escape/try_objects" ${kinds[@]+"${kinds[@]}"}
