/**
 * The table of nodes, keyed by incarnation. Each node writes its own row. Only the leader writes the status "dead",
 * under the fence of its term; the next heartbeat of a node that is alive revokes it.
 */

import { BatonError } from "../../core/errors.ts";
import type { NodeSign } from "../../core/leadership/failure-detector.ts";
import type { NodeName } from "../../core/ids.ts";
import {
  countNodes,
  NO_LOAD,
  type NodeCounts,
  type NodeIdentity,
  type NodeInfo,
  type NodeStatus,
  type OwnInfo,
} from "../../core/node.ts";
import type { Term } from "../../core/leadership/term.ts";
import { isUniqueViolation } from "../../platform/drivers/postgres/errors.ts";
import type { Statement } from "../../platform/drivers/postgres/postgres.ts";
import type { NodeRequest } from "../coordination.ts";
import { REQUEST_CHANNEL, type ControlSession } from "./control-session.ts";
import * as rows from "./node-records.ts";

export interface NodeList {
  /** By the clock of the backend. */
  readonly at: number;
  readonly others: readonly Registered[];
  readonly request: string | null;
}

export interface Registered {
  readonly node: Omit<NodeInfo, "alive">;
  readonly ageMs: number;
}

export interface Namesake {
  readonly hostname: string;
  readonly version: string;
  readonly startedAt: number;
}

interface NodeSigns {
  /** Changes when the server that keeps the list starts anew. */
  readonly server: string;
  readonly serverUpMs: number;
  readonly signs: readonly (NodeSign & NodeIdentity)[];
  /** Dead, and their work not taken back yet. */
  readonly unrecovered: readonly NodeIdentity[];
}

export class NodeRegistry {
  readonly #control: ControlSession;
  readonly #identity: NodeIdentity;
  readonly #info: () => OwnInfo;
  readonly #deadAfterMs: number;
  #status: NodeStatus = "joining";

  constructor(control: ControlSession, identity: NodeIdentity, info: () => OwnInfo, deadAfterMs: number) {
    this.#control = control;
    this.#identity = identity;
    this.#info = info;
    this.#deadAfterMs = deadAfterMs;
  }

  get status(): NodeStatus {
    return this.#status;
  }

