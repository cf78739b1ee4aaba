/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Pictures, sound and PDF by their whole structure, from the first byte to the last: what begins
 * like one and goes on as something else, or goes on behind its end, is none.
 *
 * What its points or samples show is not read, and nothing says what bytes stand for there. All
 * else that can be read in one is given back as text: comments, EXIF and XMP, names, and whatever
 * stands readable where points should be.
 */
#ifndef LYCH_VESSEL_GATE_MEDIA_MEDIA_H
#define LYCH_VESSEL_GATE_MEDIA_MEDIA_H

#include "common/buf.h"
#include <stddef.h>

enum gate_medium {
	GATE_PICTURE, /* PNG, JPEG, GIF, WebP */
	GATE_SOUND,   /* WAV, MP3 */
	GATE_PDF,
	GATE_MEDIUM_MAX_
};

enum media_state {
	MEDIA_NONE,  /* another kind, or not what it says */
	MEDIA_CUT,   /* as it should be, as far as it goes */
	MEDIA_WHOLE, /* to its end, and that is the last byte */
};

struct media {
	const char *name; /* "png" */
	enum gate_medium medium;
};

/* text: what can be read in it is added, in lines; NULL: it is not asked for. A text that does not
 * fit into it makes it MEDIA_NONE. *ret is set unless it is MEDIA_NONE. */
enum media_state media_walk(const void *data, size_t len, struct buf *text,
			    struct media *ret);

#endif
