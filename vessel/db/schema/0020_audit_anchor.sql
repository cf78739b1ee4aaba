-- SPDX-License-Identifier: Apache-2.0
-- An anchor of the audit log: its signed checkpoints, in a table of another role's. The vessel adds rows and
-- reads them; nobody changes or removes one, who restores an archive (lych_owner) neither.
DO $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'lych_anchor') THEN
		CREATE ROLE lych_anchor NOLOGIN NOINHERIT;
	END IF;
END $$;

CREATE SCHEMA lych_anchor;
REVOKE ALL ON SCHEMA lych_anchor FROM PUBLIC;

-- line: as in a file of an anchor (docs/PROTOCOL.md, "Anchors"); the columns before it are out of it.
CREATE TABLE lych_anchor.checkpoint (
	n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at timestamptz NOT NULL DEFAULT clock_timestamp(),
	log uuid NOT NULL,
	size bigint NOT NULL CHECK (size >= 0),
	root text NOT NULL CHECK (octet_length(root) = 44),
	line text NOT NULL CHECK (octet_length(line) < 1024)
);
CREATE INDEX checkpoint_newest ON lych_anchor.checkpoint (log, size, n);

CREATE FUNCTION lych_anchor.stays() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION 'an anchor of the audit log only grows' USING ERRCODE = '42501';
END $$;
REVOKE ALL ON FUNCTION lych_anchor.stays() FROM PUBLIC;
CREATE TRIGGER stays BEFORE UPDATE OR DELETE ON lych_anchor.checkpoint
	FOR EACH ROW EXECUTE FUNCTION lych_anchor.stays();
CREATE TRIGGER stays_whole BEFORE TRUNCATE ON lych_anchor.checkpoint
	FOR EACH STATEMENT EXECUTE FUNCTION lych_anchor.stays();

ALTER FUNCTION lych_anchor.stays() OWNER TO lych_anchor;
ALTER TABLE lych_anchor.checkpoint OWNER TO lych_anchor;
ALTER SCHEMA lych_anchor OWNER TO lych_anchor;

GRANT USAGE ON SCHEMA lych_anchor TO lych_vessel;
GRANT SELECT, INSERT ON lych_anchor.checkpoint TO lych_vessel;
