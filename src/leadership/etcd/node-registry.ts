/**
 * The list of nodes in etcd (node-records.ts). Each node writes its own entry. Only the leader writes the status
 * "dead", under the fence of its term; the next heartbeat of a node that is alive revokes it. If the list is deleted,
 * the next heartbeats of all nodes restore it.
 *
 * The end of an incarnation's lease is evidence of a death only while etcd answers steadily: when a stalled etcd
 * continues, it ends all leases at once, before it has received any heartbeat.
 */

import { BatonError } from "../../core/errors.ts";
import type { NodeSign } from "../../core/leadership/failure-detector.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity, NodeStatus, OwnInfo } from "../../core/node.ts";
import type { Term } from "../../core/leadership/term.ts";
import type { NodeRequest } from "../coordination.ts";
import { nameTaken } from "../registered-membership.ts";
import type { Namesake, NodeSigns, Registry, NodeList } from "../registered-membership.ts";
import type { ControlSession } from "./control-session.ts";
import { unavailable } from "./gateway-errors.ts";
import * as kv from "./key-value.ts";
import { isOf, leaderKey } from "./leader-record.ts";
import { readNames, readRows, registered, type NodeEntry, type NodeRow } from "./node-records.ts";
import { UnchangedTimer } from "./unchanged-timer.ts";

export interface RegistryOptions {
  readonly control: ControlSession;
  readonly identity: NodeIdentity;
  readonly info: () => OwnInfo;
  /** Whoever has been silent for so long is not taken for alive; also how long our own life lasts without a heartbeat. */
  readonly deadAfterMs: number;
  /** How long dead nodes are kept after their work was recovered. */
  readonly forgetAfterMs: number;
}

/** The term of a fence as it stands in etcd, and what was asked for beside it. */
interface Fenced {
  readonly lease: string;
  readonly rows: readonly NodeRow[];
  readonly names: ReadonlyMap<string, string>;
}

export class NodeRegistry implements Registry {
  readonly #o: RegistryOptions;
  readonly #control: ControlSession;
  readonly #stillness: UnchangedTimer;
  readonly #nodes: string;
  readonly #names: string;
  readonly #ownName: string;
  readonly #ownRequest: string;
  #status: NodeStatus = "joining";
  /** Of our life. */
  #lease = kv.NO_LEASE;

  constructor(options: RegistryOptions) {
    this.#o = options;
    const { control, identity } = options;
    this.#control = control;
    this.#stillness = new UnchangedTimer(control.time);
    this.#nodes = control.key("node", "");
    this.#names = control.key("name", "");
    this.#ownName = this.#names + identity.name;
    this.#ownRequest = this.#requestKey(identity.incarnation);
  }

  get status(): NodeStatus {
    return this.#status;
  }

  /** Our entry, unless another life with our name is alive: then who it is. */
  async register(): Promise<Namesake | null> {
    this.#status = "joining";
    const namesake = await this.#enter([kv.remove(this.#ownRequest)]);
    if (!namesake) return null;
    const { hostname = "unknown", version = "unknown", startedAt = 0 } = namesake.entry?.info ?? {};
    return { hostname, version, startedAt };
  }

