-- SPDX-License-Identifier: Apache-2.0
-- What a person decides of a job: it is cancelled, contained, tried again or removed; and what time
-- decides: it is forgotten.
SET LOCAL ROLE lych_owner;

-- j: as it is, its row locked.
CREATE FUNCTION lych.cancel_locked(j lych.job) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF j.state IN ('held', 'queued') THEN
		UPDATE lych.job x SET state = 'cancelled', cancel_req = true,
			finished_at = clock_timestamp() WHERE x.id = j.id;
		PERFORM lych.audit('job.cancelled', j.id, j.epoch);
		PERFORM lych.hint();
	ELSIF j.state = 'running' AND NOT j.cancel_req THEN
		UPDATE lych.job x SET cancel_req = true WHERE x.id = j.id;
		PERFORM lych.audit('job.cancel_requested', j.id, j.epoch);
		PERFORM lych.hint();
	END IF;
END $$;

-- The job's state for the user after the call; no row: no such job. Whoever holds the row of its job
-- can make others wait for it, for as long as a literal takes to be read, which nothing interrupts.
-- So nobody waits for long: what finds the row held is a wish.
CREATE FUNCTION vessel_api.cancel(p_job bigint) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET lock_timeout = '100ms' AS $$
DECLARE
	j lych.job;
BEGIN
	BEGIN
		SELECT * INTO j FROM lych.job x WHERE x.id = p_job FOR UPDATE;
		IF NOT FOUND THEN
			RETURN;
		END IF;
		PERFORM lych.cancel_locked(j);
	EXCEPTION WHEN lock_not_available THEN
		INSERT INTO lych.wish (job_id) VALUES (p_job) ON CONFLICT DO NOTHING;
		RETURN QUERY SELECT 'cancelling';
		RETURN;
	END;
	RETURN QUERY SELECT v.user_state FROM lych.job_view v WHERE v.id = p_job;
END $$;

-- The oldest wish waits for its row, so that it is the next in line when the row is let go; the others
-- take what they find.
CREATE FUNCTION lych.grant_wishes() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '700ms' AS $$
DECLARE
	r record;
	j lych.job;
	v_first boolean := true;
BEGIN
	FOR r IN SELECT w.job_id FROM lych.wish w ORDER BY w.at LIMIT 100 LOOP
		BEGIN
			IF v_first THEN
				SELECT * INTO j FROM lych.job x WHERE x.id = r.job_id FOR UPDATE;
			ELSE
				SELECT * INTO j FROM lych.job x WHERE x.id = r.job_id FOR UPDATE NOWAIT;
			END IF;
			IF FOUND THEN
				PERFORM lych.cancel_locked(j);
			END IF;
			DELETE FROM lych.wish w WHERE w.job_id = r.job_id;
		EXCEPTION WHEN lock_not_available THEN
			UPDATE lych.wish w SET at = clock_timestamp() WHERE w.job_id = r.job_id AND v_first;
		END;
		v_first := false;
	END LOOP;
END $$;

-- Nobody waits any more for these jobs, or (p_others) for any but these: those that are attended
-- and have not ended are cancelled, at most p_limit; their ids. What is held is wished for.
CREATE FUNCTION vessel_api.abandon(p_jobs bigint[], p_others boolean, p_limit int)
RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	r record;
BEGIN
	FOR r IN
		SELECT j.id, j.epoch FROM lych.job j
		WHERE j.attended AND (j.id = ANY (p_jobs)) <> p_others
			AND NOT EXISTS (SELECT 1 FROM lych.wish w WHERE w.job_id = j.id)
		ORDER BY j.id LIMIT least(greatest(p_limit, 1), 500)
	LOOP
		BEGIN
			PERFORM 1 FROM lych.job j WHERE j.id = r.id AND j.attended FOR UPDATE NOWAIT;
			CONTINUE WHEN NOT FOUND;
			UPDATE lych.job j SET attended = false WHERE j.id = r.id;
			PERFORM lych.audit('job.abandoned', r.id, r.epoch);
			PERFORM vessel_api.cancel(r.id);
		EXCEPTION WHEN lock_not_available THEN
			PERFORM lych.audit('job.abandoned', r.id, r.epoch);
			INSERT INTO lych.wish (job_id) VALUES (r.id) ON CONFLICT DO NOTHING;
		END;
		RETURN NEXT r.id;
	END LOOP;
