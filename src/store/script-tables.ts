/**
 * The tables of the scripts (script.ts), written once for both databases, as the statements are: for PostgreSQL, and
 * converted for SQLite. They belong to the first migration of each. The tables of jobs are in its schema.ts.
 */

export const SCRIPT_TABLES: readonly string[] = [
  `CREATE TABLE baton.schedule (
    name text PRIMARY KEY,
    definition text NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    next_at bigint,
    last_fired_at bigint,
    last_job text,
    leader_epoch bigint NOT NULL DEFAULT 0
  )`,
  `CREATE TABLE baton.occurrence (
    schedule text NOT NULL,
    at bigint NOT NULL,
    noted_at bigint NOT NULL,
    leader_epoch bigint NOT NULL,
    fired boolean NOT NULL,
    reason text,
    job text,
    PRIMARY KEY (schedule, at)
  )`,
  "CREATE INDEX occurrence_noted ON baton.occurrence (noted_at)",
  `CREATE TABLE baton.term (
    role text PRIMARY KEY, leader text NOT NULL, incarnation text NOT NULL, epoch bigint NOT NULL
  )`,
  // Updated often, and only the name has an index: every update is a HOT update.
  `CREATE TABLE baton.agent (
    name text PRIMARY KEY,
    capabilities text NOT NULL,
    version text,
    labels text NOT NULL,
    running int NOT NULL,
    first_seen_at bigint NOT NULL,
    last_seen_at bigint NOT NULL,
    removed_at bigint,
    leader_epoch bigint NOT NULL
  ) WITH (fillfactor = 50)`,
  `CREATE TABLE baton.sample (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    leader_epoch bigint NOT NULL,
    sample text NOT NULL
  )`,
  `CREATE TABLE baton.journal (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    kind text NOT NULL,
    node text NOT NULL,
    actor text,
    subject text,
    detail text NOT NULL
  )`,
  "CREATE INDEX journal_kind ON baton.journal (kind, n)",
  "CREATE INDEX journal_subject ON baton.journal (subject, n) WHERE subject IS NOT NULL",
  `CREATE TABLE baton.credential (
    id text PRIMARY KEY,
    kind text NOT NULL,
    name text NOT NULL,
    permission text NOT NULL,
    secret text,
    owner text,
    created_at bigint NOT NULL,
    created_by text NOT NULL,
    expires_at bigint,
    last_used_at bigint,
    removed_at bigint,
    version bigint NOT NULL,
    node text NOT NULL,
    revision bigint NOT NULL
  )`,
  "CREATE INDEX credential_revision_of ON baton.credential (revision)",
  "CREATE TABLE baton.credential_revision (n bigint NOT NULL)",
  "INSERT INTO baton.credential_revision (n) VALUES (0)",
];

/** A statement of this list for SQLite. */
export function tableForSqlite(text: string): string {
  return text
    .replaceAll("baton.", "")
    .replace("bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "INTEGER PRIMARY KEY AUTOINCREMENT")
    .replaceAll(/\b(?:bigint|boolean)\b/g, "INTEGER")
    .replace(/ WITH \(.*\)$/, "")
    .replace(/^CREATE TABLE .*$/s, "$& STRICT");
}
