/**
 * The list of nodes in Redis, keyed by incarnation. Each node writes its own entry. Only the leader writes the status
 * "dead", under the fence of its term; the next heartbeat of a node that is alive revokes it. If Redis loses the list,
 * the next heartbeats of all nodes restore it.
 */

import { BatonError } from "../../core/errors.ts";
import type { NodeSign } from "../../core/leadership/failure-detector.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity, NodeLoad, NodeStatus, OwnInfo } from "../../core/node.ts";
import type { Term } from "../../core/leadership/term.ts";
import type { RedisScript } from "../../platform/drivers/redis/script.ts";
import type { NodeRequest } from "../coordination.ts";
import { nameTaken } from "../registered-membership.ts";
import type { Namesake, NodeSigns, Registered, Registry, NodeList } from "../registered-membership.ts";
import type { ControlSession } from "./control-session.ts";
import { leaderKey } from "./leader-record.ts";
import * as scripts from "./node-records.ts";

export interface RegistryOptions {
  readonly control: ControlSession;
  readonly identity: NodeIdentity;
  readonly info: () => OwnInfo;
  /** Whoever has been silent for so long is not taken for alive. */
  readonly deadAfterMs: number;
}

const IDLE: NodeLoad = { jobs: 0, connections: 0, cpu: 0, memory: 0, loopLagMs: 0 };

type Told = Partial<OwnInfo>;

export class NodeRegistry implements Registry {
  readonly #o: RegistryOptions;
  readonly #control: ControlSession;
  readonly #key: string;
  #status: NodeStatus = "joining";

  constructor(options: RegistryOptions) {
    this.#o = options;
    this.#control = options.control;
    this.#key = options.control.key("nodes");
  }

  get status(): NodeStatus {
    return this.#status;
  }

  /** Our entry, unless another life with our name is alive: then who it is. */
  async register(): Promise<Namesake | null> {
    this.#status = "joining";
    const [done, , info] = await this.#control.timed<readonly [number, number, string]>(
      scripts.REGISTER,
      [this.#key],
      [...this.#own(), this.#o.deadAfterMs],
    );
    if (done) return null;
    const { hostname = "unknown", version = "unknown", startedAt = 0 } = parsed(info);
    return { hostname, version, startedAt };
  }

  /** Sends a heartbeat; `heard` is the request that this node has received, so that it can be cleared. */
  async beat(heard: string | null = null): Promise<NodeList> {
    const [done, at, request, others] = await this.#control.timed<
      readonly [number, number, string | null, scripts.NodeFields[]]
    >(scripts.BEAT, [this.#key], [...this.#own(), heard ?? ""]);
    if (!done) throw nameTaken(this.#o.identity);
    return { at, request, others: others.map((fields) => registered(fields, at)) };
  }

  async setStatus(status: NodeStatus, heard: string | null = null): Promise<NodeList> {
    this.#status = status;
    return this.beat(heard);
  }

  async deregister(): Promise<void> {
    await this.#control.timed(scripts.DEREGISTER, [this.#key], [this.#o.identity.incarnation]);
  }

  /** False when no living node has that name. */
  async ask(name: NodeName, request: NodeRequest): Promise<boolean> {
    const args = [name, request, this.#o.deadAfterMs, this.#control.toldChannel, requestSubject(name)];
    const [found] = await this.#control.timed<readonly [number, number]>(scripts.ASK, [this.#key], args);
    return found === 1;
  }

  /** Forgets recovered nodes that have been silent for so long. */
  async snapshot(fence: Term, forgetAfterMs: number): Promise<NodeSigns> {
    const [, , server, serverUpMs, found] = await this.#fenced<
      readonly [number, number, string, number, scripts.SignFields[]]
    >(scripts.LOOK, fence, [forgetAfterMs]);
    return {
      server,
      serverUpMs,
      signs: found.map(([incarnation, name, status, heartbeat, tells, held]) => ({
        incarnation,
        name: name as NodeName,
        status,
        heartbeat,
        locked: tells === 1,
        held: held === 1,
      })),
      unrecovered: found
        .filter(([, , status, , , , recovered]) => status === "dead" && recovered === 0)
        .map(([incarnation, name]) => ({ name: name as NodeName, incarnation })),
    };
  }

  /** Only those who were not heard since they were seen; answers with their incarnations. */
  async markDead(signs: readonly NodeSign[], fence: Term): Promise<ReadonlySet<string>> {
    const args = signs.flatMap(({ incarnation, heartbeat }) => [incarnation, heartbeat]);
    const [, , marked] = await this.#fenced<readonly [number, number, string[]]>(
      scripts.MARK_DEAD,
      fence,
      args,
    );
    return new Set(marked);
  }

  async markRecovered(nodes: readonly NodeIdentity[], fence: Term): Promise<void> {
    await this.#fenced(
      scripts.MARK_RECOVERED,
      fence,
      nodes.map(({ incarnation }) => incarnation),
    );
  }

  async #fenced<Reply extends readonly [number, number, ...unknown[]]>(
    script: RedisScript,
    fence: Term,
    args: readonly (string | number)[],
  ): Promise<Reply> {
    const { role, leader, incarnation, epoch } = fence;
    const reply = await this.#control.timed<Reply>(
      script,
      [this.#key, leaderKey(this.#control, role)],
      [leader, incarnation, epoch, ...args],
    );
    if (reply[0] !== scripts.STALE) return reply;
    const message = `epoch ${epoch} of ${role} is over; nobody is taken for dead by it`;
    throw new BatonError("STALE_EPOCH", message, { epoch });
  }

  #own(): string[] {
    const { identity, info } = this.#o;
    return [identity.incarnation, identity.name, JSON.stringify(info()), this.#status, this.#control.life];
  }
}

/** The subject of a notification of a request. */
export function requestSubject(name: NodeName): string {
  return `node/${name}`;
}

/** A newer version may tell more of itself, an older one less; what cannot be read at all tells nothing. */
function parsed(info: string): Told {
  try {
    const told: unknown = JSON.parse(info);
    return typeof told === "object" && told !== null ? told : {};
  } catch {
    return {};
  }
}

function registered(fields: scripts.NodeFields, now: number): Registered {
  const [incarnation, name, status, at, , , , info] = fields;
  const told = parsed(info);
  const lastSeenAt = Number(at);
  const node = {
    name: name as NodeName,
    incarnation,
    url: told.url ?? null,
    hostname: told.hostname ?? "unknown",
    address: told.address ?? null,
    httpPort: told.httpPort ?? null,
    roles: told.roles ?? [],
    capabilities: told.capabilities ?? [],
    version: told.version ?? "unknown",
    status,
    startedAt: told.startedAt ?? 0,
    lastSeenAt,
    load: { ...IDLE, ...told.load },
  };
  return { node, ageMs: now - lastSeenAt };
}
