/**
 * A node's access to etcd: the names of our keys, transactions and leases with deadlines, and a watch on the leaders'
 * keys. Its connections carry nothing else, so that leases never wait.
 *
 * In etcd nothing ends with a connection: the death of a leader is noticed when its lease ends.
 */

import type { Clock } from "../../platform/clock.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";
import { Gateway } from "./gateway.ts";
import { EtcdRefusal, GRPC, unavailable } from "./gateway-errors.ts";
import {
  readAnswer,
  transactionBody,
  type Transaction,
  type TransactionAnswer,
  type WatchEvent,
} from "./key-value.ts";
import { WatchStream } from "./watch-stream.ts";

export interface ControlOptions extends Pick<Platform, "clock" | "random"> {
  readonly url: string;
  readonly prefix: string;
  readonly commandMs: number;
  /** By which leases are counted. */
  readonly time: Clock;
  /** Changes are reported from now on, again after each loss. */
  readonly onReady: () => void;
  /** One of the leaders' keys was written or deleted. */
  readonly onLeader: (event: WatchEvent) => void;
}

export class ControlSession extends Lifecycle {
  readonly commandMs: number;
  readonly time: Clock;
  readonly #prefix: string;
  readonly #gateway: Gateway;
  readonly #watch: WatchStream;

  constructor(options: ControlOptions) {
    super();
    const { prefix, commandMs, time, onReady, onLeader } = options;
    this.commandMs = commandMs;
    this.time = time;
    this.#prefix = prefix;
    this.#gateway = new Gateway(options);
    this.#watch = new WatchStream(options, this.#gateway, this.key("leader", ""), onReady, onLeader);
  }

  /** Members that did not answer the last request, with the reason; none where there is no other. */
  get failures(): ReadonlyMap<string, string> {
    return this.#gateway.endpoints.length > 1 ? this.#gateway.failures : new Map();
  }

  key(...parts: readonly string[]): string {
    return [this.#prefix, ...parts].join("/");
  }

  async transact(transaction: Transaction, deadlineMs = this.commandMs): Promise<TransactionAnswer> {
    try {
      return readAnswer(await this.#gateway.call("/v3/kv/txn", transactionBody(transaction), deadlineMs));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw unavailable("a lease has ended before it was used", "not_done");
    }
  }

  /** Etcd counts in seconds and has a minimum, 2 s unless it was configured otherwise. */
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
  async revokeLease(lease: string): Promise<void> {
    try {
      await this.#gateway.call("/v3/lease/revoke", { ID: lease });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Without waiting: one that cannot be ended expires. */
  dropLease(lease: string): void {
    this.revokeLease(lease).catch(() => {});
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

/** The lease does not exist any more. */
function isNotFound(error: unknown): boolean {
  return error instanceof EtcdRefusal && error.grpc === GRPC.notFound;
}
