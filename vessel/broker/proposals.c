/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See proposals.h.
 */
#include "vessel/broker/proposals.h"
#include "common/host.h"
#include "common/mem.h"
#include "common/str.h"

#include <string.h>

#define PORT_HTTPS 443u

struct proposals {
	struct proposal *one[PROPOSALS_MAX]; /* by number */
	size_t n;
	uint64_t last;
};

struct proposals *proposals_new(void)
{
	return xnew(struct proposals);
}

static void proposal_free(struct proposal *one)
{
	free(one->host);
	free(one->path);
	free(one);
}

void proposals_free(struct proposals *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		proposal_free(p->one[i]);
	free(p);
}

/* Whatever else the request is judged by: only this is ever kept, or allowed. */
static bool is_plain(const struct ward_ask *ask)
{
	return ask->target == WARD_HOST && ask->https && ask->port == PORT_HTTPS &&
	       ask->host && ask->method && ask->path &&
	       host_is_name(ask->host, strlen(ask->host)) && strchr(ask->host, '.') &&
	       ask->path[0] == '/' && strlen(ask->method) < PROPOSAL_METHOD_SIZE &&
	       strlen(ask->path) <= PROPOSAL_PATH_MAX_BYTES;
}

static struct proposal *find_ask(const struct proposals *p, job_id_t job, int64_t epoch,
				 const struct ward_ask *ask)
{
	for (size_t i = 0; i < p->n; i++) {
		struct proposal *one = p->one[i];

		if (one->job == job && one->epoch == epoch &&
		    str_eq(one->method, ask->method) && str_eq(one->host, ask->host) &&
		    str_eq(one->path, ask->path))
			return one;
	}
	return NULL;
}

/* Not of the attempt itself, which would make itself room so. */
static bool make_room(struct proposals *p, job_id_t job, int64_t epoch)
{
	if (p->n < PROPOSALS_MAX)
		return true;
	for (size_t i = 0; i < p->n; i++) {
		struct proposal *one = p->one[i];

		if (one->state == PROPOSAL_ONCE || one->state == PROPOSAL_JOB ||
		    (one->job == job && one->epoch == epoch))
			continue;
		proposal_free(one);
		memmove(&p->one[i], &p->one[i + 1],
			(p->n - i - 1) * sizeof(struct proposal *));
		p->n--;
		return true;
	}
	return false;
}

static struct proposal *add(struct proposals *p, job_id_t job, int64_t epoch,
			    const struct ward_ask *ask)
{
	struct proposal *one = xnew(struct proposal);

	one->number = ++p->last;
	one->job = job;
	one->epoch = epoch;
	(void)!str_copy(one->method, sizeof(one->method), ask->method);
	one->host = xstrdup(ask->host);
	one->path = xstrdup(ask->path);
	p->one[p->n++] = one;
	return one;
}

uint64_t proposals_note(struct proposals *p, job_id_t job, int64_t epoch,
			const struct ward_ask *ask, usec_t wall_now,
			struct proposals_made *made, bool *ret_new)
{
	struct proposal *one;

	*ret_new = false;
	if (!is_plain(ask))
		return 0;
	one = find_ask(p, job, epoch, ask);
	if (!one) {
		if (made->n >= PROPOSALS_JOB_MAX || !make_room(p, job, epoch))
			return 0;
		one = add(p, job, epoch, ask);
		one->first_usec = wall_now;
		made->n++;
		*ret_new = true;
	}
	one->times++;
	one->last_usec = wall_now;
	if (one->state == PROPOSAL_USED)
		one->state = PROPOSAL_OPEN;
	return one->number;
}

uint64_t proposals_take(struct proposals *p, job_id_t job, int64_t epoch,
			const struct ward_ask *ask)
{
	struct proposal *one = is_plain(ask) ? find_ask(p, job, epoch, ask) : NULL;

	if (!one || (one->state != PROPOSAL_ONCE && one->state != PROPOSAL_JOB))
		return 0;
	if (one->state == PROPOSAL_ONCE)
		one->state = PROPOSAL_USED;
	return one->number;
}

/* ---- for a person ------------------------------------------------------------ */

size_t proposals_count(const struct proposals *p)
{
	return p->n;
}

const struct proposal *proposals_at(const struct proposals *p, size_t i)
{
	return p->one[i];
}

bool proposal_is_shown(const struct proposal *one)
{
	return one->state != PROPOSAL_USED && one->state != PROPOSAL_DROPPED;
}

const char *proposal_state_name(enum proposal_state s)
{
	static const char *const names[] = {
		[PROPOSAL_OPEN] = "open",	[PROPOSAL_ONCE] = "once",
		[PROPOSAL_JOB] = "job",		[PROPOSAL_USED] = "used",
		[PROPOSAL_DROPPED] = "dropped",
	};

	return names[s];
}

static struct proposal *find(const struct proposals *p, uint64_t number)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->one[i]->number == number && proposal_is_shown(p->one[i]))
			return p->one[i];
	return NULL;
}

int proposals_find(const struct proposals *p, uint64_t number,
		   const struct proposal **ret, struct err *err)
{
	*ret = find(p, number);
	return *ret ? 0
		    : err_set_id(err, ERRID_PROPOSAL_GONE, "%llu",
				 (unsigned long long)number);
}

int proposals_set(struct proposals *p, uint64_t number, enum proposal_state to,
		  struct err *err)
{
	struct proposal *one = find(p, number);

	if (!one)
		return err_set_id(err, ERRID_PROPOSAL_GONE, "%llu",
				  (unsigned long long)number);
	one->state = to;
	return 0;
}
