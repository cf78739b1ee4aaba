-- SPDX-License-Identifier: Apache-2.0
-- Every index that is no key.
SET LOCAL ROLE lych_owner;

CREATE UNIQUE INDEX job_request ON lych.job (queue, request_id);
CREATE INDEX job_ready ON lych.job (queue, priority DESC, run_at, id)
	WHERE state = 'queued' AND taint IS NULL;
CREATE INDEX job_waiting ON lych.job (id) WHERE state IN ('held', 'queued');
CREATE INDEX job_state_id ON lych.job (state, id DESC);
CREATE INDEX job_finished ON lych.job (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX job_attended ON lych.job (id) WHERE attended;

CREATE INDEX attempt_claim ON lych.attempt (claim_id);
CREATE UNIQUE INDEX attempt_one_success ON lych.attempt (job_id) WHERE outcome = 'succeeded';
CREATE INDEX attempt_lost ON lych.attempt (job_id) WHERE outcome = 'lost';

CREATE INDEX lease_owner ON lych.lease (owner);
CREATE INDEX job_blob_sha ON lych.job_blob (sha COLLATE "C");
CREATE INDEX removed_at ON lych.removed (at);

-- One row for every end of an attempt, by constraint.
CREATE UNIQUE INDEX audit_attempt_end ON lych.audit_outbox (job_id, epoch)
	WHERE event IN ('attempt.succeeded', 'attempt.failed', 'attempt.lost', 'attempt.released',
			'attempt.revoked');
CREATE INDEX audit_job ON lych.audit_outbox (job_id);

CREATE INDEX broker_call_open ON lych.broker_call (boot) WHERE settled_at IS NULL;
CREATE INDEX broker_call_settled ON lych.broker_call (settled_at) WHERE settled_at IS NOT NULL;

SET LOCAL ROLE NONE;
