/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * What the formats share: the bytes that are left, and the text that is found in them.
 */
#ifndef LYCH_VESSEL_GATE_MEDIA_MEDIA_PRIV_H
#define LYCH_VESSEL_GATE_MEDIA_MEDIA_PRIV_H

#include "vessel/gate/media/media.h"

#include <stdbool.h>
#include <stdint.h>

/* A stretch of text is as long, or longer: among names and comments; where points or samples are,
 * in which chance makes a shorter one every few hundred bytes. */
#define TEXT_AMONG_NAMES 4
#define TEXT_AMONG_POINTS 16
/* A part of a kind that nobody knows may be as long: anything could be in a longer one. */
#define UNKNOWN_MAX_BYTES 4096
#define PADDING_MAX_BYTES 4096

struct walk {
	const uint8_t *at;
	size_t left;
	struct buf *text; /* may be NULL */
};

/* The next n bytes; NULL: there are fewer. */
const uint8_t *walk_take(struct walk *w, size_t n);
void walk_text(struct walk *w, const uint8_t *s, size_t len, size_t min);
/* Nothing is left, or bytes of zero with which some writers fill up: they say nothing. */
bool walk_is_at_end(const struct walk *w);

static inline uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
static inline uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* Each knows its own by the first bytes: MEDIA_NONE for all others. */
enum media_state media_png(struct walk w);
enum media_state media_jpeg(struct walk w);
enum media_state media_gif(struct walk w);
enum media_state media_webp(struct walk w);
enum media_state media_wav(struct walk w);
enum media_state media_mp3(struct walk w);
enum media_state media_pdf(struct walk w);

#endif
