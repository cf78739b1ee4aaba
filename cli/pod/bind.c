/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See bind.h.
 */
#include "cli/pod/bind.h"

#include "cli/base/config_file.h"
#include "cli/base/trusted.h"
#include "cli/local/up.h"
#include "cli/pod/mounts.h"
#include "cli/secret/secret_tombs.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/mountinfo.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

/* ---- what there is ---------------------------------------------------------- */

static int read_receipt(struct bind *b, struct err *err)
{
	struct err e = ERR_INIT;

	receipt_done(&b->receipt);
	b->has_receipt = receipt_load(b->receipt_path, &b->receipt, &e) == 0;
	if (!b->has_receipt && e.code == ERR_NOT_FOUND)
		return 0;
	if (!b->has_receipt) {
		*err = e;
		return -1;
	}
	if (b->receipt.directory && !str_eq(b->receipt.directory, b->quadlets))
		return err_set_id(err, ERRID_BIND_RECEIPT,
				  "the units are in %s, and Podman now looks in %s",
				  b->receipt.directory, b->quadlets);
	return 0;
}

int bind_lock(struct bind *b, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/lock", b->dir);
	struct stat st;

	if (fs_mkdir_all(b->dir, 0700, err) < 0)
		return err_wrap(err, "%s", b->dir);
	if (lstat(b->dir, &st) < 0)
		return err_sys(err, "%s", b->dir);
	if (!S_ISDIR(st.st_mode) || st.st_uid != getuid() || (st.st_mode & 077))
		return err_set_id(err, ERRID_BIND_RECEIPT, "%s must be yours, mode 0700",
				  b->dir);
	b->lock_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (b->lock_fd < 0)
		return err_sys(err, "%s", path);
	if (fs_lock(b->lock_fd, NULL, err) < 0)
		return err_wrap(err, "another 'lych bind' or 'lych unbind' is at work");
	return read_receipt(b, err);
}

int bind_open(struct bind *b, struct err *err)
{
	const char *config_home = getenv("XDG_CONFIG_HOME");

	if (paths_resolve(&b->paths, err) < 0)
		return -1;
	b->home = realpath(b->paths.home, NULL);
	if (!b->home)
		return err_sys(err, "home directory %s", b->paths.home);
	b->dir = xasprintf("%s/bind", b->paths.data);
	b->staged = xasprintf("%s/" BIND_APP, b->dir);
	b->receipt_path = xasprintf("%s/" BIND_RECEIPT, b->dir);
	/* as Podman and systemd find them */
	cleanup_free char *config = config_home && config_home[0] == '/'
					    ? xstrdup(config_home)
					    : xasprintf("%s/.config", b->paths.home);

	b->quadlets = xasprintf("%s/containers/systemd", config);
	b->user_units = xasprintf("%s/systemd/user", config);
	return read_receipt(b, err);
}

void bind_done(struct bind *b)
{
	paths_done(&b->paths);
	conf_done(&b->conf);
	free(b->home);
	free(b->dir);
	free(b->staged);
	free(b->receipt_path);
	free(b->quadlets);
	free(b->user_units);
	for (size_t i = 0; i < b->n_mounts; i++)
		free(b->mount[i]);
	free(b->mount);
	podman_done(&b->podman);
	units_done(&b->units);
	receipt_done(&b->receipt);
	fd_close(&b->lock_fd);
}

/* ---- the configuration ------------------------------------------------------ */

static int load_config(struct bind *b, struct err *err)
{
	struct err e = ERR_INIT;

	if (config_load(b->paths.config, &b->conf, &e) == 0)
		return 0;
	*err = e;
	return e.code == ERR_NOT_FOUND ? err_set_id(err, ERRID_BIND_NO_CONFIG,
						    "%s does not exist", b->paths.config)
				       : -1;
}

/* ---- mounts ----------------------------------------------------------------- */

