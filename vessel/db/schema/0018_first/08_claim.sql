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
	-- What cannot be logged is not begun. Leases that are held go on.
	IF NOT EXISTS (SELECT 1 FROM lych.audit_state s WHERE s.ok_until > clock_timestamp()) THEN
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
CREATE FUNCTION tomb_api.extend(p_boot uuid, p_jobs bigint[], p_epochs bigint[],
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
	SELECT q.jid, CASE WHEN kept.job_id IS NULL THEN 'lost'
			   WHEN j.cancel_req THEN 'cancel'
			   ELSE 'ok' END
	FROM q LEFT JOIN kept ON kept.job_id = q.jid LEFT JOIN lych.job j ON j.id = kept.job_id;
END $$;

SET LOCAL ROLE NONE;
