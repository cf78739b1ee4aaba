-- SPDX-License-Identifier: Apache-2.0
-- Budgets that hold: a reservation takes as much as is left, and what was reserved of bytes grows
-- while a reply comes.
--
-- A call has a base, which it needs, and units beyond it: for a model tokens of its answer, each
-- with its part of the tokens and of the money. It is given as many units as the three scopes cover
-- between the least that is of use to it and the most that it asks for, and its caller writes just
-- that into the request. The price of a unit is in millionths, for a token costs less than one of
-- what money is counted in.
SET LOCAL ROLE lych_owner;

ALTER TABLE lych.broker_call ADD COLUMN units bigint NOT NULL DEFAULT 0;

-- A provider may say that it took any number: what is added up stays a number.
CREATE OR REPLACE FUNCTION lych.add(a bigint[], b bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY[
	least(a[1]::numeric + b[1], 9000000000000000000)::bigint,
	least(a[2]::numeric + b[2], 9000000000000000000)::bigint,
	least(a[3]::numeric + b[3], 9000000000000000000)::bigint,
	least(a[4]::numeric + b[4], 9000000000000000000)::bigint,
	least(a[5]::numeric + b[5], 9000000000000000000)::bigint];

DROP FUNCTION vessel_api.budget_reserve(uuid, bigint, bigint, uuid, bigint, uuid, text, bigint[],
					bigint[]);

-- ok (with the units that were granted) | fenced | replay | over (scope and what say which limit) |
-- what lease_check answers. p_limits: five for the job, five for the identity's day, five for the
-- day.
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
	v_est bigint[];
BEGIN
	IF array_length(p_base, 1) IS DISTINCT FROM 5 OR array_length(p_unit, 1) IS DISTINCT FROM 5
		OR array_length(p_limits, 1) IS DISTINCT FROM 15
		OR (0 <= ALL (p_base)) IS NOT TRUE OR (0 <= ALL (p_unit)) IS NOT TRUE
		OR p_base[5] <> 0 OR p_unit[5] <> 0 OR array_position(p_limits, NULL) IS NOT NULL
		OR (p_least BETWEEN 0 AND p_most) IS NOT TRUE
	THEN
		RAISE EXCEPTION 'budget_reserve: not five numbers, or not fifteen' USING ERRCODE = '22023';
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
	FOR i IN 1..15 LOOP
		CONTINUE WHEN p_limits[i] < 0;
		v_left := p_limits[i]::numeric - v_used[i] - p_base[(i - 1) % 5 + 1] - (i % 5 = 0)::int;
		IF v_left >= 0 AND p_unit[(i - 1) % 5 + 1] > 0 THEN
			v_units := least(v_units, div(v_left * 1000000, p_unit[(i - 1) % 5 + 1]));
		END IF;
		IF v_left < 0 OR v_units < p_least THEN
			RETURN QUERY SELECT 'over', (ARRAY['job', 'identity', 'day'])[(i + 4) / 5],
				(i - 1) % 5 + 1, 0::bigint;
			RETURN;
		END IF;
	END LOOP;
	SELECT array_agg(p_base[i] + ceil(p_unit[i]::numeric * v_units / 1000000)::bigint ORDER BY i)
		INTO v_est FROM generate_series(1, 5) AS g (i);
	PERFORM lych.budget_move(p_job, v_identity, v_day, '{0,0,0,0,0}', v_est);
	INSERT INTO lych.broker_call (job_id, epoch, seq, call_id, boot, kind, identity, day, est, units)
	VALUES (p_job, p_epoch, p_seq, p_call, p_boot, p_kind::lych.broker_kind, v_identity, v_day, v_est,
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
	IF array_length(p_limits, 1) IS DISTINCT FROM 15 OR array_position(p_limits, NULL) IS NOT NULL
		OR (p_bytes >= 0) IS NOT TRUE
	THEN
		RAISE EXCEPTION 'budget_extend: not a number, or not fifteen' USING ERRCODE = '22023';
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
	v_more := p_bytes::numeric - c.est[4];
	FOR i IN 0..2 LOOP
		IF p_limits[i * 5 + 4] >= 0 THEN
			v_more := least(v_more, p_limits[i * 5 + 4]::numeric - v_used[i * 5 + 4]);
		END IF;
	END LOOP;
	IF v_more <= 0 THEN
		RETURN c.est[4];
	END IF;
	PERFORM lych.budget_move(p_job, c.identity, c.day, '{0,0,0,0,0}',
				 ARRAY[0, 0, 0, v_more::bigint, 0]);
	UPDATE lych.broker_call x SET est[4] = c.est[4] + v_more::bigint
	WHERE x.job_id = p_job AND x.epoch = p_epoch AND x.seq = p_seq;
	RETURN c.est[4] + v_more::bigint;
END $$;

-- As it was, but that what goes back is what is reserved by then: it may have grown.
CREATE OR REPLACE FUNCTION vessel_api.budget_settle(p_boot uuid, p_job bigint, p_epoch bigint,
	p_seq bigint, p_call uuid, p_kind text, p_actual bigint[])
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
	c lych.broker_call;
	v_identity text;
	v_est bigint[];
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
		WHERE x.settled_at IS NULL
	RETURNING x.est INTO v_est;
	IF NOT FOUND THEN
		RETURN 'already';
	END IF;
	PERFORM lych.budget_move(p_job, c.identity, c.day, p_actual, lych.negative(v_est));
	RETURN 'settled';
END $$;

SET LOCAL ROLE NONE;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA vessel_api, lych FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
	vessel_api.budget_reserve(uuid, bigint, bigint, uuid, bigint, uuid, text, bigint[], bigint[],
				  bigint, bigint, bigint[]),
	vessel_api.budget_extend(uuid, bigint, bigint, bigint, uuid, bigint, bigint[]) TO lych_vessel;
