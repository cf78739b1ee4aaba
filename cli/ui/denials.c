/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See denials.h.
 */
#include "cli/ui/denials.h"

#include "common/proto/denied.h"
#include "common/str.h"

#include <stdio.h>
#include <string.h>

#define TEXT_MAX_BYTES 1024

static void put_cut(char *dst, size_t size, const char *src)
{
	size_t n = strlen(src);

	if (n >= size) {
		n = size - 1;
		while (n > 0 && (src[n] & 0xc0) == 0x80)
			n--;
	}
	(void)snprintf(dst, size, "%.*s", (int)n, src);
}

int denials_read_one(const struct json *o, struct spawn_denied *ret, struct err *err)
{
	const char *act = "", *wall = "", *call = "", *object = "", *sys = "",
		   *grant = "", *withheld = "";
	uint64_t count = 0;

	*ret = (struct spawn_denied){.type = SPAWN_DENIED};
	if (json_as_obj(o, err) < 0 || json_get_str(o, "act", true, 32, &act, err) < 0 ||
	    json_get_str(o, "wall", true, 32, &wall, err) < 0 ||
	    json_get_str(o, "call", true, TEXT_MAX_BYTES, &call, err) < 0 ||
	    json_get_str(o, "object", true, TEXT_MAX_BYTES, &object, err) < 0 ||
	    json_get_str(o, "errno", true, 32, &sys, err) < 0 ||
	    json_get_str(o, "grant", true, TEXT_MAX_BYTES, &grant, err) < 0 ||
	    json_get_str(o, "withheld", false, TEXT_MAX_BYTES, &withheld, err) < 0 ||
	    json_get_u64(o, "count", true, 1, UINT32_MAX, &count, err) < 0)
		return -1;
	if (!spawn_act_from_name(act, &ret->act) ||
	    !spawn_wall_from_name(wall, &ret->wall))
		return err_set_id(err, ERRID_HTTP_ANSWER, "no denial: %.32s by %.32s",
				  act, wall);
	ret->count = (uint32_t)count;
	ret->sys = denied_errno_from_name(sys);
	put_cut(ret->call, sizeof(ret->call), call);
	put_cut(ret->object, sizeof(ret->object), object);
	put_cut(ret->withheld, sizeof(ret->withheld), withheld);
	/* The mark of a replaced byte keeps denied_sentence() from offering a wrong name.
	 */
	if (str_copy(ret->grant, sizeof(ret->grant), grant) < 0)
		(void)snprintf(ret->grant, sizeof(ret->grant), "%.*s \xef\xbf\xbd",
			       (int)(strcspn(grant, " ") < 32 ? strcspn(grant, " ") : 32),
			       grant);
	return 0;
}
