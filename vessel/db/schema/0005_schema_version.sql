-- SPDX-License-Identifier: Apache-2.0
-- The vessel compares this with what it was built for, before it does anything else.
SET LOCAL ROLE lych_owner;

CREATE FUNCTION vessel_api.schema_version() RETURNS int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(max(s.version), 0) FROM lych.schema_version s
$$;

SET LOCAL ROLE NONE;
REVOKE ALL ON FUNCTION vessel_api.schema_version() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION vessel_api.schema_version() TO lych_vessel;
