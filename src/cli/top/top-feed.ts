/** Supplies the data of the screen: the overview and the journal as a stream, the lists by one request per second. */

import type { BatonClient } from "../../client/baton-client.ts";
import { BatonClientError } from "../../client/client-error.ts";
import type { Clock } from "../../platform/clock.ts";
import type { TopEvent } from "./top-model.ts";

export interface FeedOptions {
  readonly client: BatonClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly tell: (event: TopEvent) => void;
  /** False where only the stream is wanted. */
  readonly lists: boolean;
}

/** More often, and looking is work for the node; less, and a progress bar seems stuck. */
const LISTS_MS = 1_000;
/** More rows than the largest screen has. */
const JOBS_MAX = 200;
const EVENTS_MAX = 100;

/** Until the signal. Rejects only with what will not pass: a token that is missing, a node that is too old. */
export async function topFeed(options: FeedOptions): Promise<void> {
  const beside = options.lists ? [lists(options)] : [];
  await Promise.all([stream(options), ...beside]);
}

async function stream({ client, signal, tell }: FeedOptions): Promise<void> {
  const onTrouble = (error: BatonClientError): void => tell({ kind: "trouble", reason: error.message });
  for await (const event of client.cluster.live({ signal, giveUpAfterMs: Infinity, onTrouble })) {
    if (event.event === "overview") tell({ kind: "overview", overview: event.overview });
    else tell({ kind: "journal", entries: [event.entry] });
  }
}

async function lists({ client, clock, signal, tell }: FeedOptions): Promise<void> {
  for (let first = true; !signal.aborted; first = false) {
    const [nodes, queues, jobs, journal] = await Promise.all([
      quietly(client.cluster.nodes()),
      quietly(client.queues()),
      quietly(client.cluster.jobs({ status: "processing", limit: JOBS_MAX })),
      first ? quietly(client.cluster.journal({ limit: EVENTS_MAX })) : null,
    ]);
    if (signal.aborted) return;
    tell({
      kind: "lists",
      lists: {
        ...(nodes && { nodes: nodes.nodes }),
        ...(queues && { queues: queues.queues }),
        ...(jobs && { jobs: jobs.items }),
      },
    });
    if (journal) tell({ kind: "journal", entries: journal.entries });
    await clock.sleep(LISTS_MS, signal);
  }
}

/** The stream reports failures; a list that could not be read stays as it was. */
async function quietly<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof BatonClientError) return null;
    throw error;
  }
}
