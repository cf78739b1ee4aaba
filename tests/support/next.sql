-- SPDX-License-Identifier: Apache-2.0
-- A migration that no release has: a column and a table that are filled from what is there.
-- tests/support/next-release
SET LOCAL ROLE lych_owner;

ALTER TABLE lych.job ADD COLUMN upgraded boolean NOT NULL DEFAULT false;
UPDATE lych.job SET upgraded = true;

CREATE TABLE lych.tomorrow (
	job_id bigint PRIMARY KEY,
	class text NOT NULL
);
INSERT INTO lych.tomorrow SELECT j.id, j.class FROM lych.job j;

SET LOCAL ROLE NONE;
