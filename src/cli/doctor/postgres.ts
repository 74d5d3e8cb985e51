/** Reads and judges the database on one connection that changes nothing: durability, connections, rights, and what blocks vacuum. */

import { count, several, span } from "../../core/format-figures.ts";
import { readClock } from "./clocks.ts";
import {
  type Answer,
  failed,
  judged,
  type Judgement,
  type Question,
  type Rule,
  warning,
} from "./findings.ts";

export interface PostgresFacts {
  /** As 180004. */
  readonly version: number;
  readonly user: string;
  readonly superuser: boolean;
  readonly inRecovery: boolean;
  /** Settings as this user's sessions have them, in their base units. */
  readonly settings: Readonly<Record<string, string>>;
  readonly otherSessions: number;
  readonly roleLimit: number | null;
  readonly databaseLimit: number | null;
  readonly pooled: boolean;
  readonly longTransactions: readonly LongTransaction[];
  readonly schemaOwner: string | null;
  readonly mayCreate: boolean;
  readonly bloated: readonly { readonly table: string; readonly dead: number; readonly live: number }[];
}

export interface LongTransaction {
  readonly who: string;
  readonly ageMs: number;
  readonly remedy: string;
}

export interface PostgresNeeds {
  readonly nodes: number;
  readonly connections: number;
  readonly schema: string;
}

const VERSION_MIN = 150_000;
/** Leader locks, heartbeats, leases, listening and sending: see docs/postgres.md. */
const SESSIONS_MORE = 5;

export function judgePostgres(facts: PostgresFacts, needs: PostgresNeeds): readonly Judgement[] {
  const { version } = facts;
  const shown = `${Math.floor(version / 10_000)}.${version % 10_000}`;
  const schema = facts.schemaOwner === null ? `; the schema ${needs.schema} is made by the first node` : "";
  return judged(
    [
      version < VERSION_MIN &&
        failed(`PostgreSQL ${shown} is too old: 15 is needed`, "upgrade the server (pg_upgrade)"),
      ...durability(facts),
      room(facts, needs),
      ...limits(facts),
      ...cleaning(facts),
      rights(facts, needs),
    ],
    `PostgreSQL ${shown}: settings, connections and rights are as they should be${schema}`,
  );
}

function durability({ inRecovery, pooled, settings }: PostgresFacts): Rule[] {
  const off = (name: string, effect: string, more = ""): Rule =>
    settings[name] === "off" && failed(`${name} is off: ${effect}`, `${switchOn(name)}${more}`);
  return [
    (inRecovery || settings["default_transaction_read_only"] === "on") &&
      failed(
        `${inRecovery ? "this server is a standby" : "sessions of this user are read-only"}, where nothing can be written`,
        "give the address of the primary in --store",
      ),
    pooled &&
      warning(
        "a transaction pooler stands in between: a dead leader is replaced only when its lease runs out",
        "give the server's own address in --store, or a pool in session mode; docs/postgres.md has what differs",
      ),
    off("fsync", "a loss of power can destroy the whole database"),
    off("full_page_writes", "a loss of power can leave torn pages"),
    off(
      "synchronous_commit",
      "jobs that were acknowledged may be gone after a crash",
      " look also at ALTER ROLE and ALTER DATABASE",
    ),
  ];
}

function switchOn(name: string): string {
  return `ALTER SYSTEM SET ${name} = on; SELECT pg_reload_conf();`;
}

