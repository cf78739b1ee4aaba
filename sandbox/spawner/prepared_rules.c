/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner.
 * See prepared_rules.h.
 */
#include "sandbox/spawner/prepared_rules.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/str.h"
#include "sandbox/contract/paths.h"
#include "sandbox/contract/sandbox.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

/* Longer than a short job takes: under load nothing is made, and nobody waits for it. */
#define MAKE_AFTER_USEC (5 * USEC_PER_MSEC)
#define RETRY_USEC (10 * USEC_PER_SEC)

/* The nodes of /proc and /dev are the kernel's. */
const char *const prepared_rules_directories[] = {"/", "/usr", "/etc", "/etc/ssl", NULL};

static struct prepared_rules_place look_at(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return (struct prepared_rules_place){.path = path};
	return (struct prepared_rules_place){path, st.st_dev, st.st_ino, st.st_mtim};
}

static void add_place(struct prepared_rules *a, const char *path)
{
	assert(a->n_places < PREPARED_RULES_PLACES_MAX);
	a->place[a->n_places++] = look_at(path);
}

/* What is there is granted with /usr, whatever leads to it: a file of /etc, by more links than
 * one, not only the merged directories that need no rule of their own (walls.c). */
static bool ends_in_usr(const char *path)
{
	cleanup_free char *to = realpath(path, NULL);

	return to && str_starts(to, "/usr/");
}

static void look_around(struct prepared_rules *a)
{
	static const char *const *const lists[] = {paths_system, paths_etc_public,
						   paths_etc_floor};

	a->n_places = 0;
	for (const char *const *p = prepared_rules_directories; *p; p++)
		add_place(a, *p);
	for (unsigned i = 0; i < ARRAY_SIZE(lists); i++)
		for (const char *const *p = lists[i]; *p; p++) {
			struct stat st;

			if (lstat(*p, &st) == 0 && S_ISLNK(st.st_mode) &&
			    !ends_in_usr(*p))
				add_place(a, *p);
		}
}

static bool still_true(const struct prepared_rules *a)
{
	for (unsigned i = 0; i < a->n_places; i++) {
		const struct prepared_rules_place *was = &a->place[i];
		struct prepared_rules_place is = look_at(was->path);

		if (is.dev != was->dev || is.ino != was->ino ||
		    is.mtime.tv_sec != was->mtime.tv_sec ||
		    is.mtime.tv_nsec != was->mtime.tv_nsec)
			return false;
	}
	return true;
}

void prepared_rules_init(struct prepared_rules *a, bool wanted)
{
	a->rules = (struct landlock_set){.fd = -1};
	a->make_at = wanted ? 0 : USEC_INFINITY;
}

struct landlock_set prepared_rules_take(struct prepared_rules *a)
{
	struct landlock_set taken = a->rules;

	if (taken.fd < 0 && a->make_at == USEC_INFINITY)
		return taken; /* not wanted */
	a->rules.fd = -1;
	a->make_at = clock_boot_usec() + MAKE_AFTER_USEC;
	if (taken.fd >= 0 && !still_true(a))
		landlock_done(&taken);
	return taken;
}

usec_t prepared_rules_turn(struct prepared_rules *a)
{
	usec_t now;
	struct err err = ERR_INIT;

	if (a->make_at == USEC_INFINITY)
		return USEC_INFINITY;
	now = clock_boot_usec();
	if (now < a->make_at)
		return a->make_at;
	/* Before the rules: what changes while they are made is noticed when they are taken. */
	look_around(a);
	if (walls_landlock_system(GRADE_FLOOR, NET_NONE, &a->rules, &err) < 0) {
		/* A job that makes its own meets the same obstacle, and is refused. */
		log_err(LOG_WARN_, "no rules in advance", &err);
		a->make_at = now + RETRY_USEC;
	} else {
		a->make_at = USEC_INFINITY;
	}
	return a->make_at;
}

void prepared_rules_done(struct prepared_rules *a)
{
	landlock_done(&a->rules);
}
