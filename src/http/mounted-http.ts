/**
 * The API and the dashboard without a listener of their own, for a server of the program around this node. Made by the
 * first request: who mounts nothing loads no HTTP server.
 *
 *   their server --> their authentication --> handle() --> the same app as behind a listener
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import { BatonError } from "../core/errors.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import type { AppOptions } from "./app.ts";
import { noteOuterCaller, type Mounted, type OuterCaller } from "./outer-callers.ts";

export interface MountedHttpOptions extends Pick<
  AppOptions,
  "executor" | "bodyLimitBytes" | "dashboard" | "rateLimit" | "sink"
> {
  readonly required: Mounted["required"];
}

/**
 * Readers of events are authenticated once: they come again after this time, behind what they saw last. Longer, and
 * somebody who was signed out goes on reading for longer.
 */
const STREAM_MS_MAX = 60_000;

export class MountedHttp extends Lifecycle implements Mounted {
  readonly #platform: Pick<Platform, "clock" | "log">;
  readonly #options: MountedHttpOptions;
  #app: Promise<FastifyInstance> | null = null;

  constructor(platform: Pick<Platform, "clock" | "log">, options: MountedHttpOptions) {
    super();
    this.#platform = platform;
    this.#options = options;
  }

  get required(): Mounted["required"] {
    return this.#options.required;
  }

  async handle(request: IncomingMessage, response: ServerResponse, caller: OuterCaller): Promise<void> {
    if (!this.running) throw new BatonError("STOPPED", "this node has been stopped");
    const app = await (this.#app ??= this.#build());
    const { clock } = this.#platform;
    const until = clock.monotonic() + STREAM_MS_MAX;
    const stays = (): boolean => clock.monotonic() < until && caller.stays();
    noteOuterCaller(request, { ...caller, stays });
    app.routing(request, response);
  }

  async #build(): Promise<FastifyInstance> {
    const { buildApp } = await import("./app.ts");
    // Under which names it is called is the affair of the server around it, as where it listens.
    return buildApp(this.#platform, { ...this.#options, host: "0.0.0.0", access: "application" });
  }

  protected onStart(): void {}

  /** Ends event streams at once, and lets requests finish. */
  protected async onStop(): Promise<void> {
    await (await this.#app)?.close();
  }
}
