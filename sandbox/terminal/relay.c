/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the relay.
 * See relay.h.
 */
#include "sandbox/terminal/relay.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/proto.h"
#include "common/term/filter.h"
#include "sandbox/terminal/relay_walls.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>

#define BYTES 4096
/* After the job's end: a terminal that takes nothing for so long is not waited for. */
#define STALL_MAX_MSEC (RELAY_STALL_SEC * 1000)
/* Before a pause: of the same. */
#define SETTLE_MAX_MSEC 200
#define IS_GONE (POLLHUP | POLLERR | POLLNVAL)

struct relay {
	int parent, person, job; /* job -1: not there yet */
	struct term_filter filter;
	char typed[BYTES], shown[TERM_FILTER_ROOM(BYTES)];
	size_t typed_at, typed_n, shown_at, shown_n; /* what is still to be passed on */
	bool used; /* something of the job's was shown */
};

/* One of the terminals is hung up, or the parent is gone. */
NORETURN static void leave(struct relay *r)
{
	explicit_bzero(r->typed, sizeof(r->typed));
	_exit(0);
}

static bool may_come_again(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void say(struct relay *r, uint32_t word)
{
	if (write(r->parent, &word, sizeof(word)) != sizeof(word))
		leave(r);
}

/* ---- bytes ---------------------------------------------------------------------------- */

/* In the background the kernel stops who reads, before it counts the bytes that were asked for: so
 * we come back from here when the terminal is ours (relay.h). */
static void await_front(struct relay *r)
{
	ssize_t n = read(r->person, &(char){0}, 0);

	if (n < 0 && !may_come_again(n))
		leave(r); /* of an orphaned process group nobody could let us go on */
}

static void show(struct relay *r)
{
	ssize_t n;

	await_front(r);
	n = write(r->person, r->shown + r->shown_at, r->shown_n);
	if (may_come_again(n))
		return;
	if (n <= 0)
		leave(r);
	r->used = true;
	r->shown_at += (size_t)n;
	r->shown_n -= (size_t)n;
}

/* What the job asked, and the filter answers in the terminal's place, goes before what is typed
 * next. */
static void take_replies(struct relay *r)
{
	if (r->typed_n)
		return;
	r->typed_at = 0;
	r->typed_n = term_filter_replies(&r->filter, r->typed, sizeof(r->typed));
}

/* false: there is nothing. */
static bool take_output(struct relay *r)
{
	char some[BYTES];
	ssize_t n = read(r->job, some, sizeof(some));

	if (n <= 0)
		return false;
	r->shown_at = 0;
	r->shown_n = term_filter(&r->filter, some, (size_t)n, r->shown);
	take_replies(r);
	return true;
}

static void pass_on_typed(struct relay *r)
{
	ssize_t n = write(r->job, r->typed + r->typed_at, r->typed_n);

	if (n <= 0)
		return; /* it has no room, and will say when it has */
	r->typed_at += (size_t)n;
	r->typed_n -= (size_t)n;
	if (r->typed_n)
		return;
	explicit_bzero(r->typed, sizeof(r->typed));
	take_replies(r);
}

static void take_typed(struct relay *r)
{
	ssize_t n = read(r->person, r->typed, sizeof(r->typed));

	if (may_come_again(n))
		return;
	if (n <= 0)
		leave(r);
	term_filter_typed(&r->filter, r->typed, (size_t)n);
	r->typed_at = 0;
	r->typed_n = (size_t)n;
	pass_on_typed(r);
}

/* ---- words ---------------------------------------------------------------------------- */

/* What the filter has let through is shown whole: a sequence that is cut would have its rest shown
 * later, as text. */
static void settle(struct relay *r, int wait_msec)
{
	struct pollfd p = {.fd = r->person, .events = POLLOUT};

	while (r->shown_n) {
		int n = poll(&p, 1, wait_msec);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		if (p.revents & IS_GONE)
			leave(r);
		show(r);
	}
}

/* Nobody is left who could write: what there is, is all. */
static void show_the_rest(struct relay *r)
{
	do {
		settle(r, STALL_MAX_MSEC);
		if (r->shown_n)
			return;
	} while (r->job >= 0 && take_output(r));
}

static void say_used(struct relay *r)
{
	say(r, r->used ? RELAY_USED : RELAY_CLEAN);
	r->used = false;
}

static uint32_t hear(struct relay *r, int *ret_fd)
{
	int fds[FDPASS_MAX] = FDPASS_NONE;
	unsigned n_fds = 0;
	uint32_t word = 0;
	ssize_t n;

	do
		n = fdpass_recv(r->parent, &word, sizeof(word), fds, &n_fds, 0);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(word))
		leave(r);
	*ret_fd = fds[0];
	return word;
}

static void obey(struct relay *r)
{
	int fd = -1;
	uint32_t word = hear(r, &fd);

	if ((word == RELAY_BEGIN || word == RELAY_BEGIN_ASCII) && r->job < 0) {
		r->job = fd;
		r->filter.is_ascii = word == RELAY_BEGIN_ASCII;
	} else if (word == RELAY_PAUSE) {
		settle(r, SETTLE_MAX_MSEC);
		say_used(r);
		while (hear(r, &fd) != RELAY_GO_ON)
			;
	} else if (word == RELAY_END) {
		show_the_rest(r);
		say(r, r->shown_n ? RELAY_LOST : r->used ? RELAY_USED : RELAY_CLEAN);
		leave(r);
	}
}

/* ---- the loop ------------------------------------------------------------------------- */

enum { FROM_PARENT, FROM_PERSON, FROM_JOB, SOURCES };

static void watch(const struct relay *r, struct pollfd p[SOURCES])
{
	p[FROM_PARENT] = (struct pollfd){.fd = r->parent, .events = POLLIN};
	p[FROM_PERSON] = (struct pollfd){.fd = r->person};
	p[FROM_JOB] = (struct pollfd){.fd = r->job};
	if (r->job >= 0 && !r->typed_n)
		p[FROM_PERSON].events |= POLLIN;
	if (r->typed_n)
		p[FROM_JOB].events |= POLLOUT;
	if (r->shown_n)
		p[FROM_PERSON].events |= POLLOUT;
	else
		p[FROM_JOB].events |= POLLIN;
}

static void pass_on(struct relay *r, const struct pollfd p[SOURCES])
{
	if ((p[FROM_PERSON].revents | p[FROM_JOB].revents) & IS_GONE)
		leave(r);
	if (p[FROM_PERSON].revents & POLLOUT)
		show(r);
	if ((p[FROM_JOB].revents & POLLIN) && !r->shown_n && take_output(r) && r->shown_n)
		show(r);
	if ((p[FROM_JOB].revents & POLLOUT) && r->typed_n)
		pass_on_typed(r);
	if ((p[FROM_PERSON].revents & POLLIN) && !r->typed_n)
		take_typed(r);
}

void relay_main(int person, int parent_sock, pid_t parent)
{
	static struct relay r;
	struct err err = ERR_INIT;

	r.parent = parent_sock;
	r.person = person;
	r.job = -1;
	if (relay_walls(person, parent_sock, parent, &err) < 0)
		_exit(EXIT_SETUP); /* no word of it is said: the parent says why */
	say(&r, RELAY_READY);
	for (;;) {
		struct pollfd p[SOURCES];

		watch(&r, p);
		if (poll(p, SOURCES, -1) < 0)
			continue;
		pass_on(&r, p);
		if (p[FROM_PARENT].revents)
			obey(&r);
	}
}
