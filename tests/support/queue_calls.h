/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue's calls as its tests make them: the workers' through the door that the program
 * is for (THROUGH_VESSEL), everybody else's as SQL. For one test program, which has the
 * cluster and the door started.
 */
#ifndef LYCH_TESTS_SUPPORT_QUEUE_CALLS_H
#define LYCH_TESTS_SUPPORT_QUEUE_CALLS_H

#include "common/cleanup.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include "tests/support/door_client.h"
#include "tests/support/pgtest.h"
#include <criterion/criterion.h>
#include <stdio.h>

#define BOOT "00000000-0000-4000-8000-00000000b001"
#define VESSEL "00000000-0000-4000-8000-00000000feed"

static PGconn *root, *vessel, *tomb, *tomb2;
static struct door_client door, door2;

#define expect(got, want) cr_expect_str_eq((got), (want))

static inline const char *submit(const char *request, const char *retry)
{
	return pgtest_askp(vessel,
			   "SELECT job_id FROM vessel_api.enqueue('main', $1,"
			   " '{\"argv\":[\"true\"]}', 50, $2::boolean, 600, 1000)",
			   request, retry, NULL);
}

/* What a claim gave; the text lives as long as the test's process. */
struct held {
	const char *job, *epoch, *token;
};

static inline const char *keep(const char *text)
{
	static char kept[256][200];
	static size_t n;

	cr_assert_lt(n, ARRAY_SIZE(kept));
	cr_assert_eq(str_copy(kept[n], sizeof(kept[n]), text), 0);
	return kept[n++];
}

static inline const struct door_client *door_of(PGconn *c)
{
	return c == tomb2 ? &door2 : &door;
}

/* An answer must come: nobody kills the door here. */
static inline const char *told(const char *answer)
{
	cr_assert_not_null(answer, "no answer of the door");
	return answer;
}

static inline struct held claim_through_vessel(PGconn *c)
{
	struct door_client_job job = {0};
	struct uuid id;

	uuid_new(&random_real, &id);
	cr_assert_geq(door_client_claim(door_of(c), 1, 30, BOOT, id.s, &job), 0);
	free(job.spec);
	return (struct held){keep(job.job), keep(job.epoch), keep(job.token)};
}

/* Claim one job as this tomb; job is "" when there was none. */
static inline struct held claim(PGconn *c)
{
	if (THROUGH_VESSEL)
		return claim_through_vessel(c);
	const char *const id[] = {pgtest_uuid()};
	PGresult *r = PQexecParams(c,
				   "SELECT job_id, epoch, token FROM"
				   " tomb_api.claim('main', 1, 30, '" BOOT "', $1::uuid)",
				   1, NULL, id, NULL, NULL, 0);
	bool any = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1;
	struct held h = {
		.job = keep(any ? PQgetvalue(r, 0, 0) : ""),
		.epoch = keep(any ? PQgetvalue(r, 0, 1) : ""),
		.token = keep(any ? PQgetvalue(r, 0, 2) : ""),
	};

	PQclear(r);
	return h;
}

static inline int by_job(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline const char *claim_by_login(PGconn *c, unsigned ask, const char *boot,
					 const char *claim_id)
{
	char text[200] = "", many[16], row[2][80] = {{0}};
	const char *rows[2] = {row[0], row[1]};
	const char *const params[] = {many, boot, claim_id};

	(void)snprintf(many, sizeof(many), "%u", ask);
	PGresult *r =
		PQexecParams(c,
			     "SELECT job_id, epoch, token FROM tomb_api.claim('main',"
			     " $1::int, 30, $2::uuid, $3::uuid)",
			     3, NULL, params, NULL, NULL, 0);
	cr_assert_eq(PQresultStatus(r), PGRES_TUPLES_OK, "%s", PQresultErrorMessage(r));
	cr_assert_leq(PQntuples(r), 2);
	for (int i = 0; i < PQntuples(r); i++)
		(void)snprintf(row[i], sizeof(row[i]), "%s.%s.%s", PQgetvalue(r, i, 0),
			       PQgetvalue(r, i, 1), PQgetvalue(r, i, 2));
	if (PQntuples(r) == 2)
		qsort(rows, 2, sizeof(rows[0]), by_job);
	(void)snprintf(text, sizeof(text), "%s%s%s", rows[0], *rows[1] ? " " : "",
		       rows[1]);
	PQclear(r);
	return keep(text);
}

/* Up to n jobs by this boot and claim_id, as one text: "job.epoch.token job.epoch.token". */
static inline const char *claim_as(PGconn *c, unsigned ask, const char *boot,
				   const char *claim_id)
{
	struct door_client_job jobs[2] = {0};
	char text[200] = "";
	size_t at = 0;

	if (!THROUGH_VESSEL)
		return claim_by_login(c, ask, boot, claim_id);
	int n = door_client_claim(door_of(c), ask, 30, boot, claim_id, jobs);
	cr_assert_geq(n, 0);
	bool swap = n == 2 && strcmp(jobs[0].job, jobs[1].job) > 0;
	for (int i = 0; i < n; i++) {
		const struct door_client_job *j = &jobs[swap ? 1 - i : i];

		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s.%s.%s",
				       i ? " " : "", j->job, j->epoch, j->token);
		free(j->spec);
	}
	return keep(text);
}

