-- SPDX-License-Identifier: Apache-2.0
-- Each tomb is itself: the generation of its secrets. lych-vessel migrate writes it when it gives
-- a tomb its login, the vessel reads it to know which bearer is that tomb's now.

SET LOCAL ROLE lych_owner;
CREATE TABLE lych.tomb (
	name name PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9_]{0,31}$'),
	generation bigint NOT NULL CHECK (generation > 0),
	since timestamptz NOT NULL DEFAULT clock_timestamp()
);
SET LOCAL ROLE NONE;

-- As lych.set_login: with the caller's own rights, for the bootstrap superuser. true: it is a new
-- one, so sessions that logged in before are of a secret that counts no more. A number that went
-- back would make an old secret good again.
CREATE FUNCTION lych.set_generation(p_tomb text, p_generation bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	v_have bigint;
BEGIN
	SELECT t.generation INTO v_have FROM lych.tomb t WHERE t.name = p_tomb FOR UPDATE;
	IF v_have > p_generation THEN
		RAISE EXCEPTION 'generation % of % is older than %, which the database has',
			p_generation, p_tomb, v_have USING ERRCODE = '22023';
	END IF;
	IF v_have = p_generation THEN
		RETURN false;
	END IF;
	INSERT INTO lych.tomb (name, generation) VALUES (p_tomb, p_generation)
	ON CONFLICT (name) DO UPDATE SET generation = excluded.generation, since = clock_timestamp();
	PERFORM lych.hint();
	RETURN true;
END $$;

SET LOCAL ROLE lych_owner;
CREATE FUNCTION vessel_api.tombs() RETURNS TABLE (name text, generation bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT t.name::text, t.generation FROM lych.tomb t ORDER BY t.name LIMIT 64
$$;

-- Whose attempt this is; no row: job, epoch and token do not belong together. It never changes.
CREATE FUNCTION vessel_api.lease_owner(p_job bigint, p_epoch bigint, p_token uuid)
RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT a.owner::text FROM lych.attempt a
	WHERE a.job_id = p_job AND a.epoch = p_epoch AND a.token = p_token
$$;
SET LOCAL ROLE NONE;

REVOKE ALL ON FUNCTION lych.set_generation(text, bigint), vessel_api.tombs(),
	vessel_api.lease_owner(bigint, bigint, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION vessel_api.tombs(), vessel_api.lease_owner(bigint, bigint, uuid)
	TO lych_vessel;
