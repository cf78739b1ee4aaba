/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See map.h.
 */
#include "vessel/broker/gate/map.h"
#include "common/crypto/hmac.h"
#include "common/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS (4 * GATE_MAP_MAX) /* three of four stay free */
#define ROWS_AT_ONCE 64
_Static_assert(GATE_MAP_MAX < UINT16_MAX, "a row and one more fit a slot");
_Static_assert((SLOTS & (SLOTS - 1)) == 0, "a digest is cut to a slot by its bits");

void gate_map_done(struct gate_map *m)
{
	for (size_t i = 0; i < m->n; i++) {
		explicit_bzero(m->row[i].text, m->row[i].len);
		free(m->row[i].text);
	}
	free(m->row);
	free(m->by_text);
	free(m->by_name);
	explicit_bzero(m, sizeof(*m));
}

/* The text is a row's own one, or its name. */
static bool is_of(const struct gate_row *r, bool by_text, const char *s, size_t len)
{
	const char *own = by_text ? r->text : r->name;
	size_t n = by_text ? r->len : strlen(r->name);

	return n == len && memcmp(own, s, len) == 0;
}

/* Where it is, or would be. */
static uint16_t *slot_of(const struct gate_map *m, bool by_text, const char *s,
			 size_t len)
{
	uint16_t *slot = by_text ? m->by_text : m->by_name;
	uint8_t mac[SHA256_SIZE];
	uint32_t i;

	gate_mac(m->key, s, len, mac);
	memcpy(&i, mac, sizeof(i));
	for (i &= SLOTS - 1; slot[i]; i = (i + 1) & (SLOTS - 1))
		if (is_of(&m->row[slot[i] - 1], by_text, s, len))
			break;
	return &slot[i];
}

static void begin(struct gate_map *m)
{
	random_bytes(m->key, sizeof(m->key));
	m->by_text = xcalloc(SLOTS, sizeof(*m->by_text));
	m->by_name = xcalloc(SLOTS, sizeof(*m->by_name));
}

const struct gate_row *gate_map_take(struct gate_map *m, enum gate_family family,
				     const char *text, size_t len)
{
	struct gate_row *row;
	uint16_t *slot;

	if (!m->by_text)
		begin(m);
	slot = slot_of(m, true, text, len);
	if (*slot)
		return &m->row[*slot - 1];
	if (m->n == GATE_MAP_MAX || len > GATE_MAP_MAX_BYTES - m->bytes)
		return NULL;
	if (m->n % ROWS_AT_ONCE == 0)
		m->row = xreallocarray(m->row, m->n + ROWS_AT_ONCE, sizeof(*m->row));
	row = &m->row[m->n++];
	*row = (struct gate_row){.family = family, .text = xmalloc(len), .len = len};
	memcpy(row->text, text, len);
	(void)snprintf(row->name, sizeof(row->name), "%s_%u",
		       gate_family_info(family)->label, ++m->of_family[family]);
	m->bytes += len;
	*slot = (uint16_t)m->n;
	*slot_of(m, false, row->name, strlen(row->name)) = (uint16_t)m->n;
	return row;
}

const struct gate_row *gate_map_find(const struct gate_map *m, const char *name,
				     size_t len)
{
	const uint16_t *slot = m->n ? slot_of(m, false, name, len) : NULL;

	return slot && *slot ? &m->row[*slot - 1] : NULL;
}
