/**
 * A stream of changes to the keys of a folder, reopened whenever it breaks. It only delivers hints: after each opening the
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
  /** With a slash at its end. */
  readonly folder: string;
  /** It is watched, again after each loss. */
  readonly onOpen: () => void;
  readonly onEvent: (event: WatchEvent) => void;
  /** How long the start waits for the first opening. */
  readonly openMs: number;
}

const FIRST_PAUSE_MS = 10;
/** Longer, and a release is noticed by polling only, for so long after etcd has come back. */
const PAUSE_MS_MAX = 1_000;

export class WatchStream extends Lifecycle {
  readonly #o: WatchStreamOptions;
  #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #opened = Promise.withResolvers<void>();
  #open = false;

  constructor(options: WatchStreamOptions) {
    super();
    this.#o = options;
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
      try {
        await this.#watch(stopping);
      } catch {
        // It is opened again; the calls report what is wrong.
      }
      pauseMs = this.#open ? FIRST_PAUSE_MS : Math.min(2 * pauseMs, PAUSE_MS_MAX);
      this.#open = false;
      await clock.sleep(pauseMs * (0.5 + random.chance()), stopping);
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { gateway, folder, onEvent } = this.#o;
    const body = JSON.stringify({ create_request: range(folder) });
    await gateway.stream("/v3/watch", body, signal, (message) => {
      const seen = readWatch(message);
      if (!seen || seen.canceled) throw new Error("the watch was cancelled");
      if (seen.created) this.#ready();
      for (const event of seen.events) onEvent(event);
    });
  }

  #ready(): void {
    this.#open = true;
    this.#opened.resolve();
    this.#o.onOpen();
  }
}
