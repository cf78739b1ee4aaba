-- SPDX-License-Identifier: Apache-2.0
-- Who logs in. Each tomb is itself: lych-vessel migrate writes the generation of its secrets when it
-- gives a tomb its login, the vessel reads it to know which bearer is that tomb's now.

-- One of the two calls of `lych-vessel migrate` that need SQL which takes no parameters (the other
-- one is set_generation). They run with the caller's own rights and nobody but the bootstrap
-- superuser may execute them. The caller sends a SCRAM verifier, never a password.
--
-- A tomb has two sessions and, while it is restarted, those that it had. Its errors would go to the
-- server's log with the text of its statements, gigabytes if it likes; what it must be told it is
-- told. Only a superuser can change these settings back.
CREATE FUNCTION lych.set_login(p_role text, p_verifier text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	v_is_tomb boolean := p_role LIKE 'tomb\_%';
BEGIN
	IF p_role !~ '^(lych_vessel|lych_watchdog|tomb_[a-z0-9_]{1,32})$' THEN
		RAISE EXCEPTION 'not a login of Lychgate' USING ERRCODE = '22023';
	END IF;
	IF p_verifier !~ '^SCRAM-SHA-256\$[0-9]+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+$' THEN
		RAISE EXCEPTION 'not a SCRAM verifier' USING ERRCODE = '22023';
	END IF;
	IF v_is_tomb AND NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = p_role) THEN
		EXECUTE 'CREATE ROLE ' || quote_ident(p_role) || ' INHERIT';
	END IF;
	-- A role may change its own settings (ALTER ROLE ... SET): what it left there goes.
	EXECUTE 'ALTER ROLE ' || quote_ident(p_role) || ' RESET ALL';
	EXECUTE 'ALTER ROLE ' || quote_ident(p_role) || ' IN DATABASE ' ||
		quote_ident(current_database()) || ' RESET ALL';
	EXECUTE 'ALTER ROLE ' || quote_ident(p_role) ||
		' LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS' ||
		' CONNECTION LIMIT ' || CASE WHEN v_is_tomb THEN 8 ELSE 16 END ||
		' PASSWORD ' || quote_literal(p_verifier);
	IF v_is_tomb THEN
		EXECUTE 'GRANT lych_tomb TO ' || quote_ident(p_role);
		EXECUTE 'ALTER ROLE ' || quote_ident(p_role) || ' SET temp_file_limit = ''64MB''';
		EXECUTE 'ALTER ROLE ' || quote_ident(p_role) || ' SET log_min_messages = ''fatal''';
		EXECUTE 'ALTER ROLE ' || quote_ident(p_role) || ' SET log_min_error_statement = ''panic''';
	END IF;
END $$;

-- With the caller's own rights, for the bootstrap superuser. true: it is a new one, so sessions that
-- logged in before are of a secret that counts no more. A number that went back would make an old
-- secret good again.
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

-- The vessel compares this with what it was built for, before it does anything else.
CREATE FUNCTION vessel_api.schema_version() RETURNS int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(max(s.version), 0) FROM lych.schema_version s
$$;

SET LOCAL ROLE NONE;
