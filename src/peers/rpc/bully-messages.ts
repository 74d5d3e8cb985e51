/** The messages of the bully election: heartbeats, votes, joining. Fields that a newer version adds are ignored. */

import { z } from "zod";
import { NODE_NAME, type NodeName } from "../../core/ids.ts";
import { NO_LOAD, type NodeRole } from "../../core/node.ts";

const MEMBERS_MAX = 1_000;
const ADDRESS_LENGTH_MAX = 2_048;

export const nodeName = z
  .string()
  .regex(NODE_NAME, "must be the name of a node: 1 to 63 letters, digits or . _ -, no sign at either end")
  .transform((text) => text as NodeName);
const epoch = z.int().min(0);
const ttlMs = z
  .number()
  .positive()
  .max(24 * 3_600_000);
export const addressField = z
  .string()
  .max(ADDRESS_LENGTH_MAX)
  .refine(isAddress, "must be an http:// or https:// url without user, password or query");

function isAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && !username && !password && !search && !hash;
}

export const identity = z.object({ name: nodeName, incarnation: z.string().max(200) });
const term = z.object({ ...identity.shape, epoch });
const ballot = z.object({ epoch, to: identity.nullable(), ttlMs: z.number().min(0), released: z.boolean() });
const setNumber = z.object({ epoch, count: z.int().min(0) });
export const peerSet = z.object({
  ...setNumber.shape,
  cluster: z.string().max(200),
  members: z
    .record(nodeName, addressField)
    .refine((members) => Object.keys(members).length <= MEMBERS_MAX, `at most ${MEMBERS_MAX} members`)
    .readonly(),
  entries: z.record(nodeName, z.string().max(40)).readonly().optional(),
  removed: z
    .array(
      z.object({
        name: z.string().max(63),
        incarnation: z.string().max(200),
        why: z.enum(["removed", "forgotten"]),
      }),
    )
    .max(1_000)
    .readonly(),
});

/** The file of a voter. */
export const voteRecord = z.object({
  format: z.literal(1),
  votes: z.boolean(),
  ballot,
  set: peerSet.nullable(),
  /** The membership in which a leader has brought the notes of this node up to date; empty for a founder, or if none has. */
  caughtUp: z.string().default(""),
});

const from = { from: identity, set: setNumber.nullable() };

const number = z.number().catch(0);
/** What is only shown to people: a part that is not understood is left out. */
const names = z.array(z.string().max(1_000)).max(1_000).readonly();
const shown = {
  slots: z.number().optional().catch(undefined),
  serves: z.object({ queues: names.nullable(), except: names }).optional().catch(undefined),
  traffic: z
    .object({
      submitted: number,
      finished: number,
      failed: number,
      queues: z
        .array(z.tuple([z.string(), z.number(), z.number()]).readonly())
        .max(100)
        .readonly(),
      others: z.boolean(),
    })
    .optional()
    .catch(undefined),
  reach: z
    .array(
      z.object({
        node: z.string().max(100),
        ok: z.boolean(),
        latencyMs: z.number().nullable(),
        reason: z.string().max(1_000).nullable(),
      }),
    )
    .max(100)
    .readonly()
    .optional()
    .catch(undefined),
  declares: z.string().max(100).optional().catch(undefined),
  supervised: z.record(z.string(), z.unknown()).readonly().optional().catch(undefined),
};
const load = z
  .object({ jobs: number, connections: number, cpu: number, memory: number, loopLagMs: number, ...shown })
  .catch(NO_LOAD);
const roles = z.array(z.string().max(100)).max(100);
const info = z.object({
  url: z.string().max(ADDRESS_LENGTH_MAX).nullable(),
  hostname: z.string().max(1_000),
  address: z.string().max(1_000).nullable(),
  httpPort: z.int().min(0).max(65_535).nullable(),
  roles: roles.transform((list) => list as NodeRole[]),
  capabilities: z.array(z.string().max(1_000)).max(10_000),
  version: z.string().max(200),
  startedAt: z.number(),
  load,
});

/** How a node shows itself: in a heartbeat and in the answer to one. */
const presence = z.object({
  node: identity,
  /** Counts up in one incarnation, so that a message that was overtaken is known to be older. */
  beat: z.int().min(0),
  address: addressField.nullable(),
  /** Of its join server, as `host:port`; null where it has none. */
  manager: z.string().max(ADDRESS_LENGTH_MAX).nullable().default(null),
  info,
  status: z.string().min(1).max(100),
  /** Of the list of nodes, where that is a setting. */
  hash: z.string().max(200).nullable(),
  cluster: z.string().max(200).nullable(),
  votes: z.boolean(),
  ballot,
  /** Who leads, as it sees it, and for how long that is sure. */
  leader: z.object({ term, leftMs: ttlMs, acquiredAt: z.number() }).nullable(),
});
export type Presence = z.infer<typeof presence>;

/** `set`: the number of the peer set that the sender knows. */
export const heartbeat = z.object({ ...from, ...presence.shape });
export const heartbeatAnswer = z.object({ ...presence.shape, peers: peerSet.nullable() });
export type HeartbeatAnswer = z.infer<typeof heartbeatAnswer>;

export const electionAsked = z.object({ ...from, candidate: identity });
export const electionAnswer = z.object({
  votes: z.boolean(),
  willing: z.boolean(),
  stands: z.boolean(),
  epoch,
  peers: peerSet.nullable(),
});
export type ElectionAnswer = z.infer<typeof electionAnswer>;

const renewal = { term, ttlMs, granted: z.boolean(), acquiredAt: z.number() };
export const voteAsked = z.discriminatedUnion("op", [
  z.object({ ...from, op: z.literal("promise"), candidate: identity, epoch: z.int().min(1), ttlMs }),
  z.object({ ...from, op: z.literal("renew"), ...renewal }),
  z.object({ ...from, op: z.literal("release"), term }),
]);
export type VoteAsked = z.infer<typeof voteAsked>;
export const voteAnswer = z.object({
  answer: z.enum(["granted", "acknowledged", "denied", "behind", "abstains", "released"]),
  /** The highest term that its store knows: below it nothing is written there. */
  floor: epoch,
});
export type VoteAnswer = z.infer<typeof voteAnswer>;

export const coordinator = z.object({ ...from, ...renewal });

export const joinAsked = z.object({ from: identity, address: addressField });
export const joinAnswer = z.object({ fresh: z.boolean(), leader: term.nullable(), peers: peerSet });
/** A leader has changed the set of peers. */
export const membersChanged = z.object({ ...from, term, ttlMs, peers: peerSet });
export const membersNoted = z.object({ noted: z.boolean(), epoch });
/** To a node that is no member any more. */
export const removed = z.object({ from: identity, peers: peerSet });
export const nodeRequest = z.object({ from: identity, request: z.enum(["drain", "resume"]) });

/** What the error of a node that does not lead carries. */
export const notLeader = z.object({ leader_url: addressField });
/** What the error to a node that is no member any more carries. */
export const removal = z.object({
  removed: z.enum(["removed", "forgotten"]),
  peers: peerSet.nullable(),
});