static inline const char *claim_two(PGconn *c, const char *claim_id)
{
	return claim_as(c, 2, BOOT, claim_id);
}

static inline const char *ack_bytes(PGconn *c, struct held h, const char *result,
				    size_t len)
{
	const char *const values[] = {h.job, h.epoch, h.token, result};
	const int lengths[] = {0, 0, 0, (int)len}, formats[] = {0, 0, 0, 1};

	if (THROUGH_VESSEL)
		return told(door_client_end(door_of(c), "ack", h.job, h.epoch, h.token,
					    result, len));
	PGresult *r = PQexecParams(
		c, "SELECT tomb_api.ack($1::bigint, $2::bigint, $3::uuid, $4::bytea)", 4,
		NULL, values, lengths, formats, 0);
	const char *s = keep(PQntuples(r) == 1 ? PQgetvalue(r, 0, 0) : "ERROR");
	PQclear(r);
	return s;
}

static inline const char *ack(PGconn *c, struct held h, const char *result)
{
	return ack_bytes(c, h, result, strlen(result));
}

static inline const char *fail(struct held h, const char *retry, const char *class)
{
	char target[96];

	if (THROUGH_VESSEL) {
		(void)snprintf(target, sizeof(target), "fail?retry=%s%s%s",
			       retry[0] == 't' ? "true" : "false",
			       class[0] ? "&class=" : "", class);
		return told(
			door_client_end(&door, target, h.job, h.epoch, h.token, "{}", 2));
	}
	return pgtest_askp(
		tomb,
		"SELECT tomb_api.fail($1::bigint, $2::bigint, $3::uuid, $4::boolean,"
		" $5, '{}')",
		h.job, h.epoch, h.token, retry, class, NULL);
}

static inline const char *release(struct held h)
{
	if (THROUGH_VESSEL)
		return told(door_client_end(&door, "release", h.job, h.epoch, h.token, "",
					    0));
	return pgtest_askp(tomb,
			   "SELECT tomb_api.release($1::bigint, $2::bigint, $3::uuid)",
			   h.job, h.epoch, h.token, NULL);
}

/* What the successor of a tomb that died says. */
static inline const char *died(PGconn *c, struct held h)
{
	if (THROUGH_VESSEL)
		return told(door_client_end(door_of(c), "release?died=true", h.job,
					    h.epoch, h.token, "", 0));
	return pgtest_askp(
		c, "SELECT tomb_api.release($1::bigint, $2::bigint, $3::uuid, true)",
		h.job, h.epoch, h.token, NULL);
}

static inline const char *extend(PGconn *c, struct held h)
{
	if (THROUGH_VESSEL)
		return told(door_client_extend(door_of(c), 30, BOOT, h.job, h.epoch,
					       h.token));
	return pgtest_askp(c,
			   "SELECT status FROM tomb_api.extend('" BOOT
			   "', ARRAY[$1::bigint],"
			   " ARRAY[$2::bigint], ARRAY[$3::uuid], 30)",
			   h.job, h.epoch, h.token, NULL);
}

static inline const char *state(const char *job)
{
	return pgtest_askp(
		vessel, "SELECT state || '/' || class FROM vessel_api.show($1::bigint)",
		job, NULL);
}

static inline const char *cancel(const char *job)
{
	return pgtest_askp(vessel, "SELECT * FROM vessel_api.cancel($1::bigint)", job,
			   NULL);
}

/* Let the lease run out and reap without grace. */
static inline const char *lose(const char *job)
{
	(void)pgtest_ask(vessel, "SELECT vessel_api.vessel_beat('" VESSEL "')");
	(void)pgtest_askp(root,
			  "UPDATE lych.lease SET expires_at = now() - interval '1 s'"
			  " WHERE job_id = $1::bigint",
			  job, NULL);
	return pgtest_ask(vessel,
			  "SELECT count(*) FROM vessel_api.reap('" VESSEL "', 100, 0)");
}

static inline void ready_now(void)
{
	(void)pgtest_ask(root,
			 "UPDATE lych.job SET run_at = now() WHERE state = 'queued'");
}

#endif
