/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See output.h.
 */
#include "vessel/store/output.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/store/output_priv.h"
#include "vessel/store/output_sum.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* An epoch grows by claim and reap: a final state is a few steps past its last attempt.
 */
#define EPOCH_LOOKBACK 16
#define FAN_JOBS 256
#define NAME_SIZE OUTPUT_NAME_SIZE
#define META_MAX_BYTES 1024

static const char *const stream_names[OUTPUT_STREAM_MAX_] = {"stdout", "stderr"};
static const char *const sum_names[OUTPUT_STREAM_MAX_] = {"stdout.sum", "stderr.sum"};
static const char *const stored_keys[OUTPUT_STREAM_MAX_] = {"stdout_stored",
							    "stderr_stored"};

const char *output_stream_name(enum output_stream s)
{
	assert(s < OUTPUT_STREAM_MAX_);
	return stream_names[s];
}

bool output_stream_from_name(const char *name, enum output_stream *ret)
{
	for (unsigned i = 0; i < OUTPUT_STREAM_MAX_; i++) {
		if (str_eq(name, stream_names[i])) {
			*ret = (enum output_stream)i;
			return true;
		}
	}
	return false;
}

int output_new(int data_fd, struct store_budget *budget, uint64_t stream_max_bytes,
	       struct output **ret, struct err *err)
{
	cleanup_close int fd = -1;
	uint64_t used;

	if (fs_mkdir_beneath(data_fd, "output", 0700, err) < 0)
		return -1;
	if (store_measure(data_fd, "output", &used, err) < 0)
		return -1;
	fd = fs_open_beneath(data_fd, "output", O_RDONLY | O_DIRECTORY, 0, err);
	if (fd < 0)
		return -1;
	struct output *o = xnew(struct output);
	o->dir = TAKE_FD(fd);
	o->budget = budget;
	o->stream_max = stream_max_bytes;
	budget->used += used;
	*ret = o;
	return 0;
}

void output_free(struct output *o)
{
	if (!o)
		return;
	fd_close(&o->dir);
	free(o);
}

void output_attempt_name(char out[NAME_SIZE], job_id_t job, int64_t epoch,
			 const char *file)
{
	int r = str_fmt(out, NAME_SIZE, "%lld/%lld.%lld%s%s", (long long)(job / FAN_JOBS),
			(long long)job, (long long)epoch, file ? "/" : "",
			file ? file : "");
	assert(r == 0);
}

/* "<job>.<epoch>", both as output_append writes them. */
static bool attempt_parse(const char *name, job_id_t *ret_job, int64_t *ret_epoch)
{
	char head[NAME_SIZE];
	const char *dot = strchr(name, '.');
	uint64_t job, epoch;

	if (!dot || (size_t)(dot - name) >= sizeof(head))
		return false;
	memcpy(head, name, (size_t)(dot - name));
	head[dot - name] = '\0';
	if (parse_u64(head, 1, INT64_MAX, &job, NULL) < 0 ||
	    parse_u64(dot + 1, 0, INT64_MAX, &epoch, NULL) < 0)
		return false;
	*ret_job = (job_id_t)job;
	*ret_epoch = (int64_t)epoch;
	return true;
}

