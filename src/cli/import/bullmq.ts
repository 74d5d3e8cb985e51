/**
 * Reads the queues of BullMQ 5 and 6 from its keys in Redis, below `<prefix>:<queue>:`.
 *
 * | key | |
 * | --- | --- |
 * | `meta` | hash: `version` such as `bullmq:6.7.0`, `paused` |
 * | `wait`, `paused` | lists of ids; the next one to run is at the right end. Version 6 writes `wait` only |
 * | `prioritized` | sorted set; the lowest score is the next one |
 * | `delayed` | sorted set; the score is the time in ms, times 4,096 |
 * | `active`, `waiting-children` | what is left alone |
 * | `<id>` | hash of a job; `<id>:dependencies`, `<id>:processed` of one that waits or has waited for children |
 * | `repeat` | sorted set of ids of job schedulers; `repeat:<id>` is the hash of one |
 */

import type { RedisSession } from "../../platform/drivers/redis/session.ts";
import { systemRandom } from "../../platform/random.ts";
import { CliFailure, EXIT } from "../failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import {
  chosenQueues,
  clampedAttempts,
  clampedPriority,
  type FoundJob,
  type FoundSchedule,
  type ImportSource,
  type SourceQueue,
  unreadable,
} from "./import-source.ts";

export interface BullmqOptions {
  readonly url: string;
  readonly prefix: string;
  /** Empty for all. */
  readonly queues: readonly string[];
}

const PAGE = 500;
const SCORE_PER_MS = 0x1000;
const VERSION = /^bullmq:[56]\./;

type Send = <Reply>(...args: readonly string[]) => Promise<Reply>;

export async function openBullmq(terminal: Terminal, options: BullmqOptions): Promise<ImportSource> {
  // Loaded here: the driver takes longer to load than all the rest.
  const [{ RedisSession: Session }, { parseRedisUrl, shownAddress }] = await Promise.all([
    import("../../platform/drivers/redis/session.ts"),
    import("../../platform/drivers/server-url.ts"),
  ]).catch((error: unknown) => {
    throw unreadable("the driver of Redis cannot be loaded", error);
  });
  let session: RedisSession | null = null;
  try {
    const address = parseRedisUrl(options.url);
    session = new Session({ address, clock: terminal.clock, random: systemRandom, name: "baton-import" });
    await session.start();
    const opened = session;
    const send: Send = (...args) => opened.send(args);
    return await BullmqSource.read(send, options, shownAddress(address), terminal.clock.now(), opened);
  } catch (error) {
    await session?.stop();
    throw unreadable("BullMQ cannot be read", error);
  }
}

class BullmqSource implements ImportSource {
  readonly kind = "bullmq";
  readonly address: string;
  readonly queues: readonly SourceQueue[];
  readonly #send: Send;
  readonly #prefix: string;
  readonly #now: number;
  readonly #session: AsyncDisposable;

  private constructor(
    send: Send,
    prefix: string,
    address: string,
    now: number,
    session: AsyncDisposable,
    queues: readonly SourceQueue[],
  ) {
    this.#send = send;
    this.#prefix = prefix;
    this.address = address;
    this.#now = now;
    this.#session = session;
    this.queues = queues;
  }

  static async read(
    send: Send,
    { prefix, queues: wanted }: BullmqOptions,
    address: string,
    now: number,
    session: AsyncDisposable,
  ): Promise<BullmqSource> {
    const place = `${address} under the prefix "${prefix}"`;
    const elsewhere = "is it another --prefix, or another database (the number at the end of the URL)?";
    const known = await queueNames(send, prefix);
    const names = chosenQueues(wanted, known, place, elsewhere);
    const queues = await Promise.all(names.map((name) => readQueue(send, `${prefix}:${name}`, name)));
    return new BullmqSource(send, prefix, address, now, session, queues);
  }

