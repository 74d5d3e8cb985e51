/**
 * Receives notifications on a dedicated connection.
 *
 * A connection can be deaf without being broken: half open, or reassigned by a pooler. So at intervals a test payload
 * is sent on the *other* connection and expected here. If it does not arrive, this connection is closed and another one
 * opened. Notifications sent in between are lost; `onGap` reports that once the new connection works.
 */

import type { Clock } from "../../platform/clock.ts";
import { write } from "../../platform/drivers/postgres/postgres.ts";
import { PostgresSession, type PostgresSessionOptions } from "../../platform/drivers/postgres/session.ts";
import type { Log } from "../../platform/log.ts";
import { Lifecycle } from "../../platform/service.ts";
import { type Entry, parsePayload } from "./payload.ts";

export interface ListenerOptions {
  readonly session: Omit<PostgresSessionOptions, "onOpen" | "onLost" | "onNotification">;
  readonly clock: Clock;
  readonly log?: Pick<Log, "info" | "warn"> | undefined;
  readonly channel: string;
  /** What it sends is not told: it knows already. */
  readonly origin: string;
  readonly probeMs: number;
  readonly answerMs: number;
  /** Sends a payload on another connection, and tells its number. */
  readonly probe: () => Promise<number>;
  readonly hear: (entries: readonly Entry[]) => void;
  readonly onGap: () => void;
}

export class Listener extends Lifecycle {
  readonly #o: ListenerOptions;
  readonly #session: PostgresSession;
  readonly counters = { heard: 0, gaps: 0, deaf: 0 };
  /** How often LISTEN was said in this life. */
  #listens = 0;
  /** The number of the last payload of ours that came back. */
  #echo = 0;
  #onEcho: () => void = () => {};
  #over = new AbortController();
  #watching: Promise<void> = Promise.resolve();

  constructor(options: ListenerOptions) {
    super();
    this.#o = options;
    const listen = write(`listen ${options.channel}`, `LISTEN "${options.channel}"`);
    this.#session = new PostgresSession({
      ...options.session,
      onOpen: async (session) => {
        await session.query(listen);
        this.#listening();
      },
      onLost: (err) => options.log?.warn({ err }, "notifications are not heard at the moment"),
      onNotification: (_, payload) => this.#hear(payload),
    });
  }

  protected async onStart(): Promise<void> {
    this.#listens = 0;
    this.#over = new AbortController();
    await this.#session.start();
    this.#watching = this.#watch(this.#over.signal);
  }

  protected async onStop(): Promise<void> {
    this.#over.abort();
    await Promise.all([this.#session.stop(), this.#watching]);
  }

  #listening(): void {
    this.#listens += 1;
    if (this.#listens === 1) return;
    this.counters.gaps += 1;
    this.#o.log?.info(
      { gaps: this.counters.gaps },
      "notifications are heard again; some may have been missed",
    );
    this.#o.onGap();
  }

  #hear(text: string): void {
    const payload = parsePayload(text);
    if (!payload) return;
    if (payload.origin === this.#o.origin) {
      this.#echo = Math.max(this.#echo, payload.number);
      this.#onEcho();
      return;
    }
    this.counters.heard += 1;
    this.#o.hear(payload.entries());
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { clock, probeMs, answerMs, probe, log } = this.#o;
    for (;;) {
      await clock.sleep(probeMs, signal);
      if (signal.aborted) return;
      if (!this.#session.open) continue;
      const listens = this.#listens;
      // When the other connection fails, nothing is known of this one.
      const number = await probe().catch(() => null);
      if (number === null || (await this.#comesBack(number, signal))) continue;
      if (signal.aborted || this.#listens !== listens) continue;
      this.counters.deaf += 1;
      log?.warn(
        { waitedMs: answerMs, deaf: this.counters.deaf },
        "the connection for notifications is deaf; opening another",
      );
      this.#session.reset(`a notification of our own was not heard within ${answerMs} ms`);
    }
  }

  /**
   * Waits in two halves: after a standstill of this process a timer is due before the socket was read, and would blame the
   * connection. The second half begins when we run again.
   */
  async #comesBack(number: number, signal: AbortSignal): Promise<boolean> {
    const { clock, answerMs } = this.#o;
    const back = new AbortController();
    this.#onEcho = () => {
      if (this.#echo >= number) back.abort();
    };
    this.#onEcho();
    const over = AbortSignal.any([signal, back.signal]);
    for (let half = 0; half < 2; half++) await clock.sleep(answerMs / 2, over);
    this.#onEcho = () => {};
    return back.signal.aborted;
  }
}
