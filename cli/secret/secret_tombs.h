/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The tombs of a store: each has a generation there, and two secrets made from it
 * (common/crypto/tomb_secret.h). Who makes them: `lych up`, `lych bind`, `lych secret`.
 */
#ifndef LYCH_CLI_SECRET_SECRET_TOMBS_H
#define LYCH_CLI_SECRET_SECRET_TOMBS_H

#include "cli/secret/secret.h"
#include "common/crypto/tomb_secret.h"

#define SECRET_TOMBS_MAX 64

struct secret_tombs {
	char name[SECRET_TOMBS_MAX][TOMB_NAME_SIZE];
	size_t n;
};

/* Those with a generation. */
MUST_CHECK int secret_tombs_list(struct secret_store *s, struct secret_tombs *ret,
				 struct err *err);
enum secret_tomb_want {
	SECRET_TOMB_AS_IT_IS, /* what generation and masters give; ERRID_SECRET_MISSING */
	SECRET_TOMB_MAKE,     /* the same, and the first generation when there is none */
	SECRET_TOMB_NEXT,     /* the next generation */
};
/* Writes what is not as it should be, the generation first: what is missing after a crash is
 * made by the next call. */
MUST_CHECK int secret_tomb_set(struct secret_store *s, const char *tomb,
			       enum secret_tomb_want want, struct err *err);
/* Every tomb that is there. */
MUST_CHECK int secret_tombs_set(struct secret_store *s, enum secret_tomb_want want,
				struct err *err);
/* Every tomb's secrets are what they should be, and this one's are there. Where no tomb has
 * any, the masters are made anew first: a release before this gave them to its tombs. */
MUST_CHECK int secret_tombs_prepare(struct secret_store *s, const char *tomb,
				    struct err *err);
bool secret_is_tombs_master(const char *name);
/* Is this value (a generation, or one of a tomb's secrets) what it should be? */
MUST_CHECK int secret_tomb_judge(struct secret_store *s, const char *name,
				 const struct secret_value *v, struct err *err);

#endif
