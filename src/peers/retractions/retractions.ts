/**
 * Takes back jobs that a silent node may have stored. A request whose outcome is unknown is placed on another node only
 * after a retraction is on disk here. The retraction is delivered when the silent node answers again, and removed when
 * that node has taken the jobs back. A node that starts asks the others for retractions before its worker starts, so
 * that jobs from its last moments do not run twice.
 *
 * Not guaranteed: that a node which was only cut off from us, and not from its work, has not run the job in the
 * meantime.
 */

import type { RetractedJobs } from "./retraction-receiver.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeInfo } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { Outcome, PeerReply, PeerRequest, ReceivedRequest } from "../../transport/transport.ts";
import { isRetraction, RetractionFile, type Retraction } from "./retraction-file.ts";

export interface RetractionsOptions {
  readonly self: NodeName;
  readonly file: string;
  readonly nodes: () => readonly NodeInfo[];
  readonly call: (node: NodeInfo, request: PeerRequest, deadlineMs: number) => Promise<Outcome>;
  readonly retracted: RetractedJobs;
  readonly clock: Clock;
  readonly log: Log;
}

export const RETRACTIONS_PATH = "/peer/retractions";
/** How long a start waits for the notes of others; who does not answer by then delivers them later. */
export const COLLECT_MS = 2_000;
const DELIVER_EVERY_MS = 1_000;
const DELIVER_MS = 5_000;
const BATCH_MAX = 200;
/** More than this many mean that a node is gone for good; then nothing with an unknown outcome is placed elsewhere. */
const PENDING_MAX = 100_000;
/** A node that was away for longer keeps its jobs. */
const KEPT_MS = 30 * 86_400_000;

export class Retractions extends Lifecycle {
  readonly #o: RetractionsOptions;
  readonly #file: RetractionFile;
  #stopping = new AbortController();
  #delivering: Promise<void> = Promise.resolve();

  constructor(options: RetractionsOptions) {
    super();
    this.#o = options;
    this.#file = new RetractionFile(options);
  }

  get size(): number {
    return this.#file.size;
  }

  /** Resolves when it is on disk. Rejects when that is not certain: the jobs must then not be placed elsewhere. */
  async note(node: NodeName, first: string, jobs: number): Promise<void> {
    if (this.#file.size >= PENDING_MAX) throw new Error(`more than ${PENDING_MAX} retractions wait`);
    await this.#file.add({ node, first, jobs, at: this.#o.clock.now() });
  }

  /** What others noted about us, while we were away. Before the worker starts. */
  async collect(): Promise<void> {
    const { nodes, self, call, clock } = this.#o;
    const until = clock.monotonic() + COLLECT_MS;
    const peers = nodes().filter((node) => node.name !== self && node.url !== null);
    await Promise.all(
      peers.map(async (peer) => {
        const path = `${RETRACTIONS_PATH}?for=${encodeURIComponent(self)}`;
        const outcome = await call(peer, { method: "GET", path }, Math.max(until - clock.monotonic(), 1));
        if (outcome.outcome !== "reply" || outcome.status !== 200) return;
        for (const each of parse(outcome.body)) await this.#takeBack(each);
      }),
    );
  }

  /** `GET` returns the notes about the node that asks, `POST` applies the notes of another node about this one. */
  async handle(request: ReceivedRequest): Promise<PeerReply> {
    if (request.method === "GET") {
      const name = new URLSearchParams(request.path.split("?")[1] ?? "").get("for");
      return json(200, { retractions: this.#file.pending().filter(({ node }) => node === name) });
    }
    const answers: Record<string, string> = {};
    for (const each of parse(request.body)) answers[each.first] = await this.#takeBack(each);
    return json(200, { answers });
  }

  /** One round of deliveries to those who live; also made by itself, again and again. */
  async deliver(): Promise<void> {
    const waiting = Map.groupBy(this.#file.pending(), ({ node }) => node);
    const alive = this.#o.nodes().filter((node) => node.alive && waiting.has(node.name));
    await Promise.all(alive.map((node) => this.#deliverTo(node, waiting.get(node.name)!)));
  }

  protected override async onStart(): Promise<void> {
    this.#stopping = new AbortController();
    await this.#file.start();
    const { clock } = this.#o;
    for (const { first, at } of this.#file.pending())
      if (clock.now() - at > KEPT_MS) await this.#file.done(first);
    this.#delivering = this.#deliverAll(this.#stopping.signal);
  }

  protected override async onStop(): Promise<void> {
    this.#stopping.abort();
    await this.#delivering;
    await this.#file.stop();
  }

  async #deliverAll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#file.size > 0) {
        await this.deliver().catch((error: unknown) => {
          this.#o.log.warn({ err: error }, "retractions could not be delivered");
        });
      }
      await this.#o.clock.sleep(DELIVER_EVERY_MS, signal);
    }
  }

  async #deliverTo(node: NodeInfo, retractions: readonly Retraction[]): Promise<void> {
    const batch = retractions.slice(0, BATCH_MAX);
    const request: PeerRequest = {
      method: "POST",
      path: RETRACTIONS_PATH,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ retractions: batch }),
    };
    const outcome = await this.#o.call(node, request, DELIVER_MS);
    if (outcome.outcome !== "reply" || outcome.status !== 200) return;
    const { answers = {} } = JSON.parse(outcome.body) as { answers?: Record<string, unknown> };
    for (const { first } of batch) {
      const answer = answers[first];
      if (answer === "gone" || answer === "kept") await this.#file.done(first);
      if (answer === "kept") {
        this.#o.log.warn(
          { target: node.name, first },
          "a job is on two nodes: one of them had not answered in time, and has promised it to another caller",
        );
      }
    }
  }

  async #takeBack(retraction: Retraction): Promise<string> {
    if (retraction.node !== this.#o.self) return "gone";
    try {
      return await this.#o.retracted.takeBack(retraction.first, retraction.jobs);
    } catch (error) {
      this.#o.log.warn({ err: error }, "a job could not be taken back; it will be tried again");
      return "running";
    }
  }
}

function parse(text: string): Retraction[] {
  try {
    const { retractions } = JSON.parse(text) as { retractions?: unknown };
    return Array.isArray(retractions) ? retractions.filter(isRetraction) : [];
  } catch {
    return [];
  }
}

function json(status: number, body: unknown): PeerReply {
  return { status, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}
