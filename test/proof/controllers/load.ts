/** Callers that submit jobs to whichever node answers, and the shadow ledger of what was acknowledged to them. */

import { systemClock } from "../../../src/platform/clock.ts";

export interface Expected {
  readonly task: string;
  readonly status: "completed" | "failed";
  readonly failures: number;
  /** Lines of log that its last run says. */
  readonly lines: number;
}

interface Kind extends Expected {
  readonly share: number;
  readonly payload: (chance: () => number) => object;
}

const LINES = 4;
const plain = { status: "completed", failures: 0, lines: 0 } as const;
const KINDS: readonly Kind[] = [
  { ...plain, task: "quick", share: 40, payload: () => ({}) },
  { ...plain, task: "second", share: 18, payload: (chance) => ({ ms: 500 + Math.floor(1_000 * chance()) }) },
  // So long that its agent is killed, or sleeps through its lease and comes back, while another has begun.
  { ...plain, task: "second", share: 4, payload: (chance) => ({ ms: 3_000 + Math.floor(4_000 * chance()) }) },
  { ...plain, task: "flaky", share: 14, failures: 1, payload: () => ({}) },
  { ...plain, task: "hopeless", share: 6, failures: 1, status: "failed", payload: () => ({}) },
  { ...plain, task: "chatty", share: 10, lines: LINES, payload: () => ({ lines: LINES }) },
  { ...plain, task: "snake", share: 8, payload: (chance) => ({ ms: Math.floor(400 * chance()) }) },
];

export interface LoadOptions {
  readonly urls: readonly string[];
  readonly chance: () => number;
  readonly python: boolean;
  readonly callers: number;
  /** On average, between two submits of a caller. */
  readonly pauseMs: number;
  readonly onBroken: (error: Error) => void;
}

/** Longer than a change of leaders, so that what it delays is not asked for twice; shorter than anybody's patience. */
const DEADLINE_MS = 4_000;
const BATCH = 5;

interface Asked extends Expected {
  readonly key: string;
  readonly body: object;
}

export class Load {
  /** By idempotency key. */
  readonly acknowledged = new Map<string, Expected & { readonly id: string }>();
  refusals = 0;
  /** Submits that were made again because nobody knew whether they had been taken. */
  repeated = 0;
  readonly #o: LoadOptions;
  readonly #kinds: readonly Kind[];
  readonly #over = new AbortController();
  readonly #abandoned = new AbortController();
  #keys = 0;
  #loops: Promise<void>[] = [];

  constructor(options: LoadOptions) {
    this.#o = options;
    this.#kinds = KINDS.filter(({ task }) => options.python || task !== "snake");
  }

  start(): void {
    this.#loops = Array.from({ length: this.#o.callers }, (_, n) =>
      this.#call(n).catch((error: unknown) => this.#o.onBroken(error as Error)),
    );
  }

  /** Resolves when everything that was asked for is acknowledged. */
  async stop(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#loops);
  }

  async abandon(): Promise<void> {
    this.#abandoned.abort();
    await this.stop();
  }

  async #call(n: number): Promise<void> {
    const { chance, pauseMs } = this.#o;
    for (let turn = n; !this.#over.signal.aborted; turn++) {
      const asked = Array.from({ length: chance() < 0.1 ? BATCH : 1 }, () => this.#ask());
      // Mostly to the leader's API, now and then to the one that every node has. A key that is repeated has the same payload.
      const path = asked.length > 1 || chance() < 0.8 ? "/v1/jobs" : "/jobs";
      const ids = await this.#submit(asked, path, turn);
      asked.forEach(({ key, task, status, failures, lines }, at) => {
        this.acknowledged.set(key, { id: ids[at]!, task, status, failures, lines });
      });
      // The same again, as of a caller who has forgotten: it is the same job.
      if (chance() < 0.02 && ids.length > 0) this.#assertSame(ids, await this.#submit(asked, path, turn + 1));
      await systemClock.sleep(2 * pauseMs * chance(), this.#over.signal);
    }
  }

  #ask(): Asked {
    const { chance } = this.#o;
    let at = chance() * this.#kinds.reduce((sum, { share }) => sum + share, 0);
    const kind = this.#kinds.find(({ share }) => (at -= share) < 0) ?? this.#kinds[0]!;
    const key = `key-${++this.#keys}`;
    const { task } = kind;
    // Also of a job that has failed by the time of a repetition.
    const keyed = { idempotency_key: key, key_reuse: "never" };
    return { ...kind, key, body: { task, payload: kind.payload(chance), ...keyed } };
  }

  /** Until somebody acknowledges it. */
  async #submit(
    asked: readonly Asked[],
    path: "/v1/jobs" | "/jobs",
    first: number,
  ): Promise<readonly string[]> {
    const { urls } = this.#o;
    const by = path === "/v1/jobs" ? "leader" : "node";
    const bodies = asked.map(({ body }) => ({ ...body, payload: { ...payloadOf(body), by } }));
    let inDoubt = false;
    for (let turn = first; !this.#abandoned.signal.aborted; turn++) {
      const url = urls[turn % urls.length]!;
      const answer = await post(url + path, bodies.length === 1 ? bodies[0] : bodies);
      if (answer.ids) {
        if (inDoubt) this.repeated++;
        return answer.ids;
      }
      this.refusals++;
      inDoubt ||= answer.maybeDone;
      await systemClock.sleep(50, this.#abandoned.signal);
    }
    return [];
  }

  #assertSame(first: readonly string[], second: readonly string[]): void {
    if (second.length > 0 && first.join() !== second.join())
      throw new Error(`the same keys made other jobs: ${first.join()} and ${second.join()}`);
  }
}

function payloadOf(body: object): object {
  return (body as { payload: object }).payload;
}

/** Without ids if it was not acknowledged. What a node refuses for another reason than the moment is a defect. */
async function post(
  url: string,
  body: unknown,
): Promise<{ readonly ids: readonly string[] | null; readonly maybeDone: boolean }> {
  let status: number;
  let told: unknown;
  try {
    const answer = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(DEADLINE_MS),
    });
    [status, told] = [answer.status, await answer.json()];
  } catch {
    return { ids: null, maybeDone: true };
  }
  if (status === 200) {
    const all = (Array.isArray(told) ? told : [told]) as { job_id: string }[];
    return { ids: all.map(({ job_id }) => job_id), maybeDone: false };
  }
  if (
    status >= 500 ||
    status === 429 ||
    (status === 409 && (told as { error: string }).error === "NOT_LEADER")
  )
    return { ids: null, maybeDone: status >= 500 };
  throw new Error(`${url} answered ${status} ${JSON.stringify(told)}`);
}
