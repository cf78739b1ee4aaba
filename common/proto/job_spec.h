/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Any process. What the spec of a job may have (docs/PROTOCOL.md, "Job spec"), for all who read or
 * write one: lych, the vessel, the tomb, and the sandbox where it means the same.
 */
#ifndef LYCH_COMMON_PROTO_JOB_SPEC_H
#define LYCH_COMMON_PROTO_JOB_SPEC_H

#include "common/attr.h"
#include "common/err.h"
#include "common/str.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPEC_KEYS                                                                        \
	"request_id", "argv", "script", "interpreter", "stdin", "stdin_blob",            \
		"stdin_base64", "stdin_stream", "files", "input", "env", "limits",       \
		"network", "egress", "profile", "artifacts", "priority", "retry",        \
		"deps", "explain", "tty", SPEC_LATER_KEYS
/* Of a later version: refused unless they ask for nothing. */
#define SPEC_LATER_KEYS "grants", "gates", "privacy"
#define SPEC_FILE_KEYS "path", "content", "base64", "blob", "mode"
#define SPEC_TTY_KEYS "cols", "rows", "term", "stays"
#define SPEC_LIMIT_KEYS                                                                  \
	"memory_bytes", "disk_bytes", "output_bytes", "timeout_ms", "processes", "cpus"

/* Sizes in bytes, without a NUL. */
#define SPEC_MAX_BYTES                                                                   \
	((size_t)1 << 20) /* of all of it, as it comes and as it is stored */
#define SPEC_PATH_MAX_BYTES PATH_BYTES_MAX /* of a file, an artifact, an interpreter */
#define REQUEST_ID_MAX_BYTES 128
#define ARG_MAX_BYTES 32768 /* of a string of argv, of a variable's value */
#define ARGV_MAX 256
#define ENV_MAX 128
#define FILES_MAX 1024
#define GLOBS_MAX 64

/* A stdin that comes while the job runs: its name, 32 lower-case hex digits that its client chose. */
#define STREAM_NAME_SIZE 33
/* One part of it, and what the vessel holds of it for a job that does not read. */
#define STREAM_PART_MAX_BYTES ((size_t)256 << 10)
#define STREAM_WINDOW_BYTES ((size_t)512 << 10)

/* A terminal of the job's own: most columns, and rows; the name of its kind (TERM). */
/* Of one whose window nobody knows. */
#define TTY_COLS_DEFAULT 80
#define TTY_ROWS_DEFAULT 24
#define TTY_SIDE_MAX 4096
#define TTY_TERM_SIZE 33
/* The filter between it and a person's lets through what this name promises. */
#define TTY_TERM_DEFAULT "xterm-256color"

/* In the workspace: what `script` is written to. No file of the job may be there. */
#define SCRIPT_NAME ".lychgate-script"
#define INTERPRETER_DEFAULT "/bin/sh"

/* Least, default and ceiling of a job's limits. Where there is no least, it is 1. */
#define LIMIT_MEMORY_MIN ((uint64_t)1 << 20)
#define LIMIT_MEMORY_DEFAULT ((uint64_t)512 << 20)
#define LIMIT_MEMORY_MAX ((uint64_t)64 << 30)
#define LIMIT_CPUS_DEFAULT 1
#define LIMIT_CPUS_MAX 64
#define LIMIT_PROCESSES_DEFAULT 256
#define LIMIT_PROCESSES_MAX 4096
#define LIMIT_TIMEOUT_USEC_MIN ((uint64_t)1000)
#define LIMIT_TIMEOUT_USEC_DEFAULT ((uint64_t)600 * 1000000)
#define LIMIT_TIMEOUT_USEC_MAX ((uint64_t)14400 * 1000000)
#define LIMIT_OUTPUT_DEFAULT ((uint64_t)64 << 20)
#define LIMIT_OUTPUT_MAX ((uint64_t)1 << 30)
#define LIMIT_DISK_MIN ((uint64_t)64 << 10)
#define LIMIT_DISK_DEFAULT ((uint64_t)1 << 30)
#define LIMIT_DISK_MAX ((uint64_t)64 << 30)

/* An absolute path, or a bare name that is no option. ERRID_SPEC_PATH. */
MUST_CHECK int spec_interpreter_check(const char *s, struct err *err);
bool spec_stream_is_valid(const char *name);
/* [A-Za-z0-9][A-Za-z0-9._+-]*, shorter than TTY_TERM_SIZE. */
bool spec_term_is_valid(const char *name);
/* A relative path (path_check_relative()) that is not the script's. ERRID_SPEC_PATH. */
MUST_CHECK int spec_file_check(const char *path, struct err *err);
/* Of all files of a job: no path twice, and none below one that is a file. Sorts them. ERRID_SPEC_PATH. */
MUST_CHECK int spec_paths_check(const char **paths, size_t n, struct err *err);

#endif
