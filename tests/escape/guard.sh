#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone
# timeout: 600
# Jobs that hold locks which their supervision wants, and attack it by number: each is ended within a
# second of the decision, whoever decides or dies, and nobody of its supervision is changed by it. 24 rounds,
# or as many as two minutes take, but every act and every cause; ROUNDS=n: so many. A thousand: tests/soak/hold.sh.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
bin=${LYCH_BIN:-${LYCH_BUILD:-build/release}}
seconds=(120)
[ -z "${ROUNDS:-}" ] || seconds=()
# Real work beside them: six hundred processes of one user.
tests/escape/hold.py "$bin/lych-sandbox" "$bin/tests/escape/try_hold" "${ROUNDS:-24}" "${SEED:-$RANDOM}" "${seconds[@]}"
hold=$?
# Killed before the job had begun.
tests/escape/lost.py "$bin/lych-sandbox" "${TRIES:-20}" || exit 1
exit "$hold"
