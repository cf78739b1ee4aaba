-- SPDX-License-Identifier: Apache-2.0
-- Roles and schemas.
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
