/**
 * A node's access to etcd: the names of our keys, transactions and leases with deadlines, and a watch on the keys of
 * this node. Its connections carry nothing else, so that leases and heartbeats never wait.
 *
 * In etcd nothing ends with a connection. A node counts as alive while its lease lasts (node-registry.ts), so a death
 * is noticed after `node.dead_after`, and the death of a leader after its lease.
 */

import type { NodeIdentity } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import { Lifecycle } from "../../platform/service.ts";
import { Gateway } from "./gateway.ts";
import { EtcdRefusal, GRPC, unavailable } from "./gateway-errors.ts";
import { readAnswer, transactionBody, type Transaction, type TransactionAnswer } from "./key-value.ts";
import { WatchStream } from "./watch-stream.ts";

export interface ControlOptions {
  readonly url: string;
  /** Clusters that share an etcd differ in it. */
  readonly prefix: string;
  readonly identity: NodeIdentity;
  readonly clock: Clock;
  readonly random: Random;
  readonly commandMs: number;
  /** Takes the place of our clock where leases are counted: for tests, which move it by hand. */
  readonly time: Clock | null;
  /** What changes is told from now on, again after each loss. */
  readonly onReady: () => void;
  /** One of the leaders' keys was written, or is gone. */
  readonly onLeader: (key: string, revision: number, deleted: boolean) => void;
  /** Something was asked of this node, or its life was ended: a heartbeat is wanted now. */
  readonly onCalled: () => void;
}

export class ControlSession extends Lifecycle {
  readonly commandMs: number;
  /** By which leases are counted. */
  readonly time: Clock;
  readonly #o: ControlOptions;
  readonly #gateway: Gateway;
  readonly #watch: WatchStream;

  constructor(options: ControlOptions) {
    super();
    this.#o = options;
    const { url, clock, random, commandMs, identity } = options;
    this.commandMs = commandMs;
    this.time = options.time ?? clock;
    this.#gateway = new Gateway({ url, clock, commandMs });
    const leaders = this.key("leader", "");
    const request = this.key("request", identity.incarnation);
    const name = this.key("name", identity.name);
    this.#watch = new WatchStream({
      gateway: this.#gateway,
      clock,
      random,
      // Our own entry is written with every heartbeat: its echo shows that the stream lives.
      names: [leaders, request, name, this.key("node", identity.incarnation)],
      openMs: commandMs,
      echoMs: commandMs,
      onOpen: options.onReady,
      onEvent: ({ key, revision, deleted }) => {
        if (key.startsWith(leaders)) options.onLeader(key, revision, deleted);
        else if (key === (deleted ? name : request)) options.onCalled();
      },
    });
  }

  /** Members that did not answer when they were asked last, with the reason; none where there is no other. */
  get failures(): ReadonlyMap<string, string> {
    return this.#gateway.endpoints.length > 1 ? this.#gateway.failures : new Map();
  }

  get steady(): Gateway["steady"] {
    return this.#gateway.steady;
  }

  key(...parts: readonly string[]): string {
    return [this.#o.prefix, ...parts].join("/");
  }

  async transact(transaction: Transaction, deadlineMs = this.commandMs): Promise<TransactionAnswer> {
    try {
      return readAnswer(await this.#gateway.call("/v3/kv/txn", transactionBody(transaction), deadlineMs));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw unavailable("a lease has ended before it was used", "not_done");
    }
  }

  /** Etcd counts in seconds and has a shortest time of its own, 2 s unless it was configured otherwise. */
  async grantLease(ms: number, deadlineMs = this.commandMs): Promise<string> {
    const body = { TTL: String(Math.max(1, Math.ceil(ms / 1_000))) };
    return (await this.#gateway.call<{ readonly ID: string }>("/v3/lease/grant", body, deadlineMs)).ID;
  }

  /** False: it has ended. */
  async keepAlive(lease: string, deadlineMs = this.commandMs): Promise<boolean> {
    const { result } = await this.#gateway.call<{ readonly result?: { readonly TTL?: string } }>(
      "/v3/lease/keepalive",
      { ID: lease },
      deadlineMs,
    );
    return Number(result?.TTL ?? 0) > 0;
  }

  /** Ends a lease, and with it every key that is under it. */
  async revokeLease(lease: string, deadlineMs = this.commandMs): Promise<void> {
    try {
      await this.#gateway.call("/v3/lease/revoke", { ID: lease }, deadlineMs);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Without waiting: one that cannot be ended runs out by itself. */
  dropLease(lease: string): void {
    this.revokeLease(lease).catch(() => {});
  }

  expectEcho(): void {
    this.#watch.expectEcho();
  }

  protected async onStart(): Promise<void> {
    await this.#gateway.start();
    await this.#watch.start();
  }

  protected async onStop(): Promise<void> {
    await this.#watch.stop();
    await this.#gateway.stop();
  }
}

/** The lease is not there any more. */
function isNotFound(error: unknown): boolean {
  return error instanceof EtcdRefusal && error.grpc === GRPC.notFound;
}
