/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel, the egress worker and the gate worker.
 * See reading.h.
 */
#include "common/worker/reading.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES 4096
_Static_assert(sizeof(struct reading_page) <= FILE_BYTES, "a note fits its file");

static const char *const words[READING_MAX_] = {
	[READING_REQUEST] = "request",
	[READING_TEXTS] = "texts",
	[READING_REPLY] = "reply",
};

const char *reading_word(enum reading_what what)
{
	return words[what];
}

bool reading_from_word(const char *word, enum reading_what *ret)
{
	for (unsigned i = 0; i < READING_MAX_; i++)
		if (str_eq(word, words[i])) {
			*ret = (enum reading_what)i;
			return true;
		}
	return false;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ (hash >> 29);
}

/* Never 0. Tells torn ones and chance apart from a note, not whoever makes one on purpose. */
static uint64_t check_of(uint64_t key, int64_t job, int64_t epoch, uint64_t what)
{
	return mix(mix(mix(mix(0x6c79636867617465u, key), (uint64_t)job),
		       (uint64_t)epoch),
		   what) |
	       1;
}

bool reading_begin(struct reading *r, job_id_t job, int64_t epoch, enum reading_what what)
{
	struct reading_page *p = r ? r->page : NULL;

	if (!p || job <= 0 || atomic_load_explicit(&p->check, memory_order_relaxed))
		return false;
	p->job = job;
	p->epoch = epoch;
	p->what = what;
	atomic_store_explicit(&p->check, check_of(r->key, job, epoch, what),
			      memory_order_release);
	/* what is parsed is touched after it */
	atomic_signal_fence(memory_order_seq_cst);
	return true;
}

void reading_end(struct reading *r, bool began)
{
	atomic_signal_fence(memory_order_seq_cst);
	if (began)
		atomic_store_explicit(&r->page->check, 0, memory_order_release);
}

bool reading_get(const struct reading *r, struct reading_note *ret)
{
	/* once each: whoever shares the page may not be dead after all */
	const volatile struct reading_page *p = r ? r->page : NULL;
	uint64_t check = p ? atomic_load_explicit(&p->check, memory_order_acquire) : 0;
	uint64_t what;
	int64_t job, epoch;

	if (!check)
		return false;
	job = p->job;
	epoch = p->epoch;
	what = p->what;
	if (check != check_of(r->key, job, epoch, what) || job <= 0 || epoch <= 0 ||
	    what >= READING_MAX_)
		return false;
	*ret = (struct reading_note){job, epoch, (enum reading_what)what};
	return true;
}

void reading_clear(struct reading *r)
{
	if (r && r->page)
		atomic_store(&r->page->check, 0);
}

/* ---- the file ---- */

static int refuse(struct err *err, const char *name, const char *why)
{
	return err_set_id(err, ERRID_START_READING, "%s: %s", name, why);
}

/* Its bytes have room on their file system: a store never ends us for want of it. */
static int check(int fd, const char *name, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys_id(err, ERRID_START_READING, "%s", name);
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return refuse(err, name, "no plain file, or one of several names");
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return refuse(err, name, "it is not ours alone");
	/* a start that was cut off, or nobody's note */
	if (st.st_size != FILE_BYTES && ftruncate(fd, 0) < 0)
		return err_sys_id(err, ERRID_START_READING, "%s", name);
	errno = posix_fallocate(fd, 0, FILE_BYTES);
	return errno ? err_sys_id(err, ERRID_START_READING, "%s: room for it", name) : 0;
}

int reading_open(int dirfd, const char *name, uint64_t key, struct reading *ret,
		 struct err *err)
{
	struct err why = ERR_INIT;
	cleanup_close int fd = fs_open_beneath(
		dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600, &why);
	void *page;

	if (fd < 0)
		return err_set_id(err, ERRID_START_READING, "%s", why.msg);
	if (check(fd, name, err) < 0)
		return -1;
	page = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return err_sys_id(err, ERRID_START_READING, "map %s", name);
	*ret = (struct reading){.page = page, .key = key, .map_bytes = FILE_BYTES};
	return 0;
}

void reading_close(struct reading *r)
{
	if (r->map_bytes)
		(void)munmap(r->page, r->map_bytes);
	*r = (struct reading){0};
}
