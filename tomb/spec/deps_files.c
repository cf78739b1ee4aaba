/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * What pip, npm, cargo and go read in the sandbox that fetches: written from the checked spec
 * alone, whose texts have no character that means something in these files.
 */
#include "tomb/spec/deps.h"

#include "common/cleanup.h"
#include "common/proto/broker_proto.h"
#include "common/proto/deps.h"
#include "common/proto/job_spec.h"

#include <string.h>

/* A spec's texts, and some words beside each. */
#define FILE_MAX (SPEC_MAX_BYTES + (size_t)DEPS_LOCKED_MAX * 256)

static void write_requirements(const struct deps *d, struct buf *out)
{
	for (size_t i = 0; i < d->n_pypi; i++) {
		buf_adds(out, d->pypi[i]);
		buf_addc(out, '\n');
	}
}

static void write_features(const struct deps_crate *c, struct buf *out)
{
	const char *s = c->features, *end = s + c->features_len;

	if (!c->features_len) {
		buf_adds(out, ", default-features = false");
		return;
	}
	buf_adds(out, ", features = [");
	while (s < end) {
		size_t len = strcspn(s, ",]");

		buf_addf(out, "\"%.*s\",", (int)len, s);
		s += len + 1;
	}
	buf_addc(out, ']');
}

static void write_crate(const struct deps_crate *c, size_t i, struct buf *out)
{
	bool bare = c->sha256 && c->version[0] != '=';

	buf_addf(out, "d%zu = { package = \"%.*s\", version = \"", i, (int)c->name_len,
		 c->name);
	if (c->version)
		buf_addf(out, "%s%.*s\"", bare ? "=" : "", (int)c->version_len,
			 c->version);
	else
		buf_adds(out, "*\"");
	if (c->features)
		write_features(c, out);
	buf_adds(out, " }\n");
}

/* Each under a name of its own: a lock file may have two versions of a crate. */
static void write_cargo(const struct deps *d, struct buf *out)
{
	struct deps_crate c;

	buf_adds(out, "[package]\nname = \"lychgate-deps\"\nversion = \"0.0.0\"\n"
		      "edition = \"2018\"\n\n[workspace]\n\n"
		      /* it must have one, which is not read for a fetch */
		      "[lib]\npath = \"Cargo.toml\"\n\n[dependencies]\n");
	for (size_t i = 0; i < d->n_cargo; i++)
		if (deps_read_crate(d->cargo[i], &c))
			write_crate(&c, i, out);
}

/* The digests: cargo refuses a crate whose index has another. A version that is in here is
 * taken though it was yanked. */
static void write_cargo_lock(const struct deps *d, struct buf *out)
{
	struct deps_crate c;

	buf_adds(out, "version = 3\n");
	for (size_t i = 0; i < d->n_cargo; i++) {
		bool bare;

		if (!deps_read_crate(d->cargo[i], &c) || !c.sha256)
			continue;
		bare = c.version[0] != '=';
		buf_addf(out,
			 "\n[[package]]\nname = \"%.*s\"\nversion = \"%.*s\"\n"
			 "source = \"" DEPS_CRATES_IO "\"\nchecksum = \"%.64s\"\n",
			 (int)c.name_len, c.name, (int)(c.version_len - !bare),
			 c.version + !bare, c.sha256);
	}
}

/* Where each has its hash, it is the whole list, and no module's own list is followed
 * (go 1.17); else all that these modules require comes along. */
static void write_go_mod(const struct deps *d, struct buf *out)
{
	bool all = true;
	struct deps_module m;

	for (size_t i = 0; i < d->n_go; i++)
		all &= deps_read_module(d->go[i], &m) && m.h1;
	buf_addf(out, "module lychgate.invalid/deps\n\ngo %s\n\nrequire (\n",
		 all ? "1.17" : "1.16");
	for (size_t i = 0; i < d->n_go; i++)
		if (deps_read_module(d->go[i], &m) && !m.is_mod)
			buf_addf(out, "\t%.*s %.*s\n", (int)m.path_len, m.path,
				 (int)m.version_len, m.version);
	buf_adds(out, ")\n");
}

static void write_go_sum(const struct deps *d, struct buf *out)
{
	struct deps_module m;

	for (size_t i = 0; i < d->n_go; i++)
		if (deps_read_module(d->go[i], &m) && m.h1)
			buf_addf(out, "%.*s %.*s%s %s\n", (int)m.path_len, m.path,
				 (int)m.version_len, m.version, m.is_mod ? "/go.mod" : "",
				 m.h1);
}

void deps_files(const struct deps *d,
		void (*put)(const char *name, const char *data, size_t len, void *arg),
		void *arg)
{
	const struct {
		const char *name;
		bool wanted;
		void (*write)(const struct deps *d, struct buf *out);
	} files[] = {
		{DEPS_REQUIREMENTS, true, write_requirements},
		{"Cargo.toml", d->n_cargo > 0, write_cargo},
		{"Cargo.lock", d->n_cargo > 0, write_cargo_lock},
		{"go.mod", d->n_go > 0, write_go_mod},
		{"go.sum", d->n_go > 0, write_go_sum},
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		cleanup_buf struct buf text = {.max = FILE_MAX};

		if (!files[i].wanted)
			continue;
		files[i].write(d, &text);
		put(files[i].name, buf_str(&text), text.len, arg);
	}
	if (d->n_cargo)
		put(BROKER_CARGO_CONFIG, broker_cargo_config, strlen(broker_cargo_config),
		    arg);
	if (d->npm_lock) {
		put("package.json", d->npm_package, strlen(d->npm_package), arg);
		put("package-lock.json", d->npm_lock, strlen(d->npm_lock), arg);
	}
}
