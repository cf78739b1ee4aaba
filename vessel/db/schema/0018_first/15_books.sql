-- SPDX-License-Identifier: Apache-2.0
-- The books of the broker: settled, recovered, shown, forgotten; and whose call it is.
SET LOCAL ROLE lych_owner;

-- What the call took, and back goes what is reserved by then: it may have grown. settled | already.
-- One that is not there was lost with the database's last moments: it is booked all the same, once.
CREATE FUNCTION vessel_api.budget_settle(p_boot uuid, p_job bigint, p_epoch bigint,
	p_seq bigint, p_call uuid, p_kind text, p_actual bigint[])
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
	c lych.broker_call;
	v_identity text;
	v_estimate bigint[];
BEGIN
	IF array_length(p_actual, 1) IS DISTINCT FROM 6 OR (0 <= ALL (p_actual)) IS NOT TRUE THEN
		RAISE EXCEPTION 'budget_settle: not six numbers' USING ERRCODE = '22023';
	END IF;
	PERFORM set_config('synchronous_commit', 'off', true);
	SELECT * INTO c FROM lych.broker_call x
	WHERE x.job_id = p_job AND x.epoch = p_epoch AND x.seq = p_seq;
	IF FOUND AND (c.call_id <> p_call OR c.settled_at IS NOT NULL) THEN
		RETURN 'already';
	END IF;
	IF NOT FOUND THEN
		SELECT j.identity INTO v_identity FROM lych.job j WHERE j.id = p_job;
		IF NOT FOUND THEN
			RETURN 'already'; -- the job is forgotten, and its days with it
		END IF;
		c.identity := v_identity;
		c.day := lych.budget_today();
		c.estimate := '{0,0,0,0,0,0}';
	END IF;
	PERFORM lych.budget_lock(p_job, c.identity, c.day);
	INSERT INTO lych.broker_call AS x (job_id, epoch, seq, call_id, boot, kind, identity, day,
					   estimate, actual, settled_at)
	VALUES (p_job, p_epoch, p_seq, p_call, p_boot, p_kind::lych.broker_kind, c.identity, c.day,
		c.estimate, p_actual, clock_timestamp())
	ON CONFLICT (job_id, epoch, seq) DO UPDATE
		SET actual = excluded.actual, settled_at = excluded.settled_at
		WHERE x.settled_at IS NULL
	RETURNING x.estimate INTO v_estimate;
	IF NOT FOUND THEN
		RETURN 'already';
	END IF;
	PERFORM lych.budget_move(p_job, c.identity, c.day, p_actual, lych.negative(v_estimate));
	RETURN 'settled';
END $$;

-- After a start: what another vessel left open is booked at its estimate, for nobody knows what
-- became of it. How many there were; -1: the caller does not own the database.
CREATE FUNCTION vessel_api.budget_recover(p_boot uuid) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	c lych.broker_call;
	v_n int := 0;
BEGIN
	IF NOT EXISTS (SELECT 1 FROM lych.vessel_owner o WHERE o.boot = p_boot) THEN
		RETURN -1;
	END IF;
	FOR c IN SELECT * FROM lych.broker_call x WHERE x.settled_at IS NULL AND x.boot <> p_boot
		ORDER BY x.job_id, x.epoch, x.seq
	LOOP
		IF vessel_api.budget_settle(p_boot, c.job_id, c.epoch, c.seq, c.call_id, c.kind::text, c.estimate)
			= 'settled' THEN
			v_n := v_n + 1;
		END IF;
	END LOOP;
	IF v_n > 0 THEN
		PERFORM lych.audit('budget.recovered', NULL, NULL, jsonb_build_object('calls', v_n));
	END IF;
	RETURN v_n;
END $$;

