/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * See home.h.
 */
#include "sandbox/home.h"

#include "common/cleanup.h"
#include "common/str.h"
#include "sandbox/contract/paths.h"
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

static int check_path(const char *option, const char *path, const char *home,
		      struct err *err)
{
	cleanup_free char *real = realpath(path, NULL);

	if (!real || !paths_is_below(home, real))
		return 0;
	return err_set_id(
		err, ERRID_SPEC_PATH,
		"--%s %.200s %s your home directory, with every key in it; name "
		"a directory in it, or say --home too",
		option, real, str_eq(real, home) ? "is" : "holds");
}

/* Caller frees. Read here: a static program has no NSS, and needs none for this. */
static char *passwd_home(void)
{
	cleanup_file FILE *f = fopen("/etc/passwd", "re");
	const struct passwd *pw;

	while (f && (pw = fgetpwent(f)))
		if (pw->pw_uid == getuid())
			return strdup(pw->pw_dir);
	return NULL;
}

int home_check(const struct sbx_spec *s, struct err *err)
{
	static const char *const options[] = {
		[MOUNT_RO] = "ro", [MOUNT_ROX] = "rox", [MOUNT_RW] = "rw"};
	cleanup_free char *home = s->show_home ? NULL : passwd_home();
	/* one that is not there is nobody's */
	cleanup_free char *real = home && home[0] == '/' ? realpath(home, NULL) : NULL;

	if (!real)
		return 0;
	for (size_t i = 0; i < s->n_mounts; i++)
		if (check_path(options[s->mounts[i].kind], s->mounts[i].path, real, err) <
		    0)
			return -1;
	return s->workspace ? check_path(s->workspace_ro ? "workspace-ro" : "workspace",
					 s->workspace, real, err)
			    : 0;
}

bool home_is_below(const char *real)
{
	cleanup_free char *home = passwd_home();
	cleanup_free char *at = home && home[0] == '/' ? realpath(home, NULL) : NULL;

	return at && paths_is_below(at, real);
}
