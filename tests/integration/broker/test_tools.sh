#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# lych-ask and lych-fetch as a job finds them, in both grades, against a tomb that is played
# (tools.py) and that also answers badly: what they print, and how they end.
# Needs the programs in LYCH_BUILD (build/release), python3, and not to be root.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
bin=${LYCH_BUILD:-build/release}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
tools=$(realpath "$bin/tools") || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 tests/integration/broker/tools.py "$sandbox" "$tools" "$scratch"
