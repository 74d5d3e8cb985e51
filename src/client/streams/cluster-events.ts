/** The events of a cluster, from any node that can be reached. */

import type { EventName } from "../../controller/events/event-log.ts";
import { isLater, positionOf } from "../../core/event-position.ts";
import type { Role } from "../../core/leadership/role.ts";
import type { EventSourceMessage, Resumable } from "./resumable-stream.ts";

interface EventData {
  readonly ts: string;
  readonly job_id?: string;
  readonly task?: string;
  readonly status?: string;
  readonly agent?: string;
  readonly node_id?: string;
  readonly [field: string]: unknown;
}

/** A connection stands: first of all, and again after each one that broke. */
interface HelloEvent {
  readonly event: "hello";
  readonly id: null;
  readonly data: {
    readonly node_id: string;
    readonly role: Role;
    readonly leader_epoch: number | null;
    readonly last_event_id: string | null;
    readonly ts: string;
  };
}

/** Events are missing here: look at the jobs that matter. */
interface GapEvent {
  readonly event: "gap";
  readonly id: null;
  readonly data: {
    readonly since: string | null;
    readonly next: string | null;
    readonly message: string;
  };
}

interface HappenedEvent {
  readonly event: EventName;
  /** Null for what concerns only the node that told it. */
  readonly id: string | null;
  readonly data: EventData;
}

export type ClusterEvent = HelloEvent | GapEvent | HappenedEvent;

type Open = (after: string | null, signal: AbortSignal) => Promise<AsyncIterable<string>>;

/** Each numbered event once and in order, with `gap` where some are missing. */
export function eventStream(open: Open, after: string | null): Resumable<ClusterEvent> {
  let seen = after;
  let greeted = false;
  const read = ({ event = "message", id, data }: EventSourceMessage): ClusterEvent[] => {
    const parsed = { event, id: id ?? null, data: JSON.parse(data) as unknown } as ClusterEvent;
    if (parsed.event === "hello") {
      // Nothing was seen yet, so there was nothing to go on behind.
      const lost = greeted && seen === null;
      seen ??= parsed.data.last_event_id ?? null;
      greeted = true;
      return lost ? [parsed, UNSEEN] : [parsed];
    }
    if (parsed.id === null) return [parsed];
    if (seen !== null && !isLater(positionOf(parsed.id), positionOf(seen))) return [];
    seen = parsed.id;
    return [parsed];
  };
  return { open: (signal) => open(seen, signal), read, endedEarly: "the node ended the stream of events" };
}

const UNSEEN: GapEvent = {
  event: "gap",
  id: null,
  data: {
    since: null,
    next: null,
    message: "events may be missing here: the connection broke before the first one",
  },
};
