-- SPDX-License-Identifier: Apache-2.0
-- What a person decides of a job that has ended: it is tried again, or it is removed.
SET LOCAL ROLE lych_owner;

-- Jobs that a person removed. Their events stay until they are in the log and as old as those of
-- other jobs may become.
CREATE TABLE lych.removed (
	job_id bigint PRIMARY KEY,
	at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX removed_at ON lych.removed (at);

-- ok | unknown | tainted | state (it has not ended, or well, or was cancelled) | spent | full
-- Its result and artifacts are forgotten; its attempts, its losses and its events are not.
CREATE FUNCTION vessel_api.retry(p_job bigint, p_max_waiting int) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	j lych.job;
	v_tries int;
	v_n bigint;
BEGIN
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job FOR UPDATE;
	IF NOT FOUND THEN
		RETURN 'unknown';
	END IF;
	IF j.taint IS NOT NULL THEN
		RETURN 'tainted';
	END IF;
	IF j.state NOT IN ('dead', 'quarantined') THEN
		RETURN 'state';
	END IF;
	-- as many as it had at first
	v_tries := CASE WHEN j.retry_on_lost THEN 3 ELSE 1 END;
	IF j.attempts + v_tries > 100 THEN
		RETURN 'spent';
	END IF;
	SELECT count(*) INTO v_n FROM (
		SELECT 1 FROM lych.job x WHERE x.state IN ('held', 'queued') LIMIT p_max_waiting) AS w;
	IF v_n >= p_max_waiting THEN
		RETURN 'full';
	END IF;
	DELETE FROM lych.result r WHERE r.job_id = p_job;
	DELETE FROM lych.job_blob b WHERE b.job_id = p_job AND b.kind = 'artifact';
	UPDATE lych.job x SET state = 'queued', class = '', finished_at = NULL, cancel_req = false,
		epoch = x.epoch + 1, releases = 0, max_attempts = x.attempts + v_tries,
		max_lost = x.lost + v_tries, run_at = clock_timestamp()
	WHERE x.id = p_job;
	PERFORM lych.audit('job.retried', p_job, j.epoch + 1, jsonb_build_object(
		'state', j.state, 'class', j.class, 'attempts', j.attempts, 'lost', j.lost));
	PERFORM lych.hint();
	RETURN 'ok';
END $$;

-- ok | unknown | tainted | state (it has not ended)
CREATE FUNCTION vessel_api.remove(p_job bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	j lych.job;
BEGIN
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job FOR UPDATE;
	IF NOT FOUND THEN
		RETURN 'unknown';
	END IF;
	IF j.taint IS NOT NULL THEN
		RETURN 'tainted';
	END IF;
	IF j.state NOT IN ('succeeded', 'dead', 'cancelled', 'quarantined') THEN
		RETURN 'state';
	END IF;
	DELETE FROM lych.job x WHERE x.id = p_job;
	INSERT INTO lych.removed (job_id) VALUES (p_job);
	PERFORM lych.audit('job.removed', p_job, j.epoch, jsonb_build_object(
		'request_id', j.request_id, 'spec_sha', encode(j.spec_sha, 'hex'), 'state', j.state));
	PERFORM lych.hint();
	RETURN 'ok';
END $$;

SET LOCAL ROLE NONE;
REVOKE ALL ON FUNCTION vessel_api.retry(bigint, int), vessel_api.remove(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION vessel_api.retry(bigint, int), vessel_api.remove(bigint) TO lych_vessel;
