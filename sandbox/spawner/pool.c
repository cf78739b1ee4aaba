/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner.
 * The warm sandboxes: how many, of which kind, and when the next is built.
 */
#include "sandbox/spawner/serve.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "sandbox/contract/meminfo.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define REVIEW_USEC (10 * USEC_PER_SEC)
/* After a start or an end: the next start may follow at once. While jobs run, so long that a short
 * one is over: on two processors a sandbox that is being made takes from it what it came to save. */
#define BUILD_DELAY_USEC (3 * USEC_PER_MSEC)
#define BUILD_DELAY_BUSY_USEC (20 * USEC_PER_MSEC)
#define RETRY_USEC USEC_PER_SEC
/* Below this much memory that could be had, nothing is built in advance. */
#define MEMORY_SHORT_BYTES ((uint64_t)256 << 20)

void pool_init(struct pool *p, const struct spawner_place *place, unsigned max,
	       int meminfo_fd, const char *cgroup, struct endings *endings)
{
	*p = (struct pool){.max = max < POOL_MAX ? max : POOL_MAX,
			   .jobs_dir = place->jobs_dir,
			   .meminfo_fd = meminfo_fd,
			   .endings = endings};
	p->want = p->max ? 1 : 0;
	p->review_at = clock_boot_usec() + REVIEW_USEC;
	sbx_spec_init(&p->shape);
	p->shape.grade = place->grade;
	p->shape.tools = place->tools;
	p->shape.hostname = xstrdup(SBX_HOSTNAME);
	p->shape.cgroup = cgroup ? xstrdup(cgroup) : NULL;
	p->shape.cgroup_fd = place->cgroup_fd;
}

static bool fits(const struct pool *p, const struct sbx_spec *spec)
{
	return spec->grade == p->shape.grade && spec->net == p->shape.net &&
	       !spec->explain && spec->tmp_bytes == p->shape.tmp_bytes &&
	       spawner_template_fits(spec);
}

static unsigned ready(const struct pool *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->n; i++)
		n += p->warm[i].ready;
	return n;
}

/* The order does not matter: all are alike. */
static struct keeper take_out(struct pool *p, unsigned i)
{
	struct keeper k = p->warm[i].keeper;

	p->warm[i] = p->warm[--p->n];
	return k;
}

bool pool_take(struct pool *p, const struct sbx_spec *spec, struct keeper *ret)
{
	if (!p->max || !fits(p, spec))
		return false;
	p->busy_at = clock_boot_usec();
	for (unsigned i = 0; i < p->n; i++) {
		if (!p->warm[i].ready)
			continue;
		*ret = take_out(p, i);
		if (ready(p) < p->spare)
			p->spare = ready(p);
		return true;
	}
	p->spare = 0;
	if (p->want < p->max)
		p->want++;
	return false;
}

static void drop_one(struct pool *p, unsigned i)
{
	struct keeper k = take_out(p, i);

	endings_add(p->endings, &k);
}

void pool_on_event(struct pool *p, unsigned i)
{
	union {
		uint32_t type;
		struct spawn_refused refused;
	} m = {0};
	ssize_t n = recv(p->warm[i].keeper.sock, &m, sizeof(m), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == sizeof(m.type) && m.type == KEEPER_READY && !p->warm[i].ready) {
		p->warm[i].ready = true;
		return;
	}
	/* A job that is started cold meets the same obstacle and is refused by name. */
	if (n == sizeof(m.refused) && m.type == SPAWN_REFUSED)
		log_warn("no warm sandbox: %s: %s: %s", m.refused.error_code,
			 m.refused.stage, m.refused.text);
	else
		log_warn("no warm sandbox: its keeper ended");
	drop_one(p, i);
	p->retry_at = clock_boot_usec() + RETRY_USEC;
}

static bool memory_is_short(const struct pool *p)
{
	struct meminfo m;

	return meminfo_read(p->meminfo_fd, &m) < 0 || m.available < MEMORY_SHORT_BYTES;
}

static void review(struct pool *p, usec_t now)
{
	if (now < p->review_at)
		return;
	p->review_at = now + REVIEW_USEC;
	p->want = p->want > p->spare + 1 ? p->want - p->spare : 1;
	if (memory_is_short(p))
		p->want = 0;
	p->spare = ready(p);
}

static void build_one(struct pool *p, usec_t now)
{
	const struct sbx_birth birth = {.spec = &p->shape,
					.warm = true,
					.jobs_dir = p->jobs_dir,
					.templated = true,
					.stdio = {-1, -1, -1},
					.null_fd = STDIN_FILENO,
					.meminfo_fd = p->meminfo_fd,
					.workspace = -1,
					.rules = {.fd = -1}};
	struct err err = ERR_INIT;

	if (seccomp_prepare(&p->shape, &err) < 0 ||
	    keeper_start(&birth, &p->warm[p->n].keeper, &err) < 0) {
		log_err(LOG_WARN_, "no warm sandbox", &err);
		p->retry_at = now + RETRY_USEC;
	} else {
		p->warm[p->n++].ready = false;
	}
}

static usec_t build_at(const struct pool *p, bool jobs_run)
{
	usec_t at = p->busy_at + (jobs_run ? BUILD_DELAY_BUSY_USEC : BUILD_DELAY_USEC);

	return at > p->retry_at ? at : p->retry_at;
}

void pool_after_end(struct pool *p)
{
	p->busy_at = clock_boot_usec();
}

usec_t pool_turn(struct pool *p, bool jobs_run)
{
	usec_t now = clock_boot_usec(), at = build_at(p, jobs_run);

	if (!p->max)
		return USEC_INFINITY;
	review(p, now);
	if (p->n > p->want && ready(p) == p->n)
		drop_one(p, 0);
	/* One at a time: the next when this one is ready. */
	if (p->n < p->want && ready(p) == p->n) {
		if (now < at)
			return at;
		build_one(p, now);
	}
	return p->review_at;
}

void pool_done(struct pool *p)
{
	while (p->n)
		drop_one(p, p->n - 1);
	fd_close(&p->meminfo_fd);
	p->shape.cgroup_fd = -1; /* borrowed */
	sbx_spec_done(&p->shape);
}
