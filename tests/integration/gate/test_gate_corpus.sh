#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# The gate over a labelled corpus (tests/support/python/gate_corpus.py): recall, precision, false alarms
# in Debian's own Python sources, encodings; recall and precision again from three other seeds.
# The bounds are issue 5's; docs/GATE.md has the tables.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec python3 tests/support/python/gate_corpus.py --program "$LYCH_BUILD/tests/support/gate_measure" --seed "${SEED:-5}" \
	--other-seeds "${OTHER_SEEDS:-1009,2003,3001}"
