#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 90
# Descriptor 3 of grade floor in a real sandbox: frames that are none, descriptors that come
# along, a second request in flight. Each is refused, the next request of the same job is
# answered, and another job's asks go on. How much others notice: tests/soak/hostile_broker.sh.
CYCLES=0 exec "$(dirname "$0")/../../soak/hostile_broker.sh" floor
