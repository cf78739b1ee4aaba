/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/door_client.h"

#include "common/base64.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define REPLY_MAX ((size_t)32 << 20)

void door_client_init(struct door_client *c, const char *dir, const char *tomb)
{
	char path[160];

	if (str_fmt(c->socket, sizeof(c->socket), "%s/work/vessel.sock", dir) < 0 ||
	    str_fmt(path, sizeof(path), "%s/secrets/lychgate_work_of_%s", dir, tomb) <
		    0 ||
	    str_copy(c->tomb, sizeof(c->tomb), tomb) < 0)
		abort();
	FILE *f = fopen(path, "re");
	if (!f || !fgets(c->bearer, sizeof(c->bearer), f))
		abort();
	(void)fclose(f);
}

static bool send_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

static bool read_all(int fd, struct buf *b)
{
	char chunk[16384];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		buf_add(b, chunk, (size_t)n);
	}
	return buf_ok(b);
}

/* The whole answer has come: Content-Length says so. */
static const char *body_of(const struct buf *b, int *ret_status)
{
	const char *text = buf_str(b), *end = strstr(text, "\r\n\r\n");
	const char *length = strcasestr(text, "\r\nContent-Length: ");
	uint64_t n = 0;

	if (!end || !length || length > end || !str_starts(text, "HTTP/1.1 "))
		return NULL;
	n = strtoull(length + strlen("\r\nContent-Length: "), NULL, 10);
	end += 4;
	if ((size_t)(b->data + b->len - end) != n)
		return NULL;
	*ret_status = (int)strtol(text + 9, NULL, 10);
	return end;
}

int door_client_call(const struct door_client *c, const char *method, const char *target,
		     const char *job, const char *epoch, const char *token,
		     const void *body, size_t len, char **ret_body)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cleanup_buf struct buf head = {.max = 4096}, reply = {.max = REPLY_MAX};
	const char *got;
	int status = 0;

	if (fd < 0 || str_copy(sa.sun_path, sizeof(sa.sun_path), c->socket) < 0)
		abort();
	buf_addf(&head,
		 "%s /work/v1/%s HTTP/1.1\r\nHost: lychgate\r\nConnection: close\r\n"
		 "Authorization: Bearer %s\r\nLychgate-Version: 1\r\nLychgate-Tomb: "
		 "%s\r\n",
		 method, target, c->bearer, c->tomb);
	if (job)
		buf_addf(&head,
			 "Lychgate-Job: %s\r\nLychgate-Epoch: %s\r\nLychgate-Token: "
			 "%s\r\n",
			 job, epoch, token);
	if (!str_eq(method, "GET"))
		buf_addf(&head, "Content-Length: %zu\r\n", len);
	buf_adds(&head, "\r\n");
	if (!buf_ok(&head))
		abort();
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    !send_all(fd, head.data, head.len) || (len > 0 && !send_all(fd, body, len)) ||
	    !read_all(fd, &reply))
		return -1;
	got = body_of(&reply, &status);
	if (!got || status == 429 || (status >= 500 && status != 501))
		return -1;
	*ret_body = xstrdup(got);
	return status;
}

/* What PostgreSQL would have said to a tomb with a login. */
static const char *refusal(int status)
{
	return status == 400   ? "ERROR 22023"
	       : status == 403 ? "ERROR 42501"
	       : status == 413 ? "too_big"
			       : "ERROR http";
}

static struct json *parse(const char *body)
{
	struct json *j = NULL;
	struct err err = ERR_INIT;

	if (json_parse(body, strlen(body), 4, &j, &err) < 0) {
		fprintf(stderr, "door: %s: %.200s\n", err.msg, body);
		abort();
	}
	return j;
}

static const char *text_of(const struct json *obj, const char *key)
{
	const char *s = "";

	if (json_get_str(obj, key, true, REPLY_MAX, &s, NULL) < 0)
		abort();
	return s;
}

static void number_of(const struct json *obj, const char *key, char out[24])
{
	int64_t n = 0;

	if (json_get_i64(obj, key, true, INT64_MIN, INT64_MAX, &n, NULL) < 0 ||
	    str_fmt(out, 24, "%lld", (long long)n) < 0)
		abort();
}

int door_client_claim(const struct door_client *c, unsigned n, unsigned ttl,
		      const char *boot, const char *claim, struct door_client_job *jobs)
{
	char body[512];
	cleanup_free char *reply = NULL;
	const struct json *list = NULL;

	if (str_fmt(body, sizeof(body),
		    "{\"queue\":\"main\",\"n\":%u,\"ttl\":%u,\"boot\":\"%s\",\"claim\":"
		    "\"%s\"}",
		    n, ttl, boot, claim) < 0)
		abort();
	int status = door_client_call(c, "POST", "claim", NULL, NULL, NULL, body,
				      strlen(body), &reply);
	if (status != 200)
		return status < 0 ? -1 : -2;
	cleanup_json struct json *j = parse(reply);
	if (json_get_arr(j, "jobs", true, n ? n : 1, &list, NULL) < 0)
		abort();
	for (size_t i = 0; i < json_arr_len(list); i++) {
		const struct json *o = json_arr_at(list, i);
		const char *spec = text_of(o, "spec");

		number_of(o, "job", jobs[i].job);
		number_of(o, "epoch", jobs[i].epoch);
		if (str_copy(jobs[i].token, sizeof(jobs[i].token), text_of(o, "token")) <
			    0 ||
		    base64_decode(spec, strlen(spec), &jobs[i].spec, &jobs[i].spec_len,
				  NULL) < 0)
			abort();
	}
	return (int)json_arr_len(list);
}

/* Static: the last answer of this process. */
static const char *keep(const char *s)
{
	static char kept[32];

	if (str_copy(kept, sizeof(kept), s) < 0)
		abort();
	return kept;
}

const char *door_client_extend(const struct door_client *c, unsigned ttl,
			       const char *boot, const char *job, const char *epoch,
			       const char *token)
{
	char body[512];
	cleanup_free char *reply = NULL;
	const struct json *list = NULL;

	if (str_fmt(body, sizeof(body),
		    "{\"boot\":\"%s\",\"ttl\":%u,\"leases\":[{\"job\":%s,\"epoch\":%s,"
		    "\"token\":\"%s\"}]}",
		    boot, ttl, job, epoch, token) < 0)
		abort();
	int status = door_client_call(c, "POST", "extend", NULL, NULL, NULL, body,
				      strlen(body), &reply);
	if (status != 200)
		return status < 0 ? NULL : refusal(status);
	cleanup_json struct json *j = parse(reply);
	if (json_get_arr(j, "leases", true, 1, &list, NULL) < 0 ||
	    json_arr_len(list) != 1)
		abort();
	return keep(text_of(json_arr_at(list, 0), "status"));
}

const char *door_client_end(const struct door_client *c, const char *target,
			    const char *job, const char *epoch, const char *token,
			    const void *body, size_t len)
{
	cleanup_free char *reply = NULL;
	int status =
		door_client_call(c, "POST", target, job, epoch, token, body, len, &reply);

	if (status != 200)
		return status < 0 ? NULL : refusal(status);
	cleanup_json struct json *j = parse(reply);
	return keep(text_of(j, "answer"));
}