  /** Sends a heartbeat; `heard` is the request that this node has received, so that it can be cleared. */
  async beat(heard: string | null = null): Promise<NodeList> {
    if (heard !== null) {
      const cleared = { if: [kv.hasValue(this.#ownRequest, heard)], then: [kv.remove(this.#ownRequest)] };
      await this.#control.transact(cleared);
    }
    const [lives, answer] = await Promise.all([this.#control.keepAlive(this.#lease), this.#tell()]);
    if (lives && answer.succeeded) return this.#roll(answer);
    if (await this.#enter([])) throw nameTaken(this.#o.identity);
    const again = await this.#tell();
    if (!again.succeeded) throw unavailable("our name was taken and given back just now", "unknown");
    return this.#roll(again);
  }

  async setStatus(status: NodeStatus, heard: string | null = null): Promise<NodeList> {
    this.#status = status;
    return this.beat(heard);
  }

  async deregister(): Promise<void> {
    const { incarnation } = this.#o.identity;
    await this.#control.transact({
      then: [kv.remove(this.#nodes + incarnation), kv.remove(this.#ownRequest)],
    });
    if (this.#lease !== kv.NO_LEASE) await this.#control.revokeLease(this.#lease);
    this.#lease = kv.NO_LEASE;
  }

  /** False when no living node has that name. */
  async ask(name: NodeName, request: NodeRequest): Promise<boolean> {
    const { found } = await this.#control.transact({
      then: [kv.getAll(this.#nodes), kv.getAll(this.#names)],
    });
    const names = readNames(found[1], this.#names);
    const row = readRows(found[0], this.#nodes).find(
      (each) =>
        each.name === name && each.entry.status !== "dead" && this.#ageMs(each, names) < this.#o.deadAfterMs,
    );
    if (!row) return false;
    const { succeeded } = await this.#control.transact({
      if: [kv.exists(this.#nodes + row.incarnation)],
      then: [kv.put(this.#requestKey(row.incarnation), request)],
    });
    return succeeded;
  }

  async snapshot(fence: Term): Promise<NodeSigns> {
    const { rows, names } = await this.#fenced(fence);
    const { breaks, ms } = this.#control.steady;
    return {
      server: String(breaks),
      serverUpMs: ms,
      signs: rows.map(({ incarnation, name, entry: { status }, revision }) => ({
        incarnation,
        name,
        status,
        heartbeat: revision,
        locked: true,
        held: names.get(name) === incarnation,
      })),
      unrecovered: rows
        .filter(({ entry }) => entry.status === "dead" && !entry.recovered)
        .map(({ name, incarnation }) => ({ name, incarnation })),
    };
  }

  /** Only those who were not heard since they were seen; answers with their incarnations. */
  async markDead(signs: readonly NodeSign[], fence: Term): Promise<ReadonlySet<string>> {
    const { lease, rows } = await this.#fenced(fence);
    const marked = new Set<string>();
    for (const { incarnation, heartbeat } of signs) {
      const row = rows.find((each) => each.incarnation === incarnation);
      if (!row || row.revision !== heartbeat || row.entry.status === "dead") continue;
      const dead: NodeEntry = { ...row.entry, status: "dead", recovered: false };
      if (await this.#rewrite(row, dead, fence, lease)) marked.add(incarnation);
    }
    return marked;
  }

  /** Etcd itself forgets them after a while. */
  async markRecovered(nodes: readonly NodeIdentity[], fence: Term): Promise<void> {
    const { lease, rows } = await this.#fenced(fence);
    const resting = rows.filter(
      ({ incarnation, entry }) =>
        entry.status === "dead" && !entry.recovered && nodes.some((node) => node.incarnation === incarnation),
    );
    if (resting.length === 0) return;
    const memory = await this.#control.grantLease(this.#o.forgetAfterMs);
    for (const row of resting)
      await this.#rewrite(row, { ...row.entry, recovered: true }, fence, lease, memory);
  }

  /** Takes our name, for a new life if the last one has ended. Answers with whoever has it instead. */
  async #enter(also: readonly kv.Operation[]): Promise<{ readonly entry: NodeEntry | null } | null> {
    const control = this.#control;
    const { identity, deadAfterMs } = this.#o;
    const { found } = await control.transact({ then: [kv.get(this.#ownName), kv.getAll(this.#nodes)] });
    const [holder] = found[0] ?? [];
    const rows = readRows(found[1], this.#nodes);
    if (holder && holder.value !== identity.incarnation) {
      return { entry: rows.find(({ incarnation }) => incarnation === holder.value)?.entry ?? null };
    }
    const lease = await control.grantLease(deadAfterMs);
    const { succeeded } = await control.transact({
      if: [kv.unchanged(this.#ownName, holder?.revision ?? 0)],
      then: [kv.put(this.#ownName, identity.incarnation, lease), this.#putOwn(), ...also],
    });
    if (!succeeded) {
      control.dropLease(lease);
      return { entry: null }; // a namesake registered in the same moment
    }
    if (this.#lease !== kv.NO_LEASE) control.dropLease(this.#lease);
    this.#lease = lease;
    await this.#markPredecessorsDead(rows);
    return null;
  }

  /** Earlier incarnations with our name. The name was free, so they have ended; the leader recovers their work. */
  async #markPredecessorsDead(rows: readonly NodeRow[]): Promise<void> {
    const { name, incarnation } = this.#o.identity;
    for (const row of rows) {
      if (row.name !== name || row.incarnation === incarnation || row.entry.status === "dead") continue;
      const dead: NodeEntry = { ...row.entry, status: "dead", recovered: false };
      await this.#control.transact({
        if: [kv.unchanged(this.#nodes + row.incarnation, row.revision)],
        then: [kv.put(this.#nodes + row.incarnation, JSON.stringify(dead))],
      });
    }
  }

  #tell(): Promise<kv.TransactionAnswer> {
    return this.#control.transact({
      if: [kv.isUnder(this.#ownName, this.#lease)],
      then: [this.#putOwn(), kv.getAll(this.#nodes), kv.getAll(this.#names), kv.get(this.#ownRequest)],
    });
  }

  #roll({ found }: kv.TransactionAnswer): NodeList {
    this.#control.expectEcho();
    const all = readRows(found[0], this.#nodes);
    const names = readNames(found[1], this.#names);
    this.#stillness.keep(new Set(all.map(({ incarnation }) => incarnation)));
    return {
      at: this.#control.time.now(),
      request: found[2]?.[0]?.value ?? null,
      others: all
        .filter(({ incarnation }) => incarnation !== this.#o.identity.incarnation)
        .map((row) => registered(row, this.#ageMs(row, names))),
    };
  }

  /** Since its last heartbeat, as far as we saw. One without a life that we never heard is taken for old. */
  #ageMs({ name, incarnation, revision }: NodeRow, names: ReadonlyMap<string, string>): number {
    const firstAgeMs = names.get(name) === incarnation ? 0 : this.#o.deadAfterMs;
    return this.#stillness.ageMs(incarnation, revision, firstAgeMs);
  }

  async #fenced(fence: Term): Promise<Fenced> {
    const key = leaderKey(this.#control, fence.role);
    const { found } = await this.#control.transact({
      then: [kv.get(key), kv.getAll(this.#nodes), kv.getAll(this.#names)],
    });
    const held = found[0]?.[0];
    if (!held || !isOf(held, fence)) throw stale(fence);
    return {
      lease: held.lease,
      rows: readRows(found[1], this.#nodes),
      names: readNames(found[2], this.#names),
    };
  }

  /** False when the node was heard meanwhile. */
  async #rewrite(
    { incarnation, revision }: NodeRow,
    entry: NodeEntry,
    fence: Term,
    termLease: string,
    memory = kv.NO_LEASE,
  ): Promise<boolean> {
    const key = this.#nodes + incarnation;
    const leader = leaderKey(this.#control, fence.role);
    const { succeeded, found } = await this.#control.transact({
      if: [kv.isUnder(leader, termLease), kv.unchanged(key, revision)],
      then: [kv.put(key, JSON.stringify(entry), memory), kv.remove(this.#requestKey(incarnation))],
      else: [kv.get(leader)],
    });
    if (!succeeded && found[0]?.[0]?.lease !== termLease) throw stale(fence);
    return succeeded;
  }

  #putOwn(): kv.Operation {
    const { identity, info } = this.#o;
    const entry: NodeEntry = {
      name: identity.name,
      status: this.#status,
      at: this.#control.time.now(),
      recovered: false,
      info: info(),
    };
    return kv.put(this.#nodes + identity.incarnation, JSON.stringify(entry));
  }

  #requestKey(incarnation: string): string {
    return this.#control.key("request", incarnation);
  }
}

function stale({ epoch, role }: Term): BatonError {
  const message = `epoch ${epoch} of ${role} is over; nobody is taken for dead by it`;
  return new BatonError("STALE_EPOCH", message, { epoch });
}
