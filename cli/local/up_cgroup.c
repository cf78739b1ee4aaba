/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Which mechanism keeps a job's limits in embedded mode. Theory of operation:
 *
 * Where a systemd user manager runs and has the memory and pids controllers, the
 * tomb is started in a scope of its own with Delegate=yes. Whether the controllers
 * reached that scope is seen only inside it (a slice between may hold them back), so
 * the tomb's guard looks again there, before it changes anything:
 *
 *  - one of the two is missing: cgroup limits are not to be had here. The tomb runs
 *    without --cgroup, limits are kept by rlimits and supervision, and the starter
 *    is told why, for `lych status`;
 *  - both are there: the limits are kept by cgroup v2, and whatever fails from then
 *    on ends the start. There is no way back to the other mechanism.
 *
 * The cpu controller is taken where it is given; affinity holds the limit anyway.
 */
#include "cli/local/up.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	while (*list) {
		size_t len = strcspn(list, " \n");

		if (len == n && strncmp(list, word, n) == 0)
			return true;
		list += len;
		list += strspn(list, " \n");
	}
	return false;
}

static const char *missing_controller(const char *list)
{
	if (!has_word(list, "memory"))
		return has_word(list, "pids") ? "memory" : "memory and pids";
	return has_word(list, "pids") ? NULL : "pids";
}

/* NULL: it does not say. */
static char *manager_controllers(void)
{
	cleanup_free char *path = xasprintf("/sys/fs/cgroup/user.slice/user-%u.slice/"
					    "user@%u.service/cgroup.controllers",
					    getuid(), getuid());
	struct err ignored = ERR_INIT;
	char *list = NULL;
	size_t len;

	if (fs_read_file(AT_FDCWD, path, 4096, &list, &len, &ignored) < 0)
		return NULL;
	return list;
}

char *up_missing_controllers(void)
{
	static const char *const names[] = {"cpu", "memory", "pids"};
	cleanup_free char *have = manager_controllers();
	cleanup_buf struct buf missing;

	buf_init(&missing, 64);
	for (size_t i = 0; have && i < ARRAY_SIZE(names); i++)
		if (!has_word(have, names[i]))
			buf_addf(&missing, "%s%s", missing.len ? ", " : "", names[i]);
	return missing.len ? xstrdup(buf_str(&missing)) : NULL;
}

const char *up_no_cgroup_reason(void)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	cleanup_free char *sock =
		xasprintf("%s/systemd/private", run ? run : "/nonexistent");
	cleanup_free char *have = manager_controllers();

	if (access(sock, F_OK) < 0)
		return "no systemd user manager";
	if (access("/usr/bin/systemd-run", X_OK) < 0)
		return "no systemd-run";
	if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) < 0)
		return "no unified cgroup v2 hierarchy";
	if (!have || missing_controller(have))
		return "the user manager has no memory and pids controllers";
	return NULL;
}

static int control_write(const char *path, const char *text, struct err *err)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t len = strlen(text);

	if (fd < 0)
		return err_sys_id(err, ERRID_SANDBOX_CGROUP, "open %s", path);
	if (write(fd, text, len) != (ssize_t)len)
		return err_sys_id(err, ERRID_SANDBOX_CGROUP, "write '%s' to %s", text,
				  path);
	return 0;
}

/* The directory of the cgroup that we are in. */
static int own_group(char **ret, struct err *err)
{
	cleanup_free char *text = NULL;
	char *line;
	size_t len;

	if (fs_read_file(AT_FDCWD, "/proc/self/cgroup", 65536, &text, &len, err) < 0)
		return -1;
	line = str_starts(text, "0::") ? text : strstr(text, "\n0::");
	if (!line)
		return err_set_id(err, ERRID_SANDBOX_CGROUP, "no cgroup v2 line");
	line = strchr(line, '/');
	if (!line)
		return err_set_id(err, ERRID_SANDBOX_CGROUP, "no path of our cgroup");
	line[strcspn(line, "\n")] = '\0';
	*ret = xasprintf("/sys/fs/cgroup%s", line);
	return 0;
}

/* <scope>/guard for this process and the tomb, <scope>/jobs for the spawner's leaves: a
 * group with processes of its own can give its children no controller. */
static int groups_make(const char *base, bool cpu, char **ret_jobs, struct err *err)
{
	static const char *const switches[] = {"cgroup.subtree_control",
					       "jobs/cgroup.subtree_control"};
	cleanup_free char *guard = xasprintf("%s/guard", base);
	cleanup_free char *procs = xasprintf("%s/cgroup.procs", guard);
	cleanup_free char *jobs = xasprintf("%s/jobs", base);

	if ((mkdir(guard, 0755) < 0 && errno != EEXIST) ||
	    (mkdir(jobs, 0755) < 0 && errno != EEXIST))
		return err_sys_id(err, ERRID_SANDBOX_CGROUP, "mkdir in %s", base);
	if (control_write(procs, "0", err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(switches); i++) {
		cleanup_free char *path = xasprintf("%s/%s", base, switches[i]);

		if (control_write(path, cpu ? "+memory +pids +cpu" : "+memory +pids",
				  err) < 0)
			return -1;
	}
	*ret_jobs = TAKE_PTR(jobs);
	return 0;
}

int up_cgroup_prepare(char **ret_jobs, char **ret_reason, struct err *err)
{
	cleanup_free char *base = NULL;
	cleanup_free char *have = NULL;
	const char *missing;
	size_t len;

	*ret_jobs = *ret_reason = NULL;
	if (own_group(&base, err) < 0)
		return -1;
	cleanup_free char *list = xasprintf("%s/cgroup.controllers", base);
	if (fs_read_file(AT_FDCWD, list, 4096, &have, &len, err) < 0)
		return err_wrap(err, "%s", list);
	missing = missing_controller(have);
	if (missing) {
		*ret_reason =
			xasprintf("the tomb's scope was given no %s controller", missing);
		return 0;
	}
	return groups_make(base, has_word(have, "cpu"), ret_jobs, err);
}
