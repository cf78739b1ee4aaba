/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The authority of one job: its TLS process is asked for together with the job's folder, and
 * waited for where the job starts, which needs the certificate among its files.
 */
#include "tomb/job/run.h"

#include "common/mem.h"

#include <stdlib.h>

static void ca_came(const char *pem, const struct err *why, void *arg)
{
	struct run *run = arg;

	if (pem)
		run->ca_pem = xstrdup(pem);
	else
		run->ca_err = *why;
	if (run->waits_for_ca && run->job.step == STEP_START && !run->job.killing)
		run_start(run);
}

void run_begin_tls(struct run *run)
{
	if (run->world->tls && run->spec.egress != EGRESS_NONE)
		run->tls = tls_job_new(run->world->tls, ca_came, run);
}

bool run_has_ca(struct run *run)
{
	bool failed = err_is_set(&run->ca_err);

	run->waits_for_ca = run->tls && !run->ca_pem && !failed;
	if (failed)
		run_trouble(run, FAIL_TRANSPORT_LOSS, true, true, &run->ca_err);
	return !run->waits_for_ca && !failed;
}

void run_end_tls(struct run *run)
{
	tls_job_free(run->tls);
	run->tls = NULL;
	free(run->ca_pem);
	run->ca_pem = NULL;
	run->waits_for_ca = false;
}
