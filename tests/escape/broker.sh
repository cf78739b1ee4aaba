#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# The way to the broker is no way out: where it is, who has which side of it, and that a job can
# neither take it over nor reach another job's. Judged by whoever plays the tomb (broker.py).
# Needs the programs in LYCH_BUILD (build/release), python3, and not to be root.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
bin=${LYCH_BUILD:-build/release}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
lie=$(realpath "$bin/tests/support/lie") || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 tests/escape/broker.py "$sandbox" "$lie" "$scratch"
