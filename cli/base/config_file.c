/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See config_file.h.
 */
#include "cli/base/config_file.h"

#include "cli/base/trusted.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAP_MAX_BYTES 65536
#define AUTHORITIES_MAX_BYTES (4u << 20)

/* In a user namespace that does not have root, root's directories and a stranger's look alike. */
static bool is_root_here(void)
{
	cleanup_free char *map = NULL;
	struct err ignored = ERR_INIT;
	size_t len = 0;

	if (fs_read_file(AT_FDCWD, "/proc/self/uid_map", MAP_MAX_BYTES, &map, &len,
			 &ignored) < 0)
		return true;
	for (char *line = map; *line;) {
		if (strtoul(line, NULL, 10) == 0)
			return true;
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return false;
}

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
	return is_root_here() ? trusted_above(real, ERRID_START_CONFIG_MODE, err) : 0;
}

/* Who can change that file can read what goes to the hosts that get keys. */
static int check_authorities(const char *path, struct err *err)
{
	cleanup_free char *real = path ? realpath(path, NULL) : NULL;
	cleanup_free char *text = NULL;
	size_t len;

	if (!path)
		return 0;
	if (!real)
		return err_sys_id(err, ERRID_START_CONFIG, "egress.authorities: %s",
				  path);
	if (is_root_here() && trusted_above(real, ERRID_START_CONFIG, err) < 0)
		return err_wrap(err, "egress.authorities");
	if (trusted_read(real, AUTHORITIES_MAX_BYTES, ERRID_START_CONFIG, &text, &len,
			 err) < 0)
		return err_wrap(err, "egress.authorities");
	if (!strstr(text, "-----BEGIN CERTIFICATE-----"))
		return err_set_id(err, ERRID_START_CONFIG,
				  "egress.authorities: no certificate (PEM) in %s", path);
	return 0;
}

/* What a text does not say of itself. */
static int check_around(const char *path, struct conf *conf, struct err *err)
{
	if (check_place(path, err) == 0 &&
	    check_authorities(conf->broker.egress.authorities, err) == 0)
		return 0;
	conf_done(conf);
	return -1;
}

int config_load(const char *path, struct conf *ret, struct err *err)
{
	return conf_load(path, ret, err) < 0 ? -1 : check_around(path, ret, err);
}

int config_accept(const char *path, const struct buf *text, struct conf *ret,
		  struct err *err)
{
	if (conf_parse(buf_str(text), text->len, ret, err) < 0)
		return err_wrap(err, "%s", path);
	return check_around(path, ret, err);
}

int config_load_or_defaults(const char *path, struct conf *ret, struct err *err)
{
	if (access(path, F_OK) < 0 && errno == ENOENT) {
		conf_defaults(ret);
		return 0;
	}
	return config_load(path, ret, err);
}
