/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See output_order.h.
 */
#include "vessel/store/output_order.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "vessel/store/output_priv.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define FILE_NAME "order"

struct note {
	uint64_t place, sec; /* little endian */
};
#define NOTE_BYTES sizeof(struct note)
_Static_assert(NOTE_BYTES == 16, "as it lies on the disk");

static int open_notes(const struct output *o, job_id_t job, int64_t epoch, int flags,
		      struct err *err)
{
	char name[OUTPUT_NAME_SIZE];

	output_attempt_name(name, job, epoch, FILE_NAME);
	return fs_open_beneath(o->dir, name, flags | O_NOFOLLOW, 0600, err);
}

static struct output_piece piece_of(const struct note *n)
{
	uint64_t place = le64toh(n->place);

	return (struct output_piece){.stream = place & 1 ? OUTPUT_STDERR : OUTPUT_STDOUT,
				     .end = place >> 1,
				     .sec = le64toh(n->sec)};
}

void output_note(struct output *o, job_id_t job, int64_t epoch, enum output_stream s,
		 uint64_t end, uint64_t sec)
{
	const struct note note = {.place = htole64(end << 1 | (s == OUTPUT_STDERR)),
				  .sec = htole64(sec)};
	struct err ignored = ERR_INIT;
	cleanup_close int fd = open_notes(o, job, epoch, O_RDWR | O_CREAT, &ignored);
	struct note last;
	uint64_t size, n;

	if (fd < 0 || store_size(fd, &size, &ignored) < 0)
		return;
	n = size / NOTE_BYTES; /* a torn one is written over */
	if (n > 0 && pread(fd, &last, NOTE_BYTES, (off_t)((n - 1) * NOTE_BYTES)) ==
			     (ssize_t)NOTE_BYTES) {
		struct output_piece before = piece_of(&last);

		if (before.stream == s && end <= before.end)
			return; /* a part that was sent again */
		if (before.stream == s && before.sec == sec) {
			(void)!pwrite(fd, &note, NOTE_BYTES,
				      (off_t)((n - 1) * NOTE_BYTES));
			return;
		}
	}
	if (n >= OUTPUT_NOTES_MAX ||
	    store_reserve(o->budget, STORE_TOMB, NOTE_BYTES, &ignored) < 0)
		return;
	if (pwrite(fd, &note, NOTE_BYTES, (off_t)(n * NOTE_BYTES)) !=
	    (ssize_t)NOTE_BYTES) {
		(void)!ftruncate(fd, (off_t)(n * NOTE_BYTES));
		store_return(o->budget, NOTE_BYTES);
	}
}

int output_notes(const struct output *o, job_id_t job, int64_t epoch, uint64_t from,
		 struct output_piece *ret, size_t max, size_t *ret_n, struct err *err)
{
	struct err why = ERR_INIT;
	cleanup_close int fd = open_notes(o, job, epoch, O_RDONLY, &why);
	cleanup_free struct note *notes = NULL;
	ssize_t got;

	*ret_n = 0;
	if (fd < 0 && why.sys == ENOENT)
		return 0;
	if (fd < 0) {
		*err = why;
		return -1;
	}
	if (from >= OUTPUT_NOTES_MAX)
		return 0;
	notes = xcalloc(max, NOTE_BYTES);
	got = pread(fd, notes, max * NOTE_BYTES, (off_t)(from * NOTE_BYTES));
	if (got < 0)
		return err_sys(err, "the order of the output");
	for (size_t i = 0; i < (size_t)got / NOTE_BYTES; i++)
		ret[(*ret_n)++] = piece_of(&notes[i]);
	return 0;
}
