-- SPDX-License-Identifier: Apache-2.0
-- What the broker may spend, and what it has spent. Three scopes are asked at once: the job, its
-- identity on this day (UTC), and the day as a whole. Six things are counted, always in this order:
-- requests, tokens, money (millionths of the currency of the prices), bytes, denials, packages (what
-- is asked of registries, which is no request).
-- The limits are the configuration's and come with each call; -1: there is none.
--
-- A call has a base, which it needs, and units beyond it: for a model tokens of its answer, each
-- with its part of the tokens and of the money. It is given as many units as the three scopes cover
-- between the least that is of use to it and the most that it asks for, and its caller writes just
-- that into the request. The price of a unit is in millionths, for a token costs less than one of
-- what money is counted in. What was reserved of bytes grows while a reply comes.
--
-- A call reserves in every scope or in none, under the lock of the three rows, before anything is
-- sent; it is settled with what it really took. Commits are not waited for (synchronous_commit off):
-- a row lock held over an fsync would make all calls of a day take turns at the disk. What a crash
-- of the database can lose is the last second's reservations of calls that the vessel settles all
-- the same, for a settlement of a call that is not there books it.
SET LOCAL ROLE lych_owner;

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

-- A provider may say that it took any number: what is added up stays a number.
CREATE FUNCTION lych.add(a bigint[], b bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY[
	least(a[1]::numeric + b[1], 9000000000000000000)::bigint,
	least(a[2]::numeric + b[2], 9000000000000000000)::bigint,
	least(a[3]::numeric + b[3], 9000000000000000000)::bigint,
	least(a[4]::numeric + b[4], 9000000000000000000)::bigint,
	least(a[5]::numeric + b[5], 9000000000000000000)::bigint,
	least(a[6]::numeric + b[6], 9000000000000000000)::bigint];

CREATE FUNCTION lych.negative(a bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY[-a[1], -a[2], -a[3], -a[4], -a[5], -a[6]];

-- Locks the three rows of a call, always in the same order, and makes those that are missing. What
-- is in use there in this order: job, identity, day, six numbers each.
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
		EXIT WHEN array_length(v_used, 1) = 18;
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

-- ok (with the units that were granted) | fenced | replay | over (scope and what say which limit) |
-- what lease_check answers. p_limits: six for the job, six for the identity's day, six for the day.
CREATE FUNCTION vessel_api.budget_reserve(p_boot uuid, p_job bigint, p_epoch bigint, p_token uuid,
	p_seq bigint, p_call uuid, p_kind text, p_base bigint[], p_unit bigint[], p_least bigint,
	p_most bigint, p_limits bigint[])
RETURNS TABLE (answer text, scope text, what int, units bigint)
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
	v_units bigint := p_most;
	v_left numeric;
	v_estimate bigint[];
BEGIN
	IF array_length(p_base, 1) IS DISTINCT FROM 6 OR array_length(p_unit, 1) IS DISTINCT FROM 6
		OR array_length(p_limits, 1) IS DISTINCT FROM 18
		OR (0 <= ALL (p_base)) IS NOT TRUE OR (0 <= ALL (p_unit)) IS NOT TRUE
		OR p_base[5] <> 0 OR p_unit[5] <> 0 OR array_position(p_limits, NULL) IS NOT NULL
		OR (p_least BETWEEN 0 AND p_most) IS NOT TRUE
	THEN
		RAISE EXCEPTION 'budget_reserve: not six numbers, or not eighteen' USING ERRCODE = '22023';
	END IF;
	SELECT EXISTS (SELECT 1 FROM lych.vessel_owner o WHERE o.boot = p_boot),
		vessel_api.lease_check(p_job, p_epoch, p_token, true),
		(SELECT j.identity FROM lych.job j WHERE j.id = p_job)
		INTO v_is_owner, v_lease, v_identity;
	IF NOT v_is_owner OR v_lease <> 'ok' THEN
		RETURN QUERY SELECT CASE WHEN v_is_owner THEN v_lease ELSE 'fenced' END, '', 0, 0::bigint;
		RETURN;
	END IF;
	PERFORM set_config('synchronous_commit', 'off', true);
	v_used := lych.budget_lock(p_job, v_identity, v_day);
	-- Who waited for the locks may be of a vessel that ended meanwhile. The next one books what is
	-- open of its predecessors every second, so what passes here all the same is not lost.
	IF NOT EXISTS (SELECT 1 FROM lych.vessel_owner o WHERE o.boot = p_boot) THEN
		RETURN QUERY SELECT 'fenced', '', 0, 0::bigint;
		RETURN;
	END IF;
	-- Under the lock of the job's row nobody else reserves for this job.
	SELECT c.seq = p_seq AND c.call_id = p_call, c.units INTO v_is_same, v_units
	FROM lych.broker_call c
	WHERE c.job_id = p_job AND c.epoch = p_epoch AND c.seq >= p_seq
		AND (c.seq = p_seq OR c.is_floor)
	ORDER BY c.seq LIMIT 1;
	IF FOUND THEN
		RETURN QUERY SELECT CASE WHEN v_is_same THEN 'ok' ELSE 'replay' END, '', 0, v_units;
		RETURN;
	END IF;
	v_units := p_most;
	-- A limit of denials is reached by the last one that is allowed; the others are not to be
	-- passed by this call.
	FOR i IN 1..18 LOOP
		CONTINUE WHEN p_limits[i] < 0;
		v_left := p_limits[i]::numeric - v_used[i] - p_base[(i - 1) % 6 + 1] - (i % 6 = 5)::int;
		IF v_left >= 0 AND p_unit[(i - 1) % 6 + 1] > 0 THEN
			v_units := least(v_units, div(v_left * 1000000, p_unit[(i - 1) % 6 + 1]));
		END IF;
		IF v_left < 0 OR v_units < p_least THEN
			RETURN QUERY SELECT 'over', (ARRAY['job', 'identity', 'day'])[(i + 5) / 6],
				(i - 1) % 6 + 1, 0::bigint;
			RETURN;
		END IF;
	END LOOP;
	SELECT array_agg(p_base[i] + ceil(p_unit[i]::numeric * v_units / 1000000)::bigint ORDER BY i)
		INTO v_estimate FROM generate_series(1, 6) AS g (i);
	PERFORM lych.budget_move(p_job, v_identity, v_day, '{0,0,0,0,0,0}', v_estimate);
	INSERT INTO lych.broker_call (job_id, epoch, seq, call_id, boot, kind, identity, day, estimate, units)
	VALUES (p_job, p_epoch, p_seq, p_call, p_boot, p_kind::lych.broker_kind, v_identity, v_day, v_estimate,
		v_units);
	RETURN QUERY SELECT 'ok', '', 0, v_units;
END $$;

-- The reply is longer than what was reserved for it: p_bytes are wanted altogether. How many are
-- reserved now, which may be fewer, or no more than before; -1: the call is none of the caller's, or
-- settled. The limits as above.
CREATE FUNCTION vessel_api.budget_extend(p_boot uuid, p_job bigint, p_epoch bigint, p_seq bigint,
					 p_call uuid, p_bytes bigint, p_limits bigint[])
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
	c lych.broker_call;
	v_used bigint[];
	v_more numeric;
BEGIN
	IF array_length(p_limits, 1) IS DISTINCT FROM 18 OR array_position(p_limits, NULL) IS NOT NULL
		OR (p_bytes >= 0) IS NOT TRUE
	THEN
		RAISE EXCEPTION 'budget_extend: not a number, or not eighteen' USING ERRCODE = '22023';
	END IF;
	PERFORM set_config('synchronous_commit', 'off', true);
	SELECT * INTO c FROM lych.broker_call x
	WHERE x.job_id = p_job AND x.epoch = p_epoch AND x.seq = p_seq;
	IF NOT FOUND OR c.boot <> p_boot OR c.call_id <> p_call THEN
		RETURN -1;
	END IF;
	v_used := lych.budget_lock(p_job, c.identity, c.day);
	-- nobody settles it, or extends it, without these locks
	SELECT * INTO c FROM lych.broker_call x
	WHERE x.job_id = p_job AND x.epoch = p_epoch AND x.seq = p_seq AND x.settled_at IS NULL;
	IF NOT FOUND THEN
		RETURN -1;
	END IF;
	v_more := p_bytes::numeric - c.estimate[4];
	FOR i IN 0..2 LOOP
		IF p_limits[i * 6 + 4] >= 0 THEN
			v_more := least(v_more, p_limits[i * 6 + 4]::numeric - v_used[i * 6 + 4]);
		END IF;
	END LOOP;
	IF v_more <= 0 THEN
		RETURN c.estimate[4];
	END IF;
	PERFORM lych.budget_move(p_job, c.identity, c.day, '{0,0,0,0,0,0}',
				 ARRAY[0, 0, 0, v_more::bigint, 0, 0]);
	UPDATE lych.broker_call x SET estimate[4] = c.estimate[4] + v_more::bigint
	WHERE x.job_id = p_job AND x.epoch = p_epoch AND x.seq = p_seq;
	RETURN c.estimate[4] + v_more::bigint;
END $$;

SET LOCAL ROLE NONE;
