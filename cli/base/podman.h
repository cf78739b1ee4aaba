/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Podman and the user's systemd, run as programs. They are looked for in $PATH, and get
 * the environment that systemd would give them (proc_env), not this shell's. Refusals are
 * ERRID_BIND_PODMAN unless said otherwise.
 */
#ifndef LYCH_CLI_BASE_PODMAN_H
#define LYCH_CLI_BASE_PODMAN_H

#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct podman {
	char *program, *systemctl; /* systemctl NULL: there is none */
	char **env;
	unsigned major, minor;
	char version[32];
	bool installs; /* `podman quadlet install`: 5.6 */
	bool replaces; /* its --replace */
};

/* Find it and ask for its version; below 5.4 is refused. */
MUST_CHECK int podman_open(struct podman *p, struct err *err);
void podman_done(struct podman *p);
#define cleanup_podman __attribute__((cleanup(podman_done)))

/* args is NULL-terminated, without the program. Any end but exit 0 is an error with what
 * it said. *ret_output (may be NULL): stdout and stderr, caller frees. */
MUST_CHECK int podman_run(const struct podman *p, const char *const *args,
			  char **ret_output, struct err *err);
/* `systemctl --user args`. */
MUST_CHECK int podman_systemctl(const struct podman *p, const char *const *args,
				char **ret_output, struct err *err);

/* The names and ids of all secrets. */
struct podman_secret {
	char name[128], id[80];
};
MUST_CHECK int podman_secrets(const struct podman *p, struct podman_secret **ret,
			      size_t *ret_n, struct err *err);
/* The digest of a secret's value, which is read piece by piece, kept nowhere and wiped. */
MUST_CHECK int podman_secret_digest(const struct podman *p, const char *name,
				    uint8_t ret[SHA256_SIZE], struct err *err);

/* An executable of that name in $PATH (caller frees); NULL: there is none. */
char *podman_find_program(const char *name) MUST_CHECK;

#endif
