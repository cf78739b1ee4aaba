/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See denials.h.
 */
#include "tomb/job/denials.h"

#include "common/mem.h"
#include "common/proto/denied.h"

#include <stdlib.h>

int denials_add(struct denials *d, const struct spawn_denied *m)
{
	if (d->n >= SPAWN_DENIED_MAX)
		return -1;
	/* Few jobs have any: so they grow one by one. */
	d->rec = xreallocarray(d->rec, d->n + 1, sizeof(*d->rec));
	d->rec[d->n++] = *m;
	d->dropped = m->dropped;
	return 0;
}

void denials_write(const struct denials *d, struct jsonw *w)
{
	jsonw_key(w, "denials");
	jsonw_arr(w);
	for (size_t i = 0; i < d->n; i++)
		denied_json(&d->rec[i], w);
	jsonw_arr_end(w);
	jsonw_ku64(w, "denials_dropped", d->dropped);
}

void denials_done(struct denials *d)
{
	free(d->rec);
	*d = (struct denials){.n = 0};
}