  /** Writes our row, unless another live incarnation has our name: then returns that one. */
  async register(): Promise<Namesake | null> {
    this.#status = "joining";
    try {
      const values = [...this.#own(), this.#deadAfterMs];
      const [alive] = await this.#control.query<Namesake>(rows.REGISTER, values);
      return alive ?? null;
    } catch (error) {
      // A namesake registered in the same moment.
      if (isUniqueViolation(error)) return { hostname: "unknown", version: "unknown", startedAt: 0 };
      throw error;
    }
  }

  /** `heard`: the request that this node has received, so that it can be cleared. */
  async beat(heard: string | null = null): Promise<NodeList> {
    await this.#control.ensureLocked();
    const found = await this.#control
      .query<rows.NodeRow>(rows.BEAT, [...this.#own(), heard])
      .catch((error: unknown) => {
        throw isUniqueViolation(error) ? nameTaken(this.#identity) : error;
      });
    const { at, request } = found[0]!;
    return { at, request, others: found.filter(isNode).map(registered) };
  }

  async setStatus(status: NodeStatus, heard: string | null = null): Promise<NodeList> {
    this.#status = status;
    return this.beat(heard);
  }

  async deregister(): Promise<void> {
    await this.#control.query(rows.DEREGISTER, [this.#identity.incarnation]);
  }

  async nodes(): Promise<readonly NodeInfo[]> {
    const found = await this.#control.query<rows.NodeRow>(rows.LIST, [this.#control.now()]);
    return found.map((row) => {
      const { node, ageMs } = registered(row);
      return { ...node, alive: node.status !== "dead" && ageMs < this.#deadAfterMs };
    });
  }

  activeNodes(): Promise<readonly NodeInfo[]> {
    return this.nodesByStatus("active");
  }

  async nodesByStatus(status: NodeStatus): Promise<readonly NodeInfo[]> {
    return (await this.nodes()).filter((node) => node.status === status);
  }

  async node(incarnation: string): Promise<NodeInfo | null> {
    return (await this.nodes()).find((node) => node.incarnation === incarnation) ?? null;
  }

  async countByStatus(): Promise<NodeCounts> {
    return countNodes(await this.nodes());
  }

  async ask(name: NodeName, request: NodeRequest): Promise<boolean> {
    const payload = this.#control.payload(requestSubject(name));
    const values = [this.#control.now(), name, request, this.#deadAfterMs, REQUEST_CHANNEL, payload];
    return (await this.#control.query(rows.ASK, values)).length > 0;
  }

  /** Forgets recovered nodes that have been silent for so long. */
  async snapshot(fence: Term, forgetAfterMs: number): Promise<NodeSigns> {
    const { role, leader, incarnation, epoch } = fence;
    const values = [this.#control.now(), role, leader, incarnation, epoch, forgetAfterMs];
    const found = await this.#control.query<rows.SignRow>(rows.SIGNS, values);
    const { server, serverUpMs, fenced } = found[0]!;
    if (!fenced) throw stale(fence);
    const signs = found.filter(isNode);
    const dead = signs.filter(({ status }) => status === "dead");
    if (dead.some((row) => row.recovered && row.old)) await this.cleanupDead(forgetAfterMs, fence);
    const unrecovered = dead.filter((row) => !row.recovered).map(identityOf);
    return { server, serverUpMs, signs, unrecovered };
  }

  /** Only those whose row is still as it was seen; answers which they were. */
  markDead(signs: readonly NodeSign[], fence: Term): Promise<readonly NodeIdentity[]> {
    const seen = [signs.map(({ incarnation }) => incarnation), signs.map(({ heartbeat }) => heartbeat)];
    return this.#fenced(rows.MARK_DEAD, fence, seen);
  }

  markRecovered(nodes: readonly NodeIdentity[], fence: Term): Promise<readonly NodeIdentity[]> {
    return this.#fenced(rows.MARK_RECOVERED, fence, [nodes.map((node) => node.incarnation)]);
  }

  /** Forgets the dead whose work was taken back and who have been silent for so long. */
  cleanupDead(olderThanMs: number, fence: Term): Promise<readonly NodeIdentity[]> {
    return this.#fenced(rows.CLEANUP_DEAD, fence, [this.#control.now(), olderThanMs]);
  }

  async #fenced(
    statement: Statement,
    fence: Term,
    values: readonly unknown[],
  ): Promise<readonly NodeIdentity[]> {
    const { role, leader, incarnation, epoch } = fence;
    const all = [role, leader, incarnation, epoch, ...values];
    const found = await this.#control.query<rows.FencedRow>(statement, all);
    if (!found[0]!.fenced) throw stale(fence);
    return found.filter(isNode).map(identityOf);
  }

  #own(): unknown[] {
    const identity = this.#identity;
    const { hostname, url, roles, capabilities, version, startedAt, load, address, httpPort } = this.#info();
    return [
      this.#control.now(),
      identity.incarnation,
      identity.name,
      hostname,
      url,
      roles,
      capabilities,
      version,
      this.#status,
      Math.round(startedAt),
      JSON.stringify(load),
      JSON.stringify({ address, httpPort }),
      this.#control.locked,
    ];
  }
}

export function requestSubject(name: NodeName): string {
  return `node/${name}`;
}

/** There is a row without a node when there is none. */
function isNode({ incarnation }: { readonly incarnation: string | null }): boolean {
  return incarnation !== null;
}

function identityOf({ name, incarnation }: NodeIdentity): NodeIdentity {
  return { name, incarnation };
}

function registered({ at, request: _request, info, load, ...row }: rows.NodeRow): Registered {
  const { address = null, httpPort = null } = info;
  const node = { ...row, address, httpPort, load: { ...NO_LOAD, ...load } };
  return { node, ageMs: at - row.lastSeenAt };
}

function stale(fence: Term): BatonError {
  const { role, epoch } = fence;
  return new BatonError("STALE_EPOCH", `epoch ${epoch} of ${role} is over; nobody is taken for dead by it`, {
    epoch,
  });
}

/** For a heartbeat. The node that has the name now is in the list, and the others send to it what is meant for us. */
function nameTaken({ name }: NodeIdentity): BatonError {
  return new BatonError(
    "NAME_IN_USE",
    `this node was taken for dead, and another has taken the name ${name} meanwhile: it is not in the list of nodes and does not lead; restart it under another name`,
    { field: "name", name },
  );
}
