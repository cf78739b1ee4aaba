/* SPDX-License-Identifier: Apache-2.0 */
/* timeout: 180 */
/* Every test of the queue, the workers' calls through the vessel's door. */
#define THROUGH_VESSEL 1
#define SUITE queue_vessel
#include "vessel/db/migrate.h"

#include "tests/integration/queue/test_queue_lives.c"
#include "tests/integration/queue/test_queue_locks.c"
#include "tests/integration/queue/test_queue_sql.c"
