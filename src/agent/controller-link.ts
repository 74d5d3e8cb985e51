/**
 * An agent's link to the controllers. It runs on its own thread (controller-link-main.ts), because handlers may block the event loop
 * of the main thread, and a lease that is not renewed is lost.
 */

import { ClusterConnection } from "../client/connection/cluster-connection.ts";
import { HttpConnection } from "../client/connection/connection.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import { heartbeater, type Heartbeater } from "./heartbeater.ts";
import { leasePoller, type LeasePoller } from "./lease-poller.ts";
import { LeaseRenewer } from "./lease-renewer.ts";
import type { FromLink, ToLink } from "./link-messages.ts";
import { ResultSender } from "./result-sender.ts";

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

/** What is unanswered at the end is rarely a lease. Longer, and an idle agent's stop waits for a leader. */
const LAST_BEAT_MS = 1_500;

export class ControllerLink extends Lifecycle {
  readonly #leader: ClusterConnection;
  readonly #leases: LeaseRenewer;
  readonly #results: ResultSender;
  readonly #poller: LeasePoller;
  readonly #heartbeater: Heartbeater;
  readonly #send: (message: FromLink) => void;

  constructor(
    platform: Pick<Platform, "clock" | "random" | "log">,
    settings: ControllerLinkSettings,
    send: (message: FromLink) => void,
  ) {
    super();
    this.#send = send;
    const { urls, token, agent, queues, version } = settings;
    const leader = (this.#leader = new ClusterConnection(platform, {
      urls,
      connect: (url) => new HttpConnection(url, platform.clock, token),
      discover: true,
      retry: true,
      anyRole: true,
    }));
    const link = { platform, leader, agent };
    const leases = (this.#leases = new LeaseRenewer(link, send));
    this.#results = new ResultSender(link, leases, () => this.#poller.wake());
    const sign = { agent, capabilities: [...settings.capabilities], version };
    this.#poller = leasePoller(link, {
      sign: { ...sign, ...(queues && { queues: [...queues] }) },
      blocked: () => this.#results.failing,
      onLeased: (lease) => leases.open(lease),
      offer: (jobs, claim) => send({ say: "offer", jobs, claim }),
      giveBack: (jobs) => {
        for (const job of jobs) this.#results.result(job, { status: "released" });
      },
    });
    this.#heartbeater = heartbeater(link, sign, () => leases.jobs);
  }

  hear(message: ToLink): void {
    switch (message.say) {
      case "claim":
        return this.#poller.claim(message.limit);
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
    await this.#heartbeater.stop();
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
    this.#send({ say: "finished", undelivered });
  }
}