  async *jobs(queue: string): AsyncIterable<readonly FoundJob[]> {
    const key = `${this.#prefix}:${queue}`;
    for (const list of ["paused", "wait"]) {
      for (let taken = 0; ; taken += PAGE) {
        const range = [String(-taken - PAGE), String(-taken - 1)];
        const ids = await this.#send<string[]>("LRANGE", `${key}:${list}`, ...range);
        if (ids.length === 0) break;
        yield this.#read(
          queue,
          ids.reverse().map((id) => ({ id, at: null })),
        );
      }
    }
    for (const set of ["prioritized", "delayed"]) {
      for (let taken = 0; ; taken += PAGE) {
        const range = [String(taken), String(taken + PAGE - 1), "WITHSCORES"];
        const found = await this.#send<[string, number][]>("ZRANGE", `${key}:${set}`, ...range);
        if (found.length === 0) break;
        const due = (score: number) => (set === "delayed" ? Math.floor(score / SCORE_PER_MS) : null);
        yield this.#read(
          queue,
          found.map(([id, score]) => ({ id, at: due(score) })),
        );
      }
    }
  }

  async #read(queue: string, listed: readonly Listed[]): Promise<readonly FoundJob[]> {
    const jobs = await Promise.all(
      // An early version 5 keeps a marker among the ids.
      listed.filter(({ id }) => !id.startsWith("0:")).map((each) => this.#readJob(queue, each)),
    );
    return jobs.filter((job) => job !== null);
  }

  /** Null for one that was removed meanwhile. */
  async #readJob(queue: string, { id, at }: Listed): Promise<FoundJob | null> {
    const key = `${this.#prefix}:${queue}:${id}`;
    const [values, family] = await Promise.all([
      this.#send<(string | null)[]>("HMGET", key, ...JOB_FIELDS),
      this.#send<number>("EXISTS", `${key}:dependencies`, `${key}:processed`),
    ]);
    const [name, data, opts, timestamp, priority, made, oldMade, parent, scheduler] = values;
    if (name === null || name === undefined) return null;
    const { attempts = 1 } = JSON.parse(opts ?? "{}") as { attempts?: number };
    const failures = Number(made ?? oldMade ?? 0);
    const isFirst = at !== null && failures === 0;
    return {
      id,
      name,
      createdAt: Number(timestamp),
      payload: JSON.parse(data ?? "{}"),
      priority: bullmqPriority(Number(priority ?? 0)),
      attempts: clampedAttempts(Math.max(1, attempts) - failures),
      runAt: at !== null && at > this.#now ? at : null,
      inFlow: parent != null || family > 0,
      nextOf: scheduler != null && isFirst ? scheduleName(queue, scheduler) : null,
    };
  }

  async schedules(queue: string): Promise<readonly FoundSchedule[]> {
    const key = `${this.#prefix}:${queue}:repeat`;
    const ids = await this.#send<string[]>("ZRANGE", key, "0", "-1");
    return Promise.all(
      ids.map(async (id) => {
        const fields = await this.#send<Readonly<Record<string, string>>>("HGETALL", `${key}:${id}`);
        return foundSchedule(scheduleName(queue, id), fields);
      }),
    );
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#session[Symbol.asyncDispose]();
  }
}

interface Listed {
  readonly id: string;
  /** Of a delayed job. */
  readonly at: number | null;
}

const JOB_FIELDS = "name data opts timestamp priority atm attemptsMade parentKey rjk".split(" ");

/** There 0 goes first and then 1, 2, 3 …; here higher goes first. */
function bullmqPriority(priority: number): number | undefined {
  return clampedPriority(-priority);
}

function scheduleName(queue: string, id: string): string {
  return `${queue}/${id}`;
}

function foundSchedule(name: string, fields: Readonly<Record<string, string>>): FoundSchedule {
  const { pattern, every, tz: zone, data, opts } = fields;
  const { priority = 0, attempts = 1 } = JSON.parse(opts ?? "{}") as { priority?: number; attempts?: number };
  const local = pattern !== undefined && zone === undefined;
  return {
    name,
    job: fields["name"] ?? "",
    body: {
      payload: JSON.parse(data ?? "{}"),
      priority: bullmqPriority(priority),
      max_attempts: clampedAttempts(attempts),
      ...(pattern === undefined ? { every_ms: Number(every) } : { cron: pattern, zone }),
    },
    refused: whyRefused(fields),
    note: local ? "it has no time zone: it is in UTC here, and was in the zone of the machine there" : null,
  };
}

function whyRefused(fields: Readonly<Record<string, string>>): string | null {
  if (fields["name"] === undefined) return "it is a repeatable job of a version before job schedulers";
  if (fields["pattern"] === undefined && fields["every"] === undefined)
    return "it has its own repeat strategy";
  const limits = ["limit", "startDate", "endDate"].filter((name) => fields[name] !== undefined);
  return limits.length === 0 ? null : `schedules here have no ${limits.join(" and no ")}`;
}

async function queueNames(send: Send, prefix: string): Promise<readonly string[]> {
  const pattern = `${prefix.replaceAll(/[*?[\]\\]/g, String.raw`\$&`)}:*:meta`;
  const names = new Set<string>();
  let cursor = "0";
  do {
    const [next, keys] = await send<[string, string[]]>("SCAN", cursor, "MATCH", pattern, "COUNT", "1000");
    for (const key of keys) names.add(key.slice(prefix.length + 1, -":meta".length));
    cursor = next;
  } while (cursor !== "0");
  // Names of queues have no colon; keys of jobs may.
  return [...names].filter((name) => name !== "" && !name.includes(":")).sort();
}

async function readQueue(send: Send, key: string, name: string): Promise<SourceQueue> {
  const [[version, paused], wait, held, prioritized, delayed, active, flows] = await Promise.all([
    send<[string | null, string | null]>("HMGET", `${key}:meta`, "version", "paused"),
    send<number>("LLEN", `${key}:wait`),
    send<number>("LLEN", `${key}:paused`),
    send<number>("ZCARD", `${key}:prioritized`),
    send<number>("ZCARD", `${key}:delayed`),
    send<number>("LLEN", `${key}:active`),
    send<number>("ZCARD", `${key}:waiting-children`),
  ]);
  if (version === null || !VERSION.test(version)) {
    const found =
      version === null ? "has no version of BullMQ" : `was written by ${version.replace(":", " ")}`;
    const hint = "upgrade BullMQ there and open the queue once, which notes its version";
    throw new CliFailure(EXIT.refused, `queue "${name}" ${found}; versions 5 and 6 are understood`, hint);
  }
  const mayRun =
    paused === null
      ? "it is not paused there, so a worker there may also run what is imported; pause it (queue.pause()) or stop its workers"
      : null;
  return { name, waiting: wait + held + prioritized + delayed, active, flows, mayRun };
}
