/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See host_requests.h.
 */
#include "vessel/host_requests.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/str.h"
#include "vessel/api/api.h"
#include <errno.h>
#include <fcntl.h>

int host_requests_init(int data_fd, struct err *err)
{
	return fs_mkdir_beneath(data_fd, HOST_REQUEST_DIR, 0700, err);
}

static int count(int dirfd, unsigned *ret, struct err *err)
{
	cleanup_close int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		return err_sys(err, "list " HOST_REQUEST_DIR);
	fd = -1; /* the DIR's now */
	for (*ret = 0; readdir(d); ++*ret)
		;
	*ret -= 2;
	return 0;
}

/* On disk when it returns. ERRID_HOST_BUSY when nobody takes them away. */
static int host_requests_drop(int data_fd, const struct random_ops *rng,
			      enum host_request what, struct uuid *ret_id,
			      struct err *err)
{
	cleanup_close int dirfd = fs_open_beneath(data_fd, HOST_REQUEST_DIR,
						  O_RDONLY | O_DIRECTORY, 0, err);
	cleanup_close int file = -1;
	char name[64], text[HOST_REQUEST_FILE_MAX];
	unsigned waiting = 0;

	if (dirfd < 0 || count(dirfd, &waiting, err) < 0)
		return -1;
	if (waiting >= HOST_REQUEST_WAITING_MAX)
		return err_set_id(err, ERRID_HOST_BUSY, "%u wait already", waiting);
	uuid_new(rng, ret_id);
	if (str_fmt(name, sizeof(name), "%s" HOST_REQUEST_SUFFIX, ret_id->s) < 0 ||
	    str_fmt(text, sizeof(text), "%s\n", host_request_name(what)) < 0)
		return err_set(err, ERR_INTERNAL, "a host request's name");
	/* The directory itself never holds anything unfinished, nor one with two names. */
	file = openat(dirfd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (file < 0)
		return err_sys(err, "a file in " HOST_REQUEST_DIR);
	if (fs_write_all(file, text, strlen(text), err) < 0)
		return -1;
	if (fsync(file) < 0 || linkat(file, "", dirfd, name, AT_EMPTY_PATH) < 0)
		return err_sys(err, HOST_REQUEST_DIR "/%s", name);
	if (fsync(dirfd) < 0)
		return err_sys(err, "fsync " HOST_REQUEST_DIR);
	return 0;
}

/* ---- the route ------------------------------------------------------------- */

static int read_request(struct httpd_req *req, enum host_request *ret, struct err *err)
{
	static const char *const keys[] = {"intent"};
	cleanup_json struct json *j = NULL;
	const char *word = NULL;
	const void *body;
	size_t len;

	body = httpd_req_body(req, &len);
	if (api_no_query(req, err) < 0 ||
	    json_parse(body, len, JSON_DEPTH_DEFAULT, &j, err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_str(j, "intent", true, HOST_REQUEST_FILE_MAX, &word, err) < 0)
		return -1;
	if (!host_request_from_name(word, strlen(word), ret))
		return err_set_id(err, ERRID_HOST_INTENT, "'%.40s'", word);
	return 0;
}

void api_intent(struct httpd_req *req, void *arg)
{
	struct vessel *v = arg;
	cleanup_buf struct buf out;
	struct err err = ERR_INIT;
	enum host_request what;
	struct jsonw w;
	struct uuid id;

	buf_init(&out, 4096);
	if (read_request(req, &what, &err) < 0 ||
	    host_requests_drop(v->data_fd, v->rng, what, &id, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "id", id.s);
	jsonw_kstr(&w, "intent", host_request_name(what));
	jsonw_obj_end(&w);
	httpd_reply_json(req, 201, &out);
}
