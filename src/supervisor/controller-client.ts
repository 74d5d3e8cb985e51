/** The requests of a supervisor to one life of its controller. Each has a deadline and is made once; without an answer it is null. */

import { BatonClient, type CallError } from "../client/baton-client.ts";
import { answerOf } from "../client/client-error.ts";
import type { AgentSnapshot, WaitingJob } from "../core/supervision.ts";
import type { Clock } from "../platform/clock.ts";

/** A page of those that wait is enough to see whether work is left undone. */
const WAITING_READ = 50;
/** Read only when an agent is suspected. Fewer, and the work of one among many is overlooked. */
const WORK_READ = 1_000;

export class ControllerClient {
  readonly url: string;
  readonly #client: BatonClient;

  constructor(clock: Clock, url: string, timeoutMs: number, token: string | null) {
    this.url = url;
    this.#client = new BatonClient({ url, retry: false, timeoutMs, clock, token: token ?? undefined });
  }

  /** Null if it lives; otherwise what is wrong. */
  async livez(): Promise<{ readonly fatal: boolean; readonly reason: string } | null> {
    try {
      await this.#client.request("GET /livez");
      return null;
    } catch (error) {
      const { status, body } = error as CallError;
      if (status === null || status === undefined) return { fatal: false, reason: "/livez does not answer" };
      const { reason } = (body ?? {}) as { reason?: unknown };
      return { fatal: status === 503, reason: `/livez says: ${String(reason ?? status)}` };
    }
  }

  /** The addresses of the nodes that live, our own first. */
  async urls(): Promise<readonly string[]> {
    const answer = await answerOf(this.#client.cluster.nodes());
    const others = (answer?.nodes ?? []).flatMap(({ url, status }) =>
      url !== null && status !== "dead" ? [url] : [],
    );
    return [...new Set([this.url, ...others])];
  }

  /** Null where it is not known whether there is such an agent; undefined where there is none. */
  async agent(name: string): Promise<AgentSnapshot | undefined | null> {
    const answer = await answerOf(this.#client.controller.agents());
    if (answer === null) return null;
    const found = answer.agents.find((agent) => agent.name === name);
    if (!found) return undefined;
    const { capabilities, running, last_seen_at } = found;
    return { capabilities, running, lastSeenAt: Date.parse(last_seen_at) };
  }

  async waiting(): Promise<{ jobs: WaitingJob[]; paused: ReadonlySet<string> } | null> {
    const [waiting, listed] = await Promise.all([
      answerOf(this.#client.controller.jobs({ status: "queued", limit: WAITING_READ })),
      answerOf(this.#client.queues()),
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
  async works(agent: string, since: number): Promise<boolean | null> {
    const statuses = ["processing", "completed", "failed"] as const;
    const answers = await Promise.all(
      statuses.map((status) => answerOf(this.#client.controller.jobs({ status, limit: WORK_READ }))),
    );
    if (answers.includes(null)) return null;
    const theirs = answers.flatMap((answer) => answer!.jobs).filter(({ worker }) => worker === agent);
    return theirs.some(({ status, updated_at: at }) => status === "processing" || Date.parse(at) >= since);
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}
