/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * A job's spec as it comes out of the queue -> what the tomb needs. The vessel has
 * validated it and stored it as canonical JSON; it is parsed strictly all the same,
 * since the queue is another process's memory.
 */
#ifndef LYCH_TOMB_SPEC_SPEC_H
#define LYCH_TOMB_SPEC_SPEC_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/id.h"
#include "common/json/tty_read.h"
#include "common/proto.h"
#include "common/proto/broker_proto.h"
#include "common/proto/job_spec.h"
#include "tomb/spec/deps.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tomb_file {
	char *path;
	char *data; /* NULL when it is a blob */
	size_t len;
	char blob[SHA256_HEX_SIZE]; /* "" when data */
	unsigned mode;		    /* 0644 or 0755 */
};

struct tomb_env {
	char *name, *value;
};

struct tomb_spec {
	char **argv; /* empty when there is a script */
	size_t n_argv;
	char *script, *interpreter;
	char *stdin_data; /* NULL: none */
	size_t stdin_len;
	char stdin_blob[SHA256_HEX_SIZE];
	bool stdin_stream; /* it comes while the job runs */
	struct tty_wish tty;
	char input_blob[SHA256_HEX_SIZE];
	struct tomb_file *files;
	size_t n_files;
	struct tomb_env *env;
	size_t n_env;
	char **globs;
	size_t n_globs;
	bool read_only; /* profile read: the workspace is mounted read-only */
	bool explain;	/* --explain for the sandbox of the job */
	bool loopback;	/* network loopback, else none */
	enum egress_mode egress;
	struct deps deps;
	uint64_t memory_bytes, disk_bytes, output_bytes, timeout_ms;
	unsigned processes, cpus;
};

MUST_CHECK int tomb_spec_parse(const void *json, size_t len, struct tomb_spec *ret,
			       struct err *err);
void tomb_spec_done(struct tomb_spec *s);

/* What the sandbox is told: NUL-terminated strings, one after the other. */
enum tomb_spec_use {
	SPEC_USE_UNPACK,
	SPEC_USE_DEPS_FETCH,
	SPEC_USE_DEPS_INSTALL,
	SPEC_USE_JOB,
};
/* The broker that this sandbox has. */
enum egress_mode tomb_spec_egress(const struct tomb_spec *s, enum tomb_spec_use use);
/* What is the tomb's word, not the spec's. */
struct tomb_spec_place {
	enum sbx_grade grade;
	const char *workspace; /* relative to the tomb's jobs directory ("42.1/work") */
	const char *tools;     /* the directory of the broker's clients, as we see it */
	const struct broker_key *key; /* for the variables of a job that has a broker */
	/* One variable more in it, and its value (common/crypto/planted.h); NULL: none. */
	const char *planted_as, *planted;
};
MUST_CHECK int tomb_spec_block(const struct tomb_spec *s, enum tomb_spec_use use,
			       const struct tomb_spec_place *place, struct buf *out,
			       struct err *err);

#endif