static int check_mounts(struct bind *b, const char *templates, struct err *err)
{
	cleanup_free char *config_dir = paths_config_dir(&b->paths);
	cleanup_free char *list_path = xasprintf("%s/mount-allowlist.json", config_dir);
	cleanup_free char *self = NULL;
	cleanup_allowlist struct mount_allowlist list = {0};
	const struct conf_pod *pod = &b->conf.pod;

	if (pod->n_mounts == 0)
		return 0;
	if (paths_self(&self, err) < 0 ||
	    mount_allowlist_load(list_path, b->home, &list, err) < 0)
		return -1;
	*strrchr(self, '/') = '\0';
	const char *const own[] = {b->paths.data, b->paths.runtime_parent,
				   config_dir,	  b->quadlets,
				   templates,	  self,
				   NULL};
	const struct mount_world w = {.home = b->home, .own = own};

	b->mount = xcalloc(pod->n_mounts, sizeof(*b->mount));
	for (size_t i = 0; i < pod->n_mounts; i++) {
		const struct mount_wish wish = {pod->mount[i].path,
						pod->mount[i].read_write};

		if (mount_check(&w, &list, &wish, &b->mount[i], err) < 0)
			return err_wrap(err, "pod.mounts");
		b->n_mounts++;
	}
	return mounts_check_overlap(b->mount, b->n_mounts, err);
}

/* ---- values ----------------------------------------------------------------- */

static int set_unit(struct unit_values *v, const char *name, const char *in_image,
		    const struct conf_unit *u, const char *label, struct err *err)
{
	cleanup_free char *image_name = xasprintf("IMAGE_%s", name);
	cleanup_free char *memory_name = xasprintf("%s_MEMORY", name);
	cleanup_free char *image = unit_image(in_image, u, label);

	unit_values_number(v, memory_name, u->memory);
	return unit_values_text(v, image_name, UNIT_IMAGE, image, err);
}

static int set_cpus(const struct bind *b, struct unit_values *v, struct err *err)
{
	long have = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned cpus = b->conf.pod.tomb_cpus;

	if (have < 1)
		have = 1;
	if (cpus > (unsigned long)have)
		return err_set_id(err, ERRID_BIND_VALUE,
				  "pod.tomb.cpus: %u, and this machine has %ld", cpus,
				  have);
	unit_values_number(v, "TOMB_CPUS", cpus ? cpus : (uint64_t)have);
	return 0;
}

/* Where pasta shows this machine to a pod. */
#define HOST_ADDRESS "169.254.1.2"

static bool names_host(const struct conf_addresses *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (str_eq(a->v[i], HOST_ADDRESS))
			return true;
	return false;
}

/* Is there anybody to ask at all, and somebody on this machine? */
static bool wants_egress(const struct conf_broker *c, bool *ret_host)
{
	const struct conf_portal *classifier = conf_classifier(c);
	bool any = c->n_portals > 0 || classifier;

	*ret_host = classifier && names_host(&classifier->addresses);
	for (size_t i = 0; i < c->n_portals; i++)
		*ret_host |= names_host(&c->portal[i].addresses);
	for (size_t i = 0; i < c->n_credentials; i++)
		*ret_host |= names_host(&c->credential[i].addresses);
	for (size_t i = 0; i < REGISTRY_KIND_MAX_; i++) {
		any |= c->registry[i].url.text != NULL;
		*ret_host |= names_host(&c->registry[i].addresses);
	}
	for (size_t i = 0; i < c->n_rules; i++) {
		any |= c->rule[i].target == WARD_HOST && c->rule[i].action != WARD_DENY;
		*ret_host |= names_host(&c->rule[i].addresses);
	}
	return any;
}

/* Where the folders of jobs are. A value that is not set leaves its line out. */
static int set_jobs(const struct bind *b, struct unit_values *v, struct err *err)
{
	const struct conf *c = &b->conf;
	cleanup_free char *bytes =
		c->jobs_tmpfs_bytes ? xasprintf("%" PRIu64, c->jobs_tmpfs_bytes) : NULL;

	if (c->jobs_dir && mountinfo_check_own(c->jobs_dir, err) < 0)
		return -1;
	if (unit_values_text(v, "JOBS_DIR", UNIT_PATH, c->jobs_dir, err) < 0 ||
	    unit_values_text(v, "JOBS_TMPFS", UNIT_WORD, bytes, err) < 0)
		return -1;
	return unit_values_text(v, "JOBS_APART", UNIT_WORD,
				c->jobs_dir || bytes ? "yes" : "no", err);
}

