-- SPDX-License-Identifier: Apache-2.0
-- A worker is told that its job was contained, and that nothing of the job lives any more is what its
-- next word of that attempt says, whichever it is: none is said sooner.
SET LOCAL ROLE lych_owner;

-- Of a lease that was not renewed. Asked in a statement of its own: what ended the lease may have been
-- committed while it was waited for.
CREATE FUNCTION lych.lost_word(p_job bigint, p_epoch bigint, p_token uuid) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM lych.attempt a WHERE a.job_id = p_job AND a.epoch = p_epoch
		   AND a.token = p_token AND a.owner = session_user AND a.outcome = 'revoked') THEN
		RETURN 'revoked';
	END IF;
	RETURN 'lost';
END $$;

-- The batched heartbeat. An expired lease that nobody has reaped is revived; one that ran
-- longer than its job may is not, and the reaper ends it.
CREATE OR REPLACE FUNCTION tomb_api.extend(p_boot uuid, p_jobs bigint[], p_epochs bigint[],
					   p_tokens uuid[], p_ttl_s int)
RETURNS TABLE (job_id bigint, status text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
	v_ttl interval := make_interval(secs => least(greatest(p_ttl_s, 5), 300));
	v_now timestamptz;
BEGIN
	IF cardinality(p_jobs) > 64 OR cardinality(p_epochs) IS DISTINCT FROM cardinality(p_jobs)
	   OR cardinality(p_tokens) IS DISTINCT FROM cardinality(p_jobs) OR p_ttl_s IS NULL THEN
		RAISE EXCEPTION 'extend: arrays of one length, at most 64' USING ERRCODE = '22023';
	END IF;
	v_now := clock_timestamp();
	RETURN QUERY
	WITH q AS MATERIALIZED (
		SELECT * FROM unnest(p_jobs, p_epochs, p_tokens) AS u (jid, ep, tok)),
	locked AS MATERIALIZED (
		SELECT l.job_id FROM lych.lease l
		JOIN q ON l.job_id = q.jid AND l.epoch = q.ep AND l.token = q.tok
		WHERE l.owner = session_user AND l.boot_id = p_boot
		ORDER BY l.job_id FOR UPDATE OF l),
	kept AS (
		UPDATE lych.lease l
		SET expires_at = least(v_now + v_ttl, l.run_until), overdue_up = NULL
		FROM locked WHERE l.job_id = locked.job_id AND l.run_until > v_now
		RETURNING l.job_id)
	SELECT q.jid, CASE WHEN kept.job_id IS NULL THEN lych.lost_word(q.jid, q.ep, q.tok)
			   WHEN j.cancel_req THEN 'cancel'
			   ELSE 'ok' END
	FROM q LEFT JOIN kept ON kept.job_id = q.jid LEFT JOIN lych.job j ON j.id = kept.job_id;
END $$;

-- End the current attempt if and only if the caller still holds it. Returns with the job's row
-- locked; 'ok' obliges the caller to move the job on in the same transaction. Whose attempt it is is
-- known before anything is locked, and whether it ended: owner, token and outcome of an attempt never
-- change. Else whoever knows a job's number could hold its row, or that of a job that has long ended.
CREATE OR REPLACE FUNCTION lych.end_attempt(p_job bigint, p_epoch bigint, p_token uuid, p_outcome text,
					    p_class text, p_sha bytea)
RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	j lych.job;
	a lych.attempt;
BEGIN
	SELECT * INTO a FROM lych.attempt x WHERE x.job_id = p_job AND x.epoch = p_epoch;
	IF NOT FOUND OR a.token IS DISTINCT FROM p_token OR a.owner <> session_user THEN
		RETURN CASE WHEN EXISTS (SELECT 1 FROM lych.job x WHERE x.id = p_job) THEN 'denied'
			    ELSE 'unknown' END;
	END IF;
	IF a.outcome IS NULL THEN
		SELECT * INTO j FROM lych.job x WHERE x.id = p_job FOR UPDATE;
		IF NOT FOUND THEN
			RETURN 'unknown';
		END IF;
		SELECT * INTO a FROM lych.attempt x WHERE x.job_id = p_job AND x.epoch = p_epoch;
	END IF;
	IF a.outcome = 'revoked' THEN
		PERFORM lych.containment_dead(p_job, p_epoch, 'worker');
	END IF;
	IF a.outcome IS NOT NULL THEN
		RETURN lych.ended_answer(a, p_outcome, p_class, p_sha);
	END IF;
	IF j.epoch <> p_epoch OR j.state <> 'running' THEN
		RETURN 'stale';
	END IF;
	DELETE FROM lych.lease l WHERE l.job_id = p_job AND l.epoch = p_epoch;
	IF NOT FOUND THEN
		RETURN 'stale';
	END IF;
	UPDATE lych.attempt x
	SET ended_at = clock_timestamp(), outcome = p_outcome, class = p_class, result_sha = p_sha
	WHERE x.job_id = p_job AND x.epoch = p_epoch;
	PERFORM lych.audit('attempt.' || p_outcome, p_job, p_epoch,
			   jsonb_build_object('class', p_class, 'result_sha', encode(p_sha, 'hex')));
	PERFORM lych.hint();
	RETURN 'ok';
END $$;

SET LOCAL ROLE NONE;
