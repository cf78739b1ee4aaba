-- SPDX-License-Identifier: Apache-2.0
-- The worker API: five functions, nothing else. The caller is session_user, never an argument.
-- Time is the server's clock_timestamp(): a worker may sit in an old transaction, where now()
-- stands still. Lock order everywhere: job, lease, attempt.
--
-- The planner settings on the functions: a plan that was cached while the tables were empty
-- is a sequential scan and stays one while they grow.
SET LOCAL ROLE lych_owner;

CREATE FUNCTION tomb_api.claim(p_queue text, p_n int, p_ttl_s int, p_boot uuid, p_claim uuid)
RETURNS TABLE (job_id bigint, epoch bigint, token uuid, attempt int, spec bytea, max_runtime_s int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
	v_now timestamptz;
	v_ttl interval := make_interval(secs => least(greatest(p_ttl_s, 5), 300));
	v_grant lych.worker_queue;
	v_tokens real;
	v_have int;
	v_n int;
	v_got int := 0;
	v_token uuid;
	r record;
BEGIN
	IF p_boot IS NULL OR p_claim IS NULL OR p_n IS NULL OR p_ttl_s IS NULL THEN
		RAISE EXCEPTION 'claim: a parameter is null' USING ERRCODE = '22004';
	END IF;
	-- The row lock makes claims of one role take turns: a resend waits for the first copy.
	SELECT * INTO v_grant FROM lych.worker_queue w
	WHERE w.role = session_user AND w.queue = p_queue FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'queue not granted' USING ERRCODE = '42501';
	END IF;
	-- The reply of this claim was lost: the same live leases and nothing new.
	IF EXISTS (SELECT 1 FROM lych.attempt a WHERE a.claim_id = p_claim) THEN
		RETURN QUERY
		SELECT a.job_id, a.epoch, a.token, j.attempts, p.body, j.max_runtime_s
		FROM lych.attempt a
		JOIN lych.lease l ON l.job_id = a.job_id AND l.epoch = a.epoch
		JOIN lych.job j ON j.id = a.job_id
		JOIN lych.payload p ON p.job_id = a.job_id
		WHERE a.claim_id = p_claim AND a.owner = session_user AND a.boot_id = p_boot;
		RETURN;
	END IF;
	v_now := clock_timestamp();
	v_tokens := least(v_grant.claim_burst, v_grant.tokens + v_grant.claim_rate
		* greatest(extract(epoch FROM v_now - v_grant.tokens_at)::real, 0));
	SELECT count(*) INTO v_have FROM lych.lease l WHERE l.owner = session_user;
	v_n := least(greatest(p_n, 0), 32, v_grant.max_leases - v_have, floor(v_tokens)::int);
	IF v_n <= 0 THEN
		RETURN;
	END IF;
	FOR r IN
		WITH c AS MATERIALIZED (
			-- v_now is a variable because a volatile function is no index condition
			SELECT j.id FROM lych.job j
			WHERE j.state = 'queued' AND j.taint IS NULL AND j.queue = p_queue
				AND j.run_at <= v_now
			ORDER BY j.priority DESC, j.run_at, j.id
			LIMIT v_n FOR UPDATE SKIP LOCKED)
		UPDATE lych.job j
		SET state = 'running', epoch = j.epoch + 1, attempts = j.attempts + 1,
			started_at = clock_timestamp()
		FROM c WHERE j.id = c.id
		RETURNING j.id, j.epoch AS ep, j.attempts AS att, j.max_runtime_s AS run_s
	LOOP
		v_token := gen_random_uuid();
		INSERT INTO lych.attempt (job_id, epoch, owner, boot_id, claim_id, token, started_at)
		VALUES (r.id, r.ep, session_user, p_boot, p_claim, v_token, clock_timestamp());
		v_now := clock_timestamp();
		INSERT INTO lych.lease (job_id, epoch, owner, boot_id, token, run_until, expires_at)
		VALUES (r.id, r.ep, session_user, p_boot, v_token,
			v_now + make_interval(secs => r.run_s),
			least(v_now + v_ttl, v_now + make_interval(secs => r.run_s)));
		PERFORM lych.audit('job.claimed', r.id, r.ep,
				   jsonb_build_object('boot', p_boot, 'attempt', r.att));
		v_got := v_got + 1;
		job_id := r.id;
		epoch := r.ep;
		token := v_token;
		attempt := r.att;
		max_runtime_s := r.run_s;
		SELECT p.body INTO spec FROM lych.payload p WHERE p.job_id = r.id;
		RETURN NEXT;
	END LOOP;
	IF v_got > 0 THEN
		UPDATE lych.worker_queue w SET tokens = v_tokens - v_got, tokens_at = v_now
		WHERE w.role = session_user AND w.queue = p_queue;
	END IF;
END $$;

-- The batched heartbeat. An expired lease that nobody has reaped is revived; one that ran
-- longer than its job may is not, and the reaper ends it.
CREATE FUNCTION tomb_api.extend(p_boot uuid, p_jobs bigint[], p_epochs bigint[], p_tokens uuid[],
				p_ttl_s int)
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
		UPDATE lych.lease l SET expires_at = least(v_now + v_ttl, l.run_until)
		FROM locked WHERE l.job_id = locked.job_id AND l.run_until > v_now
		RETURNING l.job_id)
	SELECT q.jid, CASE WHEN kept.job_id IS NULL THEN 'lost'
			   WHEN j.cancel_req THEN 'cancel'
			   ELSE 'ok' END
	FROM q LEFT JOIN kept ON kept.job_id = q.jid LEFT JOIN lych.job j ON j.id = kept.job_id;
