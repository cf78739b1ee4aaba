#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A job with a terminal of its own (lych-sandbox --tty): what it can do there, what it cannot do to the terminal of the
# person who started it, and how that is given back. See own_terminal.py.
exec python3 tests/escape/own_terminal.py "${LYCH_BUILD:-build/release}/lych-sandbox"
