/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox, the keeper and the job.
 * Limits. With a delegated cgroup v2 directory every job gets a leaf of its own,
 * and each value is written, read back and compared: a limit that the kernel
 * rounded away or ignored is not a limit. rlimits stand always, under the leaf
 * too. What neither can hold (memory without a cgroup, disk) the keeper
 * supervises: keeper.c. RLIMIT_AS is never used; it kills node at start.
 *
 * The leaf is made by the parent, not by the keeper: the parent outlives it, so
 * the leaf of a killed keeper is still emptied and removed, and cgroup.procs is
 * opened where the whole hierarchy is visible (the opener's namespaces and
 * credentials are what the kernel checks).
 */
#include "common/cleanup.h"
#include "common/id.h"
#include "common/str.h"
#include "sandbox/contract/keeper.h"
#include "sandbox/keeper/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define STACK_BYTES ((rlim_t)8 << 20)
#define STACK_HARD_BYTES ((rlim_t)64 << 20)
#define MEMLOCK_BYTES ((rlim_t)8 << 20)
#define SIGPENDING_MAX 1024
#define CPU_PERIOD_USEC 100000
/* A leaf is busy until the killed have ended: how long, and how often to try. */
#define LEAF_BUSY_USEC USEC_PER_SEC
#define COUNT_VALID_USEC (10 * USEC_PER_SEC)
#define LEAF_PAUSE_USEC (5 * USEC_PER_MSEC)
/* The keeper, its guard and its meter live in the job's user namespace and count there. */
#define NPROC_OF_KEEPER 3
/* Floor: others of this user that come after they were counted. Without room for them a job could not reach
 * the limit that the meter ends it at. */
#define NPROC_MEANWHILE 64

static void add_limit(struct sbx_limits *l, const char *name, const char *mechanism,
		      uint64_t value)
{
	if (l->n == SPAWN_LIMITS_MAX)
		return;
	(void)snprintf(l->l[l->n].name, sizeof(l->l[0].name), "%s", name);
	(void)snprintf(l->l[l->n].mechanism, sizeof(l->l[0].mechanism), "%s", mechanism);
	l->l[l->n++].value = value;
}

/* Write a control file of a cgroup; ret (may be NULL) is what it says afterwards. */
static int cg_write(int dir, const char *file, const char *value, char *ret, size_t size,
		    struct err *err)
{
	/* Some can only be written (cgroup.kill): opening them to read is EACCES. */
	cleanup_close int fd =
		openat(dir, file, (ret ? O_RDWR : O_WRONLY) | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return err_sys_id(err, ERRID_SANDBOX_CGROUP, "open %s", file);
	n = write(fd, value, strlen(value));
	if (n < 0 || (size_t)n != strlen(value))
		return err_sys_id(err, ERRID_SANDBOX_CGROUP, "write '%s' to %s", value,
				  file);
	if (!ret)
		return 0;
	n = pread(fd, ret, size - 1, 0);
	if (n < 0)
		return err_sys_id(err, ERRID_SANDBOX_CGROUP, "read %s back", file);
	while (n > 0 && ret[n - 1] == '\n')
		n--;
	ret[n] = '\0';
	return 0;
}

static int cg_set(int dir, const char *file, const char *value, struct err *err)
{
	char back[64];

	if (cg_write(dir, file, value, back, sizeof(back), err) < 0)
		return -1;
	if (!str_eq(back, value))
		return err_set_id(err, ERRID_SANDBOX_LIMIT,
				  "%s is '%s' after writing '%s'", file, back, value);
	return 0;
}

static int cg_set_u64(int dir, const char *file, uint64_t value, struct err *err)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return cg_set(dir, file, text, err);
}

