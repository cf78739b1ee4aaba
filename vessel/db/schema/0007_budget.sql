-- SPDX-License-Identifier: Apache-2.0
-- What the broker may spend, and what it has spent. Three scopes are asked at once: the job, its
-- identity on this day (UTC), and the day as a whole. Five things are counted, always in this
-- order: requests, tokens, money (millionths of the currency of the prices), bytes, denials.
-- The limits are the configuration's and come with each call; -1: there is none.
--
-- A call reserves its estimate in every scope or in none, under the lock of the three rows, before
-- anything is sent; it is settled with what it really took. Commits are not waited for
-- (synchronous_commit off): a row lock held over an fsync would make all calls of a day take turns
-- at the disk. What a crash of the database can lose is the last second's reservations of calls
-- that the vessel settles all the same, for a settlement of a call that is not there books it.
SET LOCAL ROLE lych_owner;

-- Whose job it is. There is one identity until paired devices and agents exist.
ALTER TABLE lych.job ADD COLUMN identity text NOT NULL DEFAULT 'owner'
	CHECK (identity ~ '^[a-z0-9][a-z0-9._-]{0,63}$');

-- Every check of a table is parsed and bound again by each statement that writes to it, which is a
-- quarter of what a reservation costs: so what can be is a type, and the rest one check a table.
CREATE TYPE lych.budget_scope AS ENUM ('job', 'identity', 'day');
CREATE TYPE lych.broker_kind AS ENUM ('ask', 'fetch', 'package');