function room(facts: PostgresFacts, { nodes, connections }: PostgresNeeds): Rule {
  const { settings, otherSessions: others, roleLimit, databaseLimit, user } = facts;
  const needed = nodes * (connections + SESSIONS_MORE);
  const number = (name: string): number => Number(settings[name] ?? 0);
  const open =
    number("max_connections") - number("superuser_reserved_connections") - number("reserved_connections");
  const demand = `${several(nodes, "node")} may open ${count(needed)} connections`;
  const lower = "or lower postgres.connections";
  const remedy = `raise max_connections (ALTER SYSTEM SET max_connections = ${Math.ceil((needed + others + 20) / 50) * 50}, then restart), ${lower}`;
  if (needed > open) return failed(`${demand}, and the server has ${count(open)}`, remedy);
  for (const [limit, whose, how] of [
    [roleLimit, `user ${user}`, `ALTER ROLE ${user} CONNECTION LIMIT -1`],
    [databaseLimit, "the database", "ALTER DATABASE … CONNECTION LIMIT -1"],
  ] as const) {
    if (limit !== null && needed > limit)
      return failed(`${demand}, and ${whose} is limited to ${count(limit)}`, `${how}, ${lower}`);
  }
  const all = `${demand}, others have ${count(others)}, and the server has ${count(open)}`;
  return needed + others > open && warning(all, remedy);
}

/** Ours are set by each session for itself; these are not. */
function limits({ settings, user, pooled }: PostgresFacts): Rule[] {
  const ms = (name: string): number => Number(settings[name] ?? 0);
  const setting = (name: string, value: string): string => `ALTER ROLE ${user} SET ${name} = ${value}`;
  const [idle, statement] = [ms("idle_session_timeout"), ms("statement_timeout")];
  return [
    idle > 0 &&
      warning(
        `idle_session_timeout is ${span(idle)}: standbys that wait for leadership and nodes that listen are cut off`,
        setting("idle_session_timeout", "0"),
      ),
    ...["transaction_timeout", "lock_timeout"].map(
      (name) =>
        ms(name) > 0 &&
        ms(name) < 30_000 &&
        warning(
          `${name} is ${span(ms(name))}: work of ours that takes longer is rolled back again and again`,
          setting(name, "0"),
        ),
    ),
    pooled &&
      statement === 0 &&
      warning(
        "behind a pooler, a statement whose caller has given up goes on",
        setting("statement_timeout", "'15s'"),
      ),
    statement > 0 &&
      statement < 2_000 &&
      warning(
        `statement_timeout is ${span(statement)} for this user: migrations and clean-up may not get through`,
        setting("statement_timeout", "'15s'"),
      ),
  ];
}

function cleaning({ settings, longTransactions, bloated }: PostgresFacts): Rule[] {
  return [
    ...["autovacuum", "track_counts"].map(
      (name) =>
        settings[name] === "off" &&
        failed(`${name} is off: the tables of a queue grow and slow down within hours`, switchOn(name)),
    ),
    ...longTransactions.map(({ who, ageMs, remedy }) =>
      warning(`${who} is open for ${span(ageMs)} and keeps dead rows from being removed`, remedy),
    ),
    ...bloated.map(({ table, dead, live }) =>
      warning(
        `${table} has ${count(dead)} dead rows and ${count(live)} live ones`,
        `VACUUM (VERBOSE) ${table}; if they come back, something above holds them, or autovacuum is too slow`,
      ),
    ),
  ];
}

function rights(
  { schemaOwner: owner, mayCreate, user, superuser }: PostgresFacts,
  needs: PostgresNeeds,
): Rule {
  const { schema } = needs;
  if (owner === null) {
    const remedy = `as a superuser: CREATE SCHEMA ${schema} AUTHORIZATION ${user}`;
    return !mayCreate && failed(`${user} may not make the schema ${schema}, which is not there yet`, remedy);
  }
  return (
    !superuser &&
    owner !== user &&
    warning(
      `the schema ${schema} belongs to ${owner}, and ${user} cannot bring it up to date`,
      `ALTER SCHEMA ${schema} OWNER TO ${user}, with its tables; or use ${owner} in --store`,
    )
  );
}

/** From when on a transaction counts as long. Vacuum comes round about once a minute; what is open for several rounds is felt. */
const LONG_MS = 300_000;

