#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# The second factor: who has no proof, a wrong one or one that was used is refused, whatever program he is; the
# passphrase is taken from a terminal and from nothing else. The cases are in passphrase.py.
exec "$(dirname "$0")/../../support/rig" tests/integration/broker/passphrase.py