-- day: '1970-01-01' for a job, whose budget is for its whole life, all attempts together.
CREATE TABLE lych.budget (
	scope lych.budget_scope NOT NULL,
	key text NOT NULL,
	day date NOT NULL,
	spent bigint[] NOT NULL DEFAULT '{0,0,0,0,0}',
	reserved bigint[] NOT NULL DEFAULT '{0,0,0,0,0}',
	PRIMARY KEY (scope, key, day),
	CHECK (array_length(spent, 1) = 5 AND array_length(reserved, 1) = 5 AND
		0 <= ALL (spent) AND 0 <= ALL (reserved))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- A call of the broker. The key is the replay check: a number of an attempt is used once. call_id
-- tells a repeated reservation of the same call (its answer was lost) from a replay.
CREATE TABLE lych.broker_call (
	job_id bigint NOT NULL,
	epoch bigint NOT NULL,
	seq bigint NOT NULL,
	call_id uuid NOT NULL,
	boot uuid NOT NULL,
	kind lych.broker_kind NOT NULL,
	identity text NOT NULL,
	day date NOT NULL,
	est bigint[] NOT NULL,
	actual bigint[],
	at timestamptz NOT NULL DEFAULT clock_timestamp(),
	settled_at timestamptz,
	-- the highest number that was forgotten: this one and all below are used
	is_floor boolean NOT NULL DEFAULT false,
	PRIMARY KEY (job_id, epoch, seq),
	CHECK (seq > 0 AND (settled_at IS NULL) = (actual IS NULL))
);
CREATE INDEX broker_call_open ON lych.broker_call (boot) WHERE settled_at IS NULL;
CREATE INDEX broker_call_settled ON lych.broker_call (settled_at) WHERE settled_at IS NOT NULL;

-- The next six have no settings of their own: they are called by functions that have them, and to
-- set them again costs more than what is done here. The first four the planner may also put in the
-- place of their calls; what their bodies name is bound when they are made.
CREATE FUNCTION lych.budget_today() RETURNS date
LANGUAGE sql STABLE
RETURN (statement_timestamp() AT TIME ZONE 'UTC')::date;

-- The three rows of a call, as keys.
CREATE FUNCTION lych.budget_keys(p_job bigint, p_identity text, p_day date)
RETURNS TABLE (n int, scope lych.budget_scope, key text, day date)
LANGUAGE sql IMMUTABLE BEGIN ATOMIC
	SELECT * FROM (VALUES (0, 'job'::lych.budget_scope, p_job::text, '1970-01-01'::date),
		(1, 'identity', p_identity, p_day), (2, 'day', '', p_day)) AS k;
END;

CREATE FUNCTION lych.add(a bigint[], b bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY[a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5]];

CREATE FUNCTION lych.negative(a bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY[-a[1], -a[2], -a[3], -a[4], -a[5]];

-- Locks the three rows of a call, always in the same order, and makes those that are missing. What
-- is in use there in this order: job, identity, day, five numbers each.
CREATE FUNCTION lych.budget_lock(p_job bigint, p_identity text, p_day date) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
	b record;
	v_used bigint[];
BEGIN
	FOR i IN 1..2 LOOP
		v_used := '{}';
		FOR b IN SELECT x.spent, x.reserved FROM lych.budget x
			JOIN lych.budget_keys(p_job, p_identity, p_day) k
				ON x.scope = k.scope AND x.key = k.key AND x.day = k.day
			ORDER BY k.n FOR UPDATE OF x
		LOOP
			v_used := v_used || lych.add(b.spent, b.reserved);
		END LOOP;
		EXIT WHEN array_length(v_used, 1) = 15;
		INSERT INTO lych.budget (scope, key, day)
		SELECT k.scope, k.key, k.day FROM lych.budget_keys(p_job, p_identity, p_day) k
		ORDER BY k.n ON CONFLICT DO NOTHING;
	END LOOP;
	RETURN v_used;
END $$;

-- Moves spent and reserved of a call's three scopes at once. The caller holds their locks.
CREATE FUNCTION lych.budget_move(p_job bigint, p_identity text, p_day date, p_spent bigint[],
				 p_reserved bigint[])
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	UPDATE lych.budget b
	SET spent = lych.add(b.spent, p_spent), reserved = lych.add(b.reserved, p_reserved)
	FROM lych.budget_keys(p_job, p_identity, p_day) k
	WHERE b.scope = k.scope AND b.key = k.key AND b.day = k.day;
END $$;

-- ok | fenced | replay | over (scope and what say which limit) | what lease_check answers.
-- p_limits: five for the job, five for the identity's day, five for the day.
CREATE FUNCTION vessel_api.budget_reserve(p_boot uuid, p_job bigint, p_epoch bigint, p_token uuid,
	p_seq bigint, p_call uuid, p_kind text, p_est bigint[], p_limits bigint[])
RETURNS TABLE (answer text, scope text, what int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
	v_day date := lych.budget_today();
	v_identity text;
	v_is_owner boolean;
	v_lease text;
	v_is_same boolean;
	v_used bigint[];
BEGIN
	IF array_length(p_est, 1) IS DISTINCT FROM 5 OR array_length(p_limits, 1) IS DISTINCT FROM 15
		OR (0 <= ALL (p_est)) IS NOT TRUE OR p_est[5] <> 0 OR array_position(p_limits, NULL) IS NOT NULL
	THEN
		RAISE EXCEPTION 'budget_reserve: not five numbers, or not fifteen' USING ERRCODE = '22023';
	END IF;
	SELECT EXISTS (SELECT 1 FROM lych.vessel_owner o WHERE o.boot = p_boot),
		vessel_api.lease_check(p_job, p_epoch, p_token, true),
		(SELECT j.identity FROM lych.job j WHERE j.id = p_job)
		INTO v_is_owner, v_lease, v_identity;
	IF NOT v_is_owner OR v_lease <> 'ok' THEN
		RETURN QUERY SELECT CASE WHEN v_is_owner THEN v_lease ELSE 'fenced' END, '', 0;
		RETURN;
	END IF;
	PERFORM set_config('synchronous_commit', 'off', true);
	v_used := lych.budget_lock(p_job, v_identity, v_day);
	-- Under the lock of the job's row nobody else reserves for this job.
	SELECT c.seq = p_seq AND c.call_id = p_call INTO v_is_same FROM lych.broker_call c
	WHERE c.job_id = p_job AND c.epoch = p_epoch AND c.seq >= p_seq
		AND (c.seq = p_seq OR c.is_floor)
	ORDER BY c.seq LIMIT 1;
	IF FOUND THEN
		RETURN QUERY SELECT CASE WHEN v_is_same THEN 'ok' ELSE 'replay' END, '', 0;
		RETURN;
	END IF;
	-- A limit of denials is reached by the last one that is allowed; the others are not to be
	-- passed by this call.
	FOR i IN 1..15 LOOP
		IF p_limits[i] >= 0
			AND v_used[i] + p_est[(i - 1) % 5 + 1] + (i % 5 = 0)::int > p_limits[i]
		THEN
			RETURN QUERY SELECT 'over', (ARRAY['job', 'identity', 'day'])[(i + 4) / 5],
				(i - 1) % 5 + 1;
			RETURN;
		END IF;
	END LOOP;
	PERFORM lych.budget_move(p_job, v_identity, v_day, '{0,0,0,0,0}', p_est);
	INSERT INTO lych.broker_call (job_id, epoch, seq, call_id, boot, kind, identity, day, est)
	VALUES (p_job, p_epoch, p_seq, p_call, p_boot, p_kind::lych.broker_kind, v_identity, v_day, p_est);
	RETURN QUERY SELECT 'ok', '', 0;
END $$;

-- What the call took. settled | already. One that is not there was lost with the database's last
-- moments: it is booked all the same, once.
CREATE FUNCTION vessel_api.budget_settle(p_boot uuid, p_job bigint, p_epoch bigint, p_seq bigint,
					 p_call uuid, p_kind text, p_actual bigint[])
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
	c lych.broker_call;
	v_identity text;
BEGIN
	IF array_length(p_actual, 1) IS DISTINCT FROM 5 OR (0 <= ALL (p_actual)) IS NOT TRUE THEN
		RAISE EXCEPTION 'budget_settle: not five numbers' USING ERRCODE = '22023';
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
		c.est := '{0,0,0,0,0}';
	END IF;
	PERFORM lych.budget_lock(p_job, c.identity, c.day);
	INSERT INTO lych.broker_call AS x (job_id, epoch, seq, call_id, boot, kind, identity, day,
					   est, actual, settled_at)
	VALUES (p_job, p_epoch, p_seq, p_call, p_boot, p_kind::lych.broker_kind, c.identity, c.day,
		c.est, p_actual, clock_timestamp())
	ON CONFLICT (job_id, epoch, seq) DO UPDATE
		SET actual = excluded.actual, settled_at = excluded.settled_at
		WHERE x.settled_at IS NULL;
	IF NOT FOUND THEN
		RETURN 'already';
	END IF;
	PERFORM lych.budget_move(p_job, c.identity, c.day, p_actual, lych.negative(c.est));
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
		IF vessel_api.budget_settle(p_boot, c.job_id, c.epoch, c.seq, c.call_id, c.kind::text, c.est)
			= 'settled' THEN
			v_n := v_n + 1;
		END IF;
	END LOOP;
	IF v_n > 0 THEN
		PERFORM lych.audit('budget.recovered', NULL, NULL, jsonb_build_object('calls', v_n));
	END IF;
	RETURN v_n;
END $$;

-- A refused attempt of a job that holds its lease. The denials of the job so far.
CREATE FUNCTION vessel_api.budget_denied(p_job bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
	v_day date := lych.budget_today();
	v_identity text;
BEGIN
	PERFORM set_config('synchronous_commit', 'off', true);
	SELECT j.identity INTO v_identity FROM lych.job j WHERE j.id = p_job;
	IF NOT FOUND THEN
		RETURN 0;
	END IF;
	PERFORM lych.budget_lock(p_job, v_identity, v_day);
	PERFORM lych.budget_move(p_job, v_identity, v_day, '{0,0,0,0,1}', '{0,0,0,0,0}');
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

-- The books balance: what is reserved is what open calls reserved.
ALTER FUNCTION lych.invariants() RENAME TO queue_invariants;
CREATE FUNCTION lych.invariants() RETURNS TABLE (name text, bad bigint)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT q.name, q.bad FROM lych.queue_invariants() q
	UNION ALL
	SELECT 'budget_reserved_is_what_open_calls_reserved', count(*) FROM lych.budget b
	CROSS JOIN generate_series(1, 5) AS w (i)
	WHERE b.reserved[w.i] <> (
		SELECT coalesce(sum(c.est[w.i]), 0) FROM lych.broker_call c
		WHERE c.settled_at IS NULL AND CASE b.scope
			WHEN 'job' THEN c.job_id = b.key::bigint
			WHEN 'identity' THEN c.identity = b.key AND c.day = b.day
			ELSE c.day = b.day END)
$$;

SET LOCAL ROLE NONE;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA vessel_api, lych FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
	vessel_api.budget_reserve(uuid, bigint, bigint, uuid, bigint, uuid, text, bigint[], bigint[]),
	vessel_api.budget_settle(uuid, bigint, bigint, bigint, uuid, text, bigint[]),
	vessel_api.budget_recover(uuid),
	vessel_api.budget_denied(bigint),
	vessel_api.broker_lease(bigint, bigint, uuid, boolean),
	vessel_api.broker_ended(bigint[], bigint[], uuid[]),
	vessel_api.budget_show(bigint, text),
	vessel_api.budget_sweep(int) TO lych_vessel;
