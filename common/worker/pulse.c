/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel, the egress worker and the gate worker.
 * See pulse.h.
 */
#include "common/worker/pulse.h"

#include "common/mem.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

struct shared {
	_Atomic uint32_t beats;
	struct reading_page note;
};

/* Of each process by itself: what the other may write holds no pointer. */
struct egress_pulse {
	struct shared *shared;
	struct reading reading;
};

int egress_pulse_new(struct egress_pulse **ret, struct err *err)
{
	struct shared *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return err_sys(err, "a shared page");
	*ret = xnew(struct egress_pulse);
	(*ret)->shared = page;
	(*ret)->reading.page = &page->note;
	return 0;
}

void egress_pulse_free(struct egress_pulse *p)
{
	if (p)
		(void)munmap(p->shared, sizeof(*p->shared));
	free(p);
}

void egress_pulse_beat(struct egress_pulse *p)
{
	if (p)
		atomic_fetch_add(&p->shared->beats, 1);
}

struct reading *egress_pulse_reading(struct egress_pulse *p)
{
	return p ? &p->reading : NULL;
}

void egress_pulse_wait(struct egress_pulse *p, int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	do
		egress_pulse_beat(p);
	while (poll(&poll_fd, 1, WATCH_BEAT_USEC / USEC_PER_MSEC) == 0);
}

void egress_heard_begin(struct egress_heard *h, const struct egress_pulse *p,
			usec_t first_usec)
{
	*h = (struct egress_heard){.beats = atomic_load(&p->shared->beats)};
	watch_begin(&h->watch, clock_awake_usec(), first_usec);
}

bool egress_heard_look(struct egress_heard *h, const struct egress_pulse *p)
{
	uint32_t beats = atomic_load(&p->shared->beats);

	if (beats != h->beats && h->began)
		watch_heard(&h->watch);
	else if (beats != h->beats)
		watch_begin(&h->watch, clock_awake_usec(), WATCH_SILENCE_USEC);
	h->began |= beats != h->beats;
	h->beats = beats;
	return watch_look(&h->watch, clock_awake_usec(), false);
}
