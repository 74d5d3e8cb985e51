/** Assignments in PostgreSQL: which node owns each one, and under which epoch. */

import type { NodeName } from "../../../core/ids.ts";
import type { NodeIdentity } from "../../../core/node.ts";
import { read, write } from "../../../platform/drivers/postgres/postgres.ts";
import { int4s, int8s, texts } from "../../../platform/drivers/postgres/arrays.ts";
import type { AssignmentId, Held, Orphan, Ownership, OwnershipStore } from "../../ownership.ts";
import { type StoreCache, NOW } from "../jobs/store-cache.ts";
import type { PostgresScripts } from "../scripts.ts";
import { scanTable } from "../jobs/table-scan.ts";

/** Rows `s` that match `h`. The rows of `h` are in the order of ids, so that two calls cannot deadlock. */
const SAME = "s.id = h.id AND s.owner_epoch = h.owner_epoch";
const OWN = write(
  "assignment-own",
  `UPDATE baton.assignment s SET owner = $1, owner_name = $2, owner_epoch = s.owner_epoch + 1, state = 'owned',
     unowned_since = NULL, offered_at = NULL
   FROM unnest($3::bigint[], $4::int[]) AS h (id, owner_epoch) WHERE ${SAME} RETURNING s.id, s.owner_epoch`,
);
/** The name of the last owner stays. */
const GIVE_UP = "owner = NULL, offered_at = NULL, unowned_since";
const RELEASE = write(
  "assignment-release",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now)
   UPDATE baton.assignment s SET ${GIVE_UP} = (SELECT now FROM clock), state = $5
   FROM unnest($3::bigint[], $4::int[]) AS h (id, owner_epoch) WHERE ${SAME} AND s.owner = $2`,
);
const FORGET = write(
  "assignment-forget",
  `DELETE FROM baton.assignment s USING unnest($2::bigint[], $3::int[]) AS h (id, owner_epoch)
   WHERE ${SAME} AND s.owner = $1`,
);
const COLUMNS = `id AS assignment, owner AS incarnation, owner_name AS name, owner_epoch AS "ownerEpoch", state`;
const READ = read("assignment-read", `SELECT ${COLUMNS} FROM baton.assignment WHERE id = ANY ($1::bigint[])`);
/** With the number of unfinished jobs. `OFFSET 0` keeps the planner from reversing the join. */
const READ_COUNTED = read(
  "assignment-read-counted",
  `SELECT ${COLUMNS}, (
     SELECT count(*) FROM unnest(s.jobs) AS j (seq) CROSS JOIN LATERAL (
       SELECT FROM baton.live WHERE seq = j.seq AND assignment = s.id OFFSET 0
     ) AS l
   ) AS unfinished
   FROM baton.assignment s WHERE id = ANY ($1::bigint[])`,
);
const OWNERS = read(
  "assignment-owners",
  "SELECT DISTINCT owner AS incarnation, owner_name AS name FROM baton.assignment WHERE owner IS NOT NULL",
);
const DISOWN = write(
  "assignment-disown",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
   left_behind AS MATERIALIZED (
     SELECT id FROM baton.assignment WHERE owner = ANY ($2::text[]) ORDER BY id FOR UPDATE
   )
   UPDATE baton.assignment s SET ${GIVE_UP} = (SELECT now FROM clock), state = 'orphan_pending'
   FROM left_behind b WHERE s.id = b.id RETURNING s.id`,
);

/** Without an owner, not waiting for its first one, and not offered a moment ago. */
const ORPHANED = `owner IS NULL AND (state = 'orphan_pending' OR unowned_since <= ${NOW} - $2::bigint)
  AND (offered_at IS NULL OR offered_at <= ${NOW} - $3::bigint)`;
const ORPHANS = read(
  "assignment-orphans",
  `SELECT id FROM baton.assignment WHERE ${ORPHANED} AND id > $5::bigint ORDER BY id LIMIT $4`,
);
/** Jobs are added to an assignment only when it is created, so one without jobs stays empty. */
const REMOVE_EMPTY = write(
  "assignment-remove-empty",
  "DELETE FROM baton.assignment WHERE id = ANY ($1::bigint[]) AND owner IS NULL",
);
const OFFER = write(
  "assignment-offer",
  `UPDATE baton.assignment SET offered_at = ${NOW} WHERE id = ANY ($4::bigint[]) AND ${ORPHANED} RETURNING ${COLUMNS}`,
);