static bool cg_has(int dir, const char *file)
{
	return faccessat(dir, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int leaf_make(const struct sbx_spec *spec, struct sbx_limits *l, struct err *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	cleanup_close int parent = spec->cgroup_fd >= 0
					   ? openat(spec->cgroup_fd, ".", flags)
					   : open(spec->cgroup, flags);
	struct statfs fs;
	uint8_t id[8];
	char hex[17];

	if (parent < 0)
		return err_sys_id(err, ERRID_SANDBOX_CGROUP, "open %s", spec->cgroup);
	if (fstatfs(parent, &fs) < 0)
		return err_sys_id(err, ERRID_SANDBOX_CGROUP, "statfs %s", spec->cgroup);
	if (fs.f_type != CGROUP2_SUPER_MAGIC)
		return err_set_id(err, ERRID_SANDBOX_CGROUP,
				  "%s is not a cgroup v2 directory", spec->cgroup);
	random_bytes(id, sizeof(id));
	hex_encode(id, sizeof(id), hex);
	(void)snprintf(l->leaf, sizeof(l->leaf), "lych-job-%s", hex);
	/* Controllers may already be on for our leaves, or we may switch them on. */
	(void)cg_write(parent, "cgroup.subtree_control", "+memory +pids", NULL, 0, NULL);
	(void)cg_write(parent, "cgroup.subtree_control", "+cpu", NULL, 0, NULL);
	if (mkdirat(parent, l->leaf, 0700) < 0)
		return err_sys_id(err, ERRID_SANDBOX_CGROUP, "make a leaf in %s",
				  spec->cgroup);
	l->cgroup_parent_fd = TAKE_FD(parent);
	l->cgroup_fd = openat(l->cgroup_parent_fd, l->leaf,
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l->cgroup_fd < 0)
		return err_sys_id(err, ERRID_SANDBOX_CGROUP, "open the leaf");
	l->cgroup_procs_fd = openat(l->cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (l->cgroup_procs_fd < 0)
		return err_sys_id(err, ERRID_SANDBOX_CGROUP,
				  "open cgroup.procs of the leaf");
	return 0;
}

static int leaf_limit(const struct sbx_spec *spec, struct sbx_limits *l, struct err *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int dir = l->cgroup_fd;
	char cpu[64];

	if (!cg_has(dir, "memory.max") || !cg_has(dir, "pids.max"))
		return err_set_id(
			err, ERRID_SANDBOX_CGROUP,
			"the controllers memory and pids are not delegated to %s",
			spec->cgroup);
	(void)snprintf(cpu, sizeof(cpu), "%llu %d",
		       (unsigned long long)spec->cpus * CPU_PERIOD_USEC, CPU_PERIOD_USEC);
	if (cg_set_u64(dir, "memory.max", spec->memory_bytes / page * page, err) < 0 ||
	    cg_set(dir, "memory.oom.group", "1", err) < 0 ||
	    cg_set_u64(dir, "pids.max", spec->processes, err) < 0)
		return -1;
	/* Many user managers are not given cpu; affinity, which is always set and can't
	 * be widened, then holds that limit alone, and the result says so. */
	l->cgroup_cpu = cg_has(dir, "cpu.max");
	if (l->cgroup_cpu && cg_set(dir, "cpu.max", cpu, err) < 0)
		return -1;
	/* Without swap in this kernel there is nothing to switch off. */
	if (cg_has(dir, "memory.swap.max") &&
	    cg_set_u64(dir, "memory.swap.max", 0, err) < 0)
		return -1;
	if (!cg_has(dir, "cgroup.kill"))
		return err_set_id(err, ERRID_SANDBOX_CGROUP,
				  "the kernel has no cgroup.kill");
	return 0;
}

/*
 * Floor: no user namespace of its own, so the kernel counts all tasks of this user. The
 * number is out of date as soon as it is known (anybody may fork), which is why the keeper
 * supervises the job's own count; one that is ten seconds old does as well, and saves
 * reading all of /proc for each of many jobs.
 */
static int count_others(unsigned *ret, struct err *err)
{
	static unsigned count;
	static usec_t counted_at;
	usec_t now = clock_boot_usec();

	if (!counted_at || now - counted_at > COUNT_VALID_USEC) {
		if (tree_count_uid_tasks(getuid(), &count, err) < 0)
			return -1;
		counted_at = now;
	}
	*ret = count;
	return 0;
}

int limits_make_leaf(const struct sbx_spec *spec, struct sbx_limits *ret, struct err *err)
{
	*ret = (struct sbx_limits){
		.cgroup_fd = -1, .cgroup_procs_fd = -1, .cgroup_parent_fd = -1};
	if (!spec->cgroup || leaf_make(spec, ret, err) == 0)
		return 0;
	limits_done(ret);
	return -1;
}

int limits_prepare(const struct sbx_spec *spec, struct sbx_limits *l, struct err *err)
{
	unsigned others = 0;

	if (!spec->memory_bytes || !spec->processes || !spec->cpus || !spec->disk_bytes)
		return err_set_id(err, ERRID_SANDBOX_LIMIT,
				  "memory, disk, processes and cpus each need a limit");
	if (spec->grade == GRADE_FLOOR) {
		if (count_others(&others, err) < 0)
			return err_wrap(err, "processes");
		others += NPROC_MEANWHILE;
	}
	l->nproc = others + NPROC_OF_KEEPER + spec->processes;
	if (l->cgroup_fd >= 0 && leaf_limit(spec, l, err) < 0)
		return -1;
	if (cpus_take(spec->cpus, &l->cpus, err) < 0)
		return -1;
	l->n = 0;
	add_limit(l, "memory", spec->cgroup ? "cgroup2+supervised" : "supervised",
		  spec->memory_bytes);
	add_limit(l, "disk", "supervised", spec->disk_bytes);
	add_limit(l, "processes", spec->cgroup ? "cgroup2+rlimit" : "rlimit+supervised",
		  spec->processes);
	add_limit(l, "cpus", l->cgroup_cpu ? "cgroup2+affinity" : "affinity", spec->cpus);
	add_limit(l, "timeout", "supervised", spec->timeout_usec);
	if (spec->grade == GRADE_FULL)
		add_limit(l, "tmp", "mount", spec->tmp_bytes);
	add_limit(l, "file_size", "rlimit", spec->output_bytes);
	if (spec->cpu_sec)
		add_limit(l, "cpu_time", "rlimit+supervised",
			  spec->cpu_sec * USEC_PER_SEC);
	else
		add_limit(l, "descriptors", "rlimit", spec->nofile);
	return 0;
}

/* A hard limit that is already lower stays: it is stricter. Read back, so that a limit
 * which did not take is a refusal. */
static int set_rlimit(__rlimit_resource_t what, const char *name, rlim_t soft,
		      rlim_t hard, struct err *err)
{
	struct rlimit want = {soft, hard}, back;
	int r = setrlimit(what, &want);

	if (r < 0 && errno == EPERM) {
		if (getrlimit(what, &back) < 0)
			return err_sys_id(err, ERRID_SANDBOX_LIMIT, "%s: getrlimit",
					  name);
		if (want.rlim_max > back.rlim_max)
			want.rlim_max = back.rlim_max;
		if (want.rlim_cur > want.rlim_max)
			want.rlim_cur = want.rlim_max;
		r = setrlimit(what, &want);
	}
	if (r < 0)
		return err_sys_id(err, ERRID_SANDBOX_LIMIT, "%s: setrlimit", name);
	if (getrlimit(what, &back) < 0 || back.rlim_cur != want.rlim_cur ||
	    back.rlim_max != want.rlim_max)
		return err_set_id(err, ERRID_SANDBOX_LIMIT, "%s: the limit did not take",
				  name);
	return 0;
}

/* Does the kernel hand cores to a program? What can't be read may say so. */
static bool cores_are_piped(void)
{
	cleanup_close int fd =
		open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
	char first = '|';

	return fd < 0 || read(fd, &first, 1) != 1 || first == '|';
}

/*
 * A handler for core dumps (core(5), "Piping core dumps to a program") is started as root,
 * outside of every namespace and limit, and reads what the job had in its memory: for any
 * limit, 0 too, but 1, which is the kernel's own sign for "not this one". The filter keeps the
 * job from changing it.
 */
static int no_cores(struct err *err)
{
	const struct rlimit one = {1, 1};

	if (setrlimit(RLIMIT_CORE, &one) == 0 || errno != EPERM)
		return set_rlimit(RLIMIT_CORE, "core", 1, 1, err);
	if (cores_are_piped())
		return err_set_id(
			err, ERRID_SANDBOX_LIMIT,
			"core: with a hard limit of 0 a crash would start the host's "
			"core handler; allow 1 (ulimit -H -c, LimitCORE=)");
	return set_rlimit(RLIMIT_CORE, "core", 0, 0, err);
}

int limits_enter(enum sbx_grade grade, int cgroup_procs_fd, struct err *err)
{
	if (no_cores(err) < 0)
		return -1;
	if (cgroup_procs_fd >= 0 && write(cgroup_procs_fd, "0", 1) != 1)
		return err_sys_id(err, ERRID_SANDBOX_CGROUP,
				  "enter the leaf (cgroup.procs)");
	/* After entering: the leaf is then the root of what the job could ever see. */
	if (grade == GRADE_FULL && unshare(CLONE_NEWCGROUP) < 0)
		return err_sys_id(err, ERRID_SANDBOX_NS, "cgroup namespace");
	return 0;
}

int limits_apply(const struct sbx_spec *spec, unsigned nproc, struct err *err)
{
	rlim_t cpu = spec->cpu_sec ? spec->cpu_sec : RLIM_INFINITY;
	rlim_t cpu_hard = cpu == RLIM_INFINITY ? cpu : cpu + 1;
	const struct {
		__rlimit_resource_t what;
		const char *name;
		rlim_t soft, hard;
	} limit[] = {
		{RLIMIT_FSIZE, "file size", spec->output_bytes, spec->output_bytes},
		{RLIMIT_STACK, "stack", STACK_BYTES, STACK_HARD_BYTES},
		{RLIMIT_MEMLOCK, "memlock", MEMLOCK_BYTES, MEMLOCK_BYTES},
		{RLIMIT_SIGPENDING, "pending signals", SIGPENDING_MAX, SIGPENDING_MAX},
		{RLIMIT_MSGQUEUE, "message queues", 0, 0},
		{RLIMIT_NICE, "nice", 0, 0},
		{RLIMIT_RTPRIO, "rtprio", 0, 0},
		{RLIMIT_CPU, "cpu time", cpu, cpu_hard},
		{RLIMIT_NPROC, "processes", nproc, nproc},
		{RLIMIT_NOFILE, "descriptors", spec->nofile, spec->nofile}, /* last */
	};

	for (size_t i = 0; i < ARRAY_SIZE(limit); i++)
		if (set_rlimit(limit[i].what, limit[i].name, limit[i].soft, limit[i].hard,
			       err) < 0)
			return -1;
	return 0;
}

static OWN_FRAME uint64_t leaf_value(int dir, const char *file, const char *key)
{
	cleanup_close int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	char text[4096];
	const char *p = text;
	ssize_t n;
	uint64_t v = 0;

	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	while (key && p) {
		if (strncmp(p, key, strlen(key)) == 0 && p[strlen(key)] == ' ') {
			p += strlen(key) + 1;
			break;
		}
		p = strchr(p, '\n');
		if (p)
			p++;
	}
	for (; p && *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	return v;
}

uint64_t limits_cgroup_value(const struct sbx_limits *l, const char *file,
			     const char *key)
{
	/* Not in one: the frame would be a page for each keeper without a leaf. */
	return l->cgroup_fd < 0 ? 0 : leaf_value(l->cgroup_fd, file, key);
}

static void limits_cgroup_kill(const struct sbx_limits *l)
{
	if (l->cgroup_fd >= 0)
		(void)cg_write(l->cgroup_fd, "cgroup.kill", "1", NULL, 0, NULL);
}

/* Leaves that were still busy; the spawner has one thread and does not wait for them. */
static struct {
	int parent_fd;
	char name[sizeof(((struct sbx_limits *)NULL)->leaf)];
	usec_t until;
} busy[SPAWN_JOBS_MAX];
static unsigned n_busy;

static void left_behind(const char *leaf)
{
	(void)fprintf(stderr, "lych-sandbox: the cgroup %s is left behind: %s\n", leaf,
		      strerror(errno));
}

usec_t limits_sweep(void)
{
	usec_t now = n_busy ? clock_boot_usec() : 0;

	for (unsigned i = 0; i < n_busy;) {
		if (unlinkat(busy[i].parent_fd, busy[i].name, AT_REMOVEDIR) < 0) {
			if (errno == EBUSY && now < busy[i].until) {
				i++;
				continue;
			}
			left_behind(busy[i].name);
		}
		fd_close(&busy[i].parent_fd);
		busy[i] = busy[--n_busy];
	}
	return n_busy ? now + LEAF_PAUSE_USEC : USEC_INFINITY;
}

void limits_sweep_all(void)
{
	while (limits_sweep() != USEC_INFINITY)
		(void)usleep(LEAF_PAUSE_USEC);
}

void limits_done(struct sbx_limits *l)
{
	cpus_give(&l->cpus);
	if (l->cgroup_fd >= 0) {
		limits_cgroup_kill(l);
		if (unlinkat(l->cgroup_parent_fd, l->leaf, AT_REMOVEDIR) < 0) {
			if (errno == EBUSY && n_busy < ARRAY_SIZE(busy)) {
				busy[n_busy].parent_fd = TAKE_FD(l->cgroup_parent_fd);
				busy[n_busy].until = clock_boot_usec() + LEAF_BUSY_USEC;
				memcpy(busy[n_busy++].name, l->leaf, sizeof(l->leaf));
			} else {
				left_behind(l->leaf);
			}
		}
	}
	fd_close(&l->cgroup_procs_fd);
	fd_close(&l->cgroup_fd);
	fd_close(&l->cgroup_parent_fd);
}
