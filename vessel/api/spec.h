/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A job's description: untrusted JSON in, a checked struct and its one
 * canonical text out. Pure: no I/O, no clock. docs/PROTOCOL.md "Job spec" is the
 * rule; the tomb gets the canonical text and nothing else.
 */
#ifndef LYCH_VESSEL_API_SPEC_H
#define LYCH_VESSEL_API_SPEC_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/conf/conf.h"
#include "common/err.h"
#include "common/json/deps_read.h"
#include "common/json/json.h"
#include "common/json/tty_read.h"
#include "common/proto/job_spec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spec_file {
	const char *path;
	const char *content, *base64, *blob; /* exactly one */
	bool executable;		     /* mode 0755, else 0644 */
};

struct spec_env {
	const char *name, *value;
};

/* Strings are borrowed from `root`. */
struct spec {
	struct json *root;
	char request_id[REQUEST_ID_MAX_BYTES + 1]; /* "" when the client gave none */
	const char **argv;
	size_t n_argv;	    /* 0 with a script */
	const char *script; /* NULL with argv */
	const char *interpreter;
	/* at most one of the four; the last is the name of what comes while the job runs */
	const char *stdin_text, *stdin_blob, *stdin_base64, *stdin_stream;
	struct tty_wish tty;
	struct spec_file *files; /* in the order given */
	size_t n_files;
	const char *input;    /* sha256 or NULL */
	struct spec_env *env; /* sorted by name */
	size_t n_env;
	uint64_t memory_bytes, disk_bytes, output_bytes, timeout_ms, processes, cpus;
	bool network_loopback;
	struct deps deps;
	enum egress_mode egress;
	const char *profile;
	const char **artifacts;
	size_t n_artifacts;
	unsigned priority;
	bool retry_on_lost;
	bool explain; /* record refused files and connections too */
};

/* On failure *ret is empty. Defaults and ceilings come from conf, and whether a job
 * with egress could be permitted anything at all (ERRID_WARD_EMPTY). */
MUST_CHECK int spec_parse(const void *data, size_t len, const struct conf *conf,
			  struct spec *ret, struct err *err);
void spec_done(struct spec *s);
#define cleanup_spec __attribute__((cleanup(spec_done)))

/* The client gave no request_id: this one (checked by the same rule). */
MUST_CHECK int spec_set_request_id(struct spec *s, const char *request_id,
				   struct err *err);
/* Defaults filled in, keys in a fixed order. ERRID_SPEC_SIZE above SPEC_MAX_BYTES. */
MUST_CHECK int spec_write(const struct spec *s, struct buf *out, struct err *err);

/* The blobs it names: 0 .. spec_blobs()-1. */
size_t spec_blobs(const struct spec *s);
const char *spec_blob(const struct spec *s, size_t i);

#endif
