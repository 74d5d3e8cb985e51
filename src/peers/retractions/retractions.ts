/**
 * Takes back jobs that a silent node may have stored. A request whose outcome is unknown is placed on another node only
 * after a retraction is on disk here. The retraction is delivered when the silent node answers again, and removed when
 * that node has taken the jobs back. A node that starts asks the others for retractions before its worker starts.
 *
 * The receiver remembers in memory what was taken back: the request that would store it may still be on its way, in a
 * buffer of a connection that ends with this process. What was confirmed is on disk: a retraction may come after a
 * restart. Which of the two holds for a job is decided once, by what comes first: the end of the write of its
 * confirmation, or the start of its removal.
 *
 * Not guaranteed: that a node which was only cut off from us has not run the job in the meantime.
 */

import type { Jobs } from "../../jobs/job-service.ts";
import { BatonError } from "../../core/errors.ts";
import { jobId, uuidAt, type JobId, type NodeName } from "../../core/ids.ts";
import { isFinal } from "../../core/jobs/job.ts";
import type { NodeInfo } from "../../core/node.ts";
import { Loop } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import { Recent } from "../../platform/recent.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { PeerHandler } from "../../transport/transport.ts";
import type { ReplyOf, Retraction } from "../rpc/peer-routes.ts";
import { servePeers, type PeerClient } from "../rpc/peer-rpc.ts";
import { KEPT_MS, type RetractionFile } from "./retraction-file.ts";

/** How long a start waits for the notes of others; who does not answer by then delivers them later. */
const COLLECT_MS = 2_000;
const DELIVER_EVERY_MS = 1_000;
const DELIVER_MS = 5_000;
const BATCH_MAX = 200;
/** More than this many mean that a node is gone for good; then nothing with an unknown outcome is placed elsewhere. */
const PENDING_MAX = 100_000;

/** A request that is still on its way comes within this time, or not at all: connections do not outlive it. */
const REMEMBERED_MS = 600_000;

export type RetractableJobs = Pick<Jobs, "get" | "cancel" | "remove">;
export type RetractedJobs = Pick<Retractions, "store" | "confirm" | "takeBack">;

/** `running`: their cancellation was asked for; ask again. `kept`: promised to another caller, so that there are two now. */
type TakenBack = "gone" | "running" | "kept";

export class Retractions extends Lifecycle {
  /** For requests to `/peer/retractions`: notes about the node that asks, and notes of another node about this one. */
  readonly handle: PeerHandler;
  readonly #platform: Pick<Platform, "identity" | "clock" | "log">;
  readonly #file: RetractionFile;
  readonly #client: PeerClient;
  readonly #nodes: () => readonly NodeInfo[];
  readonly #jobs: RetractableJobs;
  readonly #takenBack: Recent<string>;
  /** Writes under way, by the first uuid. */
  readonly #storing = new Map<string, Promise<unknown>>();
  readonly #removed: Recent<JobId>;
  readonly #delivering: Loop;

