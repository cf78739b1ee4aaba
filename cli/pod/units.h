/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The units of one profile, rendered in memory, and what is required of each before it may
 * be installed: a template that was changed or forgotten must not open a wall in silence.
 */
#ifndef LYCH_CLI_POD_UNITS_H
#define LYCH_CLI_POD_UNITS_H

#include "cli/pod/unit_template.h"
#include "common/attr.h"
#include "common/conf/conf.h"
#include "common/err.h"
#include "common/id.h"
#include <stdbool.h>
#include <stddef.h>

#define UNIT_NAME_MAX 64
#define UNITS_MAX 64

struct unit {
	char name[UNIT_NAME_MAX]; /* "lychgate-tomb.container" */
	char *text;
	size_t len;
	char sha256[SHA256_HEX_SIZE];
};

struct unit_set {
	struct unit unit[UNITS_MAX]; /* by name */
	size_t n;
};

/* "lychgate" or "lychgate-x", and a suffix that Quadlet knows, ".path" or ".service". */
bool unit_name_is_ours(const char *name);
/* ".path" and ".service": systemd's own, on the host, and nothing of Podman's. */
bool unit_is_of_host(const char *name);
/* Where this release's templates of a profile are: PREFIX/lib/lychgate/quadlet/PROFILE
 * beside PREFIX/bin/lych, else quadlet/PROFILE of the tree that lych was built in. */
MUST_CHECK int units_find_templates(const char *profile, char **ret, struct err *err);
/* Render every *.in of a directory that nobody else can write; host: units of the host,
 * else of Quadlet. They are added to what is there. */
MUST_CHECK int units_render(const char *dir, bool host, const struct unit_values *v,
			    struct unit_set *ret, struct err *err);
/* Directories and files of the host that units may mount. */
struct unit_world {
	const char *data, *runtime, *config;
	const char *lych;   /* this program */
	char *const *mount; /* checked already (mounts.h); for the tomb only */
	size_t n_mounts;
	const char *jobs_dir;	 /* checked already; for the tomb only; NULL: none */
	const char *authorities; /* checked already; for the vessel only; NULL: none */
	bool sovereign;
	bool egress;	  /* codex.yaml names somebody to ask ... */
	bool egress_host; /* ... on this machine too */
};
/* units_check.c. ERRID_BIND_UNIT with unit and line. */
MUST_CHECK int units_check(const struct unit_set *s, const struct unit_world *w,
			   struct err *err);
/* The image of a room ("vessel"): as configured, else of that label (NULL: this
 * release's). Caller frees. */
char *unit_image(const char *room, const struct conf_unit *u,
		 const char *label) MUST_CHECK;
void units_done(struct unit_set *s);
#define cleanup_units __attribute__((cleanup(units_done)))

const struct unit *units_find(const struct unit_set *s, const char *name);
/* The service that Quadlet makes of a unit: "lychgate.pod" -> "lychgate-pod.service". */
MUST_CHECK int unit_service(const char *name, char *out, size_t size, struct err *err);
/* The names of the secrets that the units mount, each once. Caller frees the array, the
 * names and nothing else. */
void units_secrets(const struct unit_set *s, char ***ret, size_t *ret_n);

/* One "Key=value" line after the other: copies of at most the sizes given, false at the
 * end. Comments and blank lines are passed over. Begin with line = 0, at = unit->text. */
struct unit_line {
	const char *at;
	unsigned number;
	char section[32], key[64], value[8192];
};
MUST_CHECK bool unit_next_line(struct unit_line *l);

#endif