-- A refused attempt of a job that holds its lease. The denials of the job so far. p_most: the job's
-- limit, -1 for none. What a job tries beyond it is booked to the job alone: all its calls are
-- refused by then, and it is not to use up what other jobs of the identity and of the day may try.
CREATE FUNCTION vessel_api.budget_denied(p_job bigint, p_most bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
	v_day date := lych.budget_today();
	v_identity text;
	v_used bigint[];
BEGIN
	IF (p_most >= -1) IS NOT TRUE THEN
		RAISE EXCEPTION 'budget_denied: not a limit' USING ERRCODE = '22023';
	END IF;
	PERFORM set_config('synchronous_commit', 'off', true);
	SELECT j.identity INTO v_identity FROM lych.job j WHERE j.id = p_job;
	IF NOT FOUND THEN
		RETURN 0;
	END IF;
	v_used := lych.budget_lock(p_job, v_identity, v_day);
	IF p_most >= 0 AND v_used[5] >= p_most THEN
		UPDATE lych.budget b SET spent = lych.add(b.spent, '{0,0,0,0,1,0}')
		WHERE b.scope = 'job' AND b.key = p_job::text AND b.day = '1970-01-01';
	ELSE
		PERFORM lych.budget_move(p_job, v_identity, v_day, '{0,0,0,0,1,0}', '{0,0,0,0,0,0}');
	END IF;
	RETURN (SELECT b.spent[5] FROM lych.budget b
		WHERE b.scope = 'job' AND b.key = p_job::text AND b.day = '1970-01-01');
END $$;

-- Who a lease belongs to and what it may do: lease_check's answer (strict), the job's identity,
-- and, when asked for (the specification is parsed for it), its egress mode, with "+deps" behind it
-- when it names packages that are to be there before it begins.
CREATE FUNCTION vessel_api.broker_lease(p_job bigint, p_epoch bigint, p_token uuid, p_spec boolean)
RETURNS TABLE (answer text, identity text, egress text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
	v_answer text := vessel_api.lease_check(p_job, p_epoch, p_token, true);
BEGIN
	IF v_answer <> 'ok' THEN
		RETURN QUERY SELECT v_answer, '', '';
		RETURN;
	END IF;
	RETURN QUERY SELECT v_answer, j.identity, CASE WHEN p_spec THEN coalesce(
		(SELECT coalesce(s.spec ->> 'egress', 'none') ||
			CASE WHEN s.spec -> 'deps' IS NULL THEN '' ELSE '+deps' END
		 FROM (SELECT lych.json_or_null(p.body) AS spec FROM lych.payload p
		       WHERE p.job_id = p_job) s), 'none') ELSE '' END
	FROM lych.job j WHERE j.id = p_job;
END $$;

-- Of these leases, the jobs whose lease no longer stands (places in the arrays, from 1).
CREATE FUNCTION vessel_api.broker_ended(p_jobs bigint[], p_epochs bigint[], p_tokens uuid[])
RETURNS SETOF int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
	SELECT x.i::int FROM unnest(p_jobs, p_epochs, p_tokens) WITH ORDINALITY AS x (j, e, t, i)
	WHERE vessel_api.lease_check(x.j, x.e, x.t, true) <> 'ok'
$$;

-- The books: a job's, every identity's and the day's own for the day of p_day (NULL: today).
CREATE FUNCTION vessel_api.budget_show(p_job bigint, p_day text)
RETURNS TABLE (scope text, key text, day text, spent bigint[], reserved bigint[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
	SELECT b.scope::text, b.key, b.day::text, b.spent, b.reserved FROM lych.budget b
	WHERE b.scope = 'job' AND b.key = p_job::text
	UNION ALL (
	SELECT b.scope::text, b.key, b.day::text, b.spent, b.reserved FROM lych.budget b
	WHERE b.scope IN ('identity', 'day') AND b.day = coalesce(p_day::date, lych.budget_today())
	ORDER BY b.scope, b.key LIMIT 1000)
$$;

-- Forget calls: all of an attempt that has ended, and of one that runs what was settled a minute
-- ago, but for the highest number, which stands for those below it. Days are kept for a year, a
-- job's books as long as the job.
CREATE FUNCTION vessel_api.budget_sweep(p_limit int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	v_before timestamptz := clock_timestamp() - interval '1 minute';
	v_n int;
BEGIN
	PERFORM set_config('synchronous_commit', 'off', true);
	WITH old AS MATERIALIZED (
		SELECT c.job_id, c.epoch, c.seq FROM lych.broker_call c
		WHERE c.settled_at < v_before AND NOT c.is_floor
		ORDER BY c.settled_at LIMIT least(greatest(p_limit, 1), 10000) FOR UPDATE SKIP LOCKED),
	top AS (
		SELECT o.job_id, o.epoch, max(o.seq) AS seq FROM old o
		JOIN lych.lease l ON l.job_id = o.job_id AND l.epoch = o.epoch
		GROUP BY o.job_id, o.epoch),
	raised AS (
		UPDATE lych.broker_call c SET is_floor = true FROM top t
		WHERE c.job_id = t.job_id AND c.epoch = t.epoch AND c.seq = t.seq
		RETURNING c.job_id, c.epoch, c.seq)
	DELETE FROM lych.broker_call c USING old o
	WHERE c.job_id = o.job_id AND c.epoch = o.epoch AND c.seq = o.seq
		AND NOT EXISTS (SELECT 1 FROM top r WHERE r.job_id = c.job_id AND r.epoch = c.epoch
				AND r.seq = c.seq);
	GET DIAGNOSTICS v_n = ROW_COUNT;
	-- a floor below another one, or of an attempt that has ended, says nothing more
	DELETE FROM lych.broker_call c WHERE c.is_floor AND c.settled_at < v_before AND (
		NOT EXISTS (SELECT 1 FROM lych.lease l WHERE l.job_id = c.job_id AND l.epoch = c.epoch)
		OR EXISTS (SELECT 1 FROM lych.broker_call x WHERE x.job_id = c.job_id
			   AND x.epoch = c.epoch AND x.seq > c.seq AND x.is_floor));
	DELETE FROM lych.budget b WHERE b.scope <> 'job' AND b.day < lych.budget_today() - 366;
	DELETE FROM lych.budget b WHERE b.scope = 'job'
		AND NOT EXISTS (SELECT 1 FROM lych.job j WHERE j.id = b.key::bigint)
		AND NOT EXISTS (SELECT 1 FROM lych.broker_call c WHERE c.job_id = b.key::bigint);
	RETURN v_n;
END $$;

SET LOCAL ROLE NONE;
