/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * What a job may name as its dependencies (`deps` of the job spec). Names, versions and
 * hashes, never a URL, a path, an option or a marker: what is fetched comes from the
 * registries of codex.yaml or not at all.
 */
#ifndef LYCH_COMMON_PROTO_DEPS_H
#define LYCH_COMMON_PROTO_DEPS_H

#include "common/attr.h"
#include <stdbool.h>
#include <stddef.h>

#define DEPS_MAX 256 /* of a kind */
#define DEPS_TEXT_MAX 1024
/* Of crates and modules, which may be all that a lock file names. */
#define DEPS_LOCKED_MAX 4096

/* PEP 508 as far as a name, extras and version clauses (PEP 440) go, and pip's hashes:
 * "six", "six==1.16.0", "uvicorn[standard]>=0.20,<1", "six==1.16.0 --hash=sha256:<64 hex>".
 * A direct reference ("x @ https://…") and an environment marker are none of it. */
bool deps_is_requirement(const char *s);
/* "left-pad", "left-pad@1.3.0", "@babel/core@^7.0.0": a name and a version, range or tag
 * of one clause. An alias, a tarball, a directory and a git address are none of it. */
bool deps_is_npm(const char *s);

/*
 * A crate as cargo's manifests name it: "serde", "serde@1.0" (which is ^1.0), "serde@=1.0.210",
 * "serde[derive]@1" with a feature more than its default ones, "serde[]@1" without any; and with
 * " --hash=sha256:<64 hex>" that version alone, whose crate has this digest. No path, no git
 * address, no other registry. Everything points into s.
 */
struct deps_crate {
	const char *name, *features, *version,
		*sha256;			    /* the last three: NULL, not said */
	size_t name_len, features_len, version_len; /* version with its operator */
};
/* As Cargo.lock names the one registry; the mirror stands in its place. */
#define DEPS_CRATES_IO "registry+https://github.com/rust-lang/crates.io-index"
bool deps_read_crate(const char *s, struct deps_crate *ret);
bool deps_is_crate(const char *s);
/*
 * A module of Go and its version in full, "example.org/tiny@v1.0.0", or with a hash a line of
 * go.sum: "example.org/tiny@v1.0.0 h1:<base64>" of what is in it, and "…@v1.0.0/go.mod h1:<base64>"
 * of its go.mod, which names no dependency by itself. Capitals as they are. Points into s.
 */
struct deps_module {
	const char *path, *version, *h1; /* h1 with "h1:"; NULL: none */
	size_t path_len, version_len;
	bool is_mod;
};
bool deps_read_module(const char *s, struct deps_module *ret);
bool deps_is_module(const char *s);

#endif
