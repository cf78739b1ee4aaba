-- SPDX-License-Identifier: Apache-2.0
-- A containment is more than its first transaction: the broker has to be closed, the processes have to be dead,
-- what is left is sealed, and the log has all of it. What was done stands here, in the order in which it is done,
-- each step with its event in its own transaction. What is next follows from this row alone and each step may be asked for
-- again, so a vessel that is killed between any two goes on where it stood.
SET LOCAL ROLE lych_owner;

CREATE TABLE lych.containment (
	job_id bigint PRIMARY KEY REFERENCES lych.job,
	epoch bigint NOT NULL, -- that was revoked
	reason text NOT NULL,
	begun_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	-- when its lease would have run out: its tomb has ended it by then, by its own clock
	dead_by timestamptz,
	cut_at timestamptz, -- the broker has nothing more of it under way
	dead_at timestamptz,
	-- who says so: its worker; the time of its lease, with a worker that says nothing; or it had none
	dead_how text CHECK (dead_how IN ('worker', 'lease', 'idle')),
	sealed_at timestamptz,
	evidence text,
	done_at timestamptz, -- the log has all of it
	CHECK (dead_by IS NOT NULL OR dead_at IS NOT NULL),
	CHECK ((dead_at IS NULL) = (dead_how IS NULL)),
	CHECK ((sealed_at IS NULL) = (evidence IS NULL)),
	CHECK (sealed_at IS NULL OR (cut_at IS NOT NULL AND dead_at IS NOT NULL)),
	CHECK (done_at IS NULL OR sealed_at IS NOT NULL)
);
CREATE INDEX containment_open ON lych.containment (job_id) WHERE done_at IS NULL;

-- Those before this migration: how long their leases would have been is not known any more.
INSERT INTO lych.containment (job_id, epoch, reason, dead_by)
SELECT j.id, greatest(j.epoch - 1, 0), j.taint, clock_timestamp() + interval '300 s'
FROM lych.job j WHERE j.taint IS NOT NULL;

CREATE FUNCTION lych.containment_dead(p_job bigint, p_epoch bigint, p_how text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	UPDATE lych.containment c SET dead_at = clock_timestamp(), dead_how = p_how
	WHERE c.job_id = p_job AND c.epoch = p_epoch AND c.dead_at IS NULL;
	IF FOUND THEN
		PERFORM lych.audit('containment.tree_dead', p_job, p_epoch, jsonb_build_object('by', p_how));
		PERFORM lych.hint();
	END IF;
END $$;

-- Revoke and quarantine in one transaction; a second call changes nothing.
CREATE OR REPLACE FUNCTION vessel_api.contain(p_job bigint, p_reason text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	j lych.job;
	v_dead_by timestamptz;
BEGIN
	IF coalesce(p_reason, '') = '' THEN
		RAISE EXCEPTION 'contain: a reason is needed' USING ERRCODE = '22023';
	END IF;
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job FOR UPDATE;
	IF NOT FOUND THEN
		RETURN 'unknown';
	END IF;
	IF j.taint IS NOT NULL THEN
		RETURN 'already';
	END IF;
	DELETE FROM lych.lease l WHERE l.job_id = p_job RETURNING l.expires_at INTO v_dead_by;
	UPDATE lych.attempt a SET ended_at = clock_timestamp(), outcome = 'revoked'
	WHERE a.job_id = p_job AND a.epoch = j.epoch AND a.outcome IS NULL;
	IF FOUND THEN
		PERFORM lych.audit('attempt.revoked', p_job, j.epoch);
	END IF;
	UPDATE lych.job x SET taint = left(p_reason, 250), epoch = x.epoch + 1,
		state = CASE WHEN x.finished_at IS NULL THEN 'quarantined' ELSE x.state END
	WHERE x.id = p_job;
	PERFORM lych.audit('job.contained', p_job, j.epoch, jsonb_build_object('reason', p_reason));
	INSERT INTO lych.containment (job_id, epoch, reason, dead_by)
	VALUES (p_job, j.epoch, left(p_reason, 250), coalesce(v_dead_by, '-infinity'));
	IF v_dead_by IS NULL THEN
		PERFORM lych.containment_dead(p_job, j.epoch, 'idle');
	END IF;
	PERFORM lych.hint();
	RETURN 'contained';
END $$;

SET LOCAL ROLE NONE;
