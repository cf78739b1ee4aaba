/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A question of some megabytes keeps a worker busy for a second, and nothing interrupts it. So
 * there are two workers: small questions wait for small ones only, whoever asks what beside
 * them. All that a job has asked and has no answer to waits in one lane, since its questions must
 * see each other: when a large one comes, that is the large ones' lane.
 */
#include "vessel/broker/gate/client.h"
#include "common/mem.h"
#include "vessel/broker/gate/lane.h"

struct gate_client {
	struct gate_lane *lane[GATE_LANES_MAX_];
};

struct gate_client *gate_client_new(const struct gate_client_config *cfg)
{
	struct gate_client *c = xnew(struct gate_client);

	for (unsigned i = 0; i < GATE_LANES_MAX_; i++)
		c->lane[i] = gate_lane_new(cfg, (enum gate_lanes)i);
	gate_lane_pair(c->lane[GATE_SMALL], c->lane[GATE_LARGE]);
	return c;
}

void gate_client_free(struct gate_client *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < GATE_LANES_MAX_; i++)
		gate_lane_free(c->lane[i]);
	free(c);
}

void gate_client_attach(struct gate_client *c, enum gate_lanes which, int fd,
			struct reading *note)
{
	gate_lane_attach(c->lane[which], fd, note);
}

bool gate_client_is_up(const struct gate_client *c)
{
	return gate_lane_is_up(c->lane[GATE_SMALL]) &&
	       gate_lane_is_up(c->lane[GATE_LARGE]);
}

void gate_client_set_private(struct gate_client *c, const struct gate_private *p)
{
	for (unsigned i = 0; i < GATE_LANES_MAX_; i++)
		gate_lane_set_private(c->lane[i], p);
}

static enum gate_lanes lane_for(struct gate_client *c, struct gate_job *job,
				const struct gate_parts *parts)
{
	struct gate_turn *t = job ? gate_job_turn(job) : NULL;
	enum gate_lanes by_size =
		parts->bytes + gate_lane_unpacks_to(parts) > GATE_SMALL_BYTES
			? GATE_LARGE
			: GATE_SMALL;

	if (!t)
		return by_size;
	if (gate_turn_waiting(t) == 0)
		t->is_large = by_size == GATE_LARGE;
	/* without its worker it is refused, and the others stay where they are */
	if (by_size == GATE_LARGE && !t->is_large &&
	    gate_lane_is_up(c->lane[GATE_LARGE])) {
		t->is_large = true;
		gate_lane_move(c->lane[GATE_SMALL], job);
	}
	return t->is_large ? GATE_LARGE : by_size;
}

int gate_client_ask(struct gate_client *c, struct gate_job *job, const char *destination,
		    struct gate_parts *parts, gate_ask_done *done, void *arg,
		    struct gate_ask **ret, struct err *err)
{
	return gate_lane_ask(c->lane[lane_for(c, job, parts)], job, destination, parts,
			     done, arg, ret, err);
}

void gate_client_cancel(struct gate_ask *a)
{
	gate_lane_cancel(a);
}

struct gate_client_figures gate_client_figures(const struct gate_client *c)
{
	struct gate_client_figures sum = gate_lane_figures(c->lane[GATE_SMALL]);
	struct gate_client_figures more = gate_lane_figures(c->lane[GATE_LARGE]);

	sum.passed += more.passed;
	sum.anonymised += more.anonymised;
	sum.refused += more.refused;
	sum.failed += more.failed;
	sum.bytes += more.bytes;
	for (unsigned i = 0; i < GATE_FAMILY_MAX_; i++)
		sum.findings[i] += more.findings[i];
	sum.scan_usec += more.scan_usec;
	sum.restarts += more.restarts;
	return sum;
}
