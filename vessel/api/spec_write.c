/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The text of a spec as it is stored: written from the struct, never copied from the client.
 */
#include "vessel/api/spec.h"

#include "common/jsonw.h"
#include "common/proto.h"
#include "common/proto/broker_proto.h"

static void write_strings(struct jsonw *w, const char *key, const char *const *v,
			  size_t n)
{
	jsonw_key(w, key);
	jsonw_arr(w);
	for (size_t i = 0; i < n; i++)
		jsonw_str(w, v[i]);
	jsonw_arr_end(w);
}

static void write_files(struct jsonw *w, const struct spec *s)
{
	jsonw_key(w, "files");
	jsonw_arr(w);
	for (size_t i = 0; i < s->n_files; i++) {
		const struct spec_file *f = &s->files[i];

		jsonw_obj(w);
		jsonw_kstr(w, "path", f->path);
		if (f->content)
			jsonw_kstr(w, "content", f->content);
		if (f->base64)
			jsonw_kstr(w, "base64", f->base64);
		if (f->blob)
			jsonw_kstr(w, "blob", f->blob);
		jsonw_kstr(w, "mode", f->executable ? "0755" : "0644");
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

static void write_limits(struct jsonw *w, const struct spec *s)
{
	jsonw_key(w, "limits");
	jsonw_obj(w);
	jsonw_ku64(w, "memory_bytes", s->memory_bytes);
	jsonw_ku64(w, "disk_bytes", s->disk_bytes);
	jsonw_ku64(w, "output_bytes", s->output_bytes);
	jsonw_ku64(w, "timeout_ms", s->timeout_ms);
	jsonw_ku64(w, "processes", s->processes);
	jsonw_ku64(w, "cpus", s->cpus);
	jsonw_obj_end(w);
}

/* Left out when there are none, as the keys of older clients were. */
static void write_deps(struct jsonw *w, const struct spec *s)
{
	const struct deps *d = &s->deps;

	if (!deps_any(d))
		return;
	jsonw_key(w, "deps");
	jsonw_obj(w);
	write_strings(w, "pypi", (const char *const *)d->pypi, d->n_pypi);
	write_strings(w, "npm", (const char *const *)d->npm, d->n_npm);
	if (d->npm_lock) {
		jsonw_key(w, "npm_lock");
		jsonw_raw(w, d->npm_lock, strlen(d->npm_lock));
	}
	/* Left out when there are none: so the same deps are the same text as before. */
	if (d->n_cargo)
		write_strings(w, "cargo", (const char *const *)d->cargo, d->n_cargo);
	if (d->n_go)
		write_strings(w, "go", (const char *const *)d->go, d->n_go);
	jsonw_obj_end(w);
}

/* Left out when there is none, as above. */
static void write_tty(struct jsonw *w, const struct spec *s)
{
	if (!s->tty.cols)
		return;
	jsonw_key(w, "tty");
	jsonw_obj(w);
	jsonw_ku64(w, "cols", s->tty.cols);
	jsonw_ku64(w, "rows", s->tty.rows);
	jsonw_kstr(w, "term", s->tty.term);
	if (s->tty.stays)
		jsonw_kbool(w, "stays", true);
	jsonw_obj_end(w);
}

static void write_command(struct jsonw *w, const struct spec *s)
{
	if (s->script) {
		jsonw_kstr(w, "script", s->script);
		jsonw_kstr(w, "interpreter", s->interpreter);
	} else {
		write_strings(w, "argv", s->argv, s->n_argv);
	}
	if (s->stdin_blob)
		jsonw_kstr(w, "stdin_blob", s->stdin_blob);
	else if (s->stdin_stream)
		jsonw_kstr(w, "stdin_stream", s->stdin_stream);
	else if (s->stdin_base64)
		jsonw_kstr(w, "stdin_base64", s->stdin_base64);
	else
		jsonw_kstr(w, "stdin", s->stdin_text ? s->stdin_text : "");
}

int spec_write(const struct spec *s, struct buf *out, struct err *err)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "request_id", s->request_id);
	write_command(&w, s);
	write_files(&w, s);
	if (s->input)
		jsonw_kstr(&w, "input", s->input);
	jsonw_key(&w, "env");
	jsonw_obj(&w);
	for (size_t i = 0; i < s->n_env; i++)
		jsonw_kstr(&w, s->env[i].name, s->env[i].value);
	jsonw_obj_end(&w);
	write_limits(&w, s);
	jsonw_kstr(&w, "network", s->network_loopback ? "loopback" : "none");
	jsonw_kstr(&w, "egress", egress_mode_name(s->egress));
	jsonw_kstr(&w, "profile", s->profile);
	write_strings(&w, "artifacts", s->artifacts, s->n_artifacts);
	jsonw_ku64(&w, "priority", s->priority);
	jsonw_kstr(&w, "retry", s->retry_on_lost ? "on_lost" : "never");
	write_deps(&w, s);
	write_tty(&w, s);
	if (s->explain) /* left out else: an older client's request_id means the same */
		jsonw_kbool(&w, "explain", true);
	jsonw_obj_end(&w);
	if (!buf_ok(out) || out->len > SPEC_MAX_BYTES)
		return err_set_id(err, ERRID_SPEC_SIZE, "more than %zu bytes as stored",
				  SPEC_MAX_BYTES);
	return 0;
}
