/**
 * A stream of changes to some keys, reopened whenever it breaks. It only delivers hints: after each opening the
 * listener has to read the keys, because changes in between are lost.
 */

import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { Gateway } from "./gateway.ts";
import { range, readWatch, type WatchEvent } from "./key-value.ts";

export interface WatchStreamOptions {
  readonly gateway: Gateway;
  readonly clock: Clock;
  readonly random: Random;
  /** Keys, and folders with a slash at their end. */
  readonly names: readonly string[];
  /** All of them are watched, again after each loss. */
  readonly onOpen: () => void;
  readonly onEvent: (event: WatchEvent) => void;
  /** How long the start waits for the first opening. */
  readonly openMs: number;
  /** An echo that is not there after so long does not come any more. */
  readonly echoMs: number;
}

const FIRST_PAUSE_MS = 10;
/** Longer, and a release is noticed by polling only, for so long after etcd has come back. */
const PAUSE_MS_MAX = 1_000;

export class WatchStream extends Lifecycle {
  readonly #o: WatchStreamOptions;
  #stopping = new AbortController();
  #current = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #opened = Promise.withResolvers<void>();
  #open = false;
  /** How often an echo was expected since anything came, and since when. */
  #unechoed = { times: 0, since: 0 };

  constructor(options: WatchStreamOptions) {
    super();
    this.#o = options;
  }

  get open(): boolean {
    return this.#open;
  }

  /**
   * We have just written one of the watched keys. If nothing at all came after the last times, the other end of the stream is gone
   * and nobody has told us: it is opened anew. Twice, because the echo may come before the answer to the write.
   */
  expectEcho(): void {
    const now = this.#o.clock.monotonic();
    const { times, since } = this.#unechoed;
    if (this.#open && times >= 2 && now - since >= this.#o.echoMs) this.#current.abort();
    this.#unechoed = { times: times + 1, since: times === 0 ? now : since };
  }

  /** A stream that cannot be opened yet is no reason not to start: it only hints. */
  protected async onStart(): Promise<void> {
    const { clock, openMs } = this.#o;
    this.#stopping = new AbortController();
    this.#opened = Promise.withResolvers();
    this.#loop = this.#run(this.#stopping.signal);
    const waited = new AbortController();
    await Promise.race([this.#opened.promise, clock.sleep(openMs, waited.signal)]);
    waited.abort();
  }

  protected async onStop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #run(stopping: AbortSignal): Promise<void> {
    const { clock, random } = this.#o;
    let pauseMs = FIRST_PAUSE_MS;
    while (!stopping.aborted) {
      this.#current = new AbortController();
      try {
        await this.#watch(AbortSignal.any([stopping, this.#current.signal]));
      } catch {
        // It is opened again; the calls tell people what is wrong.
      }
      pauseMs = this.#open ? FIRST_PAUSE_MS : Math.min(2 * pauseMs, PAUSE_MS_MAX);
      this.#open = false;
      await clock.sleep(pauseMs * (0.5 + random.chance()), stopping);
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { gateway, names, onEvent } = this.#o;
    const body = names.map((name) => JSON.stringify({ create_request: range(name) })).join("");
    let missing = names.length;
    this.#unechoed = { times: 0, since: 0 };
    await gateway.stream("/v3/watch", body, signal, (message) => {
      const told = readWatch(message);
      if (!told || told.canceled) throw new Error("the watch was called off");
      this.#unechoed = { times: 0, since: 0 };
      if (told.created && --missing === 0) this.#ready();
      for (const event of told.events) onEvent(event);
    });
  }

  #ready(): void {
    this.#open = true;
    this.#opened.resolve();
    this.#o.onOpen();
  }
}
