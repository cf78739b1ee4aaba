#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# An agent reads the history of a project, sixty pages of it, and sends all that it has read at each turn: what is in
# every history (addresses of authors, digests of commits and packages, numbers of bugs) is replaced and never refuses,
# and a token in it does. The vessel's whole way (tests/support/gate/gate_talk.c), the history made here.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec python3 -B tests/support/python/gate_history.py --program "$LYCH_BUILD/tests/support/gate/gate_talk" --seed "${SEED:-1}"
