/**
 * A stream of changes to the keys of a folder, reopened whenever it breaks. It only delivers hints: after each opening the
 * listener has to read the keys, because changes in between are lost.
 */

import { Backoff, Loop, within } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { Gateway } from "./gateway.ts";
import { range, readWatch, type WatchEvent } from "./key-value.ts";

const FIRST_PAUSE_MS = 10;
/** Longer, and a release is noticed by polling only, for so long after etcd has come back. */
const PAUSE_MS_MAX = 1_000;

export class WatchStream extends Lifecycle {
  readonly #o: Pick<Platform, "clock" | "random"> & { readonly commandMs: number };
  readonly #gateway: Gateway;
  readonly #folder: string;
  readonly #onOpen: () => void;
  readonly #onEvent: (event: WatchEvent) => void;
  readonly #loop: Loop;
  #opened = Promise.withResolvers<void>();
  #open = false;

  /** The folder has a slash at its end. `onOpen`: it is watched, again after each loss. */
  constructor(
    options: Pick<Platform, "clock" | "random"> & { readonly commandMs: number },
    gateway: Gateway,
    folder: string,
    onOpen: () => void,
    onEvent: (event: WatchEvent) => void,
  ) {
    super();
    this.#o = options;
    this.#gateway = gateway;
    this.#folder = folder;
    this.#onOpen = onOpen;
    this.#onEvent = onEvent;
    const backoff = new Backoff(FIRST_PAUSE_MS, PAUSE_MS_MAX);
    this.#loop = new Loop(options.clock, async (signal) => {
      // It is opened again; the calls report what is wrong.
      await this.#watch(signal).catch(() => {});
      if (this.#open) backoff.reset();
      this.#open = false;
      return backoff.next() * (0.5 + options.random.chance());
    });
  }

  /** A stream that cannot be opened yet is no reason not to start: it only hints. */
  protected async onStart(): Promise<void> {
    this.#opened = Promise.withResolvers();
    this.#loop.start();
    await within(this.#o.clock, this.#o.commandMs, this.#opened.promise);
  }

  protected onStop(): Promise<void> {
    return this.#loop.stop();
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const body = JSON.stringify({ create_request: range(this.#folder) });
    await this.#gateway.stream("/v3/watch", body, signal, (message) => {
      const seen = readWatch(message);
      if (!seen || seen.canceled) throw new Error("the watch was cancelled");
      if (seen.created) this.#ready();
      for (const event of seen.events) this.#onEvent(event);
    });
  }

  #ready(): void {
    this.#open = true;
    this.#opened.resolve();
    this.#onOpen();
  }
}
