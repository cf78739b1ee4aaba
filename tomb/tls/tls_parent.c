/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the TLS parent.
 * The parent of the TLS processes (tomb/tls/tls.h). It is asked by one byte and answers with the
 * tomb's end of a new process's socket; it reads nothing that anybody else wrote. Its end is that
 * of its children: by their death signal, and by the end of their sockets.
 */
#include "tomb/tls/tls.h"

#include "common/cleanup.h"
#include "common/confine/confine.h"
#include "common/confine/probe.h"
#include "common/fdpass.h"
#include "common/log.h"
#include "common/net/children.h"
#include "common/str.h"
#include "tomb/tls/tls_ca.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* A job that makes handshakes without end shares the processor with nobody's but its own. */
#define NICE 10

int tls_confine(bool parent, struct err *err)
{
	const struct confine_policy policy = {
		.name = parent ? "TLS parent" : "TLS process",
		.private_root = parent,
		.may_fork = parent,
		.below_parent = !parent,
	};
	static const char *const foreign[] = {"/etc/passwd", "/proc/self", "/tmp", NULL};
	struct confine_report walls;

	if (confine_self(&policy, err) < 0)
		return -1;
	return confine_selftest(&policy, foreign, &walls, err);
}

void tls_probe(const struct tls_place *place UNUSED, const char *process UNUSED)
{
#ifdef LYCH_TEST_BUILD
	struct confine_probe p;

	if (!place->probe_process || !str_eq(place->probe_process, process))
		return;
	p = *place->probe;
	confine_probe_run(&p);
#endif
}

static int process(int end, void *arg)
{
	return tls_process_run(arg, end);
}

/* One that could not be begun is the trouble of one job. */
static int one_more(int control, void *arg)
{
	cleanup_close int fd = children_fork(process, arg);
	const struct tls_reply r = {.word = fd < 0 ? TLS_BUSY : TLS_DONE};

	if (fd < 0)
		log_warn("a TLS process could not be started: %s", strerror(errno));
	return fdpass_send(control, &r, sizeof(r), &fd, fd < 0 ? 0 : 1, 0);
}

int tls_parent_run(const struct tls_place *place, int control)
{
	struct tls_reply r = {.word = TLS_READY};
	struct tls_place mine = *place;
	struct err err = ERR_INIT;
	int signals = -1, code;

	children_keep(control, -1);
	log_init("tls", LOG_INFO_);
	if (children_begin("lych-tls", &signals, &err) < 0 || tls_ca_warm(&err) < 0 ||
	    (setpriority(PRIO_PROCESS, 0, NICE) < 0 &&
	     err_sys(&err, "lower the priority") < 0) ||
	    tls_confine(true, &err) < 0) {
		log_err(LOG_ERROR_, "cannot start", &err);
		r = (struct tls_reply){.word = TLS_FAILED, .err = err};
		(void)!fdpass_send(control, &r, sizeof(r), NULL, 0, 0);
		code = err_exit_code(&err);
	} else {
		tls_probe(&mine, "tls-parent");
		code = fdpass_send(control, &r, sizeof(r), NULL, 0, 0) < 0
			       ? EXIT_FAILURE
			       : children_serve(control, signals, "TLS process", one_more,
						&mine);
	}
	fd_close(&signals);
	return code;
}
