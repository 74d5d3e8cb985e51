/**
 * Finds a node for new jobs: the next one in turn, or the next that accepts them, or this one.
 *
 * The ids are chosen here and sent along, so a node that is asked twice stores once. A node that does not answer is asked
 * again while it seems alive. After that, a retraction is put on disk, and only then the next node is asked (see
 * peers/retractions/retractions.ts). So a lost answer does not create two jobs.
 */

import { hopHeaders, hopPath, type Peers } from "../../transport/hop-headers.ts";
import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeInfo } from "../../core/node.ts";
import { byKey, canRun, inTurn, willing, type Wants } from "../../core/placement-rules.ts";
import type { Platform } from "../../platform/platform.ts";
import type { Outcome } from "../../transport/transport.ts";
import type { PlacementStrategy, PlacementRounds } from "./placement-rounds.ts";
import type { RetractedJobs, Retractions } from "../retractions/retractions.ts";

export interface PlacementRequest {
  readonly wants: Wants;
  /** The caller's own key for a single job. */
  readonly key: string | null;
  /** How many jobs it makes; null when it is not safe to try it twice. */
  readonly jobs: number | null;
  readonly prefersHere: boolean;
  /** As it came, with its query. */
  readonly path: string;
  readonly body: string;
  /** Those that may be passed on. */
  readonly headers: Readonly<Record<string, string>>;
  readonly deadlineMs: number;
}

type Reply = Extract<Outcome, { outcome: "reply" }>;

export type Placed =
  | { readonly at: "here" }
  | { readonly at: "peer"; readonly node: NodeInfo; readonly reply: Reply };

export type Placement = Pick<RoundRobinPlacement, "place" | "retracted" | "placed">;

export interface PlacementOptions {
  readonly strategy: PlacementStrategy;
  readonly rounds: Pick<PlacementRounds, "next">;
  readonly peers: Peers;
  readonly nodes: () => readonly NodeInfo[];
  readonly retractions: Pick<Retractions, "note"> & RetractedJobs;
}

type PlacementPlatform = Pick<Platform, "identity" | "state" | "clock" | "random" | "log">;

/** Of the whole time, for one node that does not answer: the rest is for the next one. */
const SHARE = 0.4;
/** Between two tries of a node that broke off: long enough for a process that is restarted to be seen as such. */
const AGAIN_MS = 50;

type Attempt = { readonly took: Reply } | { readonly took: null; readonly why: string };

export class RoundRobinPlacement {
  readonly #platform: PlacementPlatform;
  readonly #self: NodeName;
  readonly #o: PlacementOptions;
  readonly #placed: Record<string, number> = {};

  constructor(platform: PlacementPlatform, options: PlacementOptions) {
    this.#platform = platform;
    this.#self = platform.identity.name;
    this.#o = options;
  }

  /** Jobs that another node took back, because they were placed elsewhere when no answer came from here. */
  get retracted(): RetractedJobs {
    return this.#o.retractions;
  }

  placed(): Readonly<Record<string, number>> {
    return this.#placed;
  }

  /** Hands new jobs over, or says that they stay here. Rejects with why no node takes them. */
  async place(request: PlacementRequest): Promise<Placed> {
    const { clock, state, log } = this.#platform;
    const deadlineAt = clock.monotonic() + request.deadlineMs;
    const order = this.#order(request);
    const nodes = order instanceof Promise ? await order : order;
    let last = "";
    for (const node of nodes) {
      if (node.name === this.#self) return this.#here();
      if (deadlineAt - clock.monotonic() < 1) break;
      const attempt = await this.#offer(node, request, deadlineAt);
      if (attempt.took) {
        this.#count(node.name);
        return { at: "peer", node, reply: attempt.took };
      }
      last = `; ${node.name}: ${attempt.why}`;
      log.debug({ target: node.name, why: attempt.why }, "a node did not take new jobs; trying the next one");
    }
    if (!state.draining) return this.#here();
    throw new BatonError("DRAINING", `this node is draining, and no other one takes new work${last}`);
  }

  #here(): Placed {
    this.#count(this.#self);
    return { at: "here" };
  }

