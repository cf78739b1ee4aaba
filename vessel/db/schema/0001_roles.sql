-- SPDX-License-Identifier: Apache-2.0
-- Roles, schemas, and what PostgreSQL grants to everybody by default and a worker must not have.
-- Roles are cluster-wide; everything else here holds for this database only.

DO $$
DECLARE
	r text;
BEGIN
	FOREACH r IN ARRAY ARRAY['lych_owner', 'lych_tomb', 'lych_vessel', 'lych_watchdog'] LOOP
		IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = r) THEN
			EXECUTE 'CREATE ROLE ' || quote_ident(r) || ' NOLOGIN NOINHERIT';
		END IF;
	END LOOP;
END $$;

-- A tomb's login inherits EXECUTE from the group; the watchdog uses its two memberships.
ALTER ROLE lych_watchdog INHERIT;
GRANT pg_signal_backend, pg_read_all_stats TO lych_watchdog;

REVOKE ALL ON SCHEMA public FROM PUBLIC;
-- Without USAGE on a procedural language nobody can run DO blocks or create functions.
REVOKE USAGE ON LANGUAGE plpgsql, sql FROM PUBLIC;
GRANT USAGE ON LANGUAGE plpgsql, sql TO lych_owner;

-- Functions of pg_catalog that any role may call by default:
--   advisory locks are per database, so a tomb could hold the vessel's;
--   large objects, logical messages and exported snapshots fill the disk;
--   pg_sleep holds a transaction open for nothing.
DO $$
DECLARE
	f regprocedure;
BEGIN
	FOR f IN
		SELECT p.oid::regprocedure FROM pg_proc p
		WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f'
			AND (p.proname ~ '^pg_(try_)?advisory_' OR p.proname ~ '^lo_'
			     OR p.proname IN ('loread', 'lowrite', 'pg_logical_emit_message',
					      'pg_export_snapshot', 'pg_sleep', 'pg_sleep_for',
					      'pg_sleep_until'))
	LOOP
		EXECUTE 'REVOKE ALL ON FUNCTION ' || f || ' FROM PUBLIC';
	END LOOP;
END $$;

ALTER SCHEMA lych OWNER TO lych_owner;
GRANT SELECT ON lych.schema_version TO lych_owner;
CREATE SCHEMA tomb_api AUTHORIZATION lych_owner;
CREATE SCHEMA vessel_api AUTHORIZATION lych_owner;
CREATE SCHEMA watch_api AUTHORIZATION lych_owner;
REVOKE ALL ON SCHEMA lych, tomb_api, vessel_api, watch_api FROM PUBLIC;
GRANT USAGE ON SCHEMA tomb_api TO lych_tomb;
GRANT USAGE ON SCHEMA vessel_api TO lych_vessel;
GRANT USAGE ON SCHEMA watch_api TO lych_watchdog;

-- New functions are nobody's until they are granted; both creators of functions are covered.
ALTER DEFAULT PRIVILEGES FOR ROLE lych_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE CURRENT_USER REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE lych_owner REVOKE USAGE ON TYPES FROM PUBLIC;

-- The two calls of `lych-vessel migrate` that need SQL which takes no parameters. They run
-- with the caller's own rights and nobody but the bootstrap superuser may execute them. The
-- caller sends a SCRAM verifier, never a password.
CREATE FUNCTION lych.set_login(p_role text, p_verifier text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF p_role !~ '^(lych_vessel|lych_watchdog|tomb_[a-z0-9_]{1,32})$' THEN
		RAISE EXCEPTION 'not a login of Lychgate' USING ERRCODE = '22023';
	END IF;
	IF p_verifier !~ '^SCRAM-SHA-256\$[0-9]+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+$' THEN
		RAISE EXCEPTION 'not a SCRAM verifier' USING ERRCODE = '22023';
	END IF;
	IF p_role LIKE 'tomb\_%' AND NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = p_role) THEN
		EXECUTE 'CREATE ROLE ' || quote_ident(p_role) || ' INHERIT';
	END IF;
	-- A role may change its own settings (ALTER ROLE ... SET): what it left there goes.
	EXECUTE 'ALTER ROLE ' || quote_ident(p_role) || ' RESET ALL';
	EXECUTE 'ALTER ROLE ' || quote_ident(p_role) || ' IN DATABASE ' ||
		quote_ident(current_database()) || ' RESET ALL';
	EXECUTE 'ALTER ROLE ' || quote_ident(p_role) ||
		' LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS' ||
		' CONNECTION LIMIT 16 PASSWORD ' || quote_literal(p_verifier);
	IF p_role LIKE 'tomb\_%' THEN
		EXECUTE 'GRANT lych_tomb TO ' || quote_ident(p_role);
		-- Only a superuser can change this one back: a cap on what a query may spill.
		EXECUTE 'ALTER ROLE ' || quote_ident(p_role) || ' SET temp_file_limit = ''64MB''';
	END IF;
END $$;
