/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ask costs whom it answers: the same request again and again, as an SDK sends it,
 * to OPENAI_BASE_URL with OPENAI_API_KEY. In a job that is its broker, beside it the
 * provider itself. A line for each: warm or fresh, a tab, nanoseconds from before the
 * request (fresh: before its connection) to the last byte of the answer.
 *
 *	try_ask ROUNDS WARM-UP [GAP_MS]
 *
 * Warm and fresh take turns; the connection of warm is kept for the whole run.
 */
#include "common/str.h"
#include "tests/bench/die.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MAX 65536
#define SOME_WORDS "the quick brown fox "

static struct sockaddr_in where;
static char request[8192];
static size_t request_len;

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* http://127.0.0.1:PORT/v1 */
static void prepare(void)
{
	static char body[4096];
	const char *url = getenv("OPENAI_BASE_URL"), *key = getenv("OPENAI_API_KEY");
	static char words[2048];
	uint64_t port = 0;

	if (!url || !key || !str_starts(url, "http://127.0.0.1:"))
		die("OPENAI_BASE_URL, OPENAI_API_KEY");
	port = strtoull(url + strlen("http://127.0.0.1:"), NULL, 10);
	where = (struct sockaddr_in){.sin_family = AF_INET,
				     .sin_port = htons((uint16_t)port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	/* a question with some source beside it: words, no number that looks private */
	for (size_t at = 0; str_copy(words + at, sizeof(words) - at, SOME_WORDS) == 0;)
		at += strlen(SOME_WORDS);
	if (str_fmt(body, sizeof(body),
		    "{\"model\":\"small\",\"messages\":[{\"role\":\"system\",\"content\":"
		    "\"You are brief.\"},{\"role\":\"user\",\"content\":\"%s\"}],"
		    "\"max_tokens\":64,\"temperature\":0}",
		    words) < 0 ||
	    str_fmt(request, sizeof(request),
		    "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
		    "Accept: application/json\r\nContent-Type: application/json\r\n"
		    "Authorization: Bearer %s\r\nContent-Length: %zu\r\n\r\n%s",
		    (unsigned)port, key, strlen(body), body) < 0)
		die("the request does not fit");
	request_len = strlen(request);
}

static int connect_it(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
	    connect(fd, (const struct sockaddr *)&where, sizeof(where)) < 0)
		die_errno("connect");
	return fd;
}

/* An answer is whole when its length says so, or its last chunk is there. */
static bool is_whole(const char *answer, size_t len)
{
	const char *body = strstr(answer, "\r\n\r\n"), *length;

	if (!body)
		return false;
	body += 4;
	length = strcasestr(answer, "content-length:");
	if (length && length < body)
		return len - (size_t)(body - answer) >=
		       strtoull(length + strlen("content-length:"), NULL, 10);
	return strcmp(answer + len - 5, "0\r\n\r\n") == 0;
}

static void ask_on(int fd)
{
	static char answer[ANSWER_MAX + 1];
	size_t len = 0;

	if (write(fd, request, request_len) != (ssize_t)request_len)
		die_errno("write");
	do {
		ssize_t n = read(fd, answer + len, ANSWER_MAX - len);

		if (n <= 0)
			die("the answer broke off: %s", answer);
		len += (size_t)n;
		answer[len] = '\0';
	} while (!is_whole(answer, len));
	if (!str_starts(answer, "HTTP/1.1 200 ") || !strstr(answer, "\"choices\""))
		die("refused: %s", answer);
}

int main(int argc, char **argv)
{
	uint64_t rounds = 0, warm_up = 0, gap_ms = 0;
	int kept;

	if (argc < 3 || argc > 4 || parse_u64(argv[1], 1, 1000000, &rounds, NULL) < 0 ||
	    parse_u64(argv[2], 0, 1000000, &warm_up, NULL) < 0 ||
	    (argc == 4 && parse_u64(argv[3], 0, 10000, &gap_ms, NULL) < 0))
		die("try_ask ROUNDS WARM-UP [GAP_MS]");
	prepare();
	kept = connect_it();
	for (uint64_t r = 0; r < warm_up + rounds; r++) {
		const struct timespec gap = {.tv_nsec = (long)gap_ms * 1000000};
		uint64_t t[4];
		int fd;

		(void)nanosleep(&gap, NULL);
		t[0] = now_ns();
		ask_on(kept);
		t[1] = now_ns();
		(void)nanosleep(&gap, NULL);
		t[2] = now_ns();
		fd = connect_it();
		ask_on(fd);
		t[3] = now_ns();
		(void)close(fd);
		if (r >= warm_up)
			printf("warm\t%llu\nfresh\t%llu\n",
			       (unsigned long long)(t[1] - t[0]),
			       (unsigned long long)(t[3] - t[2]));
	}
	(void)close(kept);
	return 0;
}