END $$;

-- End the current attempt if and only if the caller still holds it. Returns with the job's
-- row locked; 'ok' obliges the caller to move the job on in the same transaction.
CREATE FUNCTION lych.end_attempt(p_job bigint, p_epoch bigint, p_token uuid, p_outcome text,
				 p_class text, p_sha bytea)
RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	j lych.job;
	a lych.attempt;
BEGIN
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job FOR UPDATE;
	IF NOT FOUND THEN
		RETURN 'unknown';
	END IF;
	SELECT * INTO a FROM lych.attempt x WHERE x.job_id = p_job AND x.epoch = p_epoch;
	IF NOT FOUND OR a.token IS DISTINCT FROM p_token OR a.owner <> session_user THEN
		RETURN 'denied';
	END IF;
	IF a.outcome IS NOT NULL THEN
		IF a.outcome = p_outcome AND a.class = p_class
		   AND a.result_sha IS NOT DISTINCT FROM p_sha THEN
			RETURN 'already';
		END IF;
		RETURN CASE a.outcome WHEN 'revoked' THEN 'revoked' WHEN 'lost' THEN 'stale'
				      ELSE 'conflict' END;
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

-- The account of the attempt that finished the job; its artifacts stay while the job does.
CREATE FUNCTION lych.store_result(p_job bigint, p_epoch bigint, p_result bytea) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	INSERT INTO lych.result (job_id, epoch, body) VALUES (p_job, p_epoch, p_result);
	INSERT INTO lych.job_blob (job_id, sha, kind)
	SELECT p_job, v ->> 'sha256', 'artifact'
	FROM jsonb_path_query(lych.json_or_null(p_result), 'lax $.artifacts[*]') AS v
	WHERE v ->> 'sha256' ~ '^[0-9a-f]{64}$'
	ON CONFLICT DO NOTHING;
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
			   'output_limit', 'disk_limit', 'resource_kill', 'crash', 'gate_failed',
			   'transport_loss', 'budget_exhausted') THEN
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
			secs => least(3600, 2 ^ least(x.attempts, 12)) * (0.5 + random() / 2))
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
CREATE FUNCTION tomb_api.release(p_job bigint, p_epoch bigint, p_token uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	s text;
	j lych.job;
	v_free boolean;
BEGIN
	s := lych.end_attempt(p_job, p_epoch, p_token, 'released', '', NULL);
	IF s <> 'ok' THEN
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
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tomb_api, lych FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
	tomb_api.claim(text, int, int, uuid, uuid),
	tomb_api.extend(uuid, bigint[], bigint[], uuid[], int),
	tomb_api.ack(bigint, bigint, uuid, bytea),
	tomb_api.fail(bigint, bigint, uuid, boolean, text, bytea),
	tomb_api.release(bigint, bigint, uuid) TO lych_tomb;
