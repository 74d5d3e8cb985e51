/** The HTTP requests of a supervisor to its controller. Each has a deadline; an answer that cannot be read is null. */

import type { AgentSnapshot, WaitingJob } from "../core/supervision.ts";
import type { Clock } from "../platform/clock.ts";

/** A page of those that wait is enough to see whether work is left lying. */
const WAITING_LOOKED_AT = 50;
/** Looked for only when an agent is suspected. Fewer, and the work of one among many is overlooked. */
const WORK_LOOKED_AT = 1_000;

type Body = Readonly<Record<string, unknown>>;

export class ControllerClient {
  readonly #clock: Clock;
  readonly #callMs: number;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(clock: Clock, callMs: number, token: string | null = null) {
    this.#headers = token === null ? {} : { authorization: `Bearer ${token}` };
    this.#clock = clock;
    this.#callMs = callMs;
  }

  /** Null if it lives; otherwise what is wrong. */
  async livez(url: string): Promise<{ readonly fatal: boolean; readonly reason: string } | null> {
    const answer = await this.#get(`${url}/livez`);
    if (answer === null) return { fatal: false, reason: "/livez does not answer" };
    if (answer.status === 200) return null;
    return {
      fatal: answer.status === 503,
      reason: `/livez says: ${String(answer.body?.["reason"] ?? answer.status)}`,
    };
  }

  /** The addresses of the nodes that live, our own first. */
  async urls(own: string): Promise<readonly string[]> {
    const nodes = (await this.#get(`${own}/cluster/nodes`))?.body?.["nodes"];
    const others = list(nodes).flatMap(({ url, status }) =>
      typeof url === "string" && status !== "dead" ? [url] : [],
    );
    return [...new Set([own, ...others])];
  }

  /** Null where it is not known whether there is such an agent; undefined where there is none. */
  async agent(url: string, name: string): Promise<AgentSnapshot | undefined | null> {
    const answer = await this.#get(`${url}/v1/agents`);
    if (answer?.status !== 200) return null;
    const found = list(answer.body?.["agents"]).find((agent) => agent["name"] === name);
    if (!found) return undefined;
    const lastSeenAt = Date.parse(String(found["last_seen_at"]));
    if (Number.isNaN(lastSeenAt)) return null;
    return {
      capabilities: Array.isArray(found["capabilities"]) ? found["capabilities"].map(String) : [],
      running: Number(found["running"] ?? 0),
      lastSeenAt,
    };
  }

  async waiting(
    url: string,
  ): Promise<{ readonly jobs: readonly WaitingJob[]; readonly paused: ReadonlySet<string> } | null> {
    const [jobs, queues] = await Promise.all([
      this.#get(`${url}/v1/jobs?status=queued&limit=${WAITING_LOOKED_AT}`),
      this.#get(`${url}/queues`),
    ]);
    if (jobs?.status !== 200 || queues?.status !== 200) return null;
    return {
      jobs: list(jobs.body?.["jobs"]).map((job) => {
        return {
          task: String(job["task"]),
          queue: String(job["queue"]),
          readyAt: Math.max(Date.parse(String(job["run_at"])), Date.parse(String(job["updated_at"]))),
        };
      }),
      paused: new Set(
        list(queues.body?.["queues"]).flatMap(({ name, paused }) => (paused === true ? [String(name)] : [])),
      ),
    };
  }

  /** Whether a job was with that agent since then; null where that cannot be told. */
  async works(url: string, agent: string, since: number): Promise<boolean | null> {
    const statuses = ["processing", "completed", "failed"];
    const answers = await Promise.all(
      statuses.map((status) => this.#get(`${url}/v1/jobs?status=${status}&limit=${WORK_LOOKED_AT}`)),
    );
    if (answers.some((answer) => answer?.status !== 200)) return null;
    return answers
      .flatMap((answer) => list(answer!.body?.["jobs"]))
      .some(
        (job) =>
          job["worker"] === agent &&
          (job["status"] === "processing" || Date.parse(String(job["updated_at"])) >= since),
      );
  }

  async #get(url: string): Promise<{ readonly status: number; readonly body: Body | null } | null> {
    const late = new AbortController();
    const cancel = this.#clock.after(this.#callMs, () => late.abort());
    try {
      const answer = await fetch(url, { signal: late.signal, headers: this.#headers });
      return { status: answer.status, body: (await answer.json()) as Body };
    } catch {
      return null;
    } finally {
      cancel();
    }
  }
}

function list(value: unknown): readonly Body[] {
  return Array.isArray(value) ? (value as Body[]) : [];
}