  #count(target: string): void {
    this.#placed[target] = (this.#placed[target] ?? 0) + 1;
  }

  /** Whom to ask, in order. A node that drains may still pass jobs on, but is not among them. */
  #order({ wants, key, prefersHere }: PlacementRequest): readonly NodeInfo[] | Promise<readonly NodeInfo[]> {
    const { strategy, rounds, nodes } = this.#o;
    const self = this.#self;
    const all = nodes();
    const able = willing(
      this.#platform.state.draining ? all.filter(({ name }) => name !== self) : all,
      wants,
    );
    const own = able.find(({ name }) => name === self);
    // A key has one home whatever the strategy: only then does a caller who repeats it elsewhere find the job.
    if (key !== null && strategy !== "local") return byKey(able, key);
    if ((prefersHere || strategy === "local") && own && (strategy === "local" || canRun(own, wants)))
      return [own];
    const position = rounds.next();
    return position instanceof Promise ? position.then((at) => inTurn(able, at)) : inTurn(able, position);
  }

  async #offer(node: NodeInfo, request: PlacementRequest, deadlineAt: number): Promise<Attempt> {
    const { clock, random, log } = this.#platform;
    const first = request.jobs === null ? undefined : random.timedUuid();
    const startedAt = clock.monotonic();
    const until = first === undefined ? deadlineAt : startedAt + (deadlineAt - startedAt) * SHARE;
    let maybe = false;
    let why = "";
    for (;;) {
      const outcome = await this.#send(node, request, until - clock.monotonic(), first);
      if (outcome.outcome === "reply") {
        const verdict = verdictOf(outcome);
        if (verdict === "answered") return { took: outcome };
        why = `it answered ${outcome.status}`;
        maybe ||= verdict === "unclear";
        break;
      }
      why = outcome.reason;
      if (outcome.outcome === "refused") break;
      maybe = true;
      if (first === undefined) throw unknownOutcome(node, why);
      const left = until - clock.monotonic();
      if (left <= AGAIN_MS || !this.#alive(node)) break;
      await clock.sleep(AGAIN_MS);
      if (!this.#alive(node)) break;
    }
    if (maybe) {
      if (first === undefined) throw unknownOutcome(node, why);
      await this.#o.retractions.note(node.name, first, request.jobs!).catch((error: unknown) => {
        log.error({ err: error, target: node.name }, "a retraction could not be noted");
        throw unknownOutcome(node, why);
      });
    }
    return { took: null, why };
  }

  async #send(
    node: NodeInfo,
    request: PlacementRequest,
    deadlineMs: number,
    firstUuid: string | undefined,
  ): Promise<Outcome> {
    const { peers } = this.#o;
    if (node.url === null) return { outcome: "refused", reason: "its address is not known yet" };
    const path = hopPath(request.path, { sentAt: Math.floor(this.#platform.clock.now()), firstUuid });
    const headers = hopHeaders(request.headers, deadlineMs, peers);
    const sent = { method: "POST", path, headers, body: request.body } as const;
    return peers.call(node.url, sent, { deadlineMs: Math.max(deadlineMs, 1), to: node.name });
  }

  #alive({ name, incarnation }: NodeInfo): boolean {
    return this.#o
      .nodes()
      .some((node) => node.name === name && node.incarnation === incarnation && node.alive);
  }
}

function unknownOutcome(node: NodeInfo, why: string): BatonError {
  return new BatonError("DEADLINE", `${node.name} did not answer, and may have taken it: ${why}`, {
    owner: node.name,
    outcome: "unknown",
  });
}

/** With these a node of ours says that it has stored nothing. */
const REFUSALS: ReadonlySet<string> = new Set([
  "DRAINING",
  "CLUSTER_FORMING",
  "STOPPED",
  "DEADLINE",
  "NOT_A_GATEWAY",
]);

/** `unclear`: an answer of something between us, or of a node whose store failed over it. */
function verdictOf({ status, body }: Reply): "answered" | "refused" | "unclear" {
  const passing = status === 421 || (status >= 502 && status <= 504) || (status >= 300 && status < 400);
  if (!passing) return "answered";
  try {
    const { error } = JSON.parse(body) as { error?: unknown };
    if (typeof error === "string" && REFUSALS.has(error)) return "refused";
  } catch {
    // Not one of ours.
  }
  return "unclear";
}
