/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * What the vessel may ask of the host: these words, and nothing beside them. A file of
 * reactor/ holds one word and a newline; its name is ID.intent, ID a version 4 UUID.
 */
#ifndef LYCH_COMMON_PROTO_INTENT_H
#define LYCH_COMMON_PROTO_INTENT_H

#include "common/attr.h"
#include <stdbool.h>
#include <stddef.h>

enum intent {
	INTENT_RESTART_TOMB,
	INTENT_STOP_TOMB, /* until somebody starts it */
	INTENT_STOP_POD,
	INTENT_ROTATE_SECRET, /* the tombs': the next generation of each */
	INTENT_MAX_
};

#define INTENT_DIR "reactor" /* below the vessel's data directory */
#define INTENT_SUFFIX ".intent"
#define INTENT_FILE_MAX 64
#define INTENT_WAITING_MAX 32

const char *intent_name(enum intent i);
/* A word, without its newline. */
bool intent_from_name(const char *s, size_t len, enum intent *ret);

#endif