interface Row extends Omit<Ownership, "owner"> {
  readonly name: NodeName | null;
  readonly incarnation: string | null;
  readonly unfinished?: number;
}

export function assignments(
  cache: StoreCache,
  scripts: PostgresScripts,
): Pick<OwnershipStore, "own" | "release" | "read" | "owners" | "disown" | "orphans"> {
  const { db } = cache;
  return {
    own: async (claims, owner) => {
      if (claims.length === 0) return [];
      const rows = await db.query<{ id: number; owner_epoch: number }>(OWN, [
        owner.incarnation,
        owner.name,
        ...heldColumns(claims),
      ]);
      const owned = new Map(rows.map((row) => [row.id, row.owner_epoch]));
      return claims.map(({ assignment, ownerEpoch }) => {
        if (owned.get(assignment) !== ownerEpoch + 1) return null;
        owned.delete(assignment);
        return ownerEpoch + 1;
      });
    },
    release: async (held, owner, state) => {
      if (held.length === 0) return;
      const values = [owner.incarnation, ...heldColumns(held)];
      if (state === "finished") await db.query(FORGET, values);
      else await db.query(RELEASE, [cache.now(), ...values, state]);
    },
    read: (async (ids: readonly AssignmentId[], counted?: true) => {
      if (ids.length === 0) return [];
      const rows = await db.query<Row>(counted ? READ_COUNTED : READ, [int8s(ids)]);
      const found = new Map(rows.map((row) => [row.assignment, ownershipOf(row)]));
      return ids.map((id) => found.get(id) ?? null);
    }) as OwnershipStore["read"],
    owners: () => db.query<NodeIdentity>(OWNERS),
    disown: async (incarnations, fence) => {
      const values = [cache.now(), texts(incarnations)];
      return (await scripts.transaction((tx) => scanTable(tx, DISOWN, values), fence)).length;
    },
    /** The reads are outside the transaction, where they would delay the grant to the next leader. */
    orphans: async ({ unownedForMs, offeredBeforeMs, limit }, fence) => {
      const when = [cache.now(), unownedForMs, offeredBeforeMs];
      const orphans: Orphan[] = [];
      // Empty assignments do not count: an empty result must mean that there are no orphans.
      for (let after = 0; ;) {
        const missing = Math.max(limit - orphans.length, 0);
        const found = await db.transaction((tx) =>
          scanTable<{ id: AssignmentId }>(tx, ORPHANS, [...when, missing, after]),
        );
        const ids = found.map(({ id }) => id);
        const counts = await db.query<Row>(READ_COUNTED, [int8s(ids)]);
        const jobs = new Set(
          counts.filter(({ unfinished }) => unfinished! > 0).map(({ assignment }) => assignment),
        );
        const offered = await scripts.transaction(async (tx) => {
          const [, rows] = await Promise.all([
            tx.query(REMOVE_EMPTY, [int8s(ids.filter((id) => !jobs.has(id)))]),
            tx.query<Row>(OFFER, [...when, int8s(ids.filter((id) => jobs.has(id)))]),
          ]);
          return rows;
        }, fence);
        orphans.push(...offered.map(orphanOf).sort((a, b) => a.assignment - b.assignment));
        if (ids.length < missing || orphans.length >= limit) return orphans;
        after = ids.at(-1)!;
      }
    },
  };
}

/** In the order of ids, so that two calls cannot deadlock. */
export function heldColumns(held: readonly Held[]): [ids: Buffer, epochs: Buffer] {
  const inOrder = [...held].sort((a, b) => a.assignment - b.assignment);
  return [
    int8s(inOrder.map(({ assignment }) => assignment)),
    int4s(inOrder.map(({ ownerEpoch }) => ownerEpoch)),
  ];
}

function orphanOf({ assignment, ownerEpoch, name }: Row): Orphan {
  return { assignment, ownerEpoch, last: name };
}

function ownershipOf({ name, incarnation, ...rest }: Row): Ownership {
  return { ...rest, owner: incarnation === null ? null : { name: name!, incarnation } };
}
