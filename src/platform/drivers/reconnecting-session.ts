/**
 * What the sessions of PostgreSQL and Redis share: one connection at a time, which is opened again after every loss, with pauses that grow
 * and are spread. A backend supplies how a connection is made, set up and closed.
 */

import { Backoff, retry } from "../loop.ts";
import type { Platform } from "../platform.ts";
import { Lifecycle } from "../service.ts";

export interface SessionEvents {
  readonly onReady?: () => void;
  /** Called in the moment in which an open connection breaks, also while no answer is awaited. */
  readonly onLost?: (reason: unknown) => void;
}

const FIRST_PAUSE_MS = 10;
/** Longer, and a cluster takes longer to gather after its server has come back. */
const PAUSE_MS_MAX = 1_000;

export abstract class ReconnectingSession<Connection> extends Lifecycle {
  readonly #o: Pick<Platform, "clock" | "random"> & SessionEvents;
  #open: Connection | null = null;
  #current: Connection | null = null;
  #stopping = new AbortController();
  #opening: Promise<void> = Promise.resolve();

  constructor(options: Pick<Platform, "clock" | "random"> & SessionEvents) {
    super();
    this.#o = options;
  }

  /** Not open yet. Its end is reported with `ended`. */
  protected abstract make(): Connection;
  /** Opens it. Until it resolves, the session does not count as open; when it rejects, the connection is given up. */
  protected abstract setUp(connection: Connection): Promise<void>;
  protected abstract destroy(connection: Connection, reason: unknown): void;
  protected abstract farewell(connection: Connection, open: boolean): Promise<void> | void;
  protected abstract translated(error: unknown): unknown;
  protected abstract unavailable(reason: string): Error;

  get open(): boolean {
    return this.#open !== null;
  }

  /** Waits for the first connection, and rejects with the reason when there is none. */
  protected async onStart(): Promise<void> {
    this.#stopping = new AbortController();
    await this.#connect();
  }

  protected async onStop(): Promise<void> {
    this.#stopping.abort();
    const connection = this.#current;
    const open = this.#open === connection;
    this.#current = null;
    this.#open = null;
    if (connection) await this.farewell(connection, open);
    await this.#opening;
  }

  protected use<Answer>(work: (connection: Connection) => Promise<Answer>): Promise<Answer> {
    return this.#open ? work(this.#open) : Promise.reject(this.unavailable("not connected"));
  }

  /** Lost from this moment on: no caller is refused and finds the session open. */
  protected giveUp(connection: Connection | null, reason: unknown): void {
    if (connection === null) return;
    this.destroy(connection, reason);
    this.ended(connection, reason);
  }

  protected get current(): Connection | null {
    return this.#current;
  }

  protected ended(connection: Connection, reason: unknown): void {
    if (this.#current !== connection) return;
    this.#current = null;
    if (this.#open !== connection) return; // `#connect` rejects
    this.#open = null;
    this.#o.onLost?.(reason);
    const { signal } = this.#stopping;
    if (!signal.aborted) this.#opening = this.#reconnect(signal);
  }

  async #connect(): Promise<void> {
    const connection = this.make();
    this.#current = connection;
    try {
      await this.setUp(connection);
      if (this.#current !== connection) throw this.unavailable("the connection broke at once");
    } catch (error) {
      if (this.#current === connection) this.#current = null;
      this.destroy(connection, error);
      throw this.translated(error);
    }
    this.#open = connection;
    this.#o.onReady?.();
  }

  async #reconnect(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#o;
    const backoff = new Backoff(FIRST_PAUSE_MS, PAUSE_MS_MAX, random);
    await retry(
      clock,
      () => this.#connect(),
      () => backoff.next(),
      signal,
    ).catch(() => {}); // stopped
  }
}
