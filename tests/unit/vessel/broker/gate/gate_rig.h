/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatcher's side of the gate, and workers in processes of their own. */
#ifndef LYCH_TESTS_UNIT_VESSEL_BROKER_GATE_GATE_RIG_H
#define LYCH_TESTS_UNIT_VESSEL_BROKER_GATE_GATE_RIG_H

#include "common/net/loop.h"
#include "common/worker/pulse.h"
#include "vessel/broker/gate/client.h"
#include "vessel/gate/worker.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct loop *loop;
static struct gate_client *client;
static pid_t worker = -1, large_worker = -1;
static unsigned n_away, n_died;
static struct egress_pulse *worker_pulse; /* of the next one that is started */
static struct reading_note died;

static inline void on_away(const struct err *why, void *arg)
{
	(void)why;
	(void)arg;
	n_away++;
}

static inline void on_died(const char *name, const struct reading_note *note,
			   void *arg UNUSED)
{
	cr_expect_str_eq(name, "gate");
	died = *note;
	n_died++;
}

typedef int worker_fn(int fd, struct egress_pulse *pulse, void *arg);

static inline pid_t start_one(worker_fn *fn, enum gate_lanes which)
{
	int fds[2];
	pid_t pid;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		(void)close(fds[0]);
		_exit(fn(fds[1], worker_pulse, NULL));
	}
	(void)close(fds[1]);
	cr_assert_eq(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	gate_client_attach(client, which, fds[0], egress_pulse_reading(worker_pulse));
	return pid;
}

static inline void start_worker(worker_fn *fn)
{
	worker = start_one(fn, GATE_SMALL);
}

static inline void begin(void)
{
	struct gate_client_config cfg = {.portal_threshold = 0.4,
					 .forbidden_threshold = 0.7,
					 .on_away = on_away,
					 .on_died = on_died};

	(void)signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(loop_new(&loop, NULL), 0);
	cfg.loop = loop;
	client = gate_client_new(&cfg);
}

static inline void end(void)
{
	gate_client_free(client);
	for (int i = 0; i < 2; i++) {
		pid_t pid = i ? large_worker : worker;
		int status = 0;

		if (pid > 0)
			cr_expect_eq(waitpid(pid, &status, 0), pid);
	}
	loop_free(loop);
}

#endif
