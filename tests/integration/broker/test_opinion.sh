#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# The gate's second opinion: a local model behind a portal of kind classifier, which is asked by a real vessel and its egress worker,
# can only refuse, and refuses when it does not answer. The cases are in opinion.py, the model in tests/support/python/classifier.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec tests/support/rig tests/integration/broker/opinion.py
