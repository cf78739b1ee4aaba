/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-audit.
 * The file of a receipt, by itself: the proof (audit_proof.h) that the vessel's record of a job's end
 * is in a log. Who has it and the key with which that log's keys began needs nothing else.
 */
#ifndef LYCH_VESSEL_SCRIBE_RECEIPT_FILE_H
#define LYCH_VESSEL_SCRIBE_RECEIPT_FILE_H

#include "vessel/scribe/audit_read.h"

#define RECEIPT_EVENT "job.receipt"
/* As long as a proof may be. */
#define RECEIPT_FILE_MAX ((size_t)65 << 20)

struct receipt_file {
	enum audit_verdict verdict;
	uint64_t seq;
	struct buf line;	/* the record, without its newline */
	struct audit_head head; /* of it */
	const char *receipt; /* in line: what the vessel said of the job, a JSON object */
	size_t receipt_len;
	struct seal seal; /* that vouches for it */
	char genesis[SEAL_TEXT32];
	/* while it is read */
	struct merkle_hash leaf;
	struct merkle_proof path;
	struct buf keys, note;
};

/*
 * There is one way to write it: another order, a member more or twice, another spelling are refused.
 * -1: ret->verdict and *err say what is wrong: _TAMPERED where a hash, a path, a signature or a key is
 * not the one that it must be, _TRUNCATED where the text breaks off, _UNSEALED where a key is left out
 * between pin and checkpoint, _UNKNOWN for what is no such file.
 */
MUST_CHECK int receipt_file_judge(const char *text, size_t len,
				  const uint8_t pin[ED25519_PUBLIC_SIZE],
				  struct receipt_file *ret, struct err *err);
/* A regular file, no symbolic link to one; -1: ret->verdict is _UNKNOWN. */
MUST_CHECK int receipt_file_read(const char *path, char **ret_text, size_t *ret_len,
				 struct err *err);
void receipt_file_done(struct receipt_file *r);

#endif
