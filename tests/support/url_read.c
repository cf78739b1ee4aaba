/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What vessel/egress/url.h and libcurl's own parser make of URLs. One URL a line on stdin, in hex; for each
 * a line "ours <host> <port> <URL as we write it>" or "refused <reason>", a tab, and
 * "curl <host> <port>" or "curl - <code>" about the URL as it came.
 */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/egress/url.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

static void print_ours(const char *text, size_t len)
{
	cleanup_buf struct buf out;
	enum reason why = REASON_NONE;
	struct url u;

	buf_init(&out, URL_BYTES_MAX);
	if (url_parse(text, len, &u, &why, NULL) < 0) {
		printf("refused %s\t", reason_word(why));
		return;
	}
	url_write(&u, &out);
	printf("ours %s %u %s\t", u.host, (unsigned)u.port, buf_str(&out));
}

static void print_curl(const char *text)
{
	CURLU *u = curl_url();
	char *host = NULL, *port = NULL;
	CURLUcode r;

	if (!u)
		return;
	r = curl_url_set(u, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME);
	if (r == CURLUE_OK)
		r = curl_url_get(u, CURLUPART_HOST, &host, 0);
	if (r == CURLUE_OK)
		r = curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
	if (r == CURLUE_OK)
		printf("curl %s %s\n", host, port);
	else
		printf("curl - %d\n", (int)r);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(u);
}

int main(void)
{
	cleanup_free char *line = NULL;
	size_t size = 0;
	ssize_t n;

	while ((n = getline(&line, &size, stdin)) > 0) {
		size_t len = (size_t)(n - 1) / 2;
		cleanup_free char *text = xcalloc(len + 1, 1);

		line[2 * len] = '\0';
		if (hex_decode(line, text, len) < 0)
			return 2;
		print_ours(text, len);
		print_curl(text);
	}
	return 0;
}
