/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/egress_pulse.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/mman.h>

struct egress_pulse {
	_Atomic uint32_t beats;
};

int egress_pulse_new(struct egress_pulse **ret, struct err *err)
{
	void *page = mmap(NULL, sizeof(**ret), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return err_sys(err, "a shared page");
	*ret = page;
	return 0;
}

void egress_pulse_free(struct egress_pulse *p)
{
	if (p)
		(void)munmap(p, sizeof(*p));
}

void egress_pulse_beat(struct egress_pulse *p)
{
	if (p)
		atomic_fetch_add(&p->beats, 1);
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
	*h = (struct egress_heard){.beats = atomic_load(&p->beats)};
	watch_begin(&h->watch, clock_awake_usec(), first_usec);
}

bool egress_heard_look(struct egress_heard *h, const struct egress_pulse *p)
{
	uint32_t beats = atomic_load(&p->beats);

	if (beats != h->beats && h->began)
		watch_heard(&h->watch);
	else if (beats != h->beats)
		watch_begin(&h->watch, clock_awake_usec(), WATCH_SILENCE_USEC);
	h->began |= beats != h->beats;
	h->beats = beats;
	return watch_look(&h->watch, clock_awake_usec(), false);
}
