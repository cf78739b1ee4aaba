/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section F: the broker and the parents. Who can send to a parent at all is tried by a real
 * job (parent_reach.py); what the parents do with ill-meant bytes, by tests that speak to
 * them directly. The broker is not part of this release: its rows say so.
 */
#include "tests/escape/probe/probe.h"

#define REACH "tests/escape/parent_reach.py"
#define FLOOD "tests/escape/parent_flood.py"
#define PARENT "tests/escape/parent.sh"
#define NO_BROKER "nothing: there is no broker yet, and a job reaches no parent"
/* clang-format off */
static const struct probe probes[] = {
	ELSEWHERE("88", "lengths of 4 GiB, -1, 0, none", "400 or 413, closed", FLOOD,
	 "\"4294967296\", \"18446744073709551616\""),
	ELSEWHERE("88b", "JSON 100,000 deep, 16 MiB in a string, bad UTF-8, NUL, double keys, 1e999",
	 "400 or 413, memory flat", FLOOD, "depth 100000"),
	ELSEWHERE("88c", "the parser of JSON, of the HTTP gate, of specs, of results: any bytes",
	 "no crash, no growth", "tests/fuzz/fuzz_gate.c", "LLVMFuzzerTestOneInput"),
	ELSEWHERE("88d", "a packet of the spawner's protocol on each descriptor",
	 "no socket is there", REACH, "forged"),
	ELSEWHERE("89", "half requests, bodies that never come", "others are served, closed when idle",
	 FLOOD, "120 half requests"),
	ELSEWHERE("89b", "10,000 requests in one piece", "one answer, closed", FLOOD, "10^4 pipelined"),
	ELSEWHERE("89c", "clients that never read, or leave in the middle", "others are served",
	 FLOOD, "60 that never read"),
	ELSEWHERE("89d", "300 connections at once", "503 beyond 256, places come back", FLOOD,
	 "beyond the cap"),
	ELSEWHERE("89e", "a reader of events that is too slow", "cut off",
	 "tests/unit/common/net/test_httpd.c", "slow_event_reader_is_cut_off"),
	ELSEWHERE("90", "8,000 descriptors by SCM_RIGHTS", "none is kept", FLOOD,
	 "8000 descriptors pushed"),
	ELSEWHERE("90b", "out-of-band bytes", "no request", FLOOD, "out-of-band bytes"),
	ELSEWHERE("90c", "100 processes writing to one connection", "no more answers than requests",
	 FLOOD, "100 writers on one connection"),
	ELSEWHERE("91", "URLs to the inside, rebinding, redirects", NO_BROKER, REACH, "REACHED"),
	ELSEWHERE("92", "exfiltration through what the broker fetches", NO_BROKER, REACH, "REACHED"),
	ELSEWHERE("93", "chunks without end, a gzip bomb", "400: nothing is decoded", FLOOD,
	 "a gzip bomb"),
	ELSEWHERE("93b", "a header of 8 MiB, one that never ends", "400 or 431 at 8 KiB", FLOOD,
	 "a header of 8 MiB"),
	ELSEWHERE("94", "the token of another job, an old one, a guess", "410 or 403, typed",
	 "tests/integration/daemons/vessel_api.py", "t_lease_routes_refuse_a_wrong_or_ended_lease"),
	ELSEWHERE("94b", "the tomb's secret with a forged lease", "refused, typed", FLOOD,
	 "a forged lease of job"),
	ELSEWHERE("95", "another job's files, memory, descriptors; the parents'", "not in reach",
	 REACH, "another job's file"),
	ELSEWHERE("95b", "sockets of the vessel, the tomb, the database", "not in reach", REACH,
	 "vessel.sock"),
	ELSEWHERE("96", "output that asks for less walls, forges an end or a log line",
	 "printed, that is all", PARENT, "retry without sandbox"),
	ELSEWHERE("96b", "an option, a variable, a key of the config that takes a wall away",
	 "there is none", PARENT, "--no-sandbox"),
};
/* clang-format on */

const struct section section_parent = {'F', "Broker and parent", probes,
				       sizeof(probes) / sizeof(probes[0])};
