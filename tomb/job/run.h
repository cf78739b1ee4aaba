/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * One job under way: what runner.c (events, reports) and deliver.c (transfers) share.
 */
#ifndef LYCH_TOMB_JOB_RUN_H
#define LYCH_TOMB_JOB_RUN_H

#include "common/buf.h"
#include "common/crypto/planted.h"
#include "common/proto/broker_proto.h"
#include "tomb/broker/proxy.h"
#include "tomb/files/files.h"
#include "tomb/files/harvest.h"
#include "tomb/job/blob.h"
#include "tomb/job/denials.h"
#include "tomb/job/job.h"
#include "tomb/job/relay.h"
#include "tomb/job/runner.h"
#include "tomb/job/stdin_pipe.h"
#include "tomb/spec/spec.h"
#include "tomb/tls/tls.h"

struct run {
	struct run *next;
	struct runner *runner;
	const struct runner_world *world;
	struct job job;
	struct lease_key key;
	struct lease *lease;
	size_t note;	     /* of the lease, for a successor; 0: none */
	struct err spec_err; /* the spec could not be read */
	struct tomb_spec spec;
	char folder[FILES_JOB_SIZE]; /* "42.1" */
	bool made;		     /* it was asked for: it is to be removed */
	struct file_task *task;	     /* about the folder; NULL: none */
	struct relay *relay;
	struct buf words;	       /* what tar said */
	struct stdin_pipe *stdin_pipe; /* of a stdin that is streamed */
	bool has_terminal;	       /* it came */
	struct denials denials;
	uint64_t handle; /* of the spawner; 0: none */
	bool handed;	 /* that handle is known to the spawner */
	/* egress: the job's broker, while it runs, and its key */
	struct proxy *proxy;
	/* grade full: who ends the TLS of its tunnels, and the certificate of that; begun with the
	 * folder, and waited for where the job starts */
	struct tls_job *tls;
	char *ca_pem;
	struct err ca_err; /* there will be none */
	bool waits_for_ca;
	struct proxy_refused broker_refused;
	struct broker_key broker_key;
	struct planted planted;
	struct work_call *phase_call;
	/* downloads */
	size_t fetch_next;
	struct blob_get *get;
	bool placed; /* the files of the spec are in the workspace */
	int get_fd;
	/* harvest and uploads */
	struct harvest harvest;
	bool harvested;
	size_t put_next;
	struct blob_put *put;
	int put_fd;
	bool uploaded, flushed;
	struct loop_timer *late; /* of a step before the run */
	usec_t late_usec;
	/* the end */
	struct buf report;
	bool report_written;
	bool end_pending; /* the queue's answer is on its way to us */
	struct loop_timer *end_again, *reap;
};

/* The machine takes ev, and what it wants is done. */
void run_simple(struct run *run, enum job_event_type type);
/* The vessel says (ERR_GONE) that the lease stands no more. */
void run_gone(struct run *run, const struct err *err);
/* The tomb could not do its part. */
void run_trouble(struct run *run, enum fail_class class, bool retry, bool nothing_runs,
		 const struct err *err);

/* deliver.c */
void run_prepare(struct run *run);
void run_unpack(struct run *run);
void run_deps_fetch(struct run *run);
void run_deps_install(struct run *run);
void run_start(struct run *run);
void run_harvest(struct run *run);
void run_deliver(struct run *run);
/* Who would have to do something now, in words; before the run. */
void run_waits_for(const struct run *run, char *out, size_t size);
void run_phase(struct run *run, const char *phase);
void run_abort(struct run *run);

/* A transfer of the run, which is arg, can't go on. */
void run_transfer_trouble(const struct err *why, void *arg);

/* stdio.c. The writing ends, the caller's, of pipes that are read from now on; each may stay as it
 * is: stdout is the same as stderr then, and of a job that is to have a terminal there is neither. */
MUST_CHECK int run_outputs(struct run *run, enum tomb_spec_use use, int *ret_out,
			   int *ret_errs, struct err *err);
/* The other side of the job's own terminal, which is taken. */
void run_terminal(struct run *run, int master);

/* trust.c: of a job that may ask, in grade full; else they do nothing. */
void run_begin_tls(struct run *run);
/* false: it is not there yet, and run_start() is called again; or it never comes, which was told. */
bool run_has_ca(struct run *run);
void run_end_tls(struct run *run);
/* The folder and the copies; EVENT_CLEANED when they are gone, or can't be removed. */
void run_clean(struct run *run);

#endif
