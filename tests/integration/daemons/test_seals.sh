#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# The seals of the audit log, with a real scribe and without a database: each attack on log, checkpoints and
# keys gets the verdict of its own; what a scribe that was killed has left verifies; a third person checks
# proofs with the first public key alone. The cases are in seals.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
build=${LYCH_BUILD:-$PWD/build/${VARIANT:-release}}
dir=$(mktemp -d /tmp/ly-sealed-XXXXXX)
trap 'rm -rf "$dir"' EXIT
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support/python LYCH_BUILD=$build python3 tests/integration/daemons/seals.py "$dir"
