/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Theory of operation
 *
 * Entries are taken in the order in which they were made. One that is a regular file of
 * ours with one name, at most 64 bytes, called UUID.intent and holding one known word is
 * carried out: receipt "begun", the act, receipt "done" or "failed", the file removed. A
 * receipt that says done or failed is never acted on again; one that says begun was cut
 * off and is, since every act can be done twice. Anything else is moved to aside/.
 */
#include "cli/local/host_requests.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/id.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define TAKEN_AT_ONCE 64
#define ASIDE "aside"
#define ASIDE_MAX 64
#define RECEIPT_KEPT_SEC (30 * 24 * 3600)
#define RECEIPTS_MAX 4096
#define RECEIPT_SUFFIX ".json"

struct waiting {
	char *name;
	struct timespec made;
};

static int by_age(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->made.tv_sec != y->made.tv_sec)
		return x->made.tv_sec < y->made.tv_sec ? -1 : 1;
	if (x->made.tv_nsec != y->made.tv_nsec)
		return x->made.tv_nsec < y->made.tv_nsec ? -1 : 1;
	return strcmp(x->name, y->name);
}

static DIR *list(int dirfd)
{
	cleanup_close int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (d)
		fd = -1;
	return d;
}

static bool is_dot(const char *name)
{
	return str_eq(name, ".") || str_eq(name, "..");
}

/* ---- what must be ours ------------------------------------------------------ */

static int open_private(const char *path, struct err *err)
{
	cleanup_close int fd =
		open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys_id(err, ERRID_HOST_REACT, "%s", path);
	if (st.st_uid != getuid() || (st.st_mode & 077))
		return err_set_id(err, ERRID_HOST_REACT,
				  "%s must be yours with mode 0700", path);
	return TAKE_FD(fd);
}

int host_requests_open(const struct paths *p, struct host_requests *ret, struct err *err)
{
	cleanup_free char *from = xasprintf("%s/vessel/" HOST_REQUEST_DIR, p->data);
	cleanup_free char *receipts = xasprintf("%s/reactor", p->data);
	cleanup_free char *aside = xasprintf("%s/" ASIDE, receipts);

	*ret = (struct host_requests){.dirfd = -1, .receipts = -1};
	if (fs_mkdir_all(aside, 0700, err) < 0)
		return -1;
	ret->dirfd = open_private(from, err);
	ret->receipts = ret->dirfd < 0 ? -1 : open_private(receipts, err);
	if (ret->receipts < 0) {
		host_requests_close(ret);
		return -1;
	}
	return 0;
}

void host_requests_close(struct host_requests *in)
{
	fd_close(&in->dirfd);
	fd_close(&in->receipts);
}

/* ---- receipts --------------------------------------------------------------- */

static int receipt_write(struct host_requests *in, const char *id, enum host_request what,
			 const char *state, const char *detail, struct err *err)
{
	cleanup_buf struct buf b = {0};
	char name[64], at[RFC3339_SIZE];
	struct jsonw w;

	if (str_fmt(name, sizeof(name), "%s" RECEIPT_SUFFIX, id) < 0)
		return err_set(err, ERR_INTERNAL, "receipt's name");
	clock_rfc3339(clock_wall_usec(), at);
	buf_init(&b, 8192);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "id", id);
	jsonw_kstr(&w, "intent", host_request_name(what));
	jsonw_kstr(&w, "state", state);
	jsonw_kstr(&w, "detail", detail);
	jsonw_kstr(&w, "at", at);
	jsonw_obj_end(&w);
	return fs_write_atomic(in->receipts, name, b.data, b.len, 0600, err);
}

static int receipt_read(int dirfd, const char *name, struct host_request_receipt *ret,
			struct err *err)
{
	cleanup_free char *text = NULL;
	cleanup_json struct json *j = NULL;
	const char *state, *detail;
	size_t len;

	if (fs_read_file(dirfd, name, 8192, &text, &len, err) < 0 ||
	    json_parse(text, len, JSON_DEPTH_DEFAULT, &j, err) < 0 ||
	    json_get_str(j, "state", true, sizeof(ret->state) - 1, &state, err) < 0 ||
	    json_get_str(j, "detail", true, 8192, &detail, err) < 0)
		return -1;
	(void)snprintf(ret->detail, sizeof(ret->detail), "%s", detail);
	return str_copy(ret->state, sizeof(ret->state), state);
}

/* No receipt: state "". */
static int receipt_of(int dirfd, const char *id, struct host_request_receipt *ret,
		      struct err *err)
{
	struct err why = ERR_INIT;
	char name[64];

	*ret = (struct host_request_receipt){0};
	if (str_fmt(name, sizeof(name), "%s" RECEIPT_SUFFIX, id) < 0)
		return err_set(err, ERR_INTERNAL, "receipt's name");
	if (receipt_read(dirfd, name, ret, &why) == 0 || why.code == ERR_NOT_FOUND)
		return 0;
	*err = why;
	return -1;
}

int host_requests_receipt(const struct paths *p, const char *id,
			  struct host_request_receipt *ret, struct err *err)
{
	cleanup_free char *dir = xasprintf("%s/reactor", p->data);
	cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	*ret = (struct host_request_receipt){0};
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_sys(err, "%s", dir);
	return receipt_of(fd, id, ret, err);
}

