/** Queries between nodes about their own stores. Each node answers only for itself and does not pass the query on. */

import { BatonError } from "../core/errors.ts";
import type { QueueInfo } from "../store/store.ts";
import type { PeerHandler, PeerReply } from "../transport/transport.ts";
import type { NodeServices } from "./node-services.ts";

export const QUEUES_PATH = "/peer/queues";

/** What one store has of a queue. */
export interface QueuePart extends QueueInfo {
  /** Left out by a version that does not tell. */
  readonly oldestAt?: number | null;
}

export async function queueParts({ queues }: Pick<NodeServices, "queues">): Promise<readonly QueuePart[]> {
  const [all, waiting] = await Promise.all([queues.list(), queues.waitingSince()]);
  return all.map((queue) => ({ ...queue, oldestAt: waiting.get(queue.name) ?? null }));
}

export function peerQueries({ queues, identity }: NodeServices): Readonly<Record<string, PeerHandler>> {
  return {
    [QUEUES_PATH]: async ({ method, body }) => {
      if (method === "GET") return json({ server: identity.name, queues: await queueParts({ queues }) });
      const { name, paused } = parse(body);
      if (typeof name !== "string" || typeof paused !== "boolean") {
        throw new BatonError("BAD_REQUEST", '"name" must be a text and "paused" true or false', {
          field: "name",
        });
      }
      await queues.setPaused(name, paused);
      return json({ server: identity.name, name, paused });
    },
  };
}

function json(body: unknown): PeerReply {
  return { status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

function parse(text: string): Record<string, unknown> {
  try {
    return (JSON.parse(text) as Record<string, unknown> | null) ?? {};
  } catch {
    throw new BatonError("BAD_JSON", "the body is not valid JSON");
  }
}
