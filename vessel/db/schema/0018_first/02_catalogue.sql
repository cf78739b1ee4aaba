-- SPDX-License-Identifier: Apache-2.0
-- What PostgreSQL grants to everybody by default and a worker must not have. A tomb that was taken over
-- has its login: beside the five functions it calls nothing of PostgreSQL's own and reads no catalogue.

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

-- Functions and catalogues that everybody may use by default. Our own roles keep them, the tombs do
-- not: without functions a session cannot burn the server for longer than it can be
-- interrupted (a root of ten thousand digits, an XPath expression), learn what others do, or make a
-- gigabyte of a word. What PostgreSQL keeps from everybody stays so.
DO $$
DECLARE
	v_functions text;
	v_tables text;
BEGIN
	SELECT string_agg(p.oid::regprocedure::text, ', ') INTO v_functions FROM pg_proc p
	WHERE p.pronamespace = 'pg_catalog'::regnamespace
		AND has_function_privilege('public', p.oid, 'EXECUTE');
	SELECT string_agg(c.oid::regclass::text, ', ') INTO v_tables FROM pg_class c
	WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v')
		AND has_table_privilege('public', c.oid, 'SELECT');
	REVOKE ALL ON ALL ROUTINES IN SCHEMA pg_catalog FROM PUBLIC;
	REVOKE ALL ON ALL TABLES IN SCHEMA pg_catalog FROM PUBLIC;
	REVOKE ALL ON SCHEMA information_schema FROM PUBLIC;
	EXECUTE 'GRANT EXECUTE ON ROUTINE ' || v_functions || ' TO lych_owner, lych_vessel, lych_watchdog';
	EXECUTE 'GRANT SELECT ON TABLE ' || v_tables || ' TO lych_owner, lych_vessel, lych_watchdog';
END $$;
-- A number in the text of a statement is an integer; the five functions take bigint.
GRANT EXECUTE ON FUNCTION pg_catalog.int8(integer) TO lych_tomb;
