/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See denied.h.
 */
#include "common/proto/denied.h"

#include "common/str.h"

#include <errno.h>
#include <string.h>

#define ERRNO_MAX 4095

static const char *const walls[SPAWN_WALL_MAX_] = {
	[SPAWN_WALL_SECCOMP] = "seccomp", [SPAWN_WALL_LANDLOCK] = "landlock",
	[SPAWN_WALL_MOUNT] = "mount",	  [SPAWN_WALL_NETWORK] = "network",
	[SPAWN_WALL_ABSENT] = "absent",
};

/* Why that wall says no. */
static const char *const wall_reasons[SPAWN_WALL_MAX_] = {
	[SPAWN_WALL_SECCOMP] = "no job may do this",
	[SPAWN_WALL_LANDLOCK] = "nothing grants this",
	[SPAWN_WALL_MOUNT] = "it is shown, but not for this use",
	[SPAWN_WALL_NETWORK] = "there is no route out of the sandbox",
	[SPAWN_WALL_ABSENT] = "it is not shown inside",
};

static const char *const acts[SPAWN_ACT_MAX_] = {
	[SPAWN_ACT_READ] = "read",	   [SPAWN_ACT_WRITE] = "write",
	[SPAWN_ACT_EXEC] = "exec",	   [SPAWN_ACT_CONNECT] = "connect",
	[SPAWN_ACT_METADATA] = "metadata", [SPAWN_ACT_CALL] = "call",
};

static const char *name_of(const char *const *names, uint32_t n, uint32_t i)
{
	return i < n ? names[i] : NULL;
}

static bool find(const char *const *names, uint32_t n, const char *name, uint32_t *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		if (names[i] && str_eq(names[i], name)) {
			*ret = i;
			return true;
		}
	}
	return false;
}

const char *spawn_wall_name(uint32_t wall)
{
	return name_of(walls, SPAWN_WALL_MAX_, wall);
}

bool spawn_wall_from_name(const char *name, uint32_t *ret)
{
	return find(walls, SPAWN_WALL_MAX_, name, ret);
}

const char *spawn_act_name(uint32_t act)
{
	return name_of(acts, SPAWN_ACT_MAX_, act);
}

bool spawn_act_from_name(const char *name, uint32_t *ret)
{
	return find(acts, SPAWN_ACT_MAX_, name, ret);
}

void denied_errno_name(int sys, char *out, size_t size)
{
	const char *name = strerrorname_np(sys);

	if (name)
		(void)snprintf(out, size, "%s", name);
	else
		(void)snprintf(out, size, "errno %d", sys);
}

int denied_errno_from_name(const char *name)
{
	char text[32];

	for (int i = 1; i <= ERRNO_MAX; i++) {
		denied_errno_name(i, text, sizeof(text));
		if (str_eq(text, name))
			return i;
	}
	return 0;
}

#define ENDS(field) (memchr(field, 0, sizeof(field)) != NULL)

bool denied_is_valid(const struct spawn_denied *d)
{
	return spawn_wall_name(d->wall) && spawn_act_name(d->act) && d->count > 0 &&
	       d->sys >= 0 && d->sys <= ERRNO_MAX && ENDS(d->call) && ENDS(d->object) &&
	       ENDS(d->grant) && ENDS(d->withheld);
}

void denied_json(const struct spawn_denied *d, struct jsonw *w)
{
	char sys[32];

	denied_errno_name(d->sys, sys, sizeof(sys));
	jsonw_obj(w);
	jsonw_kstr(w, "act", spawn_act_name(d->act));
	jsonw_kstr(w, "wall", spawn_wall_name(d->wall));
	jsonw_kstr(w, "call", d->call);
	jsonw_kstr(w, "object", d->object);
	jsonw_kstr(w, "errno", sys);
	jsonw_ku64(w, "count", d->count);
	jsonw_kstr(w, "grant", d->grant);
	if (d->withheld[0])
		jsonw_kstr(w, "withheld", d->withheld);
	jsonw_obj_end(w);
}

/* As a JSON string: quoted, and nothing in it can break a line or reorder a terminal. */
static void add_quoted(struct buf *out, const char *text)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_str(&w, text);
}

static bool is_plain(const char *s)
{
	return s[0] && s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				   "0123456789_./:,=+@%-")] == '\0';
}

/* What jsonw would have to escape or replace cannot be offered for copying; a quote
 * (escaped by it too) would end the quoting. */
static bool is_showable(const char *s)
{
	struct buf b;
	bool same;

	buf_init(&b, 8 * sizeof(((struct spawn_denied *)0)->grant));
	add_quoted(&b, s);
	same = buf_ok(&b) && b.len == strlen(s) + 2 && !strchr(s, '\'') &&
	       !strstr(s, "\xef\xbf\xbd") /* stands for what was no UTF-8 */ &&
	       memcmp(b.data + 1, s, b.len - 2) == 0;
	buf_done(&b);
	return same;
}

static void add_grant(const char *grant, struct buf *out)
{
	const char *value = strchr(grant, ' ');

	if (!grant[0])
		return;
	if (!value || is_plain(value + 1))
		buf_addf(out, "; %s would allow it", grant);
	else if (is_showable(value + 1))
		buf_addf(out, "; %.*s '%s' would allow it", (int)(value - grant), grant,
			 value + 1);
	else
		buf_addf(out, "; %.*s with that very name would allow it",
			 (int)(value - grant), grant);
}

static const char names_of_the_network[] =
	"a name was looked up: there is no network and no DNS in a sandbox, only its own "
	"localhost; a job asks its broker for a URL (lych-fetch)";

void denied_sentence(const struct spawn_denied *d, struct buf *out)
{
	const char *act = spawn_act_name(d->act), *wall = spawn_wall_name(d->wall);
	char sys[32];
	bool is_call;

	if (!act || !wall)
		return;
	if (d->wall == SPAWN_WALL_ABSENT && d->act == SPAWN_ACT_CONNECT) {
		buf_adds(out, names_of_the_network);
		return;
	}
	is_call = d->act == SPAWN_ACT_CALL && is_plain(d->call);
	denied_errno_name(d->sys, sys, sizeof(sys));
	buf_addf(out, "%s%s%s", act, is_call ? " " : "", is_call ? d->call : "");
	if (d->object[0] || !is_call) {
		buf_addc(out, ' ');
		add_quoted(out, d->object[0] ? d->object : d->call);
	}
	buf_addf(out, " %s (%s: %s), ",
		 d->wall == SPAWN_WALL_ABSENT ? "not found" : "refused", wall,
		 wall_reasons[d->wall]);
	if (!is_call)
		buf_addf(out, "%s gave ", is_plain(d->call) ? d->call : "the call");
	buf_adds(out, sys);
	if (d->count > 1)
		buf_addf(out, ", %u times", d->count);
	if (d->wall == SPAWN_WALL_NETWORK && str_ends(d->object, ":53"))
		buf_addf(out, "; %s", names_of_the_network);
	if (d->withheld[0])
		buf_addf(out, "; no option is offered%s%s",
			 is_showable(d->withheld) ? ": " : "",
			 is_showable(d->withheld) ? d->withheld : "");
	else
		add_grant(d->grant, out);
}
