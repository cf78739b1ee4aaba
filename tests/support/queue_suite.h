/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The suite that the tests of the queue share: a cluster with two tombs, the door beside it
 * when the workers' calls go through the vessel (THROUGH_VESSEL), an empty queue before each
 * test, and no broken invariant after it. SUITE is the suite's name.
 */
#ifndef LYCH_TESTS_SUPPORT_QUEUE_SUITE_H
#define LYCH_TESTS_SUPPORT_QUEUE_SUITE_H

#ifndef THROUGH_VESSEL
#define THROUGH_VESSEL 0
#endif
#include "common/cleanup.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include "tests/support/door_client.h"
#include "tests/support/migrated.h"
#include "tests/support/pgtest.h"
#include "tests/support/queue_calls.h"
#include "vessel/db/migrate.h"
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t door_pid;

/* tests/support/door beside us; ready when it says so. */
static void start_door(void)
{
	char path[256], word[16] = "";
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	int out[2];

	cr_assert(len > 0 && pipe(out) == 0);
	path[len] = '\0';
	char *at = strstr(path, "/tests/integration/");
	cr_assert(at && str_copy(at, (size_t)(path + sizeof(path) - at),
				 "/tests/support/door") == 0);
	char *dir = xstrdup(pgtest_path("."));
	door_pid = fork();
	if (door_pid == 0) {
		(void)dup2(out[1], STDOUT_FILENO);
		(void)close(out[0]);
		(void)close(out[1]);
		execl(path, "door", dir, "tomb_1", "tomb_2", (char *)NULL);
		_exit(127);
	}
	(void)close(out[1]);
	cr_assert(read(out[0], word, sizeof(word) - 1) == 6, "the door: '%s'", word);
	(void)close(out[0]);
	free(dir);
}

ReportHook(PRE_ALL)(struct criterion_test_set *set UNUSED)
{
	static const char *const tombs[] = {"tomb_1", "tomb_2"};

	migrated_start(tombs, 2);
	if (THROUGH_VESSEL)
		start_door();
}

ReportHook(POST_ALL)(struct criterion_global_stats *stats UNUSED)
{
	if (door_pid > 0) {
		(void)kill(door_pid, SIGTERM);
		(void)waitpid(door_pid, NULL, 0);
	}
	pgtest_stop();
}

/* Each test begins with an empty queue. */
static void begin(void)
{
	pgtest_lock();
	root = pgtest_connect("lych_migrate");
	vessel = pgtest_connect("lych_vessel");
	tomb = pgtest_connect("tomb_1");
	tomb2 = pgtest_connect("tomb_2");
	if (THROUGH_VESSEL) {
		door_client_init(&door, pgtest_path("."), "tomb_1");
		door_client_init(&door2, pgtest_path("."), "tomb_2");
	}
	(void)pgtest_ask(root,
			 "TRUNCATE lych.job, lych.containment, lych.payload, "
			 "lych.attempt, lych.lease, lych.result,"
			 " lych.job_blob, lych.audit_outbox, lych.vessel_owner;"
			 "UPDATE lych.worker_queue SET tokens = 400, claim_burst = 400,"
			 " claim_rate = 200, max_leases = 64;"
			 "UPDATE lych.audit_state SET acked_xid = 9223372036854775807,"
			 " ok_until = 'infinity'");
}

static void end(void)
{
	cr_expect_str_eq(pgtest_ask(root, "SELECT sum(bad) FROM lych.invariants()"), "0");
	PQfinish(root);
	PQfinish(vessel);
	PQfinish(tomb);
	PQfinish(tomb2);
}

TestSuite(SUITE, .init = begin, .fini = end, .timeout = 60);

#endif
