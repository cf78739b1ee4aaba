#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# The attempts of run.sh in a job that has a terminal of its own.
GRADES=full TTY=1 exec tests/escape/run.sh
