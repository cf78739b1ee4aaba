/* SPDX-License-Identifier: Apache-2.0 */
/* An answer of a name server. The first byte chooses the type and whether the question is put
 * in front, so that the records are reached. */
#include "common/str.h"
#include "vessel/egress/dns.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char name[] = "a.b.example";
	uint8_t msg[DNS_QUERY_MAX + DNS_ANSWER_MAX];
	struct dns_answer a = {.n = 99};
	enum dns_type type;
	enum dns_verdict v;
	size_t len = 0;

	if (size == 0 || size > DNS_ANSWER_MAX)
		return 0;
	type = data[0] & 1 ? DNS_TYPE_AAAA : DNS_TYPE_A;
	if (data[0] & 2 && size >= 3) {
		len = dns_query(0x1234, name, type, msg);
		msg[2] |= 0x80;
		msg[7] = data[1];
		data++;
		size--;
	}
	memcpy(msg + len, data + 1, size - 1);
	v = dns_parse(msg, len + size - 1, 0x1234, name, type, &a);
	if (v != DNS_OK) {
		assert(a.n == 99);
		return 0;
	}
	assert(a.n <= DNS_ADDRS_MAX && a.aliases <= DNS_ALIASES_MAX);
	for (size_t i = 0; i < a.n; i++)
		assert(a.addr[i].v6 == (type == DNS_TYPE_AAAA));
	return 0;
}
