/** The statements and rows of the table of nodes. */

import type { NodeSign } from "../../core/leadership/failure-detector.ts";
import type { NodeIdentity, NodeInfo, NodeLoad } from "../../core/node.ts";
import { read, write, type Statement } from "../../platform/drivers/postgres/postgres.ts";
import { HELD_LOCKS, incarnationLock } from "./advisory-lock.ts";
import { NOW } from "./control-session.ts";

const HELD = (node: string): string =>
  `${incarnationLock(`${node}.incarnation`)} = ANY (ARRAY(SELECT key FROM (${HELD_LOCKS}) held))`;
const SERVER_UP = "(extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000)::bigint";

/**
 * The column of a request to a node (drain, resume). Its name is not changed: nodes of the previous version, which run
 * at the same time during an upgrade, use it in their statements.
 */
const REQUEST = "wish";

const COLUMNS = `incarnation, name, hostname, url, roles, capabilities, version, status, started_at, last_heartbeat, load,
  info, locked`;
const NODE = `n.incarnation, n.name, n.hostname, n.url, n.roles, n.capabilities, n.version, n.status,
  n.started_at AS "startedAt", n.last_heartbeat AS "lastSeenAt", n.load, n.info`;
const OWN_VALUES = "$2, $3, $4, $5, $6, $7, $8, $9, $10, moment.at, $11, $12, $13";
/** A node that was taken for dead by mistake is back with this. A request that was heard ($14) is cleared. */
const UPDATE_OWN = `name = excluded.name, hostname = excluded.hostname, url = excluded.url, roles = excluded.roles,
  capabilities = excluded.capabilities, version = excluded.version, status = excluded.status,
  last_heartbeat = excluded.last_heartbeat, load = excluded.load, info = excluded.info, locked = excluded.locked,
  recovered = false`;

export const BEAT = write(
  "node-beat",
  `WITH moment AS MATERIALIZED (SELECT ${NOW} AS at), own AS (
     INSERT INTO baton.node AS n (${COLUMNS}) SELECT ${OWN_VALUES} FROM moment
     ON CONFLICT (incarnation) DO UPDATE SET ${UPDATE_OWN}, ${REQUEST} = nullif(n.${REQUEST}, $14::text)
     RETURNING ${REQUEST}
   )
   SELECT moment.at, (SELECT ${REQUEST} FROM own) AS request, ${NODE} FROM moment
   LEFT JOIN baton.node n ON n.incarnation <> $2`,
);
/** A namesake whose session is gone is dead. One without a session, or on a server that has just started, is judged by its heartbeat. */
export const REGISTER = write(
  "node-register",
  `WITH moment AS MATERIALIZED (SELECT ${NOW} AS at), namesake AS MATERIALIZED (
     SELECT n.incarnation, n.hostname, n.version, n.started_at, ${HELD("n")} OR (
       n.last_heartbeat > at - $14::bigint AND NOT (n.locked AND ${SERVER_UP} >= $14::bigint)
     ) AS alive
     FROM baton.node n, moment WHERE n.name = $3 AND n.incarnation <> $2 AND n.status <> 'dead'
   ), gone AS (
     UPDATE baton.node n SET status = 'dead', recovered = false FROM namesake
     WHERE n.incarnation = namesake.incarnation AND NOT alive RETURNING 1
   ), own AS (
     INSERT INTO baton.node (${COLUMNS})
     SELECT ${OWN_VALUES} FROM moment, (SELECT count(*) FROM gone) first
     WHERE NOT EXISTS (SELECT 1 FROM namesake WHERE alive)
     ON CONFLICT (incarnation) DO UPDATE SET ${UPDATE_OWN}
     RETURNING 1
   )
   SELECT hostname, version, started_at AS "startedAt" FROM namesake WHERE alive`,
);
export const DEREGISTER = write("node-deregister", "DELETE FROM baton.node WHERE incarnation = $1");
export const LIST = read(
  "node-list",
  `SELECT ${NOW} AS at, NULL AS request, ${NODE} FROM baton.node n ORDER BY name, started_at`,
);
export const ASK = write(
  "node-ask",
  `WITH asked AS (
     UPDATE baton.node SET ${REQUEST} = $3
     WHERE name = $2 AND status <> 'dead' AND last_heartbeat > ${NOW} - $4::bigint RETURNING 1
   ) SELECT pg_notify($5, $6) FROM asked`,
);
export const SIGNS = read(
  "node-signs",
  `SELECT pg_postmaster_start_time()::text AS server, ${SERVER_UP} AS "serverUpMs",
     EXISTS (
       SELECT 1 FROM baton.term WHERE role = $2 AND leader = $3 AND incarnation = $4 AND epoch = $5
     ) AS fenced,
     n.incarnation, n.name, n.status, n.last_heartbeat AS heartbeat, n.locked, n.recovered, ${HELD("n")} AS held,
     ${NOW} - n.last_heartbeat > $6::bigint AS old
   FROM (VALUES (1)) one LEFT JOIN baton.node n ON true`,
);

/** A write of a leader. Its term is held until the end of the statement: a grant waits for it, and a statement after a grant finds nothing. */
const fenced = (name: string, change: string): Statement =>
  write(
    name,
    `WITH fence AS MATERIALIZED (
       SELECT 1 FROM baton.term WHERE role = $1 AND leader = $2 AND incarnation = $3 AND epoch = $4 FOR SHARE
     ), touched AS (${change} RETURNING n.name, n.incarnation)
     SELECT (SELECT count(*) FROM fence) = 1 AS fenced, t.* FROM (VALUES (1)) one LEFT JOIN touched t ON true`,
  );
export const MARK_DEAD = fenced(
  "node-mark-dead",
  `UPDATE baton.node n SET status = 'dead', recovered = false, ${REQUEST} = NULL
   FROM fence, unnest($5::text[], $6::bigint[]) AS seen (incarnation, heartbeat)
   WHERE n.incarnation = seen.incarnation AND n.last_heartbeat = seen.heartbeat AND n.status <> 'dead'`,
);
export const MARK_RECOVERED = fenced(
  "node-mark-recovered",
  `UPDATE baton.node n SET recovered = true FROM fence
   WHERE n.incarnation = ANY ($5::text[]) AND n.status = 'dead'`,
);
export const CLEANUP_DEAD = fenced(
  "node-cleanup-dead",
  `DELETE FROM baton.node n USING fence
   WHERE n.status = 'dead' AND n.recovered
     AND n.last_heartbeat < coalesce($5::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) - $6::bigint`,
);

/** A newer version may have more in `load` and `info`, an older one less. */
export interface NodeRow extends Omit<NodeInfo, "alive" | "address" | "httpPort" | "load"> {
  readonly at: number;
  /** Of this node, in every row of the answer to its heartbeat. */
  readonly request: string | null;
  readonly load: Partial<NodeLoad>;
  readonly info: Partial<Pick<NodeInfo, "address" | "httpPort">>;
}

export interface SignRow extends NodeSign, NodeIdentity {
  readonly server: string;
  readonly serverUpMs: number;
  readonly fenced: boolean;
  readonly recovered: boolean;
  readonly old: boolean;
}

export interface FencedRow extends NodeIdentity {
  readonly fenced: boolean;
}
