/** Real nodes: `baton start` in processes of their own, told from the outside by signals and HTTP. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BatonClient } from "../../src/client/baton-client.ts";
import type { JobBody, JobSummaryBody } from "../../src/client/baton-client.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { atEnd, type Scope } from "./node-cleanup.ts";
import { eventually } from "./wait.ts";

export { eventually };

export const BIN = fileURLToPath(new URL("../../bin/baton.mjs", import.meta.url));
export const TASKS = fileURLToPath(new URL("../process/tasks", import.meta.url));
/** Nodes are started by the hundred, and compiling is a third of what a start takes. Filled by those that end in peace. */
export const COMPILED = fileURLToPath(new URL("../../node_modules/.cache/baton-compiled", import.meta.url));

/** A start takes one second, and on a machine with thirty programs in line for two cores more than twenty. */
const START_MS_MAX = 60_000;
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

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class NodeProcess {
  readonly child: ChildProcess;
  readonly exited: Promise<Exit>;
  readonly #url: Promise<string>;
  #exit: Exit | null = null;
  #out = "";
  #err = "";
  #client: BatonClient | null = null;
  #at = "";

  private constructor(options: ProcessOptions) {
    const own = options.args ?? ["--port", "0", "--name", options.name ?? "solo"];
    const args = ["start", "--data", options.data, "--tasks", TASKS, ...own];
    const [command, all] = options.command?.(args) ?? [process.execPath, [BIN, ...args]];
    const settings = { LOG__FORMAT: "json", ACCESS__TOKEN: TEST_TOKEN, ...options.settings };
    this.child = spawn(command, all, {
      env: {
        PATH: process.env["PATH"],
        NODE_COMPILE_CACHE: COMPILED,
        ...Object.fromEntries(Object.entries(settings).map(([key, value]) => [`BATON_${key}`, value])),
        ...options.environment,
      },
      cwd: options.cwd,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const { stdout, stderr } = this.child;
    stdout!.setEncoding("utf8").on("data", (text: string) => (this.#out += text));
    this.#url = new Promise((resolve) => {
      stderr!.setEncoding("utf8").on("data", (text: string) => {
        this.#err += text;
        const found = /listening on (http:\S+)/.exec(this.#err);
        if (found) resolve(found[1]!);
      });
    });
    this.exited = new Promise((resolve, reject) => {
      this.child.once("error", reject);
      this.child.once("close", (code, signal) => resolve((this.#exit = { code, signal })));
    });
  }

  /** A process that may or may not get as far as being a node; ended with the test in any case. */
  static spawn(t: Scope, options: ProcessOptions): NodeProcess {
    const node = new NodeProcess(options);
    atEnd(t, () => node.#end());
    return node;
  }

  /** A node that answers. */
  static async start(t: Scope, options: ProcessOptions): Promise<NodeProcess> {
    const node = NodeProcess.spawn(t, options);
    await node.listening();
    return node;
  }

  async listening(withinMs = START_MS_MAX): Promise<void> {
    const over = new AbortController();
    const tooLate = systemClock.sleep(withinMs, over.signal).then(() => null);
    const url = await Promise.race([this.#url, this.exited.then(() => null), tooLate]);
    over.abort();
    assert.ok(url, `the node did not start: ${JSON.stringify(this.#exit)}\n${this.#err}\n${this.#out}`);
    this.#at = url;
    // This very node is meant, and what it says at once; on a busy machine that takes a while.
    this.#client = new BatonClient({ url, timeoutMs: ANSWER_MS_MAX, retry: false, token: TEST_TOKEN });
  }

  get pid(): number {
    return this.child.pid!;
  }

  get url(): string {
    return this.#at;
  }

  get client(): BatonClient {
    return this.#client!;
  }

  get stderr(): string {
    return this.#err;
  }

  get stdout(): string {
    return this.#out;
  }

  /** Signals go to the process itself, never by name. */
  signal(signal: NodeJS.Signals): void {
    if (this.#exit === null) process.kill(this.pid, signal);
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.exited;
    await this.#client?.close();
  }

  /** Told to stop; the exit and how long it took. */
  async terminate(): Promise<Exit & { readonly tookMs: number }> {
    const before = systemClock.monotonic();
    this.signal("SIGTERM");
    const exit = await this.exited;
    await this.#client?.close();
    return { ...exit, tookMs: systemClock.monotonic() - before };
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

  /** The job once the condition holds. */
  async jobWhen(id: string, holds: (job: JobBody) => boolean): Promise<JobBody> {
    return eventually(`job ${id}`, async () => {
      const job = await this.client.job(id);
      return holds(job) ? job : null;
    });
  }

  processing(id: string): Promise<JobBody> {
    return this.jobWhen(id, ({ status }) => status === "processing");
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

  /** Waits until nothing waits and nothing runs. */
  async idle(withinMs = 20_000): Promise<void> {
    await eventually(
      "all jobs to end",
      async () => {
        const { queues } = await this.client.queues();
        const left = queues.map(({ counts }) => counts.queued + counts.scheduled + counts.processing);
        return left.every((count) => count === 0) || null;
      },
      withinMs,
    );
  }

  async #end(): Promise<void> {
    if (this.#exit === null && this.child.pid !== undefined) {
      this.child.kill("SIGCONT"); // a stopped process would not be gone before it goes on
      this.child.kill("SIGKILL");
      await this.exited;
    }
    await this.#client?.close();
  }
}

export async function dataDirectory(t: Scope): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "baton-process-"));
  atEnd(t, () => rm(dir, { recursive: true, force: true }));
  return dir;
}
