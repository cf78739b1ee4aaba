/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_drive CODEX SECRETS: what the dispatcher does with a fetch, without the vessel around it but with
 * the real workers, confined as they are: for each intent (a line of JSON on stdin, as on the work socket) a line
 * {"code","reason","status","type","body","hops",...} on stdout. Used by tests/integration/broker/egress_bypass.py
 * in a network of its own.
 */
#include "common/cleanup.h"
#include "common/conf/conf.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/net/loop.h"
#include "common/str.h"
#include "tests/support/fetch_call.h"
#include "vessel/broker/intents/fetch_keys.h"

#include <fcntl.h>
#include <stdio.h>

#define BODY_MAX 65536
#define REPLY_MAX 65536

struct drive {
	struct loop *loop;
	struct conf conf;
	struct fetch_env env;
};

/* One fetch and what came of it. */
struct answer {
	struct drive *drive;
	char word[64]; /* why not; "": it went well */
	char code[32], type[HEADER_VALUE_MAX + 1];
	unsigned status, requests, settled, sent;
	bool cancel; /* at the first text */
	size_t fields;
	bool odd;
	struct buf text;
};

static void permit(struct fetch_call *c, const struct fetch *f UNUSED,
		   const struct fetch_verdict *v, void *arg)
{
	struct answer *a = arg;

	a->requests++;
	a->odd |= v->odd_name;
	fetch_call_go(c);
}

static void settle(uint64_t up UNUSED, uint64_t down UNUSED, bool sent, void *arg)
{
	struct answer *a = arg;

	a->settled++;
	a->sent += sent;
}

static void on_head(unsigned status, const struct headers *headers, void *arg)
{
	struct answer *a = arg;
	const char *type = headers_get(headers, "content-type");

	a->status = status;
	a->fields = headers->n;
	if (type && str_copy(a->type, sizeof(a->type), type) < 0)
		a->type[0] = '\0';
}

static bool on_text(const void *data, size_t len, void *arg)
{
	struct answer *a = arg;

	buf_add(&a->text, data, len);
	if (a->cancel)
		loop_stop(a->drive->loop, 0);
	return true;
}

/* "port: no rule ..." -> "port" */
static const char *first_word(const struct err *err, char *out, size_t size)
{
	size_t n = strcspn(err->msg, ":");

	return str_fmt(out, size, "%.*s", (int)n, err->msg) < 0 ? "?" : out;
}

static const char *error_word(const struct err *err, char *out, size_t size)
{
	switch ((int)err->id) {
	case ERRID_EGRESS_TIMEOUT:
		return "timeout";
	case ERRID_EGRESS_TLS:
		return "tls";
	case ERRID_EGRESS_TOO_LARGE:
		return "reply_too_large";
	case ERRID_EGRESS_REPLY:
		return "reply";
	case ERRID_EGRESS_CONNECT:
		return "connect";
	default:
		return first_word(err, out, size);
	}
}

static void set_error(struct answer *a, const struct err *err, enum reason reason)
{
	char word[64];
	const char *w = reason != REASON_NONE ? reason_word(reason)
					      : error_word(err, word, sizeof(word));

	if (str_copy(a->word, sizeof(a->word), w) < 0 ||
	    str_copy(a->code, sizeof(a->code), err_text(err)) < 0)
		a->code[0] = '\0';
}

static void on_end(const struct err *err, enum reason reason, void *arg)
{
	struct answer *a = arg;

	if (err)
		set_error(a, err, reason);
	loop_stop(a->drive->loop, 0);
}

static void on_redacted(const char *portal UNUSED, bool in_header UNUSED,
			unsigned count UNUSED, void *arg UNUSED)
{
}

static void on_worker(const char *name, bool up, const struct err *why, void *arg UNUSED)
{
	if (!up)
		(void)fprintf(stderr, "fetch_drive: %s: %s\n", name,
			      why ? why->msg : "gone");
}

static void on_lost(const struct err *why, void *arg UNUSED)
{
	(void)fprintf(stderr, "fetch_drive: %s\n", why->msg);
	exit(1);
}

