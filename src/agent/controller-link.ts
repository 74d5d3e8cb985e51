/**
 * An agent's link to the controllers: leases, renewals, reports, results, heartbeats. It runs on its own thread
 * (controller-link-main.ts), because handlers may block the event loop of the main thread, and a lease that is not
 * renewed is lost.
 */

import type { Connection } from "../client/connection/connection.ts";
import { LeaderConnection } from "../client/connection/leader-connection.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import { Lifecycle } from "../platform/service.ts";
import type { ClaimedJob } from "../store/store.ts";
import { ResultSender } from "./result-sender.ts";
import { Heartbeater } from "./heartbeater.ts";
import { LeasePoller } from "./lease-poller.ts";
import { LeaseRenewer } from "./lease-renewer.ts";
import type { FromLink, ToLink } from "./controller-link-messages.ts";

/** What can be copied to the thread. */
export interface ControllerLinkSettings {
  readonly urls: readonly string[];
  /** Shown to the controllers; undefined where none asks for one. */
  readonly token?: string;
  readonly agent: string;
  readonly capabilities: readonly string[];
  /** Null for all. */
  readonly queues: readonly string[] | null;
  readonly version: string;
}

export interface ControllerLinkOptions extends ControllerLinkSettings {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly send: (message: FromLink) => void;
  readonly connect?: (url: string) => Connection;
}

/** What is unanswered at the end is rarely a lease. Longer, and an idle agent's stop waits for a leader. */
const LAST_BEAT_MS = 1_500;

export class ControllerLink extends Lifecycle {
  readonly #o: ControllerLinkOptions;
  readonly #leader: LeaderConnection;
  readonly #leases: LeaseRenewer;
  readonly #results: ResultSender;
  readonly #poller: LeasePoller;
  readonly #heartbeater: Heartbeater;
  #running = 0;

  constructor(options: ControllerLinkOptions) {
    super();
    this.#o = options;
    const { send } = options;
    const leader = (this.#leader = new LeaderConnection(options));
    const leases = (this.#leases = new LeaseRenewer({
      ...options,
      leader,
      onLost: (lease, why) => send({ say: "lost", lease, why }),
      onCancel: (run, reason) => send({ say: "cancel", run, reason }),
    }));
    this.#results = new ResultSender({ ...options, leader, leases, onRecovered: () => this.#poller.wake() });
    this.#poller = new LeasePoller({
      ...options,
      leader,
      blocked: () => this.#results.failing,
      onLeased: ({ lease_id, leader_epoch, expires_in_ms, tasks }) =>
        leases.open(
          lease_id,
          leader_epoch,
          expires_in_ms,
          tasks.map(({ job_id }) => job_id),
        ),
      offer: send,
      giveBack: (jobs) => this.#giveBack(jobs),
    });
    // A handler may block the event loop before anybody could say that it runs.
    this.#heartbeater = new Heartbeater({
      ...options,
      leader,
      running: () => Math.max(this.#running, leases.jobs),
    });
  }

  hear(message: ToLink): void {
    switch (message.say) {
      case "room":
        this.#running = message.running;
        return this.#poller.room(message.free, message.seen);
      case "report":
        return this.#results.report(message.run, message.report);
      case "result":
        return this.#results.result(message.run, message.ended);
      case "forget":
        return this.#results.forget(message.run);
      case "drain":
        return void this.#poller.stop();
      case "finish":
        return void this.#finish(message.withinMs);
    }
  }

  protected onStart(): void {
    this.#poller.start();
    this.#heartbeater.start();
  }

  protected async onStop(): Promise<void> {
    await this.#poller.stop();
    this.#heartbeater.stop();
    await this.#results.finish(0);
    this.#leases.stop();
    await this.#leader.close();
  }

  async #finish(withinMs: number): Promise<void> {
    await this.#poller.stop();
    const [undelivered] = await Promise.all([
      this.#results.finish(withinMs),
      this.#heartbeater.finish(this.#poller.unanswered, Math.min(withinMs, LAST_BEAT_MS)),
    ]);
    await this.stop();
    this.#o.send({ say: "finished", undelivered });
  }

  #giveBack(jobs: readonly ClaimedJob[]): void {
    for (const { lease, id, jobEpoch } of jobs)
      this.#results.result({ lease, id, jobEpoch }, { status: "released" });
  }
}