/* Forgets old ones; how many restarts and rotations there were lately. */
static int recent(struct host_requests *in, unsigned *ret, struct err *err)
{
	cleanup_dir DIR *d = list(in->receipts);
	time_t now = (time_t)(clock_wall_usec() / USEC_PER_SEC);
	const struct dirent *e;
	unsigned seen = 0;

	if (!d)
		return err_sys(err, "list the receipts");
	for (*ret = 0; (e = readdir(d)) && seen < RECEIPTS_MAX;) {
		struct stat st;

		if (!str_ends(e->d_name, RECEIPT_SUFFIX) ||
		    fstatat(in->receipts, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		seen++;
		if (now - st.st_mtime > RECEIPT_KEPT_SEC)
			(void)unlinkat(in->receipts, e->d_name, 0);
		else if (now - st.st_mtime < INTENTS_RATE_SEC)
			++*ret;
	}
	return 0;
}

/* ---- one entry -------------------------------------------------------------- */

static void set_aside(struct host_requests *in, const char *name, const char *why)
{
	cleanup_close int aside = openat(in->receipts, ASIDE,
					 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup_dir DIR *d = aside < 0 ? NULL : list(aside);
	struct err err = ERR_INIT;
	struct request_id rid;
	unsigned n = 0;

	in->n_aside++;
	while (d && readdir(d))
		n++;
	request_id_new(&random_real, &rid);
	log_kv(LOG_ERROR_, "not a host request; set aside", "name", name, "why", why,
	       "as", rid.s, NULL);
	if (d && n < ASIDE_MAX + 2 && renameat(in->dirfd, name, aside, rid.s) == 0)
		return;
	if (fs_remove_beneath(in->dirfd, name, &err) < 0)
		log_err(LOG_ERROR_, "it could not be removed either", &err);
}

static int read_request(struct host_requests *in, const char *name,
			enum host_request *ret, struct err *err)
{
	cleanup_close int fd =
		fs_open_beneath(in->dirfd, name, O_RDONLY | O_NONBLOCK, 0, err);
	char text[HOST_REQUEST_FILE_MAX + 1];
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(err, "stat");
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_uid != getuid())
		return err_set_id(err, ERRID_HOST_INTENT,
				  "not a regular file of ours with one name");
	n = read(fd, text, sizeof(text));
	if (n < 0)
		return err_sys(err, "read");
	if (n < 2 || n > HOST_REQUEST_FILE_MAX || text[n - 1] != '\n' ||
	    !host_request_from_name(text, (size_t)n - 1, ret))
		return err_set_id(err, ERRID_HOST_INTENT, "its content is no known word");
	return 0;
}

static bool id_of(const char *name, struct uuid *ret)
{
	struct err ignored = ERR_INIT;
	char text[sizeof(ret->s)];

	return strlen(name) == sizeof(ret->s) - 1 + strlen(HOST_REQUEST_SUFFIX) &&
	       str_ends(name, HOST_REQUEST_SUFFIX) &&
	       str_fmt(text, sizeof(text), "%.36s", name) == 0 &&
	       uuid_parse(text, ret, &ignored) == 0;
}

static bool is_limited(enum host_request what)
{
	return what == HOST_REQUEST_RESTART_TOMB || what == HOST_REQUEST_ROTATE_SECRET;
}

static int carry_out(struct host_requests *in, const struct uuid *id,
		     enum host_request what, struct err *err)
{
	struct err why = ERR_INIT;
	int r;

	if (receipt_write(in, id->s, what, "begun", "", err) < 0)
		return -1;
	r = in->act(what, in->arg, &why);
	log_kv(r < 0 ? LOG_ERROR_ : LOG_INFO_,
	       r < 0 ? "a host request failed" : "a host request was carried out",
	       "intent", host_request_name(what), "id", id->s, "why", why.msg, NULL);
	*(r < 0 ? &in->n_failed : &in->n_done) += 1;
	return receipt_write(in, id->s, what, r < 0 ? "failed" : "done", why.msg, err);
}

static int take(struct host_requests *in, const char *name, struct err *err)
{
	struct host_request_receipt before;
	struct err why = ERR_INIT;
	unsigned lately = 0;
	enum host_request what;
	struct uuid id;

	if (!id_of(name, &id)) {
		set_aside(in, name, "its name is not UUID" HOST_REQUEST_SUFFIX);
		return 0;
	}
	if (read_request(in, name, &what, &why) < 0) {
		set_aside(in, name, why.msg);
		return 0;
	}
	if (receipt_of(in->receipts, id.s, &before, err) < 0 ||
	    recent(in, &lately, err) < 0)
		return -1;
	if (str_eq(before.state, "done") || str_eq(before.state, "failed"))
		log_kv(LOG_WARN_, "a host request that had its receipt", "id", id.s,
		       NULL);
	else if (!before.state[0] && is_limited(what) && lately >= INTENTS_RATE_MAX) {
		set_aside(in, name, "too many in ten minutes");
		return receipt_write(in, id.s, what, "failed", "too many in ten minutes",
				     err);
	} else if (carry_out(in, &id, what, err) < 0)
		return -1;
	if (unlinkat(in->dirfd, name, 0) < 0 && errno != ENOENT)
		return err_sys(err, "remove '%.80s'", name);
	return 0;
}

int host_requests_run(struct host_requests *in, struct err *err)
{
	struct waiting w[TAKEN_AT_ONCE];
	const struct dirent *e;
	size_t n;
	int r = 0;

	do {
		cleanup_dir DIR *d = list(in->dirfd);

		if (!d)
			return err_sys(err, "list the host requests");
		for (n = 0; n < TAKEN_AT_ONCE && (e = readdir(d));) {
			struct stat st = {0};

			if (is_dot(e->d_name))
				continue;
			(void)!fstatat(in->dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW);
			w[n++] = (struct waiting){xstrdup(e->d_name), st.st_mtim};
		}
		qsort(w, n, sizeof(w[0]), by_age);
		for (size_t i = 0; i < n; i++) {
			if (r == 0)
				r = take(in, w[i].name, err);
			free(w[i].name);
		}
	} while (r == 0 && n == TAKEN_AT_ONCE);
	return r;
}
