/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/config_file.h"

#include "cli/trusted.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

static int check_place(const char *path, struct err *err)
{
	cleanup_free char *real = realpath(path, NULL);
	struct stat st;

	if (!real || lstat(real, &st) < 0)
		return err_sys_id(err, ERRID_START_CONFIG, "%s", path);
	/* Another name of the file is another way to change it. */
	if (st.st_nlink != 1)
		return err_set_id(err, ERRID_START_CONFIG_MODE,
				  "%s has %ju names (hard links)", path,
				  (uintmax_t)st.st_nlink);
	return trusted_above(real, ERRID_START_CONFIG_MODE, err);
}

int config_load(const char *path, struct conf *ret, struct err *err)
{
	if (conf_load(path, ret, err) < 0)
		return -1;
	if (check_place(path, err) == 0)
		return 0;
	conf_done(ret);
	return -1;
}

int config_load_or_defaults(const char *path, struct conf *ret, struct err *err)
{
	if (access(path, F_OK) < 0 && errno == ENOENT) {
		conf_defaults(ret);
		return 0;
	}
	return config_load(path, ret, err);
}
