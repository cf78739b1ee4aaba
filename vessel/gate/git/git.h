/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * What a job sends to a server of git, read strictly into what the gate can judge: the job's own
 * words, and apart from them the ids of objects, which look like noise and are none. What is not
 * exactly a request of git's is refused, with the reason. Pure; all of it is hostile bytes.
 */
#ifndef LYCH_VESSEL_GATE_GIT_GIT_H
#define LYCH_VESSEL_GATE_GIT_GIT_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "vessel/gate/git/pack.h"
#include <stddef.h>

/* Zero is a good beginning. */
struct git_words {
	struct buf text;    /* a line each */
	struct buf ids;	    /* in hexadecimal, one behind the other */
	struct buf numbers; /* a line each */
	struct buf plain;   /* what was in gzip */
};
void git_words_done(struct git_words *w);
#define cleanup_git_words __attribute__((cleanup(git_words_done)))

/*
 * The body of POST git-upload-pack, plain or in gzip: ls-refs or fetch of protocol 2
 * (gitprotocol-v2), or the wants and haves of protocol 0 and 1 (gitprotocol-pack). *ret is whole
 * or empty. ERRID_GIT_REQUEST.
 */
MUST_CHECK int git_read_fetch(const void *data, size_t len, struct git_words *ret,
			      struct err *err);

/*
 * The body of POST git-receive-pack: which refs are to become what, and a pack. As above;
 * *ret_pack lies within data or ret->plain, and is NULL where nothing is sent (refs are removed; or nothing at all is
 * asked, as git does before a large push).
 */
MUST_CHECK int git_read_push(const void *data, size_t len, struct git_words *ret,
			     const void **ret_pack, size_t *ret_pack_len,
			     struct err *err);

/* An object of a pack: of a blob all of it, of a tree its names, of a commit and a tag what stands there
 * beside the ids of others. *ret is whole or empty. ERRID_GIT_REQUEST: it is not what its type says. */
MUST_CHECK int git_read_object(const struct pack_object *o, struct git_words *ret,
			       struct err *err);

#endif