static bool exists(const struct output *o, const char *path)
{
	struct stat st;

	return fstatat(o->dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_final(const struct output *o, job_id_t job, int64_t epoch)
{
	char name[NAME_SIZE];

	output_attempt_name(name, job, epoch, "meta");
	return exists(o, name);
}

static int remove_attempt(struct output *o, const char *name, struct err *err)
{
	uint64_t used;

	if (store_measure(o->dir, name, &used, err) < 0 ||
	    fs_remove_beneath(o->dir, name, err) < 0)
		return -1;
	store_return(o->budget, used);
	return 0;
}

static int begin_attempt(struct output *o, job_id_t job, int64_t epoch, struct err *err)
{
	char name[NAME_SIZE];

	output_attempt_name(name, job, epoch, NULL);
	if (exists(o, name))
		return 0;
	if (fs_mkdir_beneath(o->dir, name, 0700, err) < 0)
		return store_err(err);
	for (int64_t e = epoch - 1; e > 0 && e > epoch - EPOCH_LOOKBACK; e--) {
		output_attempt_name(name, job, e, NULL);
		if (exists(o, name) && remove_attempt(o, name, err) < 0)
			return -1;
	}
	return 0;
}

static void pair_close(struct sum_pair *p)
{
	fd_close(&p->data);
	fd_close(&p->sums);
}
#define cleanup_pair __attribute__((cleanup(pair_close)))

/* To write: made when they are missing. What an older release began has no slots. */
static int open_pair(const struct output *o, job_id_t job, int64_t epoch,
		     enum output_stream s, struct sum_pair *ret, struct err *err)
{
	char name[NAME_SIZE];
	uint64_t size;

	output_attempt_name(name, job, epoch, stream_names[s]);
	ret->data =
		fs_open_beneath(o->dir, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600, err);
	if (ret->data < 0)
		return store_err(err);
	if (store_size(ret->data, &size, err) < 0)
		return -1;
	output_attempt_name(name, job, epoch, sum_names[s]);
	if (size > 0 && !exists(o, name))
		return 0;
	ret->sums =
		fs_open_beneath(o->dir, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600, err);
	return ret->sums < 0 ? store_err(err) : 0;
}

/* To read; data -1: nothing is stored. */
static int find_pair(const struct output *o, job_id_t job, int64_t epoch,
		     enum output_stream s, struct sum_pair *ret, struct err *err)
{
	char name[NAME_SIZE];

	output_attempt_name(name, job, epoch, stream_names[s]);
	if (!exists(o, name))
		return 0;
	ret->data = fs_open_beneath(o->dir, name, O_RDONLY | O_NOFOLLOW, 0, err);
	if (ret->data < 0)
		return -1;
	output_attempt_name(name, job, epoch, sum_names[s]);
	if (!exists(o, name))
		return 0;
	ret->sums = fs_open_beneath(o->dir, name, O_RDONLY | O_NOFOLLOW, 0, err);
	return ret->sums < 0 ? -1 : 0;
}

/* What the pair has; once it is complete, what it had then. */
static int stored_size(const struct output *o, job_id_t job, int64_t epoch,
		       enum output_stream s, const struct sum_pair *p, uint64_t *ret,
		       bool *ret_final, struct err *err)
{
	cleanup_json struct json *j = NULL;
	cleanup_free char *text = NULL;
	char name[NAME_SIZE];
	size_t len;

	*ret = 0;
	*ret_final = is_final(o, job, epoch);
	output_attempt_name(name, job, epoch, "meta");
	if (!*ret_final)
		return p->data < 0 ? 0 : sum_size(p, ret, err);
	if (fs_read_file(o->dir, name, META_MAX_BYTES, &text, &len, err) < 0)
		return -1;
	if (json_parse(text, len, JSON_DEPTH_DEFAULT, &j, NULL) < 0)
		return err_set_id(err, ERRID_STORE_DAMAGED,
				  "what was noted at the end of the output");
	if (!json_has(j, stored_keys[s])) /* of an older release */
		return p->data < 0 ? 0 : sum_size(p, ret, err);
	if (json_get_u64(j, stored_keys[s], true, 0, INT64_MAX, ret, NULL) < 0)
		return err_set_id(err, ERRID_STORE_DAMAGED,
				  "what was noted at the end of the output");
	return 0;
}

/* The bytes behind size, with their slots, or nothing of either. */
static int append(struct output *o, const struct sum_pair *p, uint64_t size,
		  const char *data, size_t len, struct err *err)
{
	uint64_t more = len, have;

	if (p->sums >= 0)
		more += sum_bytes(size + len) - sum_bytes(size);
	if (store_size(p->data, &have, err) < 0 ||
	    store_reserve(o->budget, STORE_TOMB, more, err) < 0)
		return -1;
	if (sum_append(p, size, data, len, err) < 0) {
		store_return(o->budget, more);
		return -1;
	}
	if (have > size) /* what a writer that died had not covered was cut off */
		store_return(o->budget, have - size);
	return 0;
}

int output_append(struct output *o, job_id_t job, int64_t epoch, enum output_stream s,
		  uint64_t offset, const void *data, size_t len, uint64_t *ret_size,
		  struct err *err)
{
	cleanup_pair struct sum_pair p = {-1, -1};
	uint64_t size;
	bool final;

	if (begin_attempt(o, job, epoch, err) < 0 ||
	    open_pair(o, job, epoch, s, &p, err) < 0 ||
	    stored_size(o, job, epoch, s, &p, &size, &final, err) < 0)
		return -1;
	*ret_size = size;
	if (offset > size)
		return err_set_id(err, ERRID_RUN_GAP, "offset %llu, %llu bytes stored",
				  (unsigned long long)offset, (unsigned long long)size);
	if (len <= size - offset)
		return 0;
	size_t skip = (size_t)(size - offset);
	size_t fresh = len - skip;

	if (final)
		return err_set_id(err, ERRID_RUN_STATE, "the output is already complete");
	if (size > o->stream_max || fresh > o->stream_max - size)
		return err_set_id(err, ERRID_STORE_LIMIT,
				  "a stream is at most %llu bytes",
				  (unsigned long long)o->stream_max);
	if (append(o, &p, size, (const char *)data + skip, fresh, err) < 0)
		return -1;
	*ret_size = size + fresh;
	return 0;
}

static int sync_pair(const struct sum_pair *p, const char *name, struct err *err)
{
	if (fdatasync(p->data) < 0 || (p->sums >= 0 && fdatasync(p->sums) < 0)) {
		(void)err_sys(err, "fdatasync %s", name);
		return store_err(err);
	}
	return 0;
}

static int finish_stream(struct output *o, job_id_t job, int64_t epoch,
			 enum output_stream s, const struct output_end *end,
			 uint64_t *ret_stored, uint64_t *ret_expected, struct err *err)
{
	cleanup_pair struct sum_pair p = {-1, -1};
	bool final;

	if (find_pair(o, job, epoch, s, &p, err) < 0 ||
	    stored_size(o, job, epoch, s, &p, ret_stored, &final, err) < 0)
		return -1;
	if (!end->truncated[s] && *ret_stored != end->bytes[s]) {
		*ret_expected = *ret_stored;
		return err_set_id(err, ERRID_RUN_GAP, "%s has %llu bytes, not %llu",
				  stream_names[s], (unsigned long long)*ret_stored,
				  (unsigned long long)end->bytes[s]);
	}
	return *ret_stored > 0 ? sync_pair(&p, stream_names[s], err) : 0;
}

int output_finish(struct output *o, job_id_t job, int64_t epoch,
		  const struct output_end *end, uint64_t *ret_expected, struct err *err)
{
	cleanup_close int dir = -1;
	cleanup_buf struct buf meta;
	uint64_t stored[OUTPUT_STREAM_MAX_];
	char name[NAME_SIZE];
	struct jsonw w;

	buf_init(&meta, META_MAX_BYTES);
	if (begin_attempt(o, job, epoch, err) < 0)
		return -1;
	if (is_final(o, job, epoch))
		return 0;
	for (unsigned s = 0; s < OUTPUT_STREAM_MAX_; s++) {
		if (finish_stream(o, job, epoch, (enum output_stream)s, end, &stored[s],
				  ret_expected, err) < 0)
			return -1;
	}
	jsonw_init(&w, &meta);
	jsonw_obj(&w);
	jsonw_ku64(&w, "stdout_bytes", end->bytes[OUTPUT_STDOUT]);
	jsonw_ku64(&w, "stderr_bytes", end->bytes[OUTPUT_STDERR]);
	jsonw_kbool(&w, "stdout_truncated", end->truncated[OUTPUT_STDOUT]);
	jsonw_kbool(&w, "stderr_truncated", end->truncated[OUTPUT_STDERR]);
	for (unsigned s = 0; s < OUTPUT_STREAM_MAX_; s++)
		jsonw_ku64(&w, stored_keys[s], stored[s]);
	jsonw_obj_end(&w);
	assert(buf_ok(&meta));

	output_attempt_name(name, job, epoch, NULL);
	dir = fs_open_beneath(o->dir, name, O_RDONLY | O_DIRECTORY, 0, err);
	if (dir < 0)
		return -1;
	if (fs_write_atomic(dir, "meta", buf_str(&meta), meta.len, 0600, err) < 0)
		return store_err(err);
	o->budget->used += meta.len;
	return 0;
}

int output_read(const struct output *o, job_id_t job, int64_t epoch, enum output_stream s,
		uint64_t offset, void *buf, size_t room, size_t *ret_len,
		uint64_t *ret_next, struct err *err)
{
	cleanup_pair struct sum_pair p = {-1, -1};
	uint64_t size;
	bool final;

	*ret_len = 0;
	*ret_next = 0;
	if (find_pair(o, job, epoch, s, &p, err) < 0 ||
	    stored_size(o, job, epoch, s, &p, &size, &final, err) < 0)
		return -1;
	*ret_next = size;
	if (offset >= size)
		return 0;
	if (p.data < 0)
		return err_set_id(err, ERRID_STORE_DAMAGED, "%s: the file is gone",
				  stream_names[s]);
	if (sum_read(&p, size, offset, buf, room, ret_len, ret_next, err) < 0)
		return err_wrap(err, "job %lld, %s", (long long)job, stream_names[s]);
	return 0;
}

int output_size(const struct output *o, job_id_t job, int64_t epoch, enum output_stream s,
		uint64_t *ret_size, bool *ret_final, struct err *err)
{
	cleanup_pair struct sum_pair p = {-1, -1};

	if (find_pair(o, job, epoch, s, &p, err) < 0)
		return -1;
	return stored_size(o, job, epoch, s, &p, ret_size, ret_final, err);
}

int64_t output_latest(const struct output *o, job_id_t job, int64_t epoch)
{
	char name[NAME_SIZE];

	for (int64_t e = epoch; e > 0 && e > epoch - EPOCH_LOOKBACK; e--) {
		output_attempt_name(name, job, e, NULL);
		if (exists(o, name))
			return e;
	}
	return 0;
}

/* NULL: there is none (no error), or it can't be listed. */
static DIR *open_listing(const struct output *o, const char *name, struct err *err)
{
	cleanup_close int fd = -1;
	DIR *dir;

	if (!exists(o, name))
		return NULL;
	fd = fs_open_beneath(o->dir, name, O_RDONLY | O_DIRECTORY, 0, err);
	if (fd < 0)
		return NULL;
	dir = fdopendir(fd);
	if (!dir) {
		(void)err_sys(err, "list output");
		return NULL;
	}
	(void)TAKE_FD(fd);
	return dir;
}

static void fan_name(char out[NAME_SIZE], job_id_t fan)
{
	(void)snprintf(out, NAME_SIZE, "%lld", (long long)fan);
}

int output_remove(struct output *o, job_id_t job, struct err *err)
{
	struct err why = ERR_INIT;
	char fan[NAME_SIZE], name[NAME_SIZE];
	cleanup_dir DIR *dir = NULL;
	const struct dirent *e;
	job_id_t id;
	int64_t epoch;

	fan_name(fan, job / FAN_JOBS);
	dir = open_listing(o, fan, &why);
	if (!dir && err_is_set(&why)) {
		*err = why;
		return -1;
	}
	while (dir && (e = readdir(dir))) {
		if (!attempt_parse(e->d_name, &id, &epoch) || id != job)
			continue;
		output_attempt_name(name, id, epoch, NULL);
		if (remove_attempt(o, name, err) < 0)
			return -1;
	}
	(void)unlinkat(o->dir, fan, AT_REMOVEDIR); /* when it was the last */
	return 0;
}

/* The smallest fan that is at least `from`; -1: none, or err is set. */
static job_id_t next_fan(const struct output *o, job_id_t from, struct err *err)
{
	cleanup_dir DIR *dir = open_listing(o, ".", err);
	const struct dirent *e;
	job_id_t found = -1;

	while (dir && (e = readdir(dir))) {
		uint64_t fan;

		if (parse_u64(e->d_name, 0, INT64_MAX, &fan, NULL) == 0 &&
		    (job_id_t)fan >= from && (found < 0 || (job_id_t)fan < found))
			found = (job_id_t)fan;
	}
	return found;
}

/* The max smallest ids above `after`, by insertion: max is small. */
static size_t jobs_of_fan(DIR *dir, job_id_t after, job_id_t *ret_ids, size_t max)
{
	const struct dirent *e;
	size_t n = 0;

	while ((e = readdir(dir))) {
		job_id_t id;
		int64_t epoch;
		size_t at;

		if (!attempt_parse(e->d_name, &id, &epoch) || id <= after)
			continue;
		for (at = 0; at < n && ret_ids[at] < id; at++)
			;
		if (at == max || (at < n && ret_ids[at] == id))
			continue;
		if (n < max)
			n++;
		for (size_t i = n - 1; i > at; i--)
			ret_ids[i] = ret_ids[i - 1];
		ret_ids[at] = id;
	}
	return n;
}

int output_jobs(const struct output *o, job_id_t after, job_id_t *ret_ids, size_t max,
		size_t *ret_n, struct err *err)
{
	struct err why = ERR_INIT;
	job_id_t fan = after / FAN_JOBS;
	char name[NAME_SIZE];

	*ret_n = 0;
	while (*ret_n == 0 && (fan = next_fan(o, fan, &why)) >= 0) {
		cleanup_dir DIR *dir = NULL;

		fan_name(name, fan++);
		dir = open_listing(o, name, &why);
		if (dir)
			*ret_n = jobs_of_fan(dir, after, ret_ids, max);
		else if (err_is_set(&why))
			break;
	}
	if (err_is_set(&why)) {
		*err = why;
		return -1;
	}
	return 0;
}
