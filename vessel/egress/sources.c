/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress parent, the egress watcher and the egress worker.
 * Theory of operation. The memory is a file without a name, mapped twice and then sealed: what
 * was mapped writable stays so for who has that mapping, a later one can never become it. The
 * generation is odd while something is written, and a reader whose copy was made meanwhile makes
 * it again.
 */
#include "vessel/egress/sources.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "vessel/egress/roots.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEXT_MAX ((size_t)256 << 10)
#define ROOTS_MAX ((size_t)8 << 20)

struct page {
	_Atomic unsigned generation;
	struct {
		bool refused;
		size_t len;
	} source[SOURCES_];
	char resolv[TEXT_MAX], hosts[TEXT_MAX], roots[ROOTS_MAX];
};

struct sources {
	struct page *written; /* NULL: this process cannot */
	const struct page *page;
};

static size_t max_of(enum egress_source which)
{
	return which == SOURCE_ROOTS ? ROOTS_MAX : TEXT_MAX;
}

static const char *text_in(const struct page *p, enum egress_source which)
{
	return which == SOURCE_RESOLV  ? p->resolv
	       : which == SOURCE_HOSTS ? p->hosts
				       : p->roots;
}

int sources_new(struct sources **ret, struct err *err)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
	cleanup_close int fd =
		memfd_create("egress-sources", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct sources *s = xnew(struct sources);
	void *written = MAP_FAILED, *page = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(struct page)) == 0)
		written = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE,
			       MAP_SHARED, fd, 0);
	if (written != MAP_FAILED && fcntl(fd, F_ADD_SEALS, seals) == 0)
		page = mmap(NULL, sizeof(struct page), PROT_READ, MAP_SHARED, fd, 0);
	s->written = written != MAP_FAILED ? written : NULL;
	s->page = page != MAP_FAILED ? page : NULL;
	if (!s->page) {
		(void)err_sys_id(err, errno == EFBIG ? ERRID_START_LIMIT : ERRID_CORE_SYS,
				 "sealed memory for what workers read of files%s",
				 errno == EFBIG ? " (RLIMIT_FSIZE, which needs 9 MiB)"
						: "");
		sources_free(s);
		return -1;
	}
	*ret = s;
	return 0;
}

void sources_read_only(struct sources *s)
{
	if (s->written)
		(void)munmap(s->written, sizeof(*s->written));
	s->written = NULL;
}

void sources_free(struct sources *s)
{
	if (!s)
		return;
	sources_read_only(s);
	if (s->page)
		(void)munmap((void *)(uintptr_t)s->page, sizeof(*s->page));
	free(s);
}

/* ---- files ---- */

const char *sources_authorities(const char *given)
{
	static const char *const usual[] = {
		"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem",
		"/etc/ssl/cert.pem",
	};

	if (given)
		return given;
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		if (access(usual[i], R_OK) == 0)
			return usual[i];
	return NULL;
}

static int judge(enum egress_source which, const char *path, const char *text, size_t len,
		 struct err *err)
{
	if (which == SOURCE_ROOTS && !egress_roots_are(text, len))
		return err_set_id(err, ERRID_START_CONFIG,
				  "the certificate authorities in %s cannot be read",
				  path);
	if (memchr(text, '\0', len))
		return err_set_id(err, ERRID_START_CONFIG, "%s is no text", path);
	return 0;
}

int sources_load(enum egress_source which, const char *path, char **ret, size_t *ret_len,
		 struct err *err)
{
	cleanup_free char *text = NULL;
	struct err why = ERR_INIT;

	*ret_len = 0;
	if (!path) {
		*ret = xstrdup("");
		return 0;
	}
	if (fs_read_file(AT_FDCWD, path, max_of(which), &text, ret_len, &why) < 0) {
		if (why.sys == ENOENT && which != SOURCE_ROOTS) {
			*ret = xstrdup("");
			return 0;
		}
		return err_set_id(
			err, ERRID_START_CONFIG, "%s%s cannot be read: %s",
			which == SOURCE_ROOTS ? "the certificate authorities in " : "",
			path, why.msg);
	}
	if (judge(which, path, text, *ret_len, err) < 0)
		return -1;
	*ret = TAKE_PTR(text);
	return 0;
}

/* ---- the memory ---- */

void sources_put(struct sources *s, enum egress_source which, const char *text,
		 size_t len)
{
	struct page *p = s->written;

	assert(p && len <= max_of(which));
	atomic_fetch_add(&p->generation, 1);
	p->source[which].refused = !text;
	p->source[which].len = text ? len : 0;
	if (text)
		memcpy((char *)(uintptr_t)text_in(p, which), text, len);
	atomic_fetch_add(&p->generation, 1);
}

unsigned sources_generation(const struct sources *s)
{
	return atomic_load(&s->page->generation);
}

char *sources_get(const struct sources *s, enum egress_source which, size_t *ret_len)
{
	const struct page *p = s->page;
	char *copy = NULL;
	unsigned before;

	do {
		free(copy);
		copy = NULL;
		before = sources_generation(s);
		*ret_len = p->source[which].len;
		if (before % 2 != 0 || *ret_len > max_of(which)) {
			(void)sched_yield();
			continue;
		}
		if (!p->source[which].refused) {
			copy = xmalloc(*ret_len + 1);
			memcpy(copy, text_in(p, which), *ret_len);
			copy[*ret_len] = '\0';
		}
	} while (before % 2 != 0 || sources_generation(s) != before);
	return copy;
}

bool sources_is(const struct sources *s, enum egress_source which, const char *text,
		size_t len)
{
	const struct page *p = s->page;

	if (!text || p->source[which].refused)
		return !text && p->source[which].refused;
	return p->source[which].len == len && memcmp(text_in(p, which), text, len) == 0;
}
