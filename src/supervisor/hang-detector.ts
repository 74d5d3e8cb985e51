/**
 * Detects children that run but make no progress: a controller whose `/livez` does not answer, an agent that leaves its
 * work.
 *
 * Failures are counted, not only timed: after a pause of this process all children appear silent until the next check.
 */

import { hangOf } from "../core/supervision.ts";
import type { Clock } from "../platform/clock.ts";
import { Loop } from "../platform/loop.ts";
import { Lifecycle } from "../platform/service.ts";
import type { ControllerClient } from "./controller-client.ts";

export interface HangDetectorOptions {
  readonly wedgedAfterMs: number;
  /** The controller that runs; null while there is none to ask. */
  readonly controller: () => Pick<ControllerClient, "livez" | "agent" | "waiting" | "works"> | null;
  /** The agent that runs, since when, and which queues it leases from; null while there is none. */
  readonly agent: () => {
    readonly name: string;
    readonly startedAt: number;
    readonly queues: ReadonlySet<string> | null;
    /** Whether it leases under that name; one in another language may call itself something else. */
    readonly known: boolean;
  } | null;
  readonly onWedged: (child: "controller" | "agent", reason: string) => void;
}

/** So many looks within the time. Fewer, and one lost answer costs a child its life. */
const LOOKS = 4;

type Found = { readonly reason: string; readonly fatal: boolean } | null;

export class HangDetector extends Lifecycle {
  readonly #clock: Clock;
  readonly #o: HangDetectorOptions;
  readonly #loops: readonly Loop[];

  constructor(platform: { readonly clock: Clock }, options: HangDetectorOptions) {
    super();
    this.#clock = platform.clock;
    this.#o = options;
    this.#loops = [
      this.#watch("controller", () => this.#checkController()),
      this.#watch("agent", () => this.#checkAgent()),
    ];
  }

  protected override onStart(): void {
    for (const loop of this.#loops) loop.start();
  }

  protected override async onStop(): Promise<void> {
    await Promise.all(this.#loops.map((loop) => loop.stop()));
  }

  #watch(child: "controller" | "agent", check: () => Promise<Found>): Loop {
    const { wedgedAfterMs } = this.#o;
    const clock = this.#clock;
    /** Looks in a row that found trouble, and when the first of them was. */
    let checks = 0;
    let since = 0;
    return new Loop(clock, async (signal) => {
      const checkedAt = clock.monotonic();
      const found = await check();
      if (signal.aborted) return 0;
      if (!found) checks = 0;
      else if (checks++ === 0) since = checkedAt;
      const lasted = checks > LOOKS && checkedAt - since >= wedgedAfterMs;
      if (found && (lasted || found.fatal)) {
        this.#o.onWedged(child, found.reason);
        checks = 0;
      }
      return wedgedAfterMs / LOOKS - (clock.monotonic() - checkedAt);
    });
  }

  async #checkController(): Promise<Found> {
    const controller = this.#o.controller();
    if (controller === null) return null;
    const wrong = await controller.livez();
    // Another one may have come in the meantime.
    return this.#o.controller() === controller ? wrong : null;
  }

  /** Asked of the own controller, which knows what the leader has stored; silent if that cannot tell. */
  async #checkAgent(): Promise<Found> {
    const { wedgedAfterMs } = this.#o;
    const clock = this.#clock;
    const controller = this.#o.controller();
    const running = this.#o.agent();
    if (controller === null || running === null || clock.now() - running.startedAt < wedgedAfterMs)
      return null;
    const waiting = await controller.waiting();
    if (waiting === null || waiting.jobs.length === 0) return null;
    const agent = await controller.agent(running.name);
    if (agent === null || (agent === undefined && !running.known)) return null;
    if (this.#o.agent()?.startedAt !== running.startedAt) return null;
    const reason = hangOf({
      agent: agent ?? null,
      waiting: waiting.jobs,
      pausedQueues: waiting.paused,
      queues: running.queues,
      now: clock.now(),
      wedgedAfterMs,
    });
    // What it says of itself is a heartbeat old; short jobs fall between two of them.
    if (reason === null || (await controller.works(running.name, clock.now() - wedgedAfterMs)) !== false)
      return null;
    return { reason, fatal: false };
  }
}
