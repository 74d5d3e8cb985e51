/**
 * All requests between nodes that are not operations of the API. `peer-rpc.ts` sends and serves them. Every request is a
 * POST with a JSON body, and every reply names the node that gives it.
 */

import { z } from "zod";
import { CREDENTIAL_KINDS } from "../../core/access/credential.ts";
import { ACCESS_NAME, PERMISSIONS } from "../../core/access/permissions.ts";
import { isUuid } from "../../core/ids.ts";
import * as bully from "./bully-messages.ts";
import * as schedules from "./schedule-messages.ts";

/** As many as one request may submit. */
const JOBS_MAX = 10_000;

/** Jobs that a node may have stored although another one got them in the end. */
export const retraction = z.object({
  node: bully.nodeName,
  /** Of the first of them; the others count on from it. */
  first: z.string().refine(isUuid),
  jobs: z.int().min(1).max(JOBS_MAX),
  at: z.number(),
});
export type Retraction = z.infer<typeof retraction>;
const retractions = z.object({ retractions: z.array(retraction) });

const text = z.string().min(1).max(256);
const instant = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

const credential = z.object({
  id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  kind: z.enum(CREDENTIAL_KINDS),
  name: z.string().regex(ACCESS_NAME),
  permission: z.enum(PERMISSIONS),
  secret: text.nullable(),
  owner: text.nullable(),
  createdAt: instant,
  createdBy: text,
  expiresAt: instant.nullable(),
  lastUsedAt: instant.nullable(),
  removedAt: instant.nullable(),
  version: z.number().int().min(1).max(Number.MAX_SAFE_INTEGER),
  node: text,
});

/** So many in one message: a page is far below the largest body that a node takes. */
export const CREDENTIALS_MAX = 500;

export const credentialPage = z.object({
  credentials: z.array(credential).max(CREDENTIALS_MAX),
  /** Behind which id it goes on; null at the end. */
  next: text.nullable(),
});
export type CredentialPage = z.output<typeof credentialPage>;

const count = z.int().min(0);
const nothing = z.object({});

const route = <Request extends z.ZodType, Reply extends z.ZodType>(
  path: string,
  request: Request,
  reply: Reply,
) => ({ path: `/peer/${path}`, request, reply });

export const PEER_ROUTES = {
  heartbeat: route("heartbeat", bully.heartbeat, bully.heartbeatAnswer),
  election: route("election", bully.electionAsked, bully.electionAnswer),
  vote: route("vote", bully.voteAsked, bully.voteAnswer),
  coordinator: route("coordinator", bully.coordinator, bully.voteAnswer),
  join: route("join", bully.joinAsked, bully.joinAnswer),
  members: route("members", bully.membersChanged, bully.membersNoted),
  remove: route("remove", bully.removed, nothing),
  request: route("request", bully.nodeRequest, nothing),

  /** Positions of the round that all nodes share, from its leader. */
  positions: route(
    "placement/next",
    z.object({ count: z.int().min(1).max(256) }),
    z.object({ index: count, count, epoch: count }),
  ),
  /** What this node has noted about the one that asks. */
  retractionsFor: route("retractions/for", z.object({ node: z.string() }), retractions),
  retract: route(
    "retractions",
    retractions,
    z.object({ answers: z.record(z.string(), z.enum(["gone", "running", "kept"])) }),
  ),

  /** Store these too. */
  credentials: route("access", credentialPage, z.object({ kept: count })),
  credentialsDigest: route("access/digest", nothing, z.object({ digest: z.string() })),
  credentialsAfter: route("access/page", z.object({ after: z.string() }), credentialPage),
  /** What happened, for readers at other nodes. Messages of a newer version are passed over. */
  events: route("events", z.object({ messages: z.array(z.unknown()) }), nothing),

  /** To the leader, for the whole cluster. */
  pause: route("schedules/pause", schedules.pauseAsked, nothing),
  pauses: route("schedules/pauses", nothing, schedules.pausesAnswer),
  declare: route("schedules/declare", schedules.declareAsked, nothing),
  note: route("schedules/note", schedules.noteAsked, schedules.noteAnswer),
  read: route("schedules/read", schedules.pageAsked, schedules.notesAnswer),
  digest: route("schedules/digest", schedules.pageAsked, schedules.digestsAnswer),
  history: route("schedules/history", schedules.historyAsked, schedules.occurrencesAnswer),
  noted: route("schedules/noted", schedules.notedAsked, schedules.occurrencesAnswer),
  place: route("schedules/place", schedules.placeAsked, schedules.placeAnswer),
  job: route("schedules/job", schedules.jobAsked, schedules.jobAnswer),
  forget: route("schedules/forget", schedules.forgetAsked, nothing),
} as const;

export type PeerRoute = keyof typeof PEER_ROUTES;
export type RequestOf<Route extends PeerRoute> = z.output<(typeof PEER_ROUTES)[Route]["request"]>;
export type ReplyOf<Route extends PeerRoute> = z.output<(typeof PEER_ROUTES)[Route]["reply"]>;
