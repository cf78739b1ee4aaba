#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# Receipts, with a real scribe and without a database: what lych-audit says of a file that was changed, cut, sent as another kind of
# file or is of another log, and that a third person in another language, who is first tried by the vectors of RFC 6962
# and RFC 8032, says the same with the public key alone. The cases are in receipts.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
build=${LYCH_BUILD:-$PWD/build/${VARIANT:-release}}
dir=$(mktemp -d /tmp/ly-receipts-XXXXXX)
trap 'rm -rf "$dir"' EXIT
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support/python:tests/integration/daemons LYCH_BUILD=$build python3 tests/integration/daemons/receipts.py "$dir"
