/** The requests of a supervisor to its controller. Each has a deadline and is made once; without an answer it is null. */

import { BatonClient, type BatonClientError } from "../client/baton-client.ts";
import { answerOf } from "../client/client-error.ts";
import type { AgentSnapshot, WaitingJob } from "../core/supervision.ts";
import type { Clock } from "../platform/clock.ts";

/** A page of those that wait is enough to see whether work is left undone. */
const WAITING_READ = 50;
/** Read only when an agent is suspected. Fewer, and the work of one among many is overlooked. */
const WORK_READ = 1_000;

export class ControllerClient {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #token: string | null;
  #current: { readonly url: string; readonly client: BatonClient } | null = null;

  constructor(clock: Clock, timeoutMs: number, token: string | null = null) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#token = token;
  }

  /** Null if it lives; otherwise what is wrong. */
  async livez(url: string): Promise<{ readonly fatal: boolean; readonly reason: string } | null> {
    try {
      await this.#at(url).request("GET /livez");
      return null;
    } catch (error) {
      const { status, body } = error as BatonClientError;
      if (status === null || status === undefined) return { fatal: false, reason: "/livez does not answer" };
      const { reason } = (body ?? {}) as { reason?: unknown };
      return { fatal: status === 503, reason: `/livez says: ${String(reason ?? status)}` };
    }
  }

  /** The addresses of the nodes that live, our own first. */
  async urls(own: string): Promise<readonly string[]> {
    const answer = await answerOf(this.#at(own).cluster.nodes());
    const others = (answer?.nodes ?? []).flatMap(({ url, status }) =>
      url !== null && status !== "dead" ? [url] : [],
    );
    return [...new Set([own, ...others])];
  }

  /** Null where it is not known whether there is such an agent; undefined where there is none. */
  async agent(url: string, name: string): Promise<AgentSnapshot | undefined | null> {
    const answer = await answerOf(this.#at(url).controller.agents());
    if (answer === null) return null;
    const found = answer.agents.find((agent) => agent.name === name);
    if (!found) return undefined;
    const { capabilities, running, last_seen_at } = found;
    return { capabilities, running, lastSeenAt: Date.parse(last_seen_at) };
  }

  async waiting(url: string): Promise<{ jobs: WaitingJob[]; paused: ReadonlySet<string> } | null> {
    const client = this.#at(url);
    const [waiting, listed] = await Promise.all([
      answerOf(client.controller.jobs({ status: "queued", limit: WAITING_READ })),
      answerOf(client.queues()),
    ]);
    if (waiting === null || listed === null) return null;
    return {
      jobs: waiting.jobs.map(({ task, queue, run_at, updated_at }) => {
        return { task, queue, readyAt: Math.max(Date.parse(run_at), Date.parse(updated_at)) };
      }),
      paused: new Set(listed.queues.flatMap(({ name, paused }) => (paused ? [name] : []))),
    };
  }

  /** Whether a job was with that agent since then; null where that is not known. */
  async works(url: string, agent: string, since: number): Promise<boolean | null> {
    const { controller } = this.#at(url);
    const statuses = ["processing", "completed", "failed"] as const;
    const answers = await Promise.all(
      statuses.map((status) => answerOf(controller.jobs({ status, limit: WORK_READ }))),
    );
    if (answers.includes(null)) return null;
    const theirs = answers.flatMap((answer) => answer!.jobs).filter(({ worker }) => worker === agent);
    return theirs.some(({ status, updated_at: at }) => status === "processing" || Date.parse(at) >= since);
  }

  async close(): Promise<void> {
    await this.#current?.client.close();
    this.#current = null;
  }

  /** Each controller has an address of its own, and there is one at a time. */
  #at(url: string): BatonClient {
    if (this.#current?.url !== url) {
      void this.#current?.client.close();
      const token = this.#token === null ? {} : { token: this.#token };
      const options = { url, ...token, retry: false, timeoutMs: this.#timeoutMs, clock: this.#clock };
      this.#current = { url, client: new BatonClient(options) };
    }
    return this.#current.client;
  }
}
