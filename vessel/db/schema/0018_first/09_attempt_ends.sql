-- SPDX-License-Identifier: Apache-2.0
-- How an attempt ends: by its worker, or by the word of the next worker in its place, which has a proof
-- that nothing of it lives. (By the reaper, when its lease ran out: 12_owner.sql.)
SET LOCAL ROLE lych_owner;

-- What an attempt that has ended answers to whoever ends it again.
CREATE FUNCTION lych.ended_answer(a lych.attempt, p_outcome text, p_class text, p_sha bytea)
RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE
		WHEN a.outcome = p_outcome AND a.class = p_class
			AND a.result_sha IS NOT DISTINCT FROM p_sha THEN 'already'
		WHEN a.outcome = 'revoked' THEN 'revoked'
		WHEN a.outcome = 'lost' THEN 'stale'
		ELSE 'conflict' END
$$;

-- End the current attempt if and only if the caller still holds it. Returns with the job's row
-- locked; 'ok' obliges the caller to move the job on in the same transaction. Whose attempt it is is
-- known before anything is locked, and whether it ended: owner, token and outcome of an attempt never
-- change. Else whoever knows a job's number could hold its row, or that of a job that has long ended.
CREATE FUNCTION lych.end_attempt(p_job bigint, p_epoch bigint, p_token uuid, p_outcome text,
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
	IF a.outcome IS NOT NULL THEN
		RETURN lych.ended_answer(a, p_outcome, p_class, p_sha);
	END IF;
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job FOR UPDATE;
	IF NOT FOUND THEN
		RETURN 'unknown';
	END IF;
	SELECT * INTO a FROM lych.attempt x WHERE x.job_id = p_job AND x.epoch = p_epoch;
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

-- The account of the attempt that finished the job; its artifacts stay while the job does. Of a
-- result that names more of them than one may have the first count.
CREATE FUNCTION lych.store_result(p_job bigint, p_epoch bigint, p_result bytea) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	INSERT INTO lych.result (job_id, epoch, body) VALUES (p_job, p_epoch, p_result);
	INSERT INTO lych.job_blob (job_id, sha, kind)
	SELECT p_job, a.v ->> 'sha256', 'artifact' FROM (
		SELECT v FROM jsonb_path_query(lych.json_or_null(p_result), 'lax $.artifacts[*]') AS v
		LIMIT 256) AS a
	WHERE a.v ->> 'sha256' ~ '^[0-9a-f]{64}$'
	ON CONFLICT DO NOTHING;
END $$;

-- A job that a person has tried again is tried as at first, and its pauses begin anew: of a count
-- those since the last retry, which gave the job p_tries more (lych.retry_ended).
CREATE FUNCTION lych.since_retry(p_count int, p_max int, p_retry_on_lost boolean) RETURNS int
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN p_count >= p_max - CASE WHEN p_retry_on_lost THEN 3 ELSE 1 END
	    THEN least(p_count, p_count - p_max + CASE WHEN p_retry_on_lost THEN 3 ELSE 1 END)
	    ELSE p_count END;

-- Move on a job whose attempt has just ended as lost; its row is locked by the caller. p_dead: that
-- nothing of it runs any more is proved. Then a cancelled job is cancelled, and the first loss
-- costs no pause and not its place in the queue. Each of those that were lost together is a suspect,
-- for what it did to its worker: each counts the loss, and from the second on their pauses differ.
CREATE FUNCTION lych.lose(p_job bigint, p_class text, p_dead boolean) RETURNS lych.jstate
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	j lych.job;
	v_state lych.jstate;
	v_before int;
BEGIN
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job;
	v_before := lych.since_retry(j.lost, j.max_lost, j.retry_on_lost);
	v_state := CASE WHEN j.cancel_req AND p_dead THEN 'cancelled'
			WHEN j.cancel_req OR NOT j.retry_on_lost THEN 'dead'
			WHEN j.lost + 1 >= j.max_lost THEN 'quarantined'
			WHEN j.attempts >= j.max_attempts THEN 'dead'
			ELSE 'queued' END;
	UPDATE lych.job x SET state = v_state, lost = x.lost + 1, epoch = x.epoch + 1,
		class = CASE v_state WHEN 'dead' THEN p_class ELSE '' END,
		finished_at = CASE WHEN v_state IN ('dead', 'cancelled') THEN clock_timestamp() END,
		run_at = CASE WHEN p_dead AND v_before = 0 THEN x.run_at
			 ELSE clock_timestamp() + make_interval(
				secs => 2 ^ (least(v_before, 8) - p_dead::int) * (0.5 + random())) END
	WHERE x.id = p_job;
	PERFORM lych.hint();
	RETURN v_state;
END $$;

CREATE FUNCTION tomb_api.ack(p_job bigint, p_epoch bigint, p_token uuid, p_result bytea)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	s text;
BEGIN
	IF p_result IS NULL THEN
		RAISE EXCEPTION 'ack: no result' USING ERRCODE = '22004';
	END IF;
	IF octet_length(p_result) > 1048576 THEN
		RETURN 'too_big';
	END IF;
	s := lych.end_attempt(p_job, p_epoch, p_token, 'succeeded', '', sha256(p_result));
	IF s = 'ok' THEN
		PERFORM lych.store_result(p_job, p_epoch, p_result);
		UPDATE lych.job x SET state = 'succeeded', finished_at = clock_timestamp()
		WHERE x.id = p_job;
	END IF;
	RETURN s;
END $$;

-- p_retry is for the worker's own failures; a job that failed by itself is not run again.
-- The class may be empty only for a job whose end was asked for.
CREATE FUNCTION tomb_api.fail(p_job bigint, p_epoch bigint, p_token uuid, p_retry boolean,
					 p_class text, p_result bytea)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	s text;
	j lych.job;
	v_class text := coalesce(p_class, '');
BEGIN
	IF v_class NOT IN ('', 'setup_refused', 'policy_deny', 'timeout_kill', 'oom_kill',
			   'output_limit', 'disk_limit', 'resource_kill', 'exit', 'crash', 'input',
			   'gate_failed', 'transport_loss', 'budget_exhausted') THEN
		RAISE EXCEPTION 'fail: unknown class' USING ERRCODE = '22023';
	END IF;
	IF octet_length(p_result) > 1048576 THEN
		RETURN 'too_big';
	END IF;
	s := lych.end_attempt(p_job, p_epoch, p_token, 'failed', v_class, sha256(p_result));
	IF s <> 'ok' THEN
		RETURN s;
	END IF;
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job;
	IF v_class = '' AND NOT j.cancel_req THEN
		RAISE EXCEPTION 'fail: a class is needed' USING ERRCODE = '22023';
	END IF;
	IF NOT j.cancel_req AND p_retry AND v_class = 'transport_loss' AND j.retry_on_lost
	   AND j.attempts < j.max_attempts THEN
		UPDATE lych.job x SET state = 'queued', run_at = clock_timestamp() + make_interval(
			secs => least(3600, 2 ^ least(lych.since_retry(x.attempts, x.max_attempts,
				x.retry_on_lost), 12)) * (0.5 + random() / 2))
		WHERE x.id = p_job;
		RETURN s;
	END IF;
	IF p_result IS NOT NULL THEN
		PERFORM lych.store_result(p_job, p_epoch, p_result);
	END IF;
	UPDATE lych.job x
	SET state = CASE WHEN x.cancel_req THEN 'cancelled' ELSE 'dead' END::lych.jstate,
		class = CASE WHEN x.cancel_req THEN '' ELSE v_class END,
		finished_at = clock_timestamp()
	WHERE x.id = p_job;
	RETURN s;
END $$;

-- A graceful stop gives the attempt back, five times a job; after that it counts as one. A job
-- that may run once only is not given back: whether it had begun cannot be known here.
-- p_died: the worker that held it died with it, and its successor speaks. That is a lost attempt.
CREATE FUNCTION tomb_api.release(p_job bigint, p_epoch bigint, p_token uuid,
				 p_died boolean DEFAULT false)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	s text;
	j lych.job;
	v_free boolean;
BEGIN
	IF p_died IS NULL THEN
		RAISE EXCEPTION 'release: a parameter is null' USING ERRCODE = '22004';
	END IF;
	s := lych.end_attempt(p_job, p_epoch, p_token,
			      CASE WHEN p_died THEN 'lost' ELSE 'released' END,
			      CASE WHEN p_died THEN 'transport_loss' ELSE '' END, NULL);
	IF s <> 'ok' THEN
		RETURN s;
	END IF;
	IF p_died THEN
		PERFORM lych.lose(p_job, 'transport_loss', true);
		RETURN s;
	END IF;
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job;
	v_free := j.retry_on_lost AND j.releases < 5;
	IF j.cancel_req THEN
		UPDATE lych.job x SET state = 'cancelled', finished_at = clock_timestamp()
		WHERE x.id = p_job;
	ELSIF v_free THEN
		UPDATE lych.job x SET state = 'queued', releases = x.releases + 1,
			attempts = greatest(x.attempts - 1, 0), run_at = clock_timestamp()
		WHERE x.id = p_job;
	ELSIF j.retry_on_lost AND j.attempts < j.max_attempts THEN
		UPDATE lych.job x SET state = 'queued', releases = x.releases + 1,
			run_at = clock_timestamp() + make_interval(
				secs => least(3600, 2 ^ least(x.attempts, 12)))
		WHERE x.id = p_job;
	ELSE
		UPDATE lych.job x SET state = 'dead', class = 'transport_loss',
			releases = x.releases + 1, finished_at = clock_timestamp()
		WHERE x.id = p_job;
	END IF;
	RETURN s;
END $$;

SET LOCAL ROLE NONE;
