#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone
# timeout: 600
# A vessel with its real workers, gate, database and scribe, and every request wrong: each place of each
# dialect, intent and route x each wrong value, several at once, damaged bytes, odd heads; and answers
# of providers and registries that are. As many as fit in a minute; MALFORMED=1000000: so many. SEED=N
# repeats a run. What is found is kept in build/VARIANT/malformed.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec tests/support/rig tests/soak/malformed.py log_statement=none
