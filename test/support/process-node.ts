/** Real nodes: `baton start` in processes of their own, told from the outside by signals and HTTP. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BatonClient } from "../../src/client/baton-client.ts";
import type { JobBody, JobRequestBody, JobSummaryBody } from "../../src/client/baton-client.ts";
import { atEnd, type Scope } from "./node-cleanup.ts";
import { BIN, environmentOf, TestProcess, type Exit } from "./process.ts";
import { eventually } from "./wait.ts";

export const TASKS = fileURLToPath(new URL("../process/tasks", import.meta.url));

const ANSWER_MS_MAX = 30_000;

/** Of every node that is started here: those that listen beyond the machine ask for it. */
export const TEST_TOKEN = "baton_for-nodes-of-tests-which-listen-elsewhere";

export interface ProcessOptions {
  /** Data directory; one that exists already is started on again. */
  readonly data: string;
  readonly name?: string;
  /** Of `baton start`, for one that is told by a file what it is: instead of a name and any free port. */
  readonly args?: readonly string[];
  /** As in the environment, without the prefix. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Variables with other names than ours. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** What to run with the arguments of `baton start`; Node with the launcher's file unless told otherwise. */
  readonly command?: (args: readonly string[]) => readonly [string, readonly string[]];
}

export class NodeProcess extends TestProcess {
  #client: BatonClient | null = null;
  #at = "";

  private constructor(options: ProcessOptions) {
    const own = options.args ?? ["--port", "0", "--name", options.name ?? "solo"];
    const args = ["start", "--data", options.data, "--tasks", TASKS, ...own];
    const [command, all] = options.command?.(args) ?? [process.execPath, [BIN, ...args]];
    const settings = { LOG__FORMAT: "json", ACCESS__TOKEN: TEST_TOKEN, ...options.settings };
    const environment = { ...environmentOf(settings), ...options.environment };
    super(command, all, { environment, ...(options.cwd !== undefined && { cwd: options.cwd }) });
  }

  /** A process that may or may not get as far as being a node; ended with the test in any case. */
  static spawn(t: Scope, options: ProcessOptions): NodeProcess {
    return new NodeProcess(options).endsWith(t);
  }

  /** A node that answers. */
  static async start(t: Scope, options: ProcessOptions): Promise<NodeProcess> {
    const node = NodeProcess.spawn(t, options);
    await node.listening();
    return node;
  }

  async listening(): Promise<void> {
    const [, url] = await this.told(/listening on (http:\S+)/);
    this.#at = url!;
    // This very node is meant, and what it says at once; on a busy machine that takes a while.
    this.#client = new BatonClient({
      url: url!,
      timeoutMs: ANSWER_MS_MAX,
      retry: false,
      token: TEST_TOKEN,
    });
  }

  get url(): string {
    return this.#at;
  }

  get client(): BatonClient {
    return this.#client!;
  }

  override async kill(): Promise<void> {
    await super.kill();
    await this.#client?.close();
  }

  override async terminate(): Promise<Exit & { readonly tookMs: number }> {
    const exit = await super.terminate();
    await this.#client?.close();
    return exit;
  }

  /** An answer in full, for tests of statuses and headers. */
  async call(path: string, init?: RequestInit): Promise<{ status: number; headers: Headers; body: never }> {
    const headers = { authorization: `Bearer ${TEST_TOKEN}`, ...(init?.headers as Record<string, string>) };
    const signal = AbortSignal.timeout(ANSWER_MS_MAX);
    const answer = await fetch(`${this.url}${path}`, { signal, ...init, headers });
    return { status: answer.status, headers: answer.headers, body: (await answer.json()) as never };
  }

  post(path: string, body: unknown) {
    const headers = { "content-type": "application/json" };
    return this.call(path, { method: "POST", headers, body: JSON.stringify(body) });
  }

  async jobWhen(id: string, holds: (job: JobBody) => boolean): Promise<JobBody> {
    return eventually(`job ${id}`, async () => {
      const job = await this.client.job(id);
      return holds(job) ? job : null;
    });
  }

  /** Submits a job and waits until it is completed, by whomever. */
  async does(job: JobRequestBody): Promise<JobBody> {
    const { job_id } = await this.client.submit(job);
    return this.jobWhen(job_id, ({ status }) => status === "completed");
  }

  async begins(job: JobRequestBody): Promise<string> {
    const { job_id } = await this.client.submit(job);
    await this.processing(job_id);
    return job_id;
  }

  processing(id: string): Promise<JobBody> {
    return this.jobWhen(id, ({ status }) => status === "processing");
  }

  async lines(id: string): Promise<string[]> {
    return (await this.client.logs(id)).logs.map(({ message }) => message);
  }

  /** What it logs from now on, with its end, as a reader of the stream sees it. */
  follow(id: string): { readonly lines: readonly string[]; readonly ended: Promise<void> } {
    const lines: string[] = [];
    const read = async (): Promise<void> => {
      for await (const event of this.client.followLogs(id)) {
        if (event.event === "log") lines.push(event.line.message);
        else if (event.event === "end") lines.push(`end: ${event.status}`);
      }
    };
    return { lines, ended: read() };
  }

  async allJobs(filter: { task?: string } = {}): Promise<JobSummaryBody[]> {
    const jobs: JobSummaryBody[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.client.jobs({ ...filter, limit: 1_000, ...(cursor ? { cursor } : {}) });
      jobs.push(...page.jobs);
      cursor = page.next_cursor ?? undefined;
    } while (cursor);
    return jobs;
  }

  async idle(withinMs = 20_000): Promise<void> {
    await eventually(
      "all jobs to end",
      async () => {
        const { queues } = await this.client.queues();
        const left = queues.map(({ counts }) => counts.queued + counts.scheduled + counts.processing);
        return left.every((count) => count === 0);
      },
      withinMs,
    );
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await this.#client?.close();
  }
}

export async function dataDirectory(t: Scope): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "baton-process-"));
  atEnd(t, () => rm(dir, { recursive: true, force: true }));
  return dir;
}