  /** The caller starts the file before peers can ask for a job back, and stops it last. */
  constructor(
    platform: Pick<Platform, "identity" | "clock" | "log">,
    file: RetractionFile,
    client: PeerClient,
    nodes: () => readonly NodeInfo[],
    jobs: RetractableJobs,
  ) {
    super();
    this.#platform = platform;
    this.#file = file;
    this.#client = client;
    this.#nodes = nodes;
    this.#jobs = jobs;
    this.#takenBack = new Recent(platform.clock, REMEMBERED_MS);
    this.#removed = new Recent(platform.clock, REMEMBERED_MS);
    this.#delivering = new Loop(platform.clock, async () => {
      if (file.size > 0)
        await this.deliver().catch((err: unknown) =>
          platform.log.warn({ err }, "retractions could not be delivered"),
        );
      return DELIVER_EVERY_MS;
    });
    this.handle = servePeers(platform, {
      retractionsFor: ({ node: asks }) => ({
        retractions: file.pending().filter(({ node }) => node === asks),
      }),
      retract: async ({ retractions }) => {
        const answers: ReplyOf<"retract">["answers"] = {};
        for (const each of retractions) answers[each.first] = await this.#hear(each);
        return { answers };
      },
    });
  }

  get size(): number {
    return this.#file.size;
  }

  /** Resolves when it is on disk. Rejects when that is not certain: the jobs must then not be placed elsewhere. */
  async note(node: NodeName, first: string, jobs: number): Promise<void> {
    if (this.#file.size >= PENDING_MAX) throw new Error(`more than ${PENDING_MAX} retractions wait`);
    await this.#file.add({ node, first, jobs, at: this.#platform.clock.now() });
  }

  /** What others noted about us, while we were away. Before the worker starts. */
  async collect(): Promise<void> {
    const { clock, identity } = this.#platform;
    const until = clock.monotonic() + COLLECT_MS;
    const peers = this.#nodes().filter((node) => node.name !== identity.name);
    await Promise.all(
      peers.map(async (peer) => {
        const deadlineMs = Math.max(until - clock.monotonic(), 1);
        const asked = await this.#client.ask(peer, "retractionsFor", { node: identity.name }, { deadlineMs });
        if (asked.got === "answer") for (const each of asked.value.retractions) await this.#hear(each);
      }),
    );
  }

  /** One round of deliveries to those who live; also made by itself, again and again. */
  async deliver(): Promise<void> {
    const waiting = Map.groupBy(this.#file.pending(), ({ node }) => node);
    const alive = this.#nodes().filter((node) => node.alive && waiting.has(node.name));
    await Promise.all(alive.map((node) => this.#deliverTo(node, waiting.get(node.name)!)));
  }

  /**
   * Stores the batch with this first uuid, unless it is taken back; null then. Whoever takes it back during the write waits, and
   * removes what was written: only that one is asked again as long as a job still runs.
   */
  async store<Stored>(first: string, write: () => Promise<Stored>): Promise<Stored | null> {
    if (this.#takenBack.has(first)) return null;
    const written = write();
    const all = Promise.allSettled([this.#storing.get(first), written]);
    this.#storing.set(first, all);
    void all.then(() => this.#storing.get(first) === all && this.#storing.delete(first));
    const stored = await written;
    return this.#takenBack.has(first) ? null : stored;
  }

  /**
   * Before another request with the same key is answered with this job: it is not taken back any more, also after a restart.
   * Rejects when it is being taken back, or when this is not surely on disk; the request must then not be answered with it.
   */
  async confirm(id: JobId): Promise<void> {
    try {
      if (!this.#removed.has(id)) await this.#file.confirm(id);
    } catch (cause) {
      throw new BatonError("STORE_UNAVAILABLE", `that ${id} stays could not be written`, {}, { cause });
    }
    if (this.#removed.has(id))
      throw new BatonError("STORE_UNAVAILABLE", `${id} has the same key, and is being removed; try again`);
  }

  /** A job that has run to its end is removed all the same: no caller has its id, and the other job is the one that counts. */
  async takeBack(first: string, jobs: number): Promise<TakenBack> {
    this.#takenBack.add(first);
    await this.#storing.get(first);
    const answers = new Set<TakenBack>();
    for (let index = 0; index < jobs; index++) {
      answers.add(await this.#remove(jobId(this.#platform.identity.name, uuidAt(first, index))));
    }
    if (answers.has("running")) return "running";
    return answers.has("kept") ? "kept" : "gone";
  }

  protected override async onStart(): Promise<void> {
    const now = this.#platform.clock.now();
    for (const { first, at } of this.#file.pending()) if (now - at > KEPT_MS) await this.#file.done(first);
    this.#delivering.start();
  }

  protected override async onStop(): Promise<void> {
    await this.#delivering.stop();
  }

  async #deliverTo(node: NodeInfo, retractions: readonly Retraction[]): Promise<void> {
    const batch = retractions.slice(0, BATCH_MAX);
    const request = { retractions: batch };
    const asked = await this.#client.ask(node, "retract", request, { deadlineMs: DELIVER_MS });
    if (asked.got !== "answer") return;
    const { answers } = asked.value;
    for (const { first } of batch) {
      const answer = answers[first];
      if (answer === "gone" || answer === "kept") await this.#file.done(first);
      if (answer === "kept") {
        this.#platform.log.warn(
          { target: node.name, first },
          "a job is on two nodes: one of them had not answered in time, and has promised it to another caller",
        );
      }
    }
  }

  async #hear({ node, first, jobs }: Retraction): Promise<TakenBack> {
    if (node !== this.#platform.identity.name) return "gone";
    try {
      return await this.takeBack(first, jobs);
    } catch (err) {
      this.#platform.log.warn({ err }, "a job could not be taken back; it will be tried again");
      return "running";
    }
  }

  async #remove(id: JobId): Promise<TakenBack> {
    // The line of a confirmation that came too late may be on disk.
    if (!this.#removed.has(id) && this.#file.confirmed(id)) return "kept";
    this.#removed.add(id);
    const { status } = (await this.#jobs.get(id)) ?? {};
    // One write: a job that was only cancelled would still answer its key if this process died now.
    if ((await this.#jobs.remove(id)) === "running") {
      await this.#jobs.cancel(id, "it was placed on another node, because this one did not answer");
      return "running";
    }
    if (status && isFinal(status) && status !== "cancelled") {
      this.#platform.log.warn(
        { jobId: id, status },
        "a job that was also placed on another node has run here too",
      );
    }
    return "gone";
  }
}