const SETTINGS = `
  SELECT name, setting FROM pg_settings WHERE name IN (
    'fsync', 'full_page_writes', 'synchronous_commit', 'max_connections', 'superuser_reserved_connections',
    'reserved_connections', 'idle_session_timeout', 'statement_timeout', 'transaction_timeout', 'lock_timeout',
    'autovacuum', 'track_counts', 'default_transaction_read_only')`;

const IDENTITY = `
  SELECT current_setting('server_version_num')::int AS version, current_user AS "user", pg_is_in_recovery() AS "inRecovery",
         r.rolsuper AS superuser, nullif(d.datconnlimit, -1) AS "databaseLimit",
         CASE WHEN r.rolsuper THEN NULL ELSE nullif(r.rolconnlimit, -1) END AS "roleLimit",
         has_database_privilege(d.oid, 'CREATE') AS "mayCreate",
         (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = $1) AS "schemaOwner",
         (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend'
             AND application_name NOT LIKE 'baton%') AS "otherSessions"
    FROM pg_roles r, pg_database d WHERE r.rolname = current_user AND d.datname = current_database()`;

const LONG = `
  SELECT format('pid %s (%s%s)', pid, coalesce(nullif(application_name, ''), usename),
                CASE WHEN state = 'idle in transaction' THEN ', idle in its transaction' ELSE '' END) AS who,
         extract(epoch FROM now() - xact_start)::float8 * 1000 AS "ageMs",
         format('SELECT pg_terminate_backend(%s), or end it where it was begun', pid) AS remedy
    FROM pg_stat_activity
   WHERE xact_start < now() - $1 * interval '1 millisecond' AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  UNION ALL
  SELECT format('the prepared transaction %s', gid), extract(epoch FROM now() - prepared)::float8 * 1000,
         format('COMMIT PREPARED or ROLLBACK PREPARED %L', gid)
    FROM pg_prepared_xacts WHERE prepared < now() - $1 * interval '1 millisecond'
   ORDER BY 2 DESC LIMIT 5`;

const BLOATED = `
  SELECT format('%I.%I', schemaname, relname) AS "table", n_dead_tup::float8 AS dead, n_live_tup::float8 AS live
    FROM pg_stat_user_tables
   WHERE schemaname = $1 AND n_dead_tup > 50000 AND n_dead_tup > 2 * n_live_tup
   ORDER BY n_dead_tup DESC LIMIT 3`;

/** Rejects with what the driver says when there is no answer in time. */
export async function askPostgres(
  { url, clock, deadlineMs }: Question,
  schema: string,
): Promise<Answer<PostgresFacts>> {
  // Loaded here: the drivers take longer to load than all the rest.
  const [{ Client }, { poolerCheck }] = await Promise.all([
    import("../../platform/drivers/postgres/package.ts"),
    import("../../platform/drivers/postgres/pooler-check.ts"),
  ]);
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: deadlineMs,
    query_timeout: deadlineMs,
    application_name: "baton doctor",
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const rows = async <Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> =>
      (await client.query(text, [...values])).rows as Row[];
    const [identity] = await rows<Identity>(IDENTITY, [schema]);
    const settings = await rows<{ name: string; setting: string }>(SETTINGS);
    const longTransactions = await rows<LongTransaction>(LONG, [LONG_MS]);
    const bloated = await rows<PostgresFacts["bloated"][number]>(BLOATED, [schema]);
    const now = async (): Promise<number> => (await rows<{ at: number }>(NOW))[0]!.at;
    const reading = await readClock("the database", clock, now);
    const pooler = poolerCheck({ url, clock, applicationName: "baton doctor", deadlineMs });
    const facts: PostgresFacts = {
      ...identity!,
      settings: Object.fromEntries(settings.map(({ name, setting }) => [name, setting])),
      pooled: await pooler.pooled(),
      longTransactions,
      bloated,
    };
    return { facts, clock: reading };
  } finally {
    // Not awaited: a server that does not answer would not answer this either.
    void client.end().catch(() => {});
  }
}

type Identity = Omit<PostgresFacts, "settings" | "pooled" | "longTransactions" | "bloated">;

const NOW = "SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS at";