static int set_values(const struct bind *b, struct unit_values *v, struct err *err)
{
	const struct conf_pod *pod = &b->conf.pod;
	bool egress, host;
	const char *secret;

	if (!b->paths.runtime_parent)
		return err_set_id(err, ERRID_BIND_PODMAN,
				  "XDG_RUNTIME_DIR is not set: there is no user manager");
	if (b->conf.unrooted)
		return err_set_id(err, ERRID_START_CONFIG,
				  "daemons: no_private_root is for 'lych up': in the pod "
				  "containers are the daemons' roots");
	if (b->conf.n_anchors)
		return err_set_id(err, ERRID_START_CONFIG,
				  "audit.anchors is for 'lych up': the pod's scribe does "
				  "not see those files yet");
	if (unit_values_text(v, "DATA_DIR", UNIT_PATH, b->paths.data, err) < 0 ||
	    unit_values_text(v, "RUNTIME_DIR", UNIT_PATH, b->paths.runtime, err) < 0 ||
	    unit_values_text(v, "CONFIG_FILE", UNIT_PATH, b->paths.config, err) < 0 ||
	    unit_values_text(v, "AUTHORITIES", UNIT_PATH,
			     b->conf.broker.egress.authorities, err) < 0 ||
	    set_unit(v, "TOMB", "tomb", &pod->tomb, pod->label, err) < 0 ||
	    set_unit(v, "VESSEL", "vessel", &pod->vessel, pod->label, err) < 0 ||
	    set_unit(v, "SCRIBE", "scribe", &pod->scribe, pod->label, err) < 0 ||
	    set_unit(v, "PHYLACTERY", "phylactery", &pod->phylactery, pod->label, err) <
		    0 ||
	    unit_values_text(v, "TOMB_GRADE", UNIT_WORD, sbx_grade_name(b->conf.grade),
			     err) < 0 ||
	    set_cpus(b, v, err) < 0)
		return -1;
	if (set_jobs(b, v, err) < 0)
		return -1;
	unit_values_number(v, "TOMB_SLOTS", b->conf.slots);
	unit_values_number(v, "TOMB_PIDS", pod->tomb_processes);
	unit_values_flag(v, "CGROUPS", pod->cgroups);
	unit_values_flag(v, "UNMASK_PROC", pod->unmask_proc);
	egress = wants_egress(&b->conf.broker, &host);
	unit_values_flag(v, "NO_EGRESS", !egress);
	unit_values_flag(v, "EGRESS", egress && !host);
	unit_values_flag(v, "EGRESS_HOST", egress && host);
	unit_values_list(v, "PORTAL_SECRET");
	for (size_t i = 0; (secret = conf_broker_secret(&b->conf.broker, i)); i++)
		if (unit_values_add(v, "PORTAL_SECRET", UNIT_WORD, secret, err) < 0)
			return -1;
	unit_values_list(v, "MOUNT");
	for (size_t i = 0; i < b->n_mounts; i++) {
		/* The same path inside, so that a path means one thing. Shared with the
		 * user's own programs: no label of one container's. */
		cleanup_free char *item =
			xasprintf("%s:%s:%s,z", b->mount[i], b->mount[i],
				  pod->mount[i].read_write ? "rw" : "ro");

		if (unit_values_add(v, "MOUNT", UNIT_BIND, item, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- secrets ---------------------------------------------------------------- */

static const struct podman_secret *find_secret(const struct podman_secret *list, size_t n,
					       const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(list[i].name, name))
			return &list[i];
	return NULL;
}

static int check_present(char *const *names, size_t n, const struct podman_secret *have,
			 size_t n_have, struct err *err)
{
	cleanup_buf struct buf missing = {0};

	buf_init(&missing, 400);
	for (size_t i = 0; i < n; i++)
		if (!find_secret(have, n_have, names[i]))
			buf_addf(&missing, "%s%s", missing.len ? ", " : "", names[i]);
	if (missing.len)
		return err_set_id(err, ERRID_BIND_NO_SECRET, "%s", buf_str(&missing));
	return 0;
}

/* Servers of this machine alone want any word for a key, and get the same one: 'EMPTY'. */
static bool may_be_equal(const struct conf_broker *c, const char *a, const char *b)
{
	return conf_portal_secret_is_local(c, a) && conf_portal_secret_is_local(c, b);
}

/* No two of them with one id or one value: whoever can read the one has the other. */
static int check_distinct(const struct bind *b, char *const *names, size_t n,
			  const struct podman_secret *have, size_t n_have,
			  struct err *err)
{
	cleanup_free uint8_t(*digest)[SHA256_SIZE] = xcalloc(n + 1, sizeof(*digest));

	for (size_t i = 0; i < n; i++) {
		const char *id = find_secret(have, n_have, names[i])->id;

		if (podman_secret_digest(&b->podman, names[i], digest[i], err) < 0)
			return -1;
		for (size_t k = 0; k < i; k++) {
			const char *other = find_secret(have, n_have, names[k])->id;

			if (str_eq(id, other) ||
			    (memcmp(digest[i], digest[k], SHA256_SIZE) == 0 &&
			     !may_be_equal(&b->conf.broker, names[k], names[i])))
				return err_set_id(err, ERRID_BIND_ALIAS, "%s and %s",
						  names[k], names[i]);
		}
	}
	return 0;
}

/* Those that bind makes itself. */
static bool is_made(const char *name)
{
	const struct secret_info *info = secret_find(name);

	return info && info->rotation == ROTATE_TOMB;
}

static void leave_out_made(char **names, size_t *n)
{
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++) {
		if (is_made(names[i]))
			free(names[i]);
		else
			names[kept++] = names[i];
	}
	*n = kept;
}

int bind_tomb_secrets(const struct bind *b, struct err *err)
{
	cleanup_secret_store struct secret_store s = {.dirfd = -1};

	return secret_store_open("podman", &b->paths, &s, err) < 0
		       ? -1
		       : secret_tombs_prepare(&s, TOMB_NAME, err);
}

static int check_secrets(const struct bind *b, struct err *err)
{
	cleanup_free struct podman_secret *have = NULL;
	size_t n_have = 0, n = 0;
	char **names = NULL;
	int r;

	units_secrets(&b->units, &names, &n);
	leave_out_made(names, &n);
	r = podman_secrets(&b->podman, &have, &n_have, err);
	if (r == 0)
		r = check_present(names, n, have, n_have, err);
	if (r == 0)
		r = check_distinct(b, names, n, have, n_have, err);
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return r;
}

/* ---- all of it -------------------------------------------------------------- */

static int render_units(struct bind *b, const struct unit_values *v,
			const char *templates, struct err *err)
{
	cleanup_free char *host = NULL;

	if (units_find_templates(BIND_HOST, &host, err) < 0 ||
	    units_render(templates, false, v, &b->units, err) < 0)
		return -1;
	return units_render(host, true, v, &b->units, err);
}

int bind_render(struct bind *b, struct err *err)
{
	cleanup_unit_values struct unit_values v = {0};
	cleanup_free char *templates = NULL;
	cleanup_free char *self = NULL;
	bool egress, host;

	if (load_config(b, err) < 0 || paths_self(&self, err) < 0 ||
	    units_find_templates(b->conf.pod.profile, &templates, err) < 0 ||
	    check_mounts(b, templates, err) < 0 || set_values(b, &v, err) < 0 ||
	    unit_values_text(&v, "LYCH", UNIT_PATH, self, err) < 0 ||
	    render_units(b, &v, templates, err) < 0)
		return -1;
	egress = wants_egress(&b->conf.broker, &host);
	const struct unit_world w = {
		.data = b->paths.data,
		.runtime = b->paths.runtime,
		.config = b->paths.config,
		.lych = self,
		.mount = b->mount,
		.n_mounts = b->n_mounts,
		.jobs_dir = b->conf.jobs_dir,
		.authorities = b->conf.broker.egress.authorities,
		.sovereign = str_eq(b->conf.pod.profile, "sovereign"),
		.egress = egress,
		.egress_host = host,
	};

	if (units_check(&b->units, &w, err) < 0 || podman_open(&b->podman, err) < 0)
		return -1;
	return check_secrets(b, err);
}
