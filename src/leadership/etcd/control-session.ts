/**
 * A node's access to etcd: transactions and leases with deadlines, and a watch on the leaders' keys, reopened whenever it
 * breaks. The watch only delivers hints: changes between two openings are lost.
 *
 * In etcd nothing ends with a connection: the death of a leader is noticed when its lease ends.
 */

import type { Clock } from "../../platform/clock.ts";
import type { Platform } from "../../platform/platform.ts";
import { Backoff, Loop, within } from "../../platform/loop.ts";
import { Lifecycle } from "../../platform/service.ts";
import { Gateway } from "./gateway.ts";
import { EtcdRefusal, GRPC, unavailable } from "./gateway-errors.ts";
import {
  range,
  readAnswer,
  readWatch,
  transactionBody,
  type Transaction,
  type TransactionAnswer,
  type WatchEvent,
} from "./key-value.ts";

export interface ControlOptions extends Pick<Platform, "clock" | "random"> {
  readonly url: string;
  readonly prefix: string;
  readonly commandMs: number;
  readonly time: Clock;
  readonly onReady: () => void;
  readonly onLeader: (event: WatchEvent) => void;
}

const FIRST_PAUSE_MS = 10;
/** Longer, and a release is noticed by polling only, for so long after etcd has come back. */
const PAUSE_MS_MAX = 1_000;

export class ControlSession extends Lifecycle {
  readonly commandMs: number;
  readonly time: Clock;
  readonly #o: ControlOptions;
  readonly #gateway: Gateway;
  readonly #watches: Loop;
  #opened = Promise.withResolvers<void>();
  #open = false;

  constructor(options: ControlOptions) {
    super();
    this.commandMs = options.commandMs;
    this.time = options.time;
    this.#o = options;
    this.#gateway = new Gateway(options);
    const backoff = new Backoff(FIRST_PAUSE_MS, PAUSE_MS_MAX, options.random);
    this.#watches = new Loop(options.clock, async (signal) => {
      // It is opened again; the calls report what is wrong.
      await this.#watch(signal).catch(() => {});
      if (this.#open) backoff.reset();
      this.#open = false;
      return backoff.next();
    });
  }

  /** None where there is no other member. */
  get failures(): ReadonlyMap<string, string> {
    return this.#gateway.endpoints.length > 1 ? this.#gateway.failures : new Map();
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

  async revokeLease(lease: string): Promise<void> {
    try {
      await this.#gateway.call("/v3/lease/revoke", { ID: lease });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** A watch that cannot be opened yet is no reason not to start. */
  protected async onStart(): Promise<void> {
    await this.#gateway.start();
    this.#opened = Promise.withResolvers();
    this.#watches.start();
    await within(this.#o.clock, this.commandMs, this.#opened.promise);
  }

  protected async onStop(): Promise<void> {
    await this.#watches.stop();
    await this.#gateway.stop();
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const body = JSON.stringify({ create_request: range(this.key("leader", "")) });
    await this.#gateway.stream("/v3/watch", body, signal, (message) => {
      const seen = readWatch(message);
      if (!seen || seen.canceled) throw new Error("the watch was cancelled");
      if (seen.created) {
        this.#open = true;
        this.#opened.resolve();
        this.#o.onReady();
      }
      for (const event of seen.events) this.#o.onLeader(event);
    });
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof EtcdRefusal && error.grpc === GRPC.notFound;
}
