/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See boot_file.h.
 */
#include "vessel/boot_file.h"

#include "common/fs.h"
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define BOOT_FILE "boot"
#define BOOT_MAX_BYTES 64

int boot_file_read(int data_fd, struct uuid *ret, struct err *err)
{
	cleanup_free char *text = NULL;
	struct stat st;
	size_t len;

	ret->s[0] = '\0';
	if (fstatat(data_fd, BOOT_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (fs_read_file(data_fd, BOOT_FILE, BOOT_MAX_BYTES, &text, &len, err) < 0)
		return -1;
	if (uuid_parse(text, ret, NULL) < 0)
		ret->s[0] = '\0';
	return 0;
}

int boot_file_write(int data_fd, const struct uuid *boot, struct err *err)
{
	return fs_write_atomic(data_fd, BOOT_FILE, boot->s, strlen(boot->s), 0600, err);
}