static void print(const struct answer *a)
{
	cleanup_buf struct buf out;
	struct jsonw w;

	buf_init(&out, (size_t)8 * REPLY_MAX);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kstr(&w, "reason", a->word);
	jsonw_kstr(&w, "code", a->code);
	jsonw_ku64(&w, "status", a->status);
	jsonw_ku64(&w, "hops", a->requests > 0 ? a->requests - 1 : 0);
	jsonw_ku64(&w, "requests", a->requests);
	jsonw_ku64(&w, "unsettled", a->requests - a->settled);
	jsonw_ku64(&w, "sent", a->sent);
	jsonw_ku64(&w, "odd", a->odd);
	jsonw_kstr(&w, "type", a->type);
	jsonw_ku64(&w, "fields", a->fields);
	jsonw_key(&w, "body");
	jsonw_strn(&w, buf_str(&a->text), a->text.len);
	jsonw_obj_end(&w);
	printf("%s\n", buf_str(&out));
	(void)fflush(stdout);
}

static void drive_one(struct drive *d, const char *line, size_t len)
{
	static const struct fetch_hooks hooks = {.permit = permit,
						 .settle = settle,
						 .on_head = on_head,
						 .on_text = on_text,
						 .on_end = on_end};
	cleanup_json struct json *intent = NULL;
	cleanup_fetch struct fetch f = {.body = NULL};
	struct answer a = {.drive = d, .cancel = str_starts(line, "cancel ")};
	struct err err = ERR_INIT;
	enum reason why = REASON_NONE;
	struct fetch_call *c;

	if (a.cancel) {
		line += strlen("cancel ");
		len -= strlen("cancel ");
	}
	buf_init(&a.text, (size_t)2 * REPLY_MAX);
	if (json_parse(line, len, JSON_DEPTH_DEFAULT, &intent, &err) < 0 ||
	    fetch_read(intent, BODY_MAX, &f, &why, &err) < 0) {
		set_error(&a, &err, why);
	} else {
		c = fetch_call_new(&d->env, "tester", 1, &f, &hooks, &a);
		if (loop_run(d->loop, &err) < 0)
			exit(1);
		if (a.cancel && a.settled < a.requests)
			fetch_call_cancel(c);
	}
	print(&a);
	buf_done(&a.text);
}

static int setup(struct drive *d, char **argv, struct err *err)
{
	static const struct egress_events events = {
		.on_redacted = on_redacted, .on_worker = on_worker, .on_lost = on_lost};
	static struct egress_portal keys[EGRESS_PORTALS_MAX]; /* borrowed for good */
	struct egress_portal hosts[EGRESS_HOSTS_MAX];
	struct egress_config cfg = {
		.secrets_dir = argv[2], .portals = keys, .hosts = hosts};
	cleanup_free char *text = NULL;
	size_t len;

	if (fs_read_file(AT_FDCWD, argv[1], 1 << 20, &text, &len, err) < 0 ||
	    conf_parse(text, len, &d->conf, err) < 0)
		return -1;
	cfg.authorities = d->conf.broker.egress.authorities;
	cfg.n_portals = fetch_keys_portals(&d->conf.broker, keys);
	cfg.n_hosts = fetch_keys_hosts(&d->conf.broker, hosts);
	if (egress_fork(&cfg, &d->env.egress, err) < 0 || loop_new(&d->loop, err) < 0 ||
	    egress_attach(d->env.egress, d->loop, &events, err) < 0)
		return -1;
	d->conf.broker.egress.response_max_bytes = REPLY_MAX;
	d->conf.broker.egress.connect_usec = 2 * USEC_PER_SEC;
	d->conf.broker.egress.total_usec = 6 * USEC_PER_SEC;
	d->conf.broker.egress.retries = 0;
	d->env.loop = d->loop;
	d->env.broker = &d->conf.broker;
	d->env.rates = ward_rates_new();
	d->env.labels = labels_new();
	return 0;
}

int main(int argc, char **argv)
{
	struct drive d = {.loop = NULL};
	struct err err = ERR_INIT;
	cleanup_free char *line = NULL;
	size_t size = 0;
	ssize_t n;

	if (argc != 3)
		return 2;
	if (setup(&d, argv, &err) < 0) {
		(void)fprintf(stderr, "fetch_drive: %s\n", err.msg);
		return 1;
	}
	while ((n = getline(&line, &size, stdin)) > 0)
		drive_one(&d, line, (size_t)n - (line[n - 1] == '\n'));
	egress_free(d.env.egress);
	ward_rates_free(d.env.rates);
	labels_free(d.env.labels);
	conf_done(&d.conf);
	loop_free(d.loop);
	return 0;
}