END $$;

-- Revoke and quarantine in one transaction; a second call changes nothing.
CREATE FUNCTION vessel_api.contain(p_job bigint, p_reason text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	j lych.job;
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
	DELETE FROM lych.lease l WHERE l.job_id = p_job;
	UPDATE lych.attempt a SET ended_at = clock_timestamp(), outcome = 'revoked'
	WHERE a.job_id = p_job AND a.epoch = j.epoch AND a.outcome IS NULL;
	IF FOUND THEN
		PERFORM lych.audit('attempt.revoked', p_job, j.epoch);
	END IF;
	UPDATE lych.job x SET taint = left(p_reason, 250), epoch = x.epoch + 1,
		state = CASE WHEN x.finished_at IS NULL THEN 'quarantined' ELSE x.state END
	WHERE x.id = p_job;
	PERFORM lych.audit('job.contained', p_job, j.epoch, jsonb_build_object('reason', p_reason));
	PERFORM lych.hint();
	RETURN 'contained';
END $$;

-- ok | unknown | tainted | state (it has not ended, or well, or was cancelled) | spent | full
-- Its result and artifacts are forgotten; its attempts, its losses and its events are not.
CREATE FUNCTION lych.retry_ended(p_job bigint, p_max_waiting int) RETURNS text
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

-- As retry_ended; a job that has not ended is not waited for.
CREATE FUNCTION vessel_api.retry(p_job bigint, p_max_waiting int) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM lych.job x WHERE x.id = p_job AND x.taint IS NULL
		   AND x.state IN ('held', 'queued', 'running')) THEN
		RETURN 'state';
	END IF;
	RETURN lych.retry_ended(p_job, p_max_waiting);
END $$;

-- ok | unknown | tainted | state (it has not ended)
CREATE FUNCTION lych.remove_ended(p_job bigint) RETURNS text
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

-- As remove_ended; a job that has not ended is not waited for.
CREATE FUNCTION vessel_api.remove(p_job bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM lych.job x WHERE x.id = p_job AND x.taint IS NULL
		   AND x.state IN ('held', 'queued', 'running')) THEN
		RETURN 'state';
	END IF;
	RETURN lych.remove_ended(p_job);
END $$;

-- Forget finished jobs with their events, once these are in the log, and old events of none.
-- Quarantined and tainted jobs are evidence and stay.
CREATE FUNCTION vessel_api.retain(p_keep_s int, p_limit int) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	v_before timestamptz := clock_timestamp() - make_interval(secs => greatest(p_keep_s, 0));
	v_limit int := least(greatest(p_limit, 1), 500);
	v_ids bigint[];
	s lych.audit_state;
BEGIN
	SELECT * INTO s FROM lych.audit_state;
	WITH gone AS (
		DELETE FROM lych.job x WHERE x.id IN (
			SELECT j.id FROM lych.job j
			WHERE j.finished_at < v_before AND j.taint IS NULL
				AND NOT EXISTS (
					SELECT 1 FROM lych.audit_outbox o WHERE o.job_id = j.id
						AND (o.xid, o.id) > (s.acked_xid, s.acked_id))
			ORDER BY j.finished_at LIMIT v_limit
			FOR UPDATE SKIP LOCKED)
		RETURNING x.id)
	SELECT array_agg(g.id) INTO v_ids FROM gone g;
	DELETE FROM lych.audit_outbox o
	WHERE (o.job_id = ANY (v_ids) OR (o.job_id IS NULL AND o.at < v_before))
		AND (o.xid, o.id) <= (s.acked_xid, s.acked_id);
	RETURN QUERY SELECT unnest(v_ids);
END $$;

SET LOCAL ROLE NONE;
